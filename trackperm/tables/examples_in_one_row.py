"""Examples in a list or an object of the only row of a run, as in files of results, for messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from trackperm.errors import TrackpermError
from trackperm.messages import listed
from trackperm.tables.columns.names import IDS, INPUTS, LABELS, PREDICTIONS, SCORE, SCORES, names_examples
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

_MOST_ATTEMPTS = 1000
"""Longest list whose items are attempts; longer ones are vectors."""

_MOST_VERDICTS, _SHORTEST_VERDICT = 5, 3
"""Most distinct texts that are verdicts such as `pass`, and fewest characters of one; `A` is an answer."""

_LARGEST_SCORE = 100
"""Largest score of an attempt, in percent."""

_ROUNDING = 0.01
"""Largest deviation from 1 of a sum of rounded probabilities."""

_OF_CURVE = re.compile(
    r"loss|epoch|step|iter|reward|episode|threshold|(^|_)(lr|val|valid|train|ep|fpr|tpr)(_|$)", re.IGNORECASE
)
"""Words in names of measurements of which there is one for each step of a training, or for each threshold."""

_PART = "subset"
"""Column that names the part of a benchmark."""

RUN_TYPE, AGGREGATE = "run_type", "aggregate"
"""Member of the rows of Google Benchmark, and its value for means and deviations of others."""

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
    def has_scores(self) -> bool:
        """Whether the rows have a score or passed, and not outputs alone."""
        return not self.rows[0].keys().isdisjoint(SCORES)

    @property
    def table(self) -> ExampleTable:
        """The rows as a table; TrackpermError if they are none."""
        columns = {name: [row.get(name) for row in self.rows] for name in member_names(self.rows, "rows")}
        return json_table(columns, lambda index: f"item {index}", "rows")

    def sentence(self, origin: str, next_step: str = "compare these files") -> str:
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
            f" {next_step}"
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
    found = max(_inside(row, ()), key=lambda each: (len(each.rows), each.has_scores), default=None)
    return next(_scores(row), None) if found is None else found


def _inside(value: Any, path: tuple[str | int, ...]) -> Iterator[Inside]:
    """Yield the examples in a value, lists and objects of them before columns."""
    if len(path) > _DEEPEST:
        return
    if isinstance(value, list):
        if len(value) == 1:
            yield from _inside(value[0], (*path, 0))
        elif value and all(map(_may_be_example, value)):
            rows, code = [row for row in value if row.get(RUN_TYPE) != AGGREGATE], _code(path)
            if rows and len(rows) < len(value):
                code = f'[row for row in {code} if row.get("{RUN_TYPE}") != "{AGGREGATE}"]'
            else:
                rows = value
            found = f"{_place(path)} holds a list of {len(rows):,} objects"
            yield Inside(f"{found}, which may be the examples", rows, code)
    elif isinstance(value, dict):
        if (by_id := _by_id(value, path)) is not None:
            yield by_id
            return
        if (by_part := _by_part(value, path)) is not None:
            yield by_part
            return
        for name, inner in value.items():
            yield from _inside(inner, (*path, str(name)))
        yield from _columns(value, path)


def _may_be_example(value: Any) -> bool:
    """Whether a value is an object with a text; numbers alone are measurements, as of each experiment."""
    if not isinstance(value, dict) or value.keys() >= _MESSAGE:
        return False
    return any(isinstance(each, str) for each in value.values()) or any(name in value for name in IDS)


class _Shape(NamedTuple):
    """Way in which the value of an id becomes rows.

    `rows` returns the members of each row besides the id; `members` and `loop` are its code, from `value`.
    """

    rows: Callable[[Any], list[dict[str, Any]]]
    members: str
    loop: str


def _by_id(members: Mapping[str, Any], path: tuple[str | int, ...]) -> Inside | None:
    """Return the examples of an object whose names are their ids, but for a few members of another kind."""
    ids, only = _ids(members)
    n_others = len(members) - len(ids)
    if not are_ids(ids) or are_steps(ids) or n_others > _MOST_OTHERS or n_others >= len(ids):
        return None
    values = [members[name] for name in ids]
    shape = _shape(values)
    if shape is None or (n_others and not only):
        return None
    rows = [{"id": name, **row} for name, each in zip(ids, values, strict=True) for row in shape.rows(each)]
    if n_others and _KNOWN.isdisjoint(rows[0].keys() - {"id"}):
        return None  # classes, as of a classification report
    code = f'[{{"id": key, {shape.members}}} for key, value in {_code(path)}.items(){only}{shape.loop}]'
    found = f"{_place(path)} holds a value for each of {len(ids):,} examples, such as `{ids[0]}`"
    return Inside(found, rows, code)


def _by_part(members: Mapping[str, Any], path: tuple[str | int, ...]) -> Inside | None:
    """Return the examples of objects of one kind, one for each part of a benchmark, by their ids in it."""
    parts = {name: each for name, each in members.items() if each and isinstance(each, dict)}
    pairs = [(part, id_, value) for part, own in parts.items() for id_, value in own.items()]
    ids = list(dict.fromkeys(id_ for _, id_, _ in pairs))
    is_one_table = len({frozenset(own) for own in parts.values()}) == 1
    if len(parts) < 2 or is_one_table or not are_ids(ids) or are_steps(ids):
        return None
    shape = _shape([value for *_, value in pairs])
    if shape is None or len(members) - len(parts) > _MOST_OTHERS:
        return None
    is_unique = len(ids) == len(pairs)
    rows = [
        {_PART: part, "id": id_ if is_unique else f"{part}/{id_}", **row}
        for part, id_, value in pairs
        for row in shape.rows(value)
    ]
    own_id = "key" if is_unique else 'f"{part}/{key}"'
    only = "" if len(parts) == len(members) else " if isinstance(own, dict)"
    code = (
        f'[{{"{_PART}": part, "id": {own_id}, {shape.members}}} for part, own in {_code(path)}.items(){only}'
        f" for key, value in own.items(){shape.loop}]"
    )
    found = f"{listed(parts)} of {_place(path)} hold a value for each of {len(pairs):,} examples"
    return Inside(f"{found}, such as `{ids[0]}`", rows, code)


def _ids(members: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the names with a digit whose values are of one kind, and code to keep these; empty for all."""
    kinds = {name: _kind(each) for name, each in members.items() if any(map(str.isdigit, name))}
    kind = next(iter(kinds.values()), None)
    ids = [name for name, each in kinds.items() if each is kind]
    needs_code = len(ids) < len(members) and kind in (dict, list)
    return ids, f" if isinstance(value, {kind.__name__})" if needs_code and kind is not None else ""


