from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from sklearn import metrics
from support.builtin_definitions import DEFINITIONS, random_runs
from support.engines import each_engine, frame

from trackperm.errors import InputError, SpecError
from trackperm.exact import RationalStatistic
from trackperm.statistic import ColumnType, Statistic, builtin_names, load_statistic
from trackperm.statistic.definition import CLASS_COLUMN
from trackperm.statistic.direction import lower_is_better_by_name
from trackperm.statistic.expressions.types import literal_type

SCORES = {
    "accuracy": metrics.accuracy_score,
    "precision": lambda label, prediction: metrics.precision_score(label, prediction, zero_division=0),
    "recall": lambda label, prediction: metrics.recall_score(label, prediction, zero_division=0),
    "f1": lambda label, prediction: metrics.f1_score(label, prediction, zero_division=0),
}


def totals(
    statistic: Statistic, table: nw.DataFrame[Any] | nw.LazyFrame[Any], types: dict[str, ColumnType]
) -> list[int]:
    expressions = statistic.counts(types)
    columns = [expression.alias(f"#{name}") for name, expression in expressions.items()]
    counts = table.select(nw.col(table.collect_schema().names()[0]), *columns)
    if isinstance(counts, nw.LazyFrame):
        counts = counts.collect("polars")
    return [int(counts[f"#{name}"].sum()) for name in statistic.count_names]


def score(statistic: Statistic, values: list[int]) -> Fraction:
    assert isinstance(statistic.score, RationalStatistic)
    return statistic.score(values)


def test_every_one_is_defined_in_a_test() -> None:
    """In `builtin_definitions.DEFINITIONS`, or in a test module of its own that names it."""
    folder = Path(__file__).parent
    others = "".join(p.read_text(encoding="utf-8") for p in folder.rglob("test_*.py") if p != Path(__file__))
    lacking = {name for name in builtin_names() if name not in DEFINITIONS and f'"{name}"' not in others}
    assert not lacking
    assert set(DEFINITIONS) <= set(builtin_names())


@pytest.mark.parametrize("name", builtin_names())
def test_every_one_is_described_and_two_sided(name: str) -> None:
    statistic = load_statistic(name)
    assert statistic.name == name
    assert len(statistic.description) > 30
    assert statistic.alternative == "two-sided"
    assert statistic.greater_is_better != lower_is_better_by_name(name)
    assert statistic.g_names == tuple(f"{side}.{count}" for side in "uv" for count in statistic.total_names)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_counts_of_a_missing_prediction(name: str) -> None:
    definition = DEFINITIONS[name]
    statistic = load_statistic(name, parameters=definition.parameters)
    if definition.missing is None:
        with pytest.raises(InputError, match="does not define the counts of a missing prediction"):
            statistic.missing_counts({})
        return
    rows, _ = random_runs(definition, np.random.default_rng(3), 20)
    rows = [row | definition.missing(row) for row in rows]
    names = list(statistic.used_columns)
    if statistic.has_classes:
        rows = [{**row, CLASS_COLUMN: label} for row in rows for label in definition.shared["label"]]
        names.append(CLASS_COLUMN)
    table = nw.from_native(pl.DataFrame(rows), eager_only=True)
    types = {column: literal_type(rows[0][column]) for column in names}
    counted = table.select(nw.col("id"), **statistic.counts(types))
    missing = table.select(nw.col("id"), **statistic.missing_counts(types))
    assert missing.to_native().equals(counted.to_native())


@each_engine
@pytest.mark.parametrize("name", SCORES)
def test_against_scikit_learn(name: str, engine: str) -> None:
    rng = np.random.default_rng(7)
    for n, rate in [(1, 0.5), (60, 0.5), (60, 0.0), (60, 1.0)]:
        label = (rng.random(n) < 0.4).astype(int).tolist()
        prediction = (rng.random(n) < rate).astype(int).tolist()
        statistic = load_statistic(name)
        types = dict.fromkeys(("prediction", "label"), ColumnType.INTEGER)
        table = frame(engine, {"prediction": prediction, "label": label})
        found = score(statistic, totals(statistic, table, types))
        assert float(found) == pytest.approx(SCORES[name](label, prediction), rel=1e-14)


