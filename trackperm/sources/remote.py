"""Tables at a URL, as far as polars reads them without a copy: Parquet and Arrow IPC."""

from __future__ import annotations

import polars as pl

from trackperm.errors import SourceError
from trackperm.tables import ExampleTable


def is_url(locator: str) -> bool:
    """Whether a locator is a URL, such as ``s3://bucket/run.parquet``, and no path."""
    scheme, separator, rest = locator.partition("://")
    return bool(separator and rest) and scheme.isidentifier()


def read_url(url: str, origin: str) -> ExampleTable:
    """Read the table at `url`: of any scheme that polars knows, with the credentials that it finds.

    Raises
    ------
    SourceError
        If polars cannot read it as Parquet nor as Arrow IPC; says why it could not.
    """
    reasons = []
    for kind, scan in (("Parquet", pl.scan_parquet), ("Arrow IPC", pl.scan_ipc)):
        try:
            frame = scan(url).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
            reasons.append(f"as {kind}: {str(error).strip().splitlines()[0]}")
        else:
            return ExampleTable.from_native(frame, origin)
    raise SourceError(
        f"`{origin}` cannot be read\n\n" + "\n".join(f"    {reason}" for reason in reasons),
        hint="a URL names Parquet or Arrow IPC; anything else can be read once it is copied to a file.",
    )
