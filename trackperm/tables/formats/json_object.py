"""JSON documents that are one object with an object for each example, by its id, or for each column.

Such files are the predictions of OpenCompass, the measures of pytrec_eval and what ``DataFrame.to_json`` of
pandas writes, with ``orient="index"`` and by default. Columns may also be lists, as in ``{"y_true": [...],
"y_pred": [...]}``.
"""

from __future__ import annotations

from typing import Any

from trackperm.errors import SourceError
from trackperm.tables.columns.names import INPUTS, MEDIA, names_id
from trackperm.tables.json_values import are_columns, are_ids, are_steps, member_names, name_columns, table
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable


def read_json_object(file: SourceFile) -> ExampleTable:
    """Read an object of objects, which are the rows, or the columns with a value for each row.

    The names of the rows are the column ``id``, or ``key`` if the rows have an ``id`` of their own. Raise
    SourceError if they have members of both names. Names that only count the rows are the column ``index``,
    as in ``DataFrame.reset_index``, if the rows have an id or an input of their own; they are left out beside
    another ``index``.
    """
    if _are_lists(file):
        return table(file.document, lambda index: f"item {index}", file.origin)
    document = file.document if are_ids(file.document) else _transposed(file.document)
    ids, rows = list(document), list(document.values())
    names = member_names(rows, file.origin)
    values = {each: [row.get(each) for row in rows] for each in names}
    counts_rows = ids == [str(index) for index in range(len(ids))]
    if counts_rows and any(_may_name_examples(name, each) for name, each in values.items()):
        return table({"index": ids} | values, lambda index: f"member {ids[index]}", file.origin)
    name = next((name for name in ("id", "key") if name not in names), None)
    if name is None:
        raise SourceError(
            f"`{file.origin}` has an object for each example, with members `id` and `key`, so that its names"
            " have no column",
            hint="rename one of these members.",
        )
    return table({name: ids} | values, lambda index: f"member {ids[index]}", file.origin)


def _may_name_examples(name: str, values: list[Any]) -> bool:
    """Whether a member has the name of an id or an input, and more than one value."""
    return (names_id(name) or name.lower() in (*INPUTS, *MEDIA)) and values.count(values[0]) < len(values)


def _recognises(file: SourceFile) -> bool:
    """Whether all members are columns, or objects with the same members and ids as names of rows.

    In an object of columns, rows are named by integers, as pandas does, or by ids if the names of columns are
    those of a table. Training steps and models are not examples.
    """
    rows = file.document
    if _are_lists(file):
        return True
    if not isinstance(rows, dict) or len(rows) < 2 or not all(isinstance(row, dict) for row in rows.values()):
        return False
    members = [row.keys() for row in rows.values()]
    if not members[0] or any(each != members[0] for each in members):
        return False
    if are_ids(rows):
        return not are_steps(list(rows))
    if not are_ids(members[0]):
        return False
    return all(map(str.isdecimal, members[0])) or (name_columns(rows) and not are_steps(list(members[0])))


def _are_lists(file: SourceFile) -> bool:
    """Whether the file is one object of columns: lists of a value per row, not a line of JSON Lines."""
    members = file.document
    if not isinstance(members, dict) or not all(isinstance(each, list) for each in members.values()):
        return False
    is_lines = file.origin.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    return not is_lines and are_columns(members)


def _transposed(columns: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    ids = next(iter(columns.values()))
    return {id_: {name: column[id_] for name, column in columns.items()} for id_ in ids}


JSON_OBJECT = Source("json-object", "JSON object of objects or lists", _recognises, read_json_object)
