from __future__ import annotations

from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from support.builtin_definitions import DEFINITIONS, random_runs

from trackperm.errors import InputError, SpecError
from trackperm.statistic import ColumnType, builtin_names, load_statistic
from trackperm.statistic.count_expressions import count_expressions, missing_count_expressions
from trackperm.statistic.definition import CLASS_COLUMN
from trackperm.statistic.direction import lower_is_better_by_name
from trackperm.statistic.expressions.types import literal_type


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
    if statistic.rank_score is not None:
        return
    assert statistic.g_names == tuple(f"{side}.{count}" for side in "uv" for count in statistic.total_names)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_counts_of_a_missing_prediction(name: str) -> None:
    definition = DEFINITIONS[name]
    statistic = load_statistic(name, parameters=definition.parameters)
    if definition.missing is None:
        with pytest.raises(InputError, match="does not define the counts of a missing prediction"):
            missing_count_expressions(statistic, {})
        return
    rows, _ = random_runs(definition, np.random.default_rng(3), 20)
    rows = [row | definition.missing(row) for row in rows]
    names = list(statistic.used_columns)
    if statistic.has_classes:
        rows = [{**row, CLASS_COLUMN: label} for row in rows for label in definition.shared["label"]]
        names.append(CLASS_COLUMN)
    table = nw.from_native(pl.DataFrame(rows), eager_only=True)
    types = {column: literal_type(rows[0][column]) for column in names}
    counted = table.select(nw.col("id"), **count_expressions(statistic, types))
    missing = table.select(nw.col("id"), **missing_count_expressions(statistic, types))
    assert missing.to_native().equals(counted.to_native())


def test_positive_against_text() -> None:
    types = dict.fromkeys(("prediction", "label"), ColumnType.TEXT)
    with pytest.raises(SpecError) as caught:
        count_expressions(load_statistic("f1"), types)
    problem = "text column `prediction` is compared with integer parameter `positive` (1) at `$.counts.tp`"
    assert problem in caught.value.message
    assert caught.value.hint == (
        "set the parameter `positive` to a text: `--set positive=yes`, for example. All values that it is"
        " compared with need one type."
    )


def test_spec_files_are_shipped_as_they_are_named() -> None:
    import trackperm.statistic

    folder = Path(trackperm.statistic.__file__).parent / "builtin"
    assert {path.name for path in folder.iterdir()} == {f"{name}.yaml" for name in builtin_names()}
