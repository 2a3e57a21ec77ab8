"""The worst and the best case of predictions that are missing."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from specs import load

import trackperm
from trackperm.errors import InputError, SpecError
from trackperm.report import text
from trackperm.statistic import builtin_names, load_statistic

LABELS = [0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0]
BASELINE = [0, 1, 0, 0, None, 0, 1, 1, None, 0, 1, 0]
CANDIDATE = [0, 1, 1, None, 1, 1, 0, None, 0, 1, None, 0]


def run(prediction: list[int | None]) -> pl.DataFrame:
    return pl.DataFrame({"id": range(len(prediction)), "prediction": prediction, "label": LABELS})


def perfect(prediction: list[int | None]) -> pl.DataFrame:
    return run([label if value is None else value for value, label in zip(prediction, LABELS, strict=True)])


@pytest.mark.parametrize(
    "name", ["accuracy", "recall", "f1", "balanced_accuracy", "error_rate", "cohen_kappa"]
)
def test_one_run_is_as_missing_says_and_the_other_perfect(name: str) -> None:
    found = trackperm.compare(run(BASELINE), run(CANDIDATE), name, missing="bounds")
    worst = trackperm.compare(perfect(BASELINE), run(CANDIDATE), name, missing="wrong")
    best = trackperm.compare(run(BASELINE), perfect(CANDIDATE), name, missing="wrong")
    cases = {case.missing: case for case in found.cases}
    for case, wanted in (("worst", worst), ("best", best)):
        assert cases[case].pvalue == pytest.approx(wanted.pvalue, rel=1e-12)
        assert cases[case].difference == pytest.approx(wanted.difference, abs=1e-15)
        one = trackperm.compare(run(BASELINE), run(CANDIDATE), name, missing=case)
        assert one.pvalue == cases[case].pvalue
        assert one.cases == ()
    assert found.pvalue == max(worst.pvalue, best.pvalue)


def test_no_way_to_fill_in_lies_outside(tmp_path: Path) -> None:
    found = trackperm.compare(run(BASELINE), run(CANDIDATE), "accuracy", missing="bounds")
    low, high = (case.difference for case in found.cases)
    holes = [[i for i, value in enumerate(side) if value is None] for side in (BASELINE, CANDIDATE)]
    for values in itertools.product([0, 1], repeat=sum(map(len, holes))):
        sides = [list(BASELINE), list(CANDIDATE)]
        for value, (side, i) in zip(values, [(s, i) for s in (0, 1) for i in holes[s]], strict=True):
            sides[side][i] = value
        hits = [sum(p == label for p, label in zip(side, LABELS, strict=True)) for side in sides]
        assert low - 1e-12 <= (hits[1] - hits[0]) / len(LABELS) <= high + 1e-12


def runs(n_missing: int, n: int = 40) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A baseline that is right on half of the examples; a candidate on 12 more, where it is known."""
    label = np.ones(n, dtype=int)
    right = np.arange(n) < n // 2
    better = right | (np.arange(n) >= n - 12)
    frames = [
        pl.DataFrame({"id": range(n), "prediction": side.astype(int), "label": label})
        for side in (right, better)
    ]
    return frames[0], frames[1].filter(pl.col("id") >= n_missing)


@pytest.mark.parametrize(
    ("n_missing", "verdicts", "verdict", "said"),
    [
        (0, ["better", "better"], "better", "the same verdict"),
        (2, ["better", "better"], "better", "the same verdict"),
        (9, ["undecided", "better"], "undecided", "not decided by the data"),
    ],
)
def test_the_verdict_is_what_both_agree_on(
    n_missing: int, verdicts: list[str], verdict: str, said: str
) -> None:
    comparison = trackperm.compare(*runs(n_missing), missing="bounds")
    assert [case.verdict for case in comparison.cases] == verdicts
    assert comparison.verdict == verdict
    (note,) = [line for line in text.lines(comparison) if line.startswith("missing predictions: worst case ")]
    assert note.endswith(said)
    assert ("do not decide it" in text.markdown(comparison)) == comparison.is_open
    assert comparison.to_dict()["cases"][0]["verdict"] == verdicts[0]
    assert comparison.to_dict()["options"]["missing"] == "bounds"
    other = trackperm.compare(*runs(n_missing), missing="worst")
    assert comparison.key != other.key


def test_cases_that_contradict_each_other() -> None:
    """Both p-values are below the level, in opposite directions: that is no verdict either."""
    n = 24
    label = pl.Series("label", [1] * n)
    known = pl.DataFrame({"id": range(n), "prediction": [1, 0] * (n // 2), "label": label})
    baseline, candidate = known.filter(pl.col("id") < 12), known.filter(pl.col("id") >= 12)
    comparison = trackperm.compare(baseline, candidate, missing="bounds")
    assert [case.verdict for case in comparison.cases] == ["worse", "better"]
    assert max(case.pvalue for case in comparison.cases) < 0.05
    assert (comparison.verdict, comparison.marker) == ("undecided", "≈")


def test_what_is_perfect_has_to_be_known(tmp_path: Path) -> None:
    counts = "counts: {hits: rank <= 3, n: 1}\nscore: hits / n\nmissing: {hits: 0, n: 1}\n"
    frame = pl.DataFrame({"id": range(4), "rank": [1, 5, None, 2]})
    with pytest.raises(InputError, match=r"does not say what a perfect prediction counts[\s\S]*`perfect:`"):
        trackperm.compare(frame, frame, load(tmp_path, counts), missing="bounds")
    spec = load(tmp_path, counts + "perfect: {hits: 1, n: 1}\n")
    assert trackperm.compare(frame, frame, spec, missing="bounds").cases[1].difference == pytest.approx(0.25)
    assert load_statistic(spec).document() == spec.document()
    assert "perfect" in spec.document()


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("perfect: {hits: 1}", "`perfect` says nothing of `n`"),
        ("perfect: {hits: rank, n: 1}", "`rank` cannot stand in `perfect`"),
        ("perfect: {hits: 1, n: 1, m: 1}", "there is no count `m`"),
    ],
)
def test_wrong_declarations(tmp_path: Path, declared: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load(tmp_path, f"counts: {{hits: rank <= 3, n: 1}}\nscore: hits / n\n{declared}\n")


@pytest.mark.parametrize("name", [name for name in builtin_names() if load_statistic(name).counts_missing])
def test_every_built_in_that_knows_wrong_knows_right(name: str) -> None:
    assert load_statistic(name).counts_perfect


def test_a_statistic_that_says_nothing_of_missing_predictions() -> None:
    frame: Any = pl.DataFrame({"id": range(4), "score": [0.5, None, 1.0, 0.0]})
    with pytest.raises(InputError, match="does not say what a missing prediction counts"):
        trackperm.compare(frame, frame, "mean", missing="bounds")
