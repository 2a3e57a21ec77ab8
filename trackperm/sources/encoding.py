"""Text of a file, which is UTF-8."""

from __future__ import annotations

from trackperm.errors import SourceError


def decoded(data: bytes, origin: str) -> str:
    """Text of `data`, without a byte order mark.

    Raises
    ------
    SourceError
        If `data` is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(
            f"`{origin}`, line {line}: byte 0x{data[error.start]:02x} is not UTF-8",
            hint="save the file as UTF-8.",
        ) from error
