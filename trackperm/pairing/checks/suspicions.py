"""What looks wrong in a pairing that nothing disproves: hints for the eye, found by rules of thumb.

A join that pairs the wrong rows makes two runs look independent of each other, which predictions on the same
inputs hardly ever are. None of this refuses anything or changes a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import polars as pl

from trackperm.errors import InputTypeError
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.joined import KEY_WORD, SIDES, JoinedRows, of
from trackperm.pairing.row_hashes import hash_names, with_row_hash
from trackperm.tables.column_names import names_categories
from trackperm.tables.column_types import LISTS, ColumnType, typed_columns
from trackperm.tables.table import ExampleTable, id_columns

ENOUGH = 50  # examples, below which chance explains nearly everything
CHANCE = 0.1  # agreement up to which rows look unrelated
POWER = 30.0  # standard errors by which full agreement has to differ from none: a tenth of it is three
N_SAMPLED = 2**18
"""Examples that a look at how far columns agree needs at most."""
_HASH = "sample"
_NUMBERS = (ColumnType.INTEGER, ColumnType.DECIMAL)
_SHIFTS = (1, -1, 2, -2, 3, -3)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What warnings about the pairing of two runs are drawn from.

    Attributes
    ----------
    n : int
        Number of rows in the test.
    same : bool
        Whether all that the statistic reads of each run is the same in both.
    perfect : tuple of (str, str)
        Column, and name of a run that has the label in it on every example.
    shifts : mapping of str to (float, float)
        Of columns of decimals, the least and the greatest difference between the runs.
    samples : (DataFrame, DataFrame)
        What the statistic reads of each run, on some of the examples or all, ordered by their keys.
    inputs : tuple of str
        What inputs give to suspect.
    """

    n: int
    same: bool
    perfect: tuple[tuple[str, str], ...]
    shifts: Mapping[str, tuple[float, float]]
    samples: tuple[pl.DataFrame, pl.DataFrame]
    inputs: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: JoinedRows, *, every: int = 1) -> Evidence:
        """Look at the rows in the test.

        Parameters
        ----------
        rows : JoinedRows
            Baseline and candidate.
        every : int
            Of about how many examples one is a sample.
        """
        columns, types, engine = rows.columns, rows.types, rows.engine
        names, label = columns.of_runs, columns.label
        sides = {name: [nw.col(of(side, name)) for side in SIDES] for name in names}
        looked = {f"differs {name}": _ne_missing(*pair) for name, pair in sides.items()}
        like_label = [
            (name, i)
            for i in range(len(SIDES))
            for name in names
            if label is not None and types[name] is types[label]
        ]
        for name, i in like_label:
            looked[f"no label {i} {name}"] = _ne_missing(sides[name][i], nw.col(of(SIDES[i], str(label))))
        shifts = {
            f"{end} shift {name}": getattr(pair[1] - pair[0], end)()
            for name, pair in sides.items()
            if types[name] is ColumnType.DECIMAL
            for end in ("min", "max")
        }
        asked = {"n": nw.len(), **{name: differs.cast(nw.Int64).sum() for name, differs in looked.items()}, **shifts}
        answers = engine.collected(
            rows.in_test.select(value.alias(f"answer_{i}") for i, value in enumerate(asked.values()))
        )
        found = dict(zip(asked, answers.row(0), strict=True))
        sampled = rows.in_test
        if every > 1:
            sampled = with_row_hash(sampled, [KEY_WORD], _HASH).filter(nw.col(hash_names(_HASH)[0]) % every == 0)
        is_empty = not names or found["n"] < ENOUGH
        sample = engine.collected(
            (sampled.head(0) if is_empty else sampled.sort(*rows.keys)).select(
                of(side, name) for side in SIDES for name in names
            )
        ) if names else pl.DataFrame()
        return cls(
            int(found["n"]),
            not any(found[f"differs {name}"] for name in names),
            tuple((name, rows.runs[i].origin) for name, i in like_label if not found[f"no label {i} {name}"]),
            {
                name: (found[f"min shift {name}"], found[f"max shift {name}"])
                for name in names
                if found.get(f"min shift {name}") is not None
            },
            (_side(sample, 0, names), _side(sample, 1, names)),
            tuple(_inputs(rows, int(found["n"]))),
        )


def _side(sample: pl.DataFrame, i: int, names: Sequence[str]) -> pl.DataFrame:
    return sample.select(pl.col(of(SIDES[i], name)).alias(name) for name in names)


def _ne_missing(a: nw.Expr, b: nw.Expr) -> nw.Expr:
    """Whether two values differ, where nulls are the same."""
    return (a != b).fill_null(False) | (a.is_null() != b.is_null())


