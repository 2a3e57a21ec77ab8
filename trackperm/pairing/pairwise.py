"""Shares of examples in scores over pairs of examples, computed in memory from the scores of both runs.

All examples are read: about 100 bytes for each, and about 500 while pairs that depend on two values are
counted. The baseline's score is divided equally among the examples of its stratum, so that the table of
counts has one row for each distinct weight, and its totals are the scores of both runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import InputError
from trackperm.exact.pairwise import Influences, influences_of
from trackperm.pairing.engines.base import Frame, Types
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.joined import SIDES, SIZE, JoinedRows, count_of, of
from trackperm.statistic import Statistic, load_statistic
from trackperm.statistic.expressions.types import of_columns
from trackperm.statistic.pair_columns import example_column, score_column
from trackperm.statistic.pair_term import SHARE, PairTerm
from trackperm.statistic.pair_trees import SCORE

RANKS = (
    "scores are replaced by their mid-ranks within each run, which are exchanged: the level of p holds only"
    " for many examples; with `scale: raw` it holds for any number if scores themselves are exchangeable"
)

LABEL = "label"

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PairedShares:
    """Examples of two runs with their shares in the scores.

    Attributes
    ----------
    rows : JoinedRows
        The rows in the test, in memory.
    frame : narwhals.LazyFrame
        The same rows, with the shares as counts.
    statistic : Statistic
        The statistic, with the units of the shares and the weights of the strata.
    influences : Influences
        Influences of the examples, or of the clusters, on the difference of both scores.
    """

    rows: JoinedRows
    frame: Frame
    statistic: Statistic
    influences: Influences


def shares_of_pairs(rows: JoinedRows, statistic: Statistic, term: PairTerm, types: Types) -> PairedShares:
    """Compute the shares of all examples that are in the test, in pairs that count `term`.

    Raises
    ------
    InputError
        If a stratum has no pairs, or sums may reach 2^62.
    SpecError
        If types of columns do not suit the term, or its pairs are too many to be compared one by one.
    """
    term.check(*of_columns(statistic.columns, types))
    local = in_memory(rows)
    frame = local.engine.collected(local.rows)
    if not len(frame):
        raise InputError(f"`{statistic.name}` has no examples, and so no pairs")
    names, strata = numbered(local, local.columns.strata)
    values = values_of(local, statistic, term.names)
    sums, unit, kinds = term.sums(values, statistic.columns, types, strata)
    n_pairs = np.zeros(max(1, len(names)), dtype=np.int64)
    np.add.at(n_pairs, strata, sums.partners)
    _require_pairs(statistic, term, names, n_pairs, values, strata)
    parts = {name: i for i, name in enumerate(names)} or {"": 0}
    units = {f"{SHARE}[{name}]" if names else SHARE: unit / 2 / int(n_pairs[i]) for name, i in parts.items()}
    statistic = load_statistic(statistic, strata=names or None, units=units)
    baseline = np.zeros(len(frame), dtype=np.int64)
    for i in range(len(n_pairs)):
        own = strata == i
        baseline[own] = _divided(2 * int(sums.baseline[own].sum()), sums.weights[own])
    counts = [
        pl.Series(count_of(side, SHARE), share)
        for side, share in zip(SIDES, (baseline, baseline + sums.weights), strict=True)
    ]
    weights = [float(statistic.weights.get(name, 1)) for name in parts]
    cluster = local.columns.cluster
    clusters = None if cluster is None else numbered(local, cluster)[1]
    influences = influences_of(sums, unit, kinds, strata, np.array(weights) / sum(weights), clusters=clusters)
    return PairedShares(local, local.engine.local(frame.with_columns(counts)), statistic, influences)


def in_memory(rows: JoinedRows) -> JoinedRows:
    """Collect the rows in the test, ordered by key."""
    found = rows.engine.collected(rows.rows_in_test)
    if SIZE not in found.columns:
        found = found.with_columns(pl.lit(1, pl.Int64).alias(SIZE))
    engine = InMemory()
    frame = engine.local(found.sort(rows.keys))
    return replace(rows, engine=engine, rows=frame, frame=frame)


def numbered(rows: JoinedRows, column: str | None) -> tuple[list[str], Integers]:
    """Return the texts of a column of groups in order, and the number of each row's; no texts without one."""
    engine = rows.engine
    if column is None:
        return [], np.zeros(len(engine.collected(rows.rows)), dtype=np.int64)
    text = rows.example(column).cast(rows.functions.String)
    texts = engine.collected(rows.rows.select(text.alias(column)))[column]
    names = texts.unique().sort().to_list()
    numbers = texts.replace_strict(names, list(range(len(names))), return_dtype=pl.Int64)
    return names, numbers.to_numpy()


def values_of(rows: JoinedRows, statistic: Statistic, read: Iterable[str]) -> pl.DataFrame:
    """Return values of the examples and the scores of both runs, as :meth:`PairTerm.sums` reads them."""
    f = rows.functions
    score = statistic.columns[SCORE]
    names = [statistic.columns[name] for name in read if name != SCORE]
    return rows.engine.collected(
        rows.rows.select(
            *(f.col(of(side, score)).alias(score_column(side)) for side in SIDES),
            *(rows.example(name).alias(example_column(name)) for name in dict.fromkeys(names)),
        )
    )


def _require_pairs(
    statistic: Statistic,
    term: PairTerm,
    names: list[str],
    n_pairs: Integers,
    values: pl.DataFrame,
    strata: Integers,
) -> None:
    """Refuse strata without pairs."""
    empty = np.flatnonzero(n_pairs == 0)
    if not empty.size:
        return
    of_stratum = f" in the stratum {names[empty[0]]!r}" if names else ""
    own = values.filter(pl.Series(strata == empty[0]))
    given = ", ".join(f"`{name}` is {value!r}" for name, value in statistic.parameters.items())
    reads_label = LABEL in term.names
    labels = own[example_column(statistic.columns[LABEL])].unique() if reads_label else pl.Series()
    if labels.len() == 1 and own.height > 1:
        hint = "it needs examples with different labels"
        if names:
            hint += " in every stratum: leave out the examples of this one, or join it with another"
        raise InputError(
            f"`{statistic.name}` is undefined{of_stratum}: all {own.height:,} examples have the"
            f" `{statistic.columns[LABEL]}` {labels[0]!r}",
            hint=f"{hint}; `--label NAME` names another column.",
        )
    conditions = {"left": term.left, "right": term.right}
    written = " and ".join(f"`{key}: {each}`" for key, each in conditions.items() if each is not None)
    raise InputError(
        f"`{statistic.name}` has no pairs{of_stratum}: no two of its {own.height:,} examples are a left and a"
        f" right one" + (f" by {written}" if written else ""),
        hint="the examples need both kinds" + (f"; {given}." if given else "."),
    )


def _divided(total: int, weights: Integers) -> Integers:
    """Divide a total into integers that differ by at most 1; examples of the least weights get the rest.

    In this order, at most one weight occurs with two shares.
    """
    share, rest = divmod(total, weights.size)
    found = np.full(weights.size, share, dtype=np.int64)
    found[np.argsort(weights, kind="stable")[:rest]] += 1
    return found