def _kind(value: Any) -> type:
    return float if isinstance(value, int | float) else type(value)


def _shape(values: Sequence[Any]) -> _Shape | None:
    """Return the way in which values become rows, if they are of one kind; None for others."""
    if all(each and isinstance(each, dict) for each in values):
        return _Shape(lambda value: [value], "**value", "")
    if all(isinstance(each, list) for each in values):
        return _shape_of_lists(values)
    role = _role(values) if len(values) >= _FEWEST_VALUES else None
    return None if role is None else _Shape(lambda value: [{role: value}], f'"{role}": value', "")


def _shape_of_lists(lists: Sequence[list[Any]]) -> _Shape | None:
    """Return the way in which lists of attempts become a row for each: objects, values, or lists of tests."""
    items = [item for each in lists for item in each]
    if not items:
        return None
    if all(isinstance(item, dict) for item in items):
        return _Shape(lambda value: value, "**row", " for row in value")
    if len(lists) < _FEWEST_VALUES or max(map(len, lists)) > _MOST_ATTEMPTS:
        return None
    number, loop = '"attempt": n, ', " for n, item in enumerate(value)"
    if all(isinstance(item, list) and all(map(_may_be_test, item)) for item in items):
        members = f'{number}"passed": all(test > 0 for test in item)'
        return _Shape(
            lambda value: _attempts("passed", [all(test > 0 for test in item) for item in value]),
            members,
            loop,
        )
    role = _role(items)
    if role is None or all(map(_are_probabilities, lists)):
        return None
    if role == SCORE and any(abs(item) > _LARGEST_SCORE for item in items):
        return None  # numbers of tokens or classes
    return _Shape(lambda value: _attempts(role, value), f'{number}"{role}": item', loop)


def _attempts(role: str, items: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"attempt": n, role: item} for n, item in enumerate(items)]


def _may_be_test(value: Any) -> bool:
    """Whether a value may be the outcome of a test: a boolean, 1, or 0 and less for failures and errors."""
    return isinstance(value, int) and value <= 1


def _are_probabilities(values: Sequence[Any]) -> bool:
    are_numbers = len(values) > 1 and all(type(each) is float for each in values)
    return are_numbers and abs(sum(values) - 1) < _ROUNDING


def _role(values: Sequence[Any]) -> str | None:
    """Return the name of the column of values: of scores, of a few verdicts, or of predictions; else None."""
    if all(isinstance(each, int | float) for each in values):
        return SCORE
    if not all(isinstance(each, str) for each in values):
        return None
    distinct = set(values)
    is_verdict = len(distinct) <= _MOST_VERDICTS and min(map(len, distinct)) >= _SHORTEST_VERDICT
    return "result" if is_verdict else "prediction"


def _columns(members: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Inside]:
    """Yield the examples of equally long lists, one of which has ids, or two predictions and labels."""
    lists = {name: each for name, each in members.items() if isinstance(each, list)}
    for length in dict.fromkeys(map(len, lists.values())):
        equal = {name: each for name, each in lists.items() if len(each) == length}
        if are_columns(equal):
            yield _zipped(equal, path, f"{listed(equal)} hold {length:,} values each")


def _scores(members: Mapping[str, Any]) -> Iterator[Inside]:
    """Yield the examples of equally long lists of numbers, such as scores; those of a curve are none."""
    lists = {name: each for name, each in members.items() if isinstance(each, list)}
    if not lists or any(_OF_CURVE.search(name) for name in members):
        return
    lengths = {len(each) for each in lists.values()}
    are_numbers = all(type(item) in (int, float, bool) for each in lists.values() for item in each)
    if are_numbers and len(lengths) == 1 and (length := lengths.pop()) >= _FEWEST_VALUES:
        hold = "hold" if len(lists) > 1 else "holds"
        yield _zipped(
            lists, (), f"{listed(lists)} {hold} {length:,} numbers, which may be those of the examples"
        )


def _zipped(lists: Mapping[str, Sequence[Any]], path: tuple[str | int, ...], found: str) -> Inside:
    rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    names = ", ".join(map(text_of, lists))
    code = f"[dict(zip([{names}], row)) for row in zip(*map({_code(path)}.get, [{names}]))]"
    return Inside(found, rows, code)


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
