"""The same table in every data frame library that tests know, and what expressions give on it.

DuckDB and Spark frames are lazy and promise no order of rows: a column of row numbers brings it back.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from trackperm.pairing.engines.duckdb import DuckDB
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.engines.spark import Spark

ENGINES = (
    "polars",
    "polars lazy",
    "pandas",
    "pandas nullable",
    "pandas pyarrow",
    "pandas object",
    "pyarrow",
    "duckdb",
)
SPARK = "pyspark"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of a Java process that ends soon: compile little, and collect garbage without other threads."""

COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""What Spark does by default; the session of the tests does not compile its many small queries."""

each_engine = pytest.mark.parametrize("engine", [*ENGINES, pytest.param(SPARK, marks=pytest.mark.spark)])


@contextmanager
def spark_settings(settings: Mapping[str, str]) -> Iterator[Any]:
    """Return the session of the tests with other settings."""
    session = spark_session()
    before = {name: session.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        yield session
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


def spark() -> Spark:
    """Return an engine in the session of the tests."""
    spark_session()
    return Spark()


every_engine = pytest.mark.parametrize(
    "engine", [InMemory, DuckDB, pytest.param(spark, marks=pytest.mark.spark)]
)
"""Every engine that pairs runs."""

SPARK_AT_NIGHT = (pytest.mark.spark, pytest.mark.nightly)


def each_with_engines(names: Iterable[str], *engines: str) -> pytest.MarkDecorator:
    """Parametrise a test by `name` and `engine`: all names with `engines`, and the first on Spark too.

    Spark takes the others at night: a comparison is some twenty queries, of a tenth of a second each.
    """
    names = list(names)
    cases = [pytest.param(name, engine) for name in names for engine in engines]
    for name in names:
        marks = SPARK_AT_NIGHT if name != names[0] else pytest.mark.spark
        cases.append(pytest.param(name, "spark", marks=marks))
    return pytest.mark.parametrize(("name", "engine"), cases)


_ROW = "row number"
_NULLABLE = {
    "int64": "Int64", "uint8": "UInt8", "double": "Float64", "bool": "boolean", "string": "string",
}  # fmt: skip


def native(engine: str, data: Mapping[str, Sequence[Any]] | pa.Table) -> Any:
    """`data` as a table of `engine`; values without a common type give an object column in pandas."""
    if engine == "polars":
        return pl.from_arrow(data) if isinstance(data, pa.Table) else pl.DataFrame(data)
    if engine == "polars lazy":
        return native("polars", data).lazy()
    if engine in ("pandas", "pandas object"):
        table = (
            data.to_pandas(integer_object_nulls=True) if isinstance(data, pa.Table) else pd.DataFrame(data)
        )
        return table.astype(object) if engine == "pandas object" else table
    table = data if isinstance(data, pa.Table) else pa.table(dict(data))
    if engine == "duckdb":
        return _duckdb().from_arrow(table)
    if engine == SPARK:
        return spark_session().createDataFrame(table.cast(pa.schema(map(_signed, table.schema))))
    if engine == "pandas pyarrow":
        return table.to_pandas(types_mapper=pd.ArrowDtype)
    if engine == "pandas nullable":
        columns = {
            field.name: pd.array(table[field.name].to_pylist(), dtype=_NULLABLE[str(field.type)])
            for field in table.schema
        }
        return pd.DataFrame(columns)
    assert engine == "pyarrow"
    return table


def _signed(field: pa.Field) -> pa.Field:
    """Spark has no unsigned integers."""
    return field.with_type(pa.int16()) if field.type == pa.uint8() else field


def frame(engine: str, data: Mapping[str, Sequence[Any]]) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """`data` as a table of `engine`, with row numbers beside it."""
    n_rows = len(next(iter(data.values())))
    return nw.from_native(native(engine, {**data, _ROW: range(n_rows)}))


def evaluated(
    table: nw.DataFrame[Any] | nw.LazyFrame[Any], expressions: Mapping[str, nw.Expr]
) -> nw.DataFrame[Any]:
    """What the expressions give on a table of :func:`frame`, as a polars table in the order of its rows."""
    named = {name: expression.alias(name) for name, expression in expressions.items()}
    found = table.select(nw.col(_ROW), **named)
    if isinstance(found, nw.LazyFrame):
        found = found.collect("polars")
    return nw.from_native(found.to_polars(), eager_only=True).sort(_ROW).drop(_ROW)


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


@cache
def spark_session() -> Any:
    """One local session for all tests of a process, with what makes many small queries quick."""
    pytest.importorskip("pyspark", reason="Spark is not installed: `pip install 'trackperm[spark]'`")
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        pytest.skip("Spark needs Java, and there is no `java`")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.shuffle.partitions": "2",
    }
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
