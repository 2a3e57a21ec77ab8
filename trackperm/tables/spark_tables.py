"""Tables of Spark's catalog, named ``spark:TABLE``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import narwhals as nw

from trackperm.errors import MissingDependencyError, SourceError
from trackperm.tables.query import Query, first_line
from trackperm.tables.table import ExampleTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX = "spark:"
_CONFIGURED = ("PYSPARK_GATEWAY_PORT", "SPARK_CONF_DIR", "SPARK_HOME", "SPARK_REMOTE")
_ALONE: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def is_spark_table(locator: str) -> bool:
    """Whether a locator names a table of Spark's catalog, such as ``spark:prod.eval.run_a``."""
    return locator.startswith(_PREFIX) and len(locator) > len(_PREFIX)


def read_spark_table(locator: str, origin: str) -> ExampleTable:
    """Find a table of Spark's catalog, whose rows stay where they are.

    Raises
    ------
    SourceError
        If Spark has no such table.
    MissingDependencyError
        If PySpark is not installed, or Spark does not start.
    """
    session, name = spark_session(), locator.removeprefix(_PREFIX)
    try:
        frame = session.table(name)
        query = Query(nw.from_native(frame), origin)
        query.schema  # noqa: B018
    except Exception as error:
        raise SourceError(
            f"`{origin}` cannot be read: {first_line(error)}",
            hint="a table is `spark:TABLE`, `spark:SCHEMA.TABLE` or `spark:CATALOG.SCHEMA.TABLE`.",
        ) from error
    return ExampleTable(query, origin, ordered=False)


def spark_session() -> SparkSession:
    """Return the active session of Spark, or start one as the environment says.

    Where the environment says nothing, it is a local one that no other machine reaches.

    Raises
    ------
    MissingDependencyError
        If PySpark is not installed, or Spark does not start.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError(
            "`pyspark`, which is not installed, is needed for tables of Spark",
            hint="pip install 'trackperm[spark]'",
        ) from error
    if (session := SparkSession.getActiveSession()) is not None:
        return session
    builder = SparkSession.builder.appName("trackperm")
    if not any(name in os.environ for name in _CONFIGURED):
        builder = builder.config(map=_ALONE)
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise MissingDependencyError(
            f"Spark does not start: {first_line(error)}", hint="Spark needs Java: is there a `java`?"
        ) from error
