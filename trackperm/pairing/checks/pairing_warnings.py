"""Warnings about a pairing or its units that look wrong but cannot be disproved, found by rules of thumb.

A join that pairs the wrong rows makes two runs look independent of each other, which predictions on the same
inputs hardly ever are. Warnings refuse nothing and change no number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from trackperm.errors import InputTypeError
from trackperm.pairing.columns.roles import PairedColumns
from trackperm.pairing.digests import number_word
from trackperm.pairing.engines.base import Frame
from trackperm.pairing.joined import KEY, SIDES, SIZE, JoinedRows, of
from trackperm.tables.columns.names import names_categories
from trackperm.tables.columns.types import LISTS, ColumnType, typed_columns
from trackperm.tables.table import ExampleTable, id_columns

ENOUGH = 50  # fewest examples for a warning: with fewer, chance explains nearly any pattern
CHANCE = 0.1  # agreement (0 by chance, 1 full) up to which rows look unrelated: predictions hardly agree less
POWER = 30.0  # standard errors needed between no and full agreement, so that CHANCE is three of them
_SURE = 3.0  # standard errors by which a correlation of integers has to exceed 0
N_SAMPLED = 2**18
"""Most pairs of values by which agreement is estimated: more of them would not change a warning."""
_HASH = "sample"
_NUMBERS = (ColumnType.INTEGER, ColumnType.DECIMAL)
_SHIFTS = (1, -1, 2, -2, 3, -3)
_UNRELATED = "no better than by chance; the rows may be paired wrongly"

_FOLDS = r"(?:k|cv)?[ _.-]?(?:folds?|splits?|resamples?|resampling)"
_FOLD_COLUMN = re.compile(
    rf"(?:.*[ _.-])?(?:{_FOLDS}|cv|cross[ _-]?validation)(?:[ _.-]?(?:id|index|idx|no|nr|number))?:?"
)
_FOLD = re.compile(rf"{_FOLDS}[ _.-]?[0-9]+")

MOST_FOLDS = 1000
"""Most units that can be folds: no cross-validation has more of them."""

_LOOKED_AT = 2**16  # rows that usually have more than MOST_FOLDS ids, so that no more have to be read


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence for warnings about the pairing of two runs.

    Attributes
    ----------
    n : int
        Number of rows in the test.
    n_different : mapping of str to int
        Number of rows in which the runs differ, by column that the statistic reads from each run.
    perfect : tuple of (str, str)
        Columns that equal the label on every example of a run, and the name of that run.
    shifts : mapping of str to (float, float)
        Smallest and largest difference between the runs, by column of decimals.
    pairs : mapping of str to DataFrame
        For each column that the statistic reads from each run, the pairs of its values ``a`` and ``b`` in the
        two runs, without nulls, and the number ``n`` of their rows. Very many numbers are sampled. Texts that
        are not in memory are represented by their words.
    in_order : DataFrame
        The columns of both runs in the order of rows; empty unless rows are paired by position.
    inputs : tuple of str
        Warnings about inputs that several examples share.
    """

    n: int
    n_different: Mapping[str, int]
    perfect: tuple[tuple[str, str], ...]
    shifts: Mapping[str, tuple[float, float]]
    pairs: Mapping[str, pl.DataFrame]
    in_order: pl.DataFrame
    inputs: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: JoinedRows) -> Evidence:
        """Collect evidence from the rows in the test."""
        asked, names = questions(rows), rows.columns.of_runs
        answers = rows.engine.collected(
            rows.in_test.select(value.alias(f"answer_{i}") for i, value in enumerate(asked.values()))
        )
        found = dict(zip(asked, answers.row(0), strict=True))
        n = int(found["n"] or 0)
        pairs = {name: pairs_of_values(rows, name) for name in compared(rows)} if n >= ENOUGH else {}
        in_order = pl.DataFrame()
        if rows.columns.id is None and n >= ENOUGH and names:
            in_order = rows.engine.collected(
                rows.rows_in_test.sort(KEY).select(of(side, name) for side in SIDES for name in names)
            )
        return cls.answered(rows, found, pairs, in_order, shared_inputs(rows, n))

    @classmethod
    def answered(
        cls,
        rows: JoinedRows,
        answers: Mapping[str, Any],
        pairs: Mapping[str, pl.DataFrame],
        in_order: pl.DataFrame,
        inputs: tuple[str, ...],
    ) -> Evidence:
        """Build from the values of the expressions of :func:`questions`, and from other evidence."""
        names = rows.columns.of_runs
        return cls(
            int(answers["n"] or 0),
            {name: int(answers[f"differs {name}"] or 0) for name in names},
            tuple(
                (name, rows.runs[i].origin)
                for name, i in _like_label(rows)
                if not answers[f"no label {i} {name}"]
            ),
            {
                name: (answers[f"min shift {name}"], answers[f"max shift {name}"])
                for name in names
                if answers.get(f"min shift {name}") is not None
            },
            pairs,
            in_order,
            inputs,
        )


