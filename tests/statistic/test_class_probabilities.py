"""Log loss and Brier score of several classes against scikit-learn and all swaps, from any probabilities."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn import metrics
from support.unit_swaps import example_pvalue

import trackperm
from trackperm.errors import InputError, InputTypeError

CLASSES = ["bird", "cat", "dog"]


def probabilities(seed: int, n: int, digits: int = 1) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return labels of two of three classes, and decimals that add up to 1 for two systems."""
    rng = np.random.default_rng(seed)
    label = rng.integers(2, size=n)
    label[:2] = 0, 1
    parts = [np.sort(rng.integers(0, 10**digits + 1, size=(n, 2)), axis=1) for _ in range(2)]
    wholes = [np.diff(each, axis=1, prepend=0, append=10**digits) for each in parts]
    return label, [each / 10**digits for each in wholes]


FORMS: dict[str, Callable[[np.ndarray], list[Any]]] = {
    "lists": lambda values: values.tolist(),
    "JSON lists": lambda values: [json.dumps(row) for row in values.tolist()],
    "JSON objects": lambda values: [
        json.dumps(dict(zip(reversed(CLASSES), reversed(row), strict=True))) for row in values.tolist()
    ],
}


def frames(label: Any, both: list[np.ndarray], form: str = "lists") -> list[pl.DataFrame]:
    names = [CLASSES[i] for i in label]
    return [
        pl.DataFrame({"id": range(len(label)), "label": names, "probabilities": FORMS[form](each)})
        for each in both
    ]