@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
@pytest.mark.parametrize("positive", ["ham", "spam", "eggs"])
def test_one_class_of_several_against_scikit_learn(name: str, positive: str) -> None:
    rng = np.random.default_rng(8)
    label, prediction = rng.choice(["ham", "spam", "eggs"], size=(2, 50))
    statistic = load_statistic(name, parameters={"positive": positive})
    table = nw.from_native(pl.DataFrame({"prediction": prediction, "label": label}))
    types = dict.fromkeys(("prediction", "label"), ColumnType.TEXT)
    oracle = getattr(metrics, f"{name}_score")(label, prediction, labels=[positive], average=None)[0]
    assert float(score(statistic, totals(statistic, table, types))) == pytest.approx(oracle, rel=1e-14)


@each_engine
def test_macro_f1_against_scikit_learn(engine: str) -> None:
    rng = np.random.default_rng(10)
    label, prediction = (rng.choice(["a", "b", "c", "d"], size=50).tolist() for _ in range(2))
    label = [value if value != "d" else "a" for value in label]
    statistic = load_statistic("macro_f1", classes=sorted(set(label)))
    values: list[int] = []
    for name in statistic.classes:
        data = {"prediction": prediction, "label": label, CLASS_COLUMN: [name] * len(label)}
        values += totals(statistic, frame(engine, data), dict.fromkeys(data, ColumnType.TEXT))
    oracle = metrics.f1_score(label, prediction, average="macro", labels=["a", "b", "c"])
    assert float(score(statistic, values)) == pytest.approx(oracle, rel=1e-14)


def test_pooled_f1_against_scikit_learn() -> None:
    rng = np.random.default_rng(9)
    label, prediction = rng.random((2, 30, 5)) < 0.4
    tp = (label & prediction).sum(axis=1)
    incorrect = (label != prediction).sum(axis=1)
    statistic = load_statistic("pooled_f1")
    table = nw.from_native(pl.DataFrame({"tp": tp, "incorrect": incorrect}))
    found = score(statistic, totals(statistic, table, dict.fromkeys(("tp", "incorrect"), ColumnType.INTEGER)))
    assert float(found) == pytest.approx(metrics.f1_score(label, prediction, average="micro"), rel=1e-14)


def test_mean() -> None:
    statistic = load_statistic("mean")
    table = nw.from_native(pl.DataFrame({"score": [3, -1, 5, 0]}))
    assert score(statistic, totals(statistic, table, {"score": ColumnType.INTEGER})) == Fraction(7, 4)
    decimals = nw.from_native(pl.DataFrame({"score": [0.5, 0.25]}))
    counts = decimals.select(**statistic.counts({"score": ColumnType.DECIMAL}))
    assert counts["total"].to_list() == [0.5, 0.25]


@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_positive_against_text(name: str) -> None:
    types = dict.fromkeys(("prediction", "label"), ColumnType.TEXT)
    with pytest.raises(SpecError) as caught:
        load_statistic(name).counts(types)
    problem = "text column `prediction` is compared with integer parameter `positive` (1) at `$.counts.tp`"
    assert problem in caught.value.message
    assert caught.value.hint == (
        "set the parameter `positive` to a text: `--set positive=yes`, for example. All values that it is"
        " compared with need one type."
    )


def test_h_is_the_difference_of_scores() -> None:
    statistic = load_statistic("f1")
    candidate, baseline = np.array([[1, 0], [0, 2]]), np.array([[0, 1], [1, 1]])
    observed, swapped = statistic.pairs(candidate, baseline)
    np.testing.assert_array_equal(observed, np.hstack([candidate, baseline]))
    np.testing.assert_array_equal(swapped, np.hstack([baseline, candidate]))
    assert isinstance(statistic.h, RationalStatistic)
    expected = score(statistic, [1, 2]) - score(statistic, [1, 2])
    assert statistic.h(observed.sum(axis=0)) == expected == 0
    assert statistic.h([2, 0, 1, 2]) == Fraction(1, 2)
    assert statistic.h([0, 0, 1, 2]) == -Fraction(1, 2)


def test_spec_files_are_shipped_as_they_are_named() -> None:
    import trackperm.statistic

    folder = Path(trackperm.statistic.__file__).parent / "builtin"
    assert {path.name for path in folder.iterdir()} == {f"{name}.yaml" for name in builtin_names()}
