"""Whatever a test of pairing pairs is paired by another engine too; of cases of one test the first."""

from __future__ import annotations

from functools import partial

import pytest
from pairing.engines_agree import pair_both_ways
from support.engines import SPARK_AT_NIGHT, spark_session

ENOUGH = "test_counts_against_plain_python"
"""Of the tests that pair many generated runs, the one whose runs are paired by DuckDB too."""

ALL_CASES = "test_each_engine"
"""The module whose cases are all paired by each engine, by Spark in part at night."""

ON_SPARK = {
    "test_a_class_that_only_predictions_have_is_left_out",
    "test_a_column_of_the_id_may_be_the_cluster",
    "test_absent_examples_count_as_wrong",
    "test_as_numbers",
    "test_attempts_of_one_id_are_added_up",
    "test_classes_that_differ_between_the_runs",
    "test_clusters_and_repeats",
    "test_digest_depends_on_every_column_and_not_on_the_order",
    "test_digests_depend_on_values_types_and_columns",
    "test_discordant_examples_have_the_scores_of_the_spec",
    "test_dropped_examples",
    "test_engines_agree",
    "test_inputs_that_repeat",
    "test_integer_ids_are_ordered_as_numbers",
    "test_integer_ids_beside_ids_of_a_csv",
    "test_many_runs_at_once",
    "test_nested_ids",
    "test_single_precision",
    "test_sums_beyond_64_bits",
    "test_texts_that_are_integers_have_the_words_of_integers",
    "test_the_largest_counts",
    "test_the_table_has_a_row_for_each_weight",
}
"""Tests of other modules that run on every engine, one for each kind of query.

The others are paired in memory by default, by Spark at night, and with every change by DuckDB, which takes
sixteen times as long.
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module that pairs runs in memory, by DuckDB and by Spark."""
    name, is_generated = metafunc.function.__name__, hasattr(metafunc.function, "hypothesis")
    if hasattr(metafunc.module, "pair") and (not is_generated or name == ENOUGH):
        is_usual = name in ON_SPARK or metafunc.module.__name__.endswith(ALL_CASES)
        engines = ["duckdb", pytest.param("spark", marks=pytest.mark.spark)]
        if is_generated:
            engines = ["duckdb"]
        elif not is_usual:
            on_duckdb = pytest.param("duckdb", marks=pytest.mark.extended)
            engines = ["polars", on_duckdb, pytest.param("spark", marks=SPARK_AT_NIGHT)]
        metafunc.parametrize("other_engine", engines, indirect=True)


def _is_paired_before(item: pytest.Item) -> bool:
    """Whether it is a later case, which is paired only once, with another engine than the first."""
    return _is_a_later_case(item) and item.callspec.indices["other_engine"] > 0


def _is_a_later_case(item: pytest.Item) -> bool:
    case = getattr(item, "callspec", None)
    if case is None or "other_engine" not in case.indices or item.path.stem == ALL_CASES:
        return False
    return any(number for name, number in case.indices.items() if name != "other_engine")


def _is_at_night(item: pytest.Item) -> bool:
    case = getattr(item, "callspec", None)
    return case is not None and case.params.get("name") in getattr(item.module, "AT_NIGHT", ())


@pytest.hookimpl(tryfirst=True)  # before -m chooses by what is marked here
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    later = {item for item in items if _is_paired_before(item)}
    config.hook.pytest_deselected(items=list(later))
    items[:] = [item for item in items if item not in later]
    for item in items:
        if "spark" in item.keywords and ("extended" in item.keywords or _is_at_night(item)):
            item.add_marker("nightly")


@pytest.fixture(autouse=True)
def other_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Let `pair` of a test module pair in memory and by this engine, which have the same result."""
    engine: str | None = getattr(request, "param", None)
    if engine is not None and not _is_a_later_case(request.node):
        monkeypatch.setattr(request.module, "pair", partial(pair_both_ways, engine=engine))
    if engine == "spark":
        spark_session()
    return engine
