"""Examples in a list or an object of the only row of a run, as in files of results, for messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from trackperm.errors import TrackpermError
from trackperm.messages import listed
from trackperm.tables.columns.names import IDS, INPUTS, LABELS, PREDICTIONS, SCORES, names_examples
from trackperm.tables.json_values import are_columns, are_ids, are_steps, member_names
from trackperm.tables.json_values import table as json_table
from trackperm.tables.lazy.query import Query
from trackperm.tables.polars_code import reading, text_of, without_ending
from trackperm.tables.table import ExampleTable

_DEEPEST = 4
"""Steps of a path to the examples, such as `queries[0].samples`, which has three."""

_MOST_OTHERS = 3
"""Members of an object beside those of examples: `type`, for example."""

_FEWEST_VALUES = 20
"""Values without members, such as scores, that are taken for those of examples; `bleu1` to `bleu4` are not.
"""

_MESSAGE = {"role", "content"}
"""Members of a message of a conversation."""

_KNOWN = {*IDS, *INPUTS, *LABELS, *PREDICTIONS, *SCORES}


@dataclass(frozen=True)
class Inside:
    """Examples in the only row.

    Attributes
    ----------
    found : str
        What holds them, such as "`details` holds a list of 9 objects".
    rows : list of objects
        A row for each.
    code : str
        Expression of the rows in Python, from the document `d`.
    """

    found: str
    rows: list[dict[str, Any]]
    code: str

    @property
    def table(self) -> ExampleTable:
        """The rows as a table; TrackpermError if they are none."""
        columns = {name: [row.get(name) for row in self.rows] for name in member_names(self.rows, "rows")}
        return json_table(columns, lambda index: f"item {index}", "rows")

    def sentence(self, origin: str) -> str:
        """Say how they become rows, without a full stop; objects in them become columns."""
        name = f"{without_ending(origin)}_rows" if Path(origin).is_file() else "rows"
        code = f"Path({text_of(f'{name}.json')}).write_text(json.dumps({self.code}))"
        if any(value and isinstance(value, dict) for row in self.rows for value in row.values()):
            try:
                pl.json_normalize(self.rows, infer_schema_length=None)
            except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
                pass  # rows without one schema stay as they are
            else:
                table = f"pl.json_normalize({self.code}, infer_schema_length=None)"
                code = f"{table}.write_ndjson({text_of(f'{name}.jsonl')})"
        return (
            f"{self.found}: write a row for each of them, as `{_document(origin)}{code}` does in Python, and"
            " compare these files"
        )


def examples_in_one_row(tables: Sequence[ExampleTable]) -> Inside | None:
    """Return the examples in the first of several runs with one row each; None if it has none.

    A row with an id or input of its own is an example.
    """
    if any(isinstance(table.data, Query) or len(table) != 1 for table in tables):
        return None
    table = tables[0]
    if any(names_examples(name) or name.lower() in INPUTS for name in table.columns):
        return None
    try:
        row = {name: table.frame.get_column(name).to_list()[0] for name in table.columns}
    except TrackpermError:
        return None
    return max(_inside(row, ()), key=lambda each: len(each.rows), default=None)


def _inside(value: Any, path: tuple[str | int, ...]) -> Iterator[Inside]:
    """Yield the examples in a value, lists and objects of them before columns."""
    if len(path) > _DEEPEST:
        return
    if isinstance(value, list):
        if len(value) == 1:
            yield from _inside(value[0], (*path, 0))
        elif value and all(map(_may_be_example, value)):
            found = f"{_place(path)} holds a list of {len(value):,} objects"
            yield Inside(f"{found}, which may be the examples", value, _code(path))
    elif isinstance(value, dict):
        if (by_id := _by_id(value, path)) is not None:
            yield by_id
            return
        for name, inner in value.items():
            yield from _inside(inner, (*path, str(name)))
        yield from _columns(value, path)


def _may_be_example(value: Any) -> bool:
    """Whether a value is an object with a text; numbers alone are measurements, as of each experiment."""
    if not isinstance(value, dict) or value.keys() >= _MESSAGE:
        return False
    return any(isinstance(each, str) for each in value.values()) or any(name in value for name in IDS)


def _by_id(members: Mapping[str, Any], path: tuple[str | int, ...]) -> Inside | None:
    """Return the examples of an object whose names are their ids, but for a few members of another kind."""
    kinds = {name: type(each) for name, each in members.items() if any(map(str.isdigit, name))}
    kind = next(iter(kinds.values()), None)
    ids = [name for name, each in kinds.items() if each is kind]
    n_others = len(members) - len(ids)
    if not are_ids(ids) or are_steps(ids) or n_others > _MOST_OTHERS or n_others >= len(ids):
        return None
    values, source = [members[name] for name in ids], f"{_code(path)}.items()"
    only = "" if not n_others else f" if isinstance(value, {kind.__name__})" if kind is not None else ""
    if all(each and isinstance(each, dict) for each in values):
        rows = [{"id": name, **each} for name, each in zip(ids, values, strict=True)]
        code = f'[{{"id": key, **value}} for key, value in {source}{only}]'
    elif all(isinstance(each, list) and all(isinstance(row, dict) for row in each) for each in values):
        rows = [{"id": name, **row} for name, each in zip(ids, values, strict=True) for row in each]
        code = f'[{{"id": key, **row}} for key, value in {source}{only} for row in value]'
    elif not n_others and len(ids) >= _FEWEST_VALUES:
        role = "prediction" if isinstance(values[0], str) else "score"
        rows = [{"id": name, role: each} for name, each in zip(ids, values, strict=True)]
        code = f'[{{"id": key, "{role}": value}} for key, value in {source}]'
    else:
        return None
    if n_others and _KNOWN.isdisjoint(rows[0].keys() - {"id"}):
        return None  # classes, as of a classification report
    found = f"{_place(path)} holds a value for each of {len(ids):,} examples, such as `{ids[0]}`"
    return Inside(found, rows, code)


def _columns(members: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Inside]:
    """Yield the examples of equally long lists, one of which has ids, or two predictions and labels."""
    lists = {name: each for name, each in members.items() if isinstance(each, list)}
    for length in dict.fromkeys(map(len, lists.values())):
        equal = {name: each for name, each in lists.items() if len(each) == length}
        if are_columns(equal):
            rows = [dict(zip(equal, row, strict=True)) for row in zip(*equal.values(), strict=True)]
            names = ", ".join(map(text_of, equal))
            code = f"[dict(zip([{names}], row)) for row in zip(*map({_code(path)}.get, [{names}]))]"
            yield Inside(f"{listed(equal)} hold {length:,} values each", rows, code)


def _place(path: tuple[str | int, ...]) -> str:
    if not path:
        return "the only row"
    names = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return f"`{names.removeprefix('.')}` of the only row"


def _code(path: tuple[str | int, ...]) -> str:
    return "d" + "".join(f"[{each if isinstance(each, int) else text_of(each)}]" for each in path)


def _document(origin: str) -> str:
    """Return the code that reads a file as `d`; empty for data in memory, where `d` is the document."""
    if not Path(origin).is_file():
        return ""
    if (table := reading(origin)) is not None:
        return f"d = {table}.to_dicts()[0]; "
    path = f"Path({text_of(origin)})"
    text = f"gzip.decompress({path}.read_bytes())" if origin.endswith(".gz") else f"{path}.read_text()"
    return f"d = json.loads({text}); "