ORACLES: dict[str, Callable[..., float]] = {
    "multiclass_log_loss": lambda y, p: metrics.log_loss(y, p, labels=[0, 1, 2]),
    "multiclass_brier": lambda y, p: metrics.brier_score_loss(y, p, labels=[0, 1, 2]),
}


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("form", FORMS)
def test_against_scikit_learn(name: str, form: str) -> None:
    label, both = probabilities(1, 200)
    parameters = {} if form == "JSON objects" else {"labels": "bird, cat, dog"}
    found = trackperm.compare(*frames(label, both, form), name, parameters=parameters)
    assert found.baseline_score == pytest.approx(ORACLES[name](label, both[0]), rel=1e-13)
    assert found.candidate_score == pytest.approx(ORACLES[name](label, both[1]), rel=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_brier_against_all_swaps(seed: int) -> None:
    label, both = probabilities(seed, 9)
    found = trackperm.compare(
        *frames(label, both), "multiclass_brier", parameters={"labels": ",".join(CLASSES)}
    )
    assert found.statistic.resolution == {"squared_error": Fraction(1, 100)}
    exact = [
        [
            sum((Fraction(str(p)) - (k == y)) ** 2 for k, p in enumerate(row))
            for y, row in zip(label.tolist(), each.tolist(), strict=True)
        ]
        for each in both
    ]
    expected = example_pvalue(*exact, lambda u, v: sum(u) - sum(v))
    assert found.pvalue == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_log_loss_against_all_swaps(seed: int) -> None:
    label, both = probabilities(seed, 9)
    found = trackperm.compare(
        *frames(label, both), "multiclass_log_loss", parameters={"labels": ",".join(CLASSES)}
    )
    unit = found.statistic.resolution["loss"]
    losses = [-np.log(np.clip(each[np.arange(9), label], 2.0**-52, 1 - 2.0**-52)) for each in both]
    rounded = [[round(Fraction(loss) / unit) for loss in each.tolist()] for each in losses]
    expected = example_pvalue(*rounded, lambda u, v: sum(u) - sum(v))
    assert found.pvalue == pytest.approx(float(expected), rel=1e-12)


def test_sums_of_decimals_that_floats_round_are_ties() -> None:
    label, values = ["a", "a"], [[[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]], [[0.7, 0.1, 0.2], [0.6, 0.1, 0.3]]]
    runs = [pl.DataFrame({"id": [1, 2], "label": label, "probabilities": each}) for each in values]
    found = trackperm.compare(*runs, "multiclass_brier", parameters={"labels": "a,b,c"})
    assert (found.difference, found.n_discordant, found.pvalue) == (0.0, 0, 1.0)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_files_of_every_format(engine: Any, tmp_path: Path) -> None:
    label, both = probabilities(2, 40)
    expected = trackperm.compare(
        *frames(label, both), "multiclass_brier", parameters={"labels": ",".join(CLASSES)}
    )
    paths = []
    for i, frame in enumerate(frames(label, both)):
        paths.append(tmp_path / f"{i}.parquet")
        frame.write_parquet(paths[-1])
    options: Any = {"parameters": {"labels": ",".join(CLASSES)}, "engine": engine}
    found = trackperm.compare(*map(str, paths), "multiclass_brier", **options)
    assert found.pvalue == expected.pvalue
    assert found.pairing.baseline_digest == expected.pairing.baseline_digest


def test_objects_of_json_lines(tmp_path: Path) -> None:
    label, both = probabilities(2, 40)
    paths = [str(tmp_path / f"{i}.jsonl") for i in range(2)]
    for path, values in zip(paths, both, strict=True):
        rows = [
            {"id": i, "label": CLASSES[y], "probabilities": dict(zip(CLASSES, row, strict=True))}
            for i, (y, row) in enumerate(zip(label, values.tolist(), strict=True))
        ]
        Path(path).write_text("\n".join(map(json.dumps, rows)))
    found = trackperm.compare(*paths, "multiclass_brier")
    assert found.candidate_score == pytest.approx(metrics.brier_score_loss(label, both[1], labels=[0, 1, 2]))


REFUSED: dict[str, tuple[list[Any], list[Any], dict[str, str], str]] = {
    "classes of lists without names": (["a"], [[0.5, 0.5]], {}, "`label` is text, so that the order of"),
    "too few names": ([1], [[0.5, 0.5]], {"labels": "1"}, r"has 2 probabilities, and there are 1 classes"),
    "a class named twice": (["a"], [[0.5, 0.5]], {"labels": "a,a"}, "the classes `a`, `a` have one twice"),
    "a label beyond the classes": (
        ["c"],
        [[0.5, 0.5]],
        {"labels": "a,b"},
        "`label` is 'c', and the classes",
    ),
    "lists of other lengths": ([1, 1], [[0.5, 0.5], [1.0]], {}, "has 1 probabilities, and 2 on other"),
    "logits": ([1], [[1.5, -0.5]], {}, "has a number that is not from 0 to 1"),
    "numbers that are no distribution": ([1], [[0.5, 0.9]], {}, "add up to 1.4, not to 1"),
    "null": ([1], [[0.5, None]], {}, "contains a null"),
    "text": ([1], ["0.5 0.5"], {}, "is '0.5 0.5'; expected probabilities"),
    "objects of other classes": ([1, 1], ['{"1": 1}', '{"2": 1}'], {}, "has the classes `2`, and not `1`"),
    "text in an object": ([1], ['{"1": "x"}'], {}, "what is not a number"),
}


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused_probabilities(name: str, case: tuple[list[Any], list[Any], dict[str, str], str]) -> None:
    label, values, parameters, said = case
    frame = pl.DataFrame({"id": range(len(label)), "label": label, "probabilities": values})
    with pytest.raises((InputError, InputTypeError), match=said):
        trackperm.compare(frame, frame, name, parameters=parameters)


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", [pl.Float64, pl.Float32])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_other_probabilities_of_a_run_change_no_example(engine: Any, kind: Any) -> None:
    """Squared errors of equal probabilities are equal, whether all those of the run are decimals or not."""
    n = 12
    own = pl.Series([[0.1, 0.2, 0.7]] * n, dtype=pl.List(kind))
    first = pl.DataFrame({"id": range(n), "label": [0, 1, 2] * 4, "probabilities": own})
    for last in ([1 / 3, 2 / 3, 0.0], [0.12345, 0.07655, 0.8]):
        other = pl.Series([[0.1, 0.2, 0.7]] * (n - 1) + [last], dtype=pl.List(kind))
        second = first.with_columns(probabilities=other)
        for frames in ((first, second), (second, first)):
            found = trackperm.compare(*frames, "multiclass_brier", engine=engine)
            assert (found.n_discordant, found.pvalue) == (1, 1.0)


def test_equal_runs_of_lists_outside_of_memory() -> None:
    run = pl.DataFrame({"id": range(4), "label": [0, 1] * 2, "probabilities": [[0.5, 0.5]] * 4})
    assert trackperm.compare(run, run.clone(), "multiclass_brier", engine="duckdb").pvalue == 1.0
