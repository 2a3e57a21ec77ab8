"""Columns of ids that contradict each other: they pair the rows of two runs differently.

One of them mostly numbers the rows of each run, as `enumerate`, polars and pandas do, and another names the
examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import narwhals as nw
import polars as pl

from trackperm.errors import InputTypeError
from trackperm.pairing.checks.paired_texts import (
    MOST_OF_QUERY,
    MOST_ROWS,
    as_ids,
    is_query,
    paired_ids,
    read_rows,
)
from trackperm.tables.columns.names import INPUTS, LABELS, MEDIA, is_of_examples, names_rows
from trackperm.tables.table import ExampleTable, rows_repeat


class MovedIds(NamedTuple):
    """Ids that paired rows do not share, although the candidate has them in other rows.

    Attributes
    ----------
    name : str
        Column of the ids, which are different in every row.
    differing : DataFrame
        Key and both ids, ``a`` and ``b``, of the pairs that differ.
    n, n_moved : int
        Number of pairs, and of differing ids of the baseline that the candidate has in another row.
    """

    name: str
    differing: pl.DataFrame
    n: int
    n_moved: int

    @property
    def are_many(self) -> bool:
        """Whether most of the ids are in other rows; or most of those that differ, if examples have them."""
        most_of = len(self.differing) if is_of_examples(self.name) else self.n
        return self.n_moved > 1 and 2 * self.n_moved >= most_of


class Trust(NamedTuple):
    """How well a column identifies examples; the greater of two is to be believed.

    Attributes
    ----------
    is_no_number : bool
        Whether it holds other ids than the numbers from 0 or 1 to that of the rows.
    names_examples : bool
        Whether its name means the ids of examples, not perhaps those of rows.
    is_in_other_order : bool
        Whether its numbers are not in the order of rows. False for queries, whose rows have no order.
    """

    is_no_number: bool
    names_examples: bool
    is_in_other_order: bool

    @classmethod
    def of(cls, tables: Sequence[ExampleTable], name: str) -> Trust:
        """Find how well a column identifies the examples of runs."""
        if names_rows(name):
            return cls(False, False, False)
        in_order = [_numbers_in_order(table, name) for table in tables]
        if None in in_order:
            return cls(True, True, True)
        return cls(False, is_of_examples(name), not all(in_order))


def moved_ids(
    tables: tuple[ExampleTable, ExampleTable], names: Sequence[str], ids: Sequence[str]
) -> list[MovedIds]:
    """Find columns of ids, different in every row, that rows paired by other `ids` do not share.

    Ids that no row of the candidate has contradict nothing: each run may give its own.
    """
    found = []
    for name, pairs in paired_ids(tables, names, ids).items():
        differing = pairs.filter(pl.col("a") != pl.col("b"))
        if differing.is_empty() or min(pairs["a"].n_unique(), pairs["b"].n_unique()) < len(pairs):
            continue
        n_moved = _n_in_run(differing["a"], tables[1], name)
        if n_moved:
            found.append(MovedIds(name, differing, len(pairs), n_moved))
    return found


def better_id(tables: Sequence[ExampleTable], id_: str, names: Sequence[str]) -> str | None:
    """Return the column that identifies the examples where `id_` only numbers the rows of each run.

    The better column is the first of `names` whose ids are different in every row, pair the rows differently,
    and deserve more trust (:class:`Trust`). Return None if no column does, or if `id_` does not number rows.
    If the name of `id_` does not mean rows, many ids have to pair the rows differently, and no input or label
    may agree in the rows that the numbers pair and not in those that the ids pair.
    """
    if len(tables) < 2 or (trust := Trust.of(tables, id_)).is_in_other_order:
        return None
    pairs = [(tables[0], other) for other in tables[1:]]
    moved = {
        each.name
        for pair in pairs
        for each in moved_ids(pair, names, [id_])
        if names_rows(id_) or each.are_many
    }
    better = next(
        (
            name
            for name in names
            if name in moved
            and Trust.of(tables, name) > trust
            and not rows_repeat(tables, [name], if_unknown=True)
        ),
        None,
    )
    if better is None or names_rows(id_) or not any(agree_only_by(pair, [id_], better) for pair in pairs):
        return better
    return None


def agree_only_by(tables: tuple[ExampleTable, ExampleTable], ids: Sequence[str], other: str) -> bool:
    """Whether an input or a label is the same in all rows paired by `ids`, and not in those by `other`.

    Labels that were joined by ids agree with these, whatever they number.
    """
    of_examples = (*INPUTS, *MEDIA, *(() if any(table.has_joined_labels for table in tables) else LABELS))
    names = [name for name in of_examples if all(_may_be_compared(table, name) for table in tables)]
    by_ids, by_other = (paired_ids(tables, names, columns) if names else {} for columns in (ids, [other]))
    return any(
        by_ids[name]["a"].equals(by_ids[name]["b"]) and not pairs["a"].equals(pairs["b"])
        for name, pairs in by_other.items()
        if name in by_ids and len(by_ids[name])
    )


def _may_be_compared(table: ExampleTable, name: str) -> bool:
    return name in table.columns and table.schema[name] != nw.Binary


def _numbers_in_order(table: ExampleTable, name: str) -> bool | None:
    """Whether numbers of rows, from 0 or 1, are in the order of rows; None for other values."""
    most = MOST_OF_QUERY if is_query(table) else MOST_ROWS
    try:
        read = as_ids(read_rows(table, [name], most), [name])
    except (InputTypeError, pl.exceptions.PolarsError):
        return None
    numbers = read.cast(pl.Int64, strict=False)
    if numbers.has_nulls() or not numbers.is_between(0, len(table)).all() or numbers.is_duplicated().any():
        return None
    return not table.ordered or numbers.is_sorted()


def _n_in_run(values: pl.Series, run: ExampleTable, name: str) -> int:
    """Count the ids that a run has."""
    try:
        if len(run) > MOST_ROWS or is_query(run):
            dtype = nw.Schema({name: run.schema[name]}).to_polars()[name]
            run = run.among(name, values.cast(dtype, strict=False).drop_nulls())
        return int(values.is_in(as_ids(read_rows(run, [name], None), [name]).implode()).sum())
    except (InputTypeError, pl.exceptions.PolarsError):
        return 0
