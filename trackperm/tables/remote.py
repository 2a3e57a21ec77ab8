"""Tables elsewhere: at a URL, as far as polars reads them without a copy, or in Spark's catalog."""

from __future__ import annotations

from functools import partial

import polars as pl

from trackperm.errors import SourceError
from trackperm.messages import printable, without_credentials
from trackperm.tables.expansion import Expansion
from trackperm.tables.scan import Scan
from trackperm.tables.spark_tables import is_spark_table, read_spark_table
from trackperm.tables.table import ExampleTable


def is_remote(locator: str) -> bool:
    """Whether a locator is a URL, such as ``s3://bucket/run.parquet``, or a table of Spark, and no path."""
    return is_spark_table(locator) or _is_url(locator)


def _is_url(locator: str) -> bool:
    scheme, separator, rest = locator.partition("://")
    return bool(separator and rest) and scheme.isidentifier()


def shown_locator(locator: str) -> str:
    """Return what people are shown of a locator: no credentials of a URL, and no control characters."""
    url, colons, part = locator.partition("::")
    if not _is_url(url):
        return printable(locator)
    if set("@?&") & set(part):  # `::` stands in the credentials
        return printable(without_credentials(locator))
    return printable(f"{without_credentials(url)}{colons}{part}")


def read_remote(locator: str, origin: str) -> ExampleTable:
    """Read a table of Spark, or one at a URL.

    The URL is of any scheme that polars knows, with the credentials that it finds. None of these are in the
    table's origin, nor in errors.

    Raises
    ------
    SourceError
        If polars cannot read it as Parquet nor as Arrow IPC, or Spark has no such table; says why.
    MissingDependencyError
        If there is no Spark.
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
        hint="a URL names Parquet or Arrow IPC; anything else can be read once it is copied to a file.",
    )


def _unreadable(origin: str, error: BaseException) -> SourceError:
    return SourceError(f"`{origin}` cannot be read: {_first_line(error)}")


def _first_line(error: BaseException | None) -> str:
    return without_credentials(str(error).strip().partition("\n")[0])
