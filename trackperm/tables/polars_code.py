"""Line of polars that reads a file, changes its rows or columns and writes a new file, for messages."""

from __future__ import annotations

import json
import re

_READERS = {
    ".jsonl": ("read_ndjson", "write_ndjson", ""),
    ".ndjson": ("read_ndjson", "write_ndjson", ""),
    ".json": ("read_json", "write_json", ""),
    ".parquet": ("read_parquet", "write_parquet", ""),
    ".csv": ("read_csv", "write_csv", ""),
    ".tsv": ("read_csv", "write_csv", ', separator="\\t"'),
}
"""Functions of polars that read and write a file, and options of both, by its ending."""

_ENDINGS = re.compile(r"(\.(csv|tsv|txt|json|jsonl|ndjson|parquet|arrow|feather|gz))+$")

_COLUMNS = {".parquet": "read_parquet", ".arrow": "read_ipc", ".feather": "read_ipc"}


def rewriting(origin: str, change: str, name: str, *, reads_all: bool = False) -> str:
    """Return code that writes the file `origin`, after `change`, as `name` with the same ending.

    `reads_all` infers the types of JSON Lines from all lines; values of CSV stay text as they are. Without a
    known ending the code is that of a data frame.
    """
    for ending, (read, write, options) in _READERS.items():
        if origin.endswith(ending):
            whole = ", infer_schema_length=None" if reads_all and read == "read_ndjson" else ""
            whole = ", infer_schema=False" if read == "read_csv" else whole
            target = text_of(f"{name}{ending}")
            return f"pl.{read}({text_of(origin)}{options}{whole}).{change}.{write}({target}{options})"
    return f"frame.{change}"


def reading(origin: str) -> str | None:
    """Return code that reads a file of columns, such as Parquet; None for other files."""
    read = next((read for ending, read in _COLUMNS.items() if origin.endswith(ending)), None)
    return None if read is None else f"pl.{read}({text_of(origin)})"


def as_json_lines(origin: str, change: str, separator: str | None) -> str:
    """Return code that reads a file of text such as CSV, and writes JSON Lines of text after `change`."""
    options = "" if separator in (None, ",") else f", separator={text_of(separator or '')}"
    read = f"pl.read_csv({text_of(origin)}{options}, infer_schema=False)"
    return f"{read}.{change}.write_ndjson({text_of(f'{without_ending(origin)}.jsonl')})"


def without_ending(origin: str) -> str:
    """Return the path of a file without the endings of its format and its compression."""
    return _ENDINGS.sub("", origin)


def of_lines(origin: str, column: str) -> str:
    """Return code that writes the lines of the text file `origin` as JSON Lines, with an id for each."""
    options = f'has_header=False, new_columns=[{text_of(column)}], separator="\\x1f", quote_char=None'
    table = f"pl.read_csv({text_of(origin)}, {options}, infer_schema=False)"
    target = text_of(f"{origin.removesuffix('.txt')}.jsonl")
    return f'{table}.fill_null("").with_row_index("id").write_ndjson({target})'


def text_of(value: str) -> str:
    """Return a text as code."""
    return json.dumps(value, ensure_ascii=False)
