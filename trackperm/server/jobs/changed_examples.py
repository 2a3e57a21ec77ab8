"""The examples that changed, kept on disk: a page of them is found without reading the others into memory."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trackperm.errors import CapacityError

_SECONDS = 5.0
_STEPS_BETWEEN_LOOKS = 100_000


@dataclass(frozen=True)
class FlipPage:
    """Some of the examples that changed.

    Attributes
    ----------
    total, matching : int
        How many there are, and how many match.
    columns : list of str
        Names of the columns.
    rows : list of list
        Their values, in order.
    """

    total: int
    matching: int
    columns: list[str]
    rows: list[list[Any]]


def write_flips(
    path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]], direction: str | None
) -> None:
    """Write all examples that changed.

    Parameters
    ----------
    path : Path
        A file that does not exist.
    columns : sequence of str
        Names.
    rows : sequence of sequences
        Plain values, in the order that they are shown in.
    direction : str or None
        The column that says ``better`` or ``worse``, if there is one.
    """
    place = None if direction is None else list(columns).index(direction)
    with closing(sqlite3.connect(path)) as table:
        table.execute("pragma journal_mode = off")
        table.execute("pragma synchronous = off")
        table.execute(
            "create table flips (place integer primary key, direction text, folded text, cells text)"
        )
        table.execute("create table columns (names text)")
        table.execute("insert into columns values (?)", (json.dumps(list(columns)),))
        table.executemany(
            "insert into flips (direction, folded, cells) values (?, ?, ?)",
            (
                (
                    None if place is None else row[place],
                    "\n".join(str(cell) for cell in row if cell is not None).casefold(),
                    json.dumps(row, ensure_ascii=False, allow_nan=False),
                )
                for row in rows
            ),
        )
        table.commit()


def read_flips(path: Path, *, offset: int, limit: int, search: str = "", direction: str = "all") -> FlipPage:
    """Read a page of the examples that changed.

    Parameters
    ----------
    path : Path
        What :func:`write_flips` has written.
    offset, limit : int
        Which of those that match.
    search : str
        A piece of the text in any column, in letters of either case.
    direction : {'all', 'better', 'worse'}
        Which way they changed.

    Raises
    ------
    CapacityError
        If there are so many that a search takes too long.
    """
    wanted = "where (? = 'all' or direction = ?) and (? = '' or instr(folded, ?) > 0)"
    values = (direction, direction, search.casefold(), search.casefold())
    deadline = time.monotonic() + _SECONDS
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as table:
        table.set_progress_handler(lambda: int(time.monotonic() > deadline), _STEPS_BETWEEN_LOOKS)
        try:
            (names,) = table.execute("select names from columns").fetchone()
            (total,) = table.execute("select count(*) from flips").fetchone()
            (matching,) = table.execute(f"select count(*) from flips {wanted}", values).fetchone()  # noqa: S608 - a constant
            found = table.execute(
                f"select cells from flips {wanted} order by place limit ? offset ?",  # noqa: S608 - a constant
                (*values, limit, offset),
            ).fetchall()
        except sqlite3.OperationalError as error:
            raise CapacityError(
                f"the examples could not be searched within {_SECONDS:g} seconds",
                hint="`trackperm compare` on the command line has no such limit.",
            ) from error
    return FlipPage(total, matching, json.loads(names), [json.loads(cells) for (cells,) in found])
