"""Whatever a test of pairing pairs is paired by each engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

import pytest
from pairing.engines_agree import pair_alike
from support.engines import spark_settings

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings with which Spark does not compile each of many small queries."""

ENOUGH = "test_counts_against_plain_python"
"""Of the tests that pair many generated runs, the one whose runs are paired by DuckDB too."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module that pairs runs by polars and DuckDB, and by polars and Spark."""
    is_generated = hasattr(metafunc.function, "hypothesis")
    if hasattr(metafunc.module, "pair") and (not is_generated or metafunc.function.__name__ == ENOUGH):
        engines = ["duckdb", *([] if is_generated else [pytest.param("spark", marks=pytest.mark.spark)])]
        metafunc.parametrize("other_engine", engines, indirect=True)


@pytest.fixture(autouse=True)
def other_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str | None]:
    """Let `pair` of a test module pair in memory and by this engine, which have the same result."""
    engine: str | None = getattr(request, "param", None)
    if engine is not None:
        monkeypatch.setattr(request.module, "pair", partial(pair_alike, engine=engine))
    with spark_settings(INTERPRETED) if engine == "spark" else nullcontext():
        yield engine
