"""Whatever a test of pairing pairs is paired by each engine; of cases of one test the first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

import pytest
from pairing.engines_agree import pair_both_ways
from support.engines import spark_settings

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings with which Spark does not compile each of many small queries."""

ENOUGH = "test_counts_against_plain_python"
"""Of the tests that pair many generated runs, the one whose runs are paired by DuckDB too."""

ALL_CASES = "test_each_engine"
"""The module whose cases are all paired by each engine."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module that pairs runs by polars and DuckDB, and by polars and Spark."""
    is_generated = hasattr(metafunc.function, "hypothesis")
    if hasattr(metafunc.module, "pair") and (not is_generated or metafunc.function.__name__ == ENOUGH):
        engines = ["duckdb", *([] if is_generated else [pytest.param("spark", marks=pytest.mark.spark)])]
        metafunc.parametrize("other_engine", engines, indirect=True)


def _is_a_later_case(item: pytest.Item) -> bool:
    case = getattr(item, "callspec", None)
    if case is None or "other_engine" not in case.indices or item.path.stem == ALL_CASES:
        return False
    return any(number for name, number in case.indices.items() if name != "other_engine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    later = {item for item in items if _is_a_later_case(item) and "spark" in item.keywords}
    config.hook.pytest_deselected(items=list(later))
    items[:] = [item for item in items if item not in later]


@pytest.fixture(autouse=True)
def other_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str | None]:
    """Let `pair` of a test module pair in memory and by this engine, which have the same result."""
    engine: str | None = getattr(request, "param", None)
    if engine is not None and not _is_a_later_case(request.node):
        monkeypatch.setattr(request.module, "pair", partial(pair_both_ways, engine=engine))
    with spark_settings(INTERPRETED) if engine == "spark" else nullcontext():
        yield engine
