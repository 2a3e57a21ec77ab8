"""Table of the changed examples on disk, so that one page of it is found without reading all rows."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trackperm.errors import CapacityError

_SECONDS = 5.0
"""Time of one search; a page asks again with every letter that is typed."""

_COUNT = (
    "select count(*) from examples where (? = 'all' or direction = ?) and (? = '' or instr(folded, ?) > 0)"
)
_PAGE = (
    "select cells from examples where (? = 'all' or direction = ?) and (? = '' or instr(folded, ?) > 0)"
    " order by place limit ? offset ?"
)

_STEPS_BETWEEN_CHECKS = 100_000
"""Steps of SQLite between two looks at the clock, about a millisecond."""


@dataclass(frozen=True)
class ChangedPage:
    """One page of the changed examples.

    Attributes
    ----------
    total, matching : int
        Number of all examples, and of those that match the search.
    columns : list of str
        Names of the columns.
    rows : list of list
        Values of the rows, in order.
    """

    total: int
    matching: int
    columns: list[str]
    rows: list[list[Any]]


def write_changed_examples(
    path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]], direction: str | None
) -> None:
    """Write all changed examples to a new SQLite file, in the order in which they are shown.

    A cell is a value, or a pair of the values of both runs.
    `direction` is the name of the column with ``better`` or ``worse``, if any.
    """
    place = None if direction is None else list(columns).index(direction)
    with closing(sqlite3.connect(path)) as table:
        table.execute("pragma journal_mode = off")
        table.execute("pragma synchronous = off")
        table.execute(
            "create table examples (place integer primary key, direction text, folded text, cells text)"
        )
        table.execute("create table columns (names text)")
        table.execute("insert into columns values (?)", (json.dumps(list(columns)),))
        table.executemany(
            "insert into examples (direction, folded, cells) values (?, ?, ?)",
            (
                (
                    None if place is None else row[place],
                    "\n".join(_texts(row)).casefold(),
                    json.dumps(row, ensure_ascii=False, allow_nan=False),
                )
                for row in rows
            ),
        )
        table.commit()


def _texts(row: Sequence[Any]) -> Iterator[str]:
    """Yield the texts of a row in which a search looks."""
    for cell in row:
        values = cell if isinstance(cell, tuple) else (cell,)
        yield from (str(value) for value in values if value is not None)


def read_changed_examples(
    path: Path, *, offset: int, limit: int, search: str = "", direction: str = "all"
) -> ChangedPage:
    """Read one page of the changed examples that match.

    `search` is a part of the text in any column, in any case; `direction` is ``all``, ``better`` or
    ``worse``. Raise CapacityError if the search takes longer than five seconds.
    """
    values = (direction, direction, search.casefold(), search.casefold())
    deadline = time.monotonic() + _SECONDS
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as table:
        table.set_progress_handler(lambda: int(time.monotonic() > deadline), _STEPS_BETWEEN_CHECKS)
        try:
            (names,) = table.execute("select names from columns").fetchone()
            (total,) = table.execute("select count(*) from examples").fetchone()
            (matching,) = table.execute(_COUNT, values).fetchone()
            found = table.execute(_PAGE, (*values, limit, offset)).fetchall()
        except sqlite3.OperationalError as error:
            raise CapacityError(
                f"the search of the changed examples took longer than {_SECONDS:g} seconds",
                hint="`trackperm compare` on the command line has no such limit.",
            ) from error
    return ChangedPage(total, matching, json.loads(names), [json.loads(cells) for (cells,) in found])