def sampled_every(baseline: ExampleTable, candidate: ExampleTable, columns: PairedColumns) -> int:
    """Return of how many examples of two runs one is a sample; 1 where neighbours matter."""
    if columns.id is None:
        return 1
    return max(1, max(len(baseline), len(candidate)) // N_SAMPLED)


def suspicions(found: Evidence, columns: PairedColumns, types: Mapping[str, ColumnType]) -> list[str]:
    """Say what in two runs on the same examples people should look at.

    Returns
    -------
    list of str
        Sentences that begin with ``look:``.
    """
    sentences = list(found.inputs)
    if found.n >= ENOUGH:
        names = columns.of_runs
        if found.same and names:
            sentences.append(f"{_listed(names)} are the same in both runs: is one a copy of the other?")
        else:
            for name in names:
                sentences += _column(name, found, columns, types)
            sentences += (
                f"`{name}` is `{columns.label}` on every example of `{origin}`: was it logged instead?"
                for name, origin in found.perfect
            )
    return [f"look: {sentence}" for sentence in sentences]


def other_ids(baseline: ExampleTable, candidate: ExampleTable, id_: str) -> list[str]:
    """Say where runs that were paired by position have ids, and others in the same rows."""
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
        f"look: `{id_}` differs between the runs in {differ.sum()} of {len(differ)} rows, first in row {row}:"
        f" {values[0]} and {values[1]}: do the rows belong together?"
    ]


def _inputs(rows: JoinedRows, n: int) -> Iterator[str]:
    columns = rows.columns
    for name in columns.identity:
        if rows.types[name] in _NUMBERS or names_categories(name):  # counts, and hashes of answers
            continue
        if columns.repeats or columns.cluster == name:
            continue
        value = nw.col(of(SIDES[0], name))
        sizes = rows.in_test.filter(~value.is_null()).group_by(of(SIDES[0], name)).agg(nw.len().alias("n"))
        repeated = rows.engine.collected(sizes.filter(nw.col("n") > 1).select(nw.col("n").sum())).item()
        if repeated:
            yield shared_input(int(repeated), n, name)


def shared_input(n_shared: int, n: int, column: str) -> str:
    """Say how many of n examples have the input of another, as `column` tells."""
    return f"{n_shared} of {n} examples share their `{column}` with another, and count apart"


def _column(
    name: str, found: Evidence, columns: PairedColumns, types: Mapping[str, ColumnType]
) -> Iterator[str]:
    if name in found.shifts:
        least, greatest = found.shifts[name]
        if greatest - least <= 1e-9 * abs(least):
            yield f"`{name}` differs by {least:+g} on every example: is one a shifted copy?"
            return
    (baseline, candidate), type_ = (sample[name] for sample in found.samples), types[name]
    agreement = _agreement(baseline, candidate, type_)
    if agreement is None or agreement > CHANCE:
        return
    shifted = {shift: _agreement(baseline, candidate.shift(shift), type_) or 0.0 for shift in _SHIFTS}
    best = max(shifted, key=lambda shift: shifted[shift])
    if columns.id is None and shifted[best] > 3 * CHANCE:
        yield f"`{name}` of the runs agrees if the candidate's rows move by {best:+d}: are they shifted?"
    else:
        yield f"`{name}` of the runs agrees no better than by chance: do the rows belong together?"


def _agreement(a: pl.Series, b: pl.Series, type_: ColumnType) -> float | None:
    """How far two columns agree: 0 as by chance, 1 as far as they can; None where that cannot be told.

    For numbers it is the rank correlation, else the share of equal values above that expected by chance, as a
    part of the largest there could be with these numbers of each value.
    """
    if type_ in LISTS:
        return None
    frame = pl.DataFrame([a.alias("a"), b.alias("b")]).drop_nulls()
    n = len(frame)
    is_nominal = type_ is not ColumnType.DECIMAL and 2 * max(frame["a"].n_unique(), frame["b"].n_unique()) < n
    if n < ENOUGH or (type_ is ColumnType.TEXT and not is_nominal):
        return None
    if not is_nominal:
        correlation = frame.select(pl.all().rank("average")).select(pl.corr("a", "b")).item()
        usable = correlation is not None and math.isfinite(correlation) and math.sqrt(n) > POWER
        return float(correlation) if usable else None
    shares = [frame.group_by(side).len(f"n_{side}").rename({side: "value"}) for side in ("a", "b")]
    both = shares[0].join(shares[1], on="value").select(pl.col("n_a", "n_b").cast(pl.Float64) / n)
    chance = float((both["n_a"] * both["n_b"]).sum())
    largest = float(both.select(pl.min_horizontal("n_a", "n_b")).to_series().sum())
    spread = math.sqrt(chance * (1.0 - chance) / n)
    if largest - chance <= POWER * spread:
        return None
    return (float((frame["a"] == frame["b"]).sum()) / n - chance) / (largest - chance)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
