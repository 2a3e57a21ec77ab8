"""Tables of Spark's catalog, named ``spark:TABLE``."""

from __future__ import annotations

import narwhals as nw

from trackperm.errors import SourceError
from trackperm.tables.lazy.query import Query, first_line
from trackperm.tables.lazy.spark_session import spark_session, stack_traces_unlogged
from trackperm.tables.table import ExampleTable

_PREFIX = "spark:"


def is_spark_table(locator: str) -> bool:
    """Whether a locator names a table of Spark's catalog, such as ``spark:prod.eval.run_a``."""
    return locator.startswith(_PREFIX) and len(locator) > len(_PREFIX)


def read_spark_table(locator: str, origin: str) -> ExampleTable:
    """Look up a table of Spark's catalog; its rows stay in Spark.

    Raises
    ------
    SourceError
        If Spark does not have the table.
    MissingDependencyError
        If PySpark or Java is not installed.
    EngineError
        If Spark cannot be started.
    """
    session = spark_session()
    try:
        with stack_traces_unlogged():
            frame = session.table(locator.removeprefix(_PREFIX))
            frame.columns  # noqa: B018 - Spark Connect looks the table up here
    except Exception as error:
        raise SourceError(
            f"`{origin}` cannot be read: {first_line(error)}",
            hint="a table is `spark:TABLE`, `spark:SCHEMA.TABLE` or `spark:CATALOG.SCHEMA.TABLE`.",
        ) from error
    return ExampleTable(Query(nw.from_native(frame), origin), origin, ordered=False)