def questions(rows: JoinedRows) -> dict[str, nw.Expr]:
    """Return the expressions over the rows in the test whose values are evidence, by name."""
    names, f = rows.columns.of_runs, rows.functions
    sides = {name: [f.col(of(side, name)) for side in SIDES] for name in names}
    differs = {f"differs {name}": _ne_missing(*pair) for name, pair in sides.items()} | {
        f"no label {i} {name}": _ne_missing(sides[name][i], f.col(of(SIDES[i], str(rows.columns.label))))
        for name, i in _like_label(rows)
    }
    shifts = {
        f"{end} shift {name}": getattr(pair[1] - pair[0], end)()
        for name, pair in sides.items()
        if rows.types[name] is ColumnType.DECIMAL
        for end in ("min", "max")
    }
    n_different = {name: rows.n_rows(condition) for name, condition in differs.items()}
    return {"n": f.col(SIZE).sum(), **n_different, **shifts}


def _like_label(rows: JoinedRows) -> list[tuple[str, int]]:
    """Return the columns with the type of the label, which may copy it, and the numbers of their runs."""
    types, label = rows.types, rows.columns.label
    return [
        (name, i)
        for i in range(len(SIDES))
        for name in rows.columns.of_runs
        if label is not None and types[name] is types[label]
    ]


def compared(rows: JoinedRows) -> list[str]:
    """Return the columns whose agreement between the runs is measured."""
    return [name for name in rows.columns.of_runs if rows.types[name] not in LISTS]


def pairs_of_values(rows: JoinedRows, name: str, *by: str) -> pl.DataFrame:
    """Count the pairs of values that a column has in the two runs; very many pairs are sampled.

    The columns `by`, which come first, divide the rows into groups that are counted separately.
    """
    f, sides = rows.functions, [of(side, name) for side in SIDES]
    pairs = rows.in_test.group_by(*by, *sides).agg(f.col(SIZE).sum().cast(f.Int64).alias("n"))
    has_values = ~f.col(sides[0]).is_null() & ~f.col(sides[1]).is_null()
    pairs = pairs.filter(has_values).select(*by, f.col(sides[0]).alias("a"), f.col(sides[1]).alias("b"), "n")
    if not rows.engine.is_local:
        if rows.types[name] is ColumnType.TEXT:
            # More distinct texts than this are not compared, so any part of them will do. Of fewer, words
            # suffice to decide which are equal.
            pairs = rows.engine.with_text_words(pairs.head(N_SAMPLED), {"word_a": "a", "word_b": "b"})
            pairs = pairs.select(nw.col("word_a").alias("a"), nw.col("word_b").alias("b"), "n")
        else:
            pairs = rows.engine.kept(pairs)
            every = rows.engine.n_distinct(pairs, "a") // N_SAMPLED
            if every > 1:
                for side in ("a", "b"):
                    pairs = number_word(f, pairs, side, rows.types[name], f"word_{side}")
                pairs = rows.engine.with_row_hash(pairs, ["word_a", "word_b"], _HASH)
                pairs = pairs.filter(f.col(f"{_HASH}_0") % every == 0).select("a", "b", "n")
    return rows.engine.collected(pairs)


def _ne_missing(a: nw.Expr, b: nw.Expr) -> nw.Expr:
    """Whether two values differ; two nulls are equal."""
    return (a != b).fill_null(False) | (a.is_null() != b.is_null())


