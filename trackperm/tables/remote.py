"""Remote tables: at a URL that polars can read without a copy, or in Spark's catalog."""

from __future__ import annotations

from functools import partial

import polars as pl

from trackperm.errors import SourceError
from trackperm.messages import printable, without_credentials
from trackperm.tables.expansion import Expansion
from trackperm.tables.lazy.scan import Scan
from trackperm.tables.spark_tables import is_spark_table, read_spark_table
from trackperm.tables.table import ExampleTable


def is_remote(locator: str) -> bool:
    """Whether a locator is a URL, such as ``s3://bucket/run.parquet``, or a table of Spark, not a path."""
    return is_spark_table(locator) or _is_url(locator)


def _is_url(locator: str) -> bool:
    scheme, separator, rest = locator.partition("://")
    return bool(separator and rest) and scheme.isidentifier()


def shown_locator(locator: str) -> str:
    """Return a locator as it may be shown: without credentials of a URL and control characters."""
    url, colons, part = locator.partition("::")
    if not _is_url(url):
        return printable(locator)
    if set("@?&") & set(part):  # `::` is a part of the credentials
        return printable(without_credentials(locator))
    return printable(f"{without_credentials(url)}{colons}{part}")


def read_remote(locator: str, origin: str) -> ExampleTable:
    """Read a table of Spark, or a table at a URL.

    The URL may have any scheme that polars supports; polars finds the credentials. Neither the table's origin
    nor errors contain credentials. Raise SourceError with the reasons if polars can read the URL neither as
    Parquet nor as Arrow IPC, or Spark has no such table, and MissingDependencyError if PySpark or Java is not
    installed.
    """
    origin = shown_locator(origin)
    if is_spark_table(locator):
        return read_spark_table(locator, origin)
    reasons = []
    for kind, scan in (("Parquet", pl.scan_parquet), ("Arrow IPC", pl.scan_ipc)):
        try:
            read = Scan(scan(locator), partial(_unreadable, origin), expansion=Expansion.of(origin))
            return ExampleTable.from_scan(read, origin)
        except SourceError as error:
            reasons.append(f"as {kind}: {_first_line(error.__cause__)}")
    raise SourceError(
        f"`{origin}` cannot be read\n\n" + "\n".join(f"    {reason}" for reason in reasons),
        hint="only Parquet and Arrow IPC are read from a URL; copy a file of another format first.",
    )


def _unreadable(origin: str, error: BaseException) -> SourceError:
    return SourceError(f"`{origin}` cannot be read: {_first_line(error)}")


def _first_line(error: BaseException | None) -> str:
    return without_credentials(str(error).strip().partition("\n")[0])
