"""Decimal columns: equal inputs are ties, whatever the other values of the two runs are."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.budget import cases
from support.engines import SPARK_AT_NIGHT

import trackperm
from trackperm.errors import TrackpermError
from trackperm.exact.scores.floats import DecimalForms

each_engine = pytest.mark.parametrize(
    "engine", ["polars", "duckdb", pytest.param("spark", marks=SPARK_AT_NIGHT)]
)

COUNTS = {
    "at most": "(a <= 0.3) + 0",
    "difference": "(a - b) == 0",
    "choice": "where(a > b, 1, 0)",
    "largest": "max(a, b) == b",
    "between": "(a > 0.7) + (a < 0.7)",
    "product": "a * b - 0.1",
    "chosen": "where(a > b, a - b, b ** 2)",
    "quotient": "a / (1 + abs(b))",
    "of class": "where(class == 1, abs(a - b), 0)",
}


def spec(path: Path, count: str, **keys: str) -> str:
    """Write a statistic that is the mean of a count."""
    lines = ["name: s", f'counts: {{k: "{count}", n: 1}}', "score: k / n"]
    lines += [f"{key}: {value}" for key, value in keys.items()]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def mean_of(path: Path, kind: str) -> str:
    if kind != "of class":
        return spec(path, COUNTS[kind])
    path.write_text(f'name: s\nclasses: [1, 2]\ncounts: {{k: "{COUNTS[kind]}", n: 1}}\nscore: k / n\n')
    return str(path)


def one_changed(value: float, n: int = 12) -> list[pl.DataFrame]:
    """Two runs with the label 0.3 and the prediction 0.1, but for one prediction of the candidate."""
    a = pl.DataFrame({"id": range(n), "label": [0.3] * n, "prediction": [0.1] * n})
    return [a, a.with_columns(prediction=pl.Series([0.1] * (n - 1) + [value]))]


@pytest.mark.sample(2)
@each_engine
@pytest.mark.parametrize("statistic", ["mae", "mse", "rmse"])
@pytest.mark.parametrize("value", [0.12345678, 0.123456789, 0.1234567890123])
def test_one_changed_prediction_is_one_discordant_example(statistic: str, value: float, engine: Any) -> None:
    found = trackperm.compare(*one_changed(value), statistic, engine=engine)
    assert (found.n_discordant, found.pvalue) == (1, 1.0)


@each_engine
def test_integers_tie_with_the_same_decimals(engine: Any) -> None:
    label = [0.3, 1.1, 0.7, 2.9] * 3
    first, second = (
        pl.DataFrame(
            {"id": range(12), "label": label, "prediction": pl.Series([1] * 11 + [last], dtype=kind)}
        )
        for last, kind in ((1, pl.Int64), (1.2345678901234, pl.Float64))
    )
    for frames in ((first, second), (second, first)):
        assert trackperm.compare(*frames, "mae", engine=engine).n_discordant == 1


@pytest.mark.sample(3)
@each_engine
@pytest.mark.parametrize(
    ("kind", "score"), [("at most", 1), ("difference", 1), ("choice", 0), ("largest", 1)]
)
def test_comparisons_read_decimals(tmp_path: Path, engine: Any, kind: str, score: int) -> None:
    first = pl.DataFrame({"id": range(6), "a": [0.1 + 0.2] * 6, "b": [0.3] * 6})
    second = first.with_columns(a=pl.lit(0.3))
    found = trackperm.compare(first, second, mean_of(tmp_path / "s.yaml", kind), engine=engine)
    assert (found.baseline_score, found.candidate_score, found.pvalue) == (score, score, 1.0)


def test_single_precision_compares_like_double(tmp_path: Path) -> None:
    first = pl.DataFrame({"id": range(6), "a": pl.Series([0.7] * 6, dtype=pl.Float32)})
    second = first.with_columns(a=pl.lit(0.7))
    found = trackperm.compare(first, second, mean_of(tmp_path / "s.yaml", "between"))
    assert (found.baseline_score, found.candidate_score, found.pvalue) == (0.0, 0.0, 1.0)


def test_a_missing_prediction_is_counted_as_decimals_are(tmp_path: Path) -> None:
    statistic = spec(
        tmp_path / "s.yaml", "(prediction <= label) + 0", missing='{k: "(label <= 0.3) + 0", n: 1}'
    )
    first = pl.DataFrame({"id": range(4), "label": [0.1 + 0.2] * 4, "prediction": [0.1, 0.2, 0.3, None]})
    second = first.with_columns(prediction=pl.lit(0.3))
    assert trackperm.compare(first, second, statistic, missing="wrong").baseline_score == 1.0


def test_the_shipped_example_has_a_tie_at_its_threshold() -> None:
    first = pl.DataFrame(
        {"id": range(6), "label": [1, 0] * 3, "score": [0.1 + 0.2, 0.2] * 3, "threshold": [0.3] * 6}
    )
    second = first.with_columns(score=pl.Series([0.3, 0.2] * 3), threshold=pl.lit(0.1 + 0.2))
    found = trackperm.compare(first, second, "examples/statistics/f_half_at_threshold.yaml")
    assert (found.baseline_score, found.candidate_score, found.n_discordant) == (1.0, 1.0, 0)


def test_numbers_that_leave_62_bits_in_one_run_are_in_floats_in_both() -> None:
    label = [0.3] * 12
    first = pl.DataFrame({"id": range(12), "label": label, "prediction": [0.1] * 12})
    second = first.with_columns(prediction=pl.Series([0.1] * 11 + [123456789.12]))
    for frames in ((first, second), (second, first)):
        assert trackperm.compare(*frames, "mse").n_discordant == 1


VALUES = st.one_of(
    st.integers(0, 10).map(lambda k: k / 10),
    st.integers(0, 10**8).map(lambda k: k / 10**8),
    st.integers(0, 10**9).map(lambda k: k / 10**9),
    st.sampled_from([0.1 + 0.2, 1 / 3, 0.1234567890123, 1.0, 0.0]),
)
SETTINGS = settings(
    deadline=None, max_examples=cases(5), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def tables(draw: Any) -> tuple[list[pl.DataFrame], int]:
    """Two runs of one-digit decimals, in which a few values differ; and the number of rows that do."""
    n = draw(st.integers(4, 8))
    tenths = st.integers(0, 10).map(lambda k: k / 10)
    columns = [draw(st.lists(tenths, min_size=n, max_size=n)) for _ in range(2)]
    changed = [dict(enumerate(column)) for column in columns]
    for _ in range(draw(st.integers(0, 2))):
        changed[draw(st.integers(0, 1))][draw(st.integers(0, n - 1))] = draw(VALUES)
    frames = []
    for a, b in (columns, [list(each.values()) for each in changed]):
        whole = all(x == int(x) for x in a) and draw(st.booleans())
        frames.append(
            pl.DataFrame(
                {
                    "id": range(n),
                    "label": [0.3, 0.7, 1.0, 0.1, 0.9, 0.2, 0.6, 0.4][:n],
                    "truth": [i % 2 for i in range(n)],
                    "prediction": pl.Series([int(x) for x in a] if whole else a),
                    "b": b,
                    "probabilities": [[x, 1 - x] for x in a],
                }
            )
        )
    same = zip(*columns, strict=True), zip(*(each.values() for each in changed), strict=True)
    return frames, sum(x != y for x, y in zip(*same, strict=True))


NAMES: dict[str, dict[str, Any]] = {
    "mae": {}, "mse": {}, "rmse": {}, "r2": {}, "pearson": {},
    "brier": {"columns": {"probability": "prediction", "label": "truth"}},
    "ece": {"columns": {"confidence": "prediction", "prediction": "truth", "label": "truth"}},
    "multiclass_brier": {"columns": {"label": "truth"}},
}  # fmt: skip


@pytest.mark.sample(1)
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@given(drawn=tables(), data=st.data())
@SETTINGS
def test_equal_inputs_are_never_discordant(tmp_path: Path, engine: Any, drawn: Any, data: Any) -> None:
    frames, n_changed = drawn
    name = data.draw(st.sampled_from([*NAMES, *COUNTS]))
    statistic, options = name, NAMES.get(name, {})
    if name in COUNTS:
        statistic, options = mean_of(tmp_path / "s.yaml", name), {"columns": {"a": "prediction"}}
    try:
        found = trackperm.compare(
            *frames, statistic, engine=engine, interval="none", allow_unseen=True, **options
        )
    except TrackpermError:
        return  # such as a correlation of equal predictions
    assert found.n_discordant <= n_changed


def exact(value: float) -> Fraction:
    return Fraction(repr(value))


@pytest.mark.sample(1)
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@given(
    digits=st.tuples(*[st.sampled_from([1, 2, 4, 6, 8])] * 2),
    steps=st.lists(st.tuples(*[st.integers(-12, 12)] * 3), min_size=2, max_size=6),
    name=st.sampled_from(["mae", "between"]),
)
@SETTINGS
def test_runs_of_different_decimals_against_all_swaps(
    tmp_path: Path, engine: Any, digits: Any, steps: Any, name: str
) -> None:
    label, first, second = ([step[i] / 10**places for step in steps] for i, places in enumerate((1, *digits)))
    if name == "mae":
        count, options = lambda x, y: abs(x - y), {}
    else:
        count, options = lambda x, _: (x > Fraction(7, 10)) + (x < Fraction(7, 10)), {}
        name, options = mean_of(tmp_path / "s.yaml", name), {"columns": {"a": "prediction"}}
    sides = [[count(exact(x), exact(y)) for x, y in zip(run, label, strict=True)] for run in (first, second)]
    frames = [
        pl.DataFrame({"id": range(len(label)), "label": label, "prediction": x}) for x in (first, second)
    ]
    found = trackperm.compare(*frames, name, engine=engine, interval="none", **options)
    differences = [v - u for u, v in zip(*sides, strict=True)]
    sums = [
        sum(sign * each for sign, each in zip(signs, differences, strict=True))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    assert found.pvalue == pytest.approx(sum(abs(x) >= abs(sums[0]) for x in sums) / len(sums), rel=1e-12)


@pytest.mark.parametrize(
    ("first", "second", "places"),
    [
        ([0.1, 0.25], [1.0], 2),
        ([3.0], [4.0], 0),
        ([1e15], [0.5], None),
        ([0.1], [1 / 3], None),
        ([], [0.1], 1),
        ([float(np.float32(0.7))], [0.25, 0.3], 2),
        ([float("nan")], [0.1], None),
    ],
)
def test_forms_of_two_runs(first: list[float], second: list[float], places: int | None) -> None:
    forms = [DecimalForms.of(np.array(run, dtype=np.float64)) for run in (first, second)]
    assert (forms[0] & forms[1]).places == (forms[1] & forms[0]).places == places