def pairing_warnings(
    found: Evidence, columns: PairedColumns, types: Mapping[str, ColumnType], *, check_logs: bool = True
) -> list[str]:
    """Return the warnings about a pairing: sentences that begin with ``look:``.

    `check_logs` warns of columns that look wrongly logged. Slices are too uniform for that: on the examples
    of one label, honest predictions can all be right, equal or independent of each other.
    """
    sentences = list(found.inputs)
    if found.n >= ENOUGH and check_logs:
        names = columns.of_runs
        if names and not any(found.n_different.values()):
            verb = "is" if len(names) == 1 else "are"
            sentences.append(f"{_listed(names)} {verb} the same in both runs; one may be a copy of the other")
        else:
            warnings = {name: _warning(name, found, columns, types) for name in names}
            sentences += (each for each in warnings.values() if each not in (None, _UNRELATED))
            unrelated = [name for name, each in warnings.items() if each == _UNRELATED]
            if unrelated:
                verb = "agrees" if len(unrelated) == 1 else "agree"
                sentences.append(f"{_listed(unrelated)} of the runs {verb} {_UNRELATED}")
            sentences += (
                f"`{name}` equals `{columns.label}` on every example of `{origin}`; labels may have been"
                " logged as predictions"
                for name, origin in found.perfect
            )
    return [f"look: {sentence}" for sentence in sentences]


def other_ids(baseline: ExampleTable, candidate: ExampleTable, id_: str) -> list[str]:
    """Warn if runs that were paired by position have ids that differ in the same rows."""
    ids = id_columns(id_, (baseline, candidate))
    if any(name not in table.columns for table in (baseline, candidate) for name in ids):
        return []
    try:
        first, second, _ = typed_columns(baseline, candidate, ids, text=ids)
    except InputTypeError:
        return []
    differ = np.zeros(len(baseline), dtype=np.bool_)
    for name in ids:
        differ |= (first.frame[name] != second.frame[name]).fill_null(False).to_numpy()
    if not differ.any():
        return []
    row = int(differ.argmax())
    values = [", ".join(repr(table.frame[name][row]) for name in ids) for table in (first, second)]
    return [
        f"look: `{id_}` differs between the runs in {differ.sum():,} of {len(differ):,} rows, first in row"
        f" {row}: {values[0]} and {values[1]}; the rows may be paired wrongly"
    ]


def fold_warnings(rows: JoinedRows, frame: Frame) -> list[str]:
    """Warn if the exchangeable units, the column ``id`` of `frame`, are folds: p can then be far too small.

    References
    ----------
    Dietterich (1998), Approximate Statistical Tests for Comparing Supervised Classification Learning
    Algorithms. Bengio and Grandvalet (2004), No Unbiased Estimator of the Variance of K-Fold
    Cross-Validation.
    """
    columns = rows.columns
    unit = columns.id if columns.cluster is None else columns.cluster
    if unit is None:
        return []
    if columns.cluster is None:
        run = next((run for run in rows.runs if run.n_keyed), rows.runs[0])
        frame = run.frame.select(rows.functions.col(KEY).alias("id"))
    frame = frame.select("id")
    for some in (frame.head(1), frame.head(_LOOKED_AT), frame):  # usually the first unit is not a fold
        units = rows.engine.collected(some.unique().head(MOST_FOLDS + 1))["id"].to_list()
        if not are_folds(unit, units):
            return []
    return [
        "folds: the training sets of folds or resamples overlap, so their scores are not independent and p"
        f" can be far too small; compare predictions by example rather than scores by `{unit}`"
    ]


def are_folds(column: str, units: Collection[object]) -> bool:
    """Whether exchangeable units are folds, by the name of their column or by every value.

    Examples
    --------
    >>> are_folds("cv_fold", range(10))
    True
    >>> are_folds("id", ["fold-1", "fold-2"])
    True
    >>> are_folds("question", range(10))
    False
    """
    if len(units) > MOST_FOLDS:
        return False
    return bool(_FOLD_COLUMN.fullmatch(column.lower())) or all(
        isinstance(unit, str) and _FOLD.fullmatch(unit.lower()) for unit in units
    )


def shared_inputs(rows: JoinedRows, n: int) -> tuple[str, ...]:
    """Warn about inputs that several of the n examples share."""
    return tuple(_inputs(rows, n))


def _inputs(rows: JoinedRows, n: int) -> Iterator[str]:
    columns, f = rows.columns, rows.functions
    for name in columns.identity:
        if rows.types[name] in _NUMBERS or names_categories(name):  # counts, and hashes of answers
            continue
        if columns.repeats or columns.cluster == name:
            continue
        value = f.col(of(SIDES[0], name))
        sizes = (
            rows.in_test.filter(~value.is_null())
            .group_by(of(SIDES[0], name))
            .agg(f.col(SIZE).sum().alias("n"))
        )
        found = rows.engine.collected(
            sizes.select(
                n_values=f.len(), repeated=f.when(f.col("n") > 1).then(f.col("n")).otherwise(0).sum()
            )
        )
        n_values, repeated = found.row(0)
        if repeated and n_values > 1:  # one value in all rows, such as a measure, belongs to the log
            yield shared_input(int(repeated), n, name)


