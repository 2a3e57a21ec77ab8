"""Columns of ids that contradict each other: they pair the rows of two runs differently.

One of them mostly numbers the rows of each run, as `enumerate`, polars and pandas do, and another names the
examples, or two together do, such as a conversation and a turn.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
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
from trackperm.pairing.columns.shared_values import MOST_IN_PAIRS, may_be_key, possible_keys
from trackperm.tables.columns.names import INPUTS, LABELS, MEDIA, is_of_examples, names_rows
from trackperm.tables.table import ExampleTable, rows_repeat


class MovedIds(NamedTuple):
    """Ids that paired rows do not share, although one of the runs has those of the other in other rows.

    Attributes
    ----------
    name : str
        Column of the ids, which are different in every row; or two, separated by a comma.
    differing : DataFrame
        Key and both ids, ``a`` and ``b``, of the pairs that differ.
    n, n_moved : int
        Number of pairs, and of differing ids of one run that the other has in another row.
    origin : str
        The run that has them in another row.
    """

    name: str
    differing: pl.DataFrame
    n: int
    n_moved: int
    origin: str

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
        if differing.is_empty() or not _are_distinct(pairs):
            continue
        n_moved = _n_in_run(differing["a"], tables[1], [name])
        if n_moved:
            found.append(MovedIds(name, differing, len(pairs), n_moved, tables[1].origin))
    return found


def moved_key(
    tables: tuple[ExampleTable, ExampleTable], ids: Sequence[str], taken: Collection[str]
) -> MovedIds | None:
    """Find columns that identify the rows of both runs and that rows paired by numbers of rows do not share.

    They are one column of text or two columns, not in `taken`, and one run has all their values of the other.
    None if `ids` do not number the rows in their order, or if an input or label agrees by them alone.
    """
    names = possible_keys(tables, (*ids, *taken))[:MOST_IN_PAIRS] if len(ids) == 1 else []
    if not names:
        return None
    trust = Trust.of(tables, ids[0])
    if trust.is_no_number or trust.is_in_other_order:
        return None
    found = paired_ids(tables, names, ids)
    n = max(map(len, found.values()), default=0)
    whole = {name: pairs for name, pairs in found.items() if len(pairs) == n}  # without nulls
    is_first_less = len(tables[0]) <= len(tables[1])
    own, other = ("a", tables[1]) if is_first_less else ("b", tables[0])
    repeated = [name for name, pairs in whole.items() if not _are_distinct(pairs)]
    for key in (*((name,) for name in whole if name not in repeated), *combinations(repeated, 2)):
        if not may_be_key(tables, key) or all(whole[name]["a"].equals(whole[name]["b"]) for name in key):
            continue
        sides = (
            pl.concat_str([whole[name][side] for name in key], separator=", ").alias(side) for side in "ab"
        )
        pairs = whole[key[0]].select(pl.first()).with_columns(pl.select(*sides))
        if not _are_distinct(pairs) or rows_repeat(tables, key, if_unknown=True):
            continue
        differing = pairs.filter(pl.col("a") != pl.col("b"))
        n_moved = _n_in_run(differing[own], other, key)
        if n_moved == len(differing) and not agree_only_by(tables, ids, key):
            return MovedIds(",".join(key), differing, n, n_moved, other.origin)
    return None


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
    if better is None or names_rows(id_) or not any(agree_only_by(pair, [id_], [better]) for pair in pairs):
        return better
    return None


def agree_only_by(
    tables: tuple[ExampleTable, ExampleTable], ids: Sequence[str], others: Sequence[str]
) -> bool:
    """Whether an input or a label is the same in all rows paired by `ids`, and not in those by `others`.

    Labels that were joined by ids agree with these, whatever they number.
    """
    of_examples = (*INPUTS, *MEDIA, *(() if any(table.has_joined_labels for table in tables) else LABELS))
    names = [
        name
        for name in of_examples
        if name not in (*ids, *others) and all(_may_be_compared(table, name) for table in tables)
    ]
    by_ids, by_others = (paired_ids(tables, names, columns) if names else {} for columns in (ids, others))
    return any(
        by_ids[name]["a"].equals(by_ids[name]["b"]) and not pairs["a"].equals(pairs["b"])
        for name, pairs in by_others.items()
        if name in by_ids and len(by_ids[name])
    )


def _are_distinct(pairs: pl.DataFrame) -> bool:
    return min(pairs["a"].n_unique(), pairs["b"].n_unique()) == len(pairs)


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


def _n_in_run(values: pl.Series, run: ExampleTable, names: Sequence[str]) -> int:
    """Count the ids that a run has, which are those of several columns together or of one."""
    try:
        if len(names) == 1 and (len(run) > MOST_ROWS or is_query(run)):
            dtype = nw.Schema({names[0]: run.schema[names[0]]}).to_polars()[names[0]]
            run = run.among(names[0], values.cast(dtype, strict=False).drop_nulls())
        return int(values.is_in(as_ids(read_rows(run, names, None), names).implode()).sum())
    except (InputTypeError, pl.exceptions.PolarsError):
        return 0