def shared_input(n_shared: int, n: int, column: str) -> str:
    """Return the warning that examples share the value of an input column."""
    return f"{n_shared:,} of {n:,} examples share their `{column}` with another, but count as independent"


def _warning(
    name: str, found: Evidence, columns: PairedColumns, types: Mapping[str, ColumnType]
) -> str | None:
    """Return the warning about one column, or :data:`_UNRELATED`; None if there is nothing to warn of."""
    if name in found.shifts:
        least, greatest = found.shifts[name]
        if greatest - least <= 1e-9 * abs(least):
            return f"`{name}` differs by {least:+g} on every example; one run may be a shifted copy"
    if name not in found.pairs:
        return None
    agreement = _agreement(found.pairs[name], types[name])
    if agreement is None or agreement > CHANCE:
        return None
    if columns.id is None:
        first, second = (found.in_order[of(side, name)] for side in SIDES)
        shifted = {
            shift: _agreement(_counted_pairs(first, second.shift(shift)), types[name]) or 0.0
            for shift in _SHIFTS
        }
        best = max(shifted, key=lambda shift: shifted[shift])
        if shifted[best] > 3 * CHANCE:
            return (
                f"`{name}` of the runs agrees if the candidate's rows move by {best:+d}; they may be shifted"
            )
    return _UNRELATED


def _counted_pairs(a: pl.Series, b: pl.Series) -> pl.DataFrame:
    frame = pl.DataFrame([a.alias("a"), b.alias("b")]).drop_nulls()
    return frame.group_by("a", "b").agg(pl.len().cast(pl.Int64).alias("n"))


def _agreement(pairs: pl.DataFrame, type_: ColumnType) -> float | None:
    """Agreement of two columns: 0 as by chance, 1 the largest possible; None if it cannot be estimated.

    For numbers it is the rank correlation. For other values it is (e - c) / (m - c), where e is the share of
    equal values, c the share expected by chance, and m the largest share with these frequencies of values.
    Integers may be numbers or classes: for those with few different values it is the greater of the two, if
    the correlation is not due to chance.

    Parameters
    ----------
    pairs : DataFrame
        Pairs of values ``a`` and ``b``, and how often each occurs, ``n``.
    """
    n = int(pairs["n"].sum())
    shares = [pairs.group_by(value=side).agg(pl.col("n").sum().alias(f"n_{side}")) for side in ("a", "b")]
    is_nominal = type_ is not ColumnType.DECIMAL and 2 * max(map(len, shares)) < n
    if n < ENOUGH or (type_ is ColumnType.TEXT and not is_nominal):
        return None
    if not is_nominal:
        correlation = _rank_correlation(pairs, shares)
        return correlation if math.isfinite(correlation) and math.sqrt(n) > POWER else None
    both = shares[0].join(shares[1], on="value").select(pl.col("n_a", "n_b").cast(pl.Float64) / n)
    chance = float((both["n_a"] * both["n_b"]).sum())
    largest = float(both.select(pl.min_horizontal("n_a", "n_b")).to_series().sum())
    spread = math.sqrt(chance * (1.0 - chance) / n)
    if largest - chance <= POWER * spread:
        return None
    equal = pairs.filter(pl.col("a") == pl.col("b"))["n"].sum()
    agreement = (float(equal) / n - chance) / (largest - chance)
    if type_ is ColumnType.INTEGER and agreement <= CHANCE:
        correlation = _rank_correlation(pairs, shares)
        if correlation * math.sqrt(n) > _SURE:
            return max(agreement, correlation)
    return agreement


def _rank_correlation(pairs: pl.DataFrame, shares: Sequence[pl.DataFrame]) -> float:
    """Return the correlation of average ranks; n equal values above m smaller ones rank m + (n + 1) / 2."""
    for side, share in zip(("a", "b"), shares, strict=True):
        size = pl.col(f"n_{side}")
        ranks = share.sort("value").select(
            pl.col("value").alias(side), (size.cum_sum() - size + (size + 1) / 2.0).alias(f"rank_{side}")
        )
        pairs = pairs.join(ranks, on=side, how="left")
    a, b, n = (pairs[name].to_numpy().astype(np.float64) for name in ("rank_a", "rank_b", "n"))
    a, b = (ranks - np.average(ranks, weights=n) for ranks in (a, b))
    with np.errstate(invalid="ignore", divide="ignore"):
        return float((n @ (a * b)) / np.sqrt((n @ a**2) * (n @ b**2)))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
