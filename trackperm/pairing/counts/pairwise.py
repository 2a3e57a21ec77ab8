"""Shares of examples in scores over pairs of examples, computed in memory from the scores of both runs.

All examples are read: about 100 bytes for each, and about 500 while pairs that depend on two values are
counted. The baseline's score is divided equally among the examples of its stratum, so that the table of
counts has one row for each distinct weight, and its totals are the scores of both runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import InputError, UntestableError
from trackperm.exact.pairwise import Influences, PairMean, PairSums, influences_of
from trackperm.pairing.checks.differences import shown
from trackperm.pairing.counts.classes import ClassCounts, require_few
from trackperm.pairing.counts.counting import with_counters
from trackperm.pairing.engines.base import Frame, Types
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.joined import COLUMN_OF, KEY, SIDES, SIZE, JoinedRows, count_of, of
from trackperm.statistic import OUT_OF_RANGE, Statistic, load_statistic
from trackperm.statistic.count_expressions import pair_score_expression
from trackperm.statistic.definition import CLASS_COLUMN, ClassValue, class_text
from trackperm.statistic.expressions.types import of_columns
from trackperm.statistic.pairs.columns import example_column, score_column
from trackperm.statistic.pairs.term import SHARE, PairTerm
from trackperm.statistic.pairs.trees import SCORE
from trackperm.tables.columns.types import ColumnType

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
        The statistic, with the units of the shares and the weights of the strata or classes.
    influences : Influences
        Influences of the examples, or of the clusters, on the difference of both scores.
    by_class : ClassCounts or None
        The shares of every class, of which `frame` has the weighted means; None without classes.
    """

    rows: JoinedRows
    frame: Frame
    statistic: Statistic
    influences: Influences
    by_class: ClassCounts | None = None


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Sums over the pairs within strata, or over those of one class.

    Attributes
    ----------
    sums, unit, kinds
        As :meth:`PairTerm.sums` returns them.
    strata : ndarray of int64, shape (N,)
        Stratum of each example, numbered from 0.
    n_pairs : ndarray of int64, shape (number of strata,)
        Number of pairs in each stratum.
    """

    sums: PairSums
    unit: Fraction
    kinds: Integers
    strata: Integers
    n_pairs: Integers

    @property
    def shares(self) -> tuple[Integers, Integers]:
        """Shares of the examples in the score of the baseline and of the candidate, in their units."""
        baseline = np.zeros(self.strata.size, dtype=np.int64)
        for i in range(len(self.n_pairs)):
            own = self.strata == i
            baseline[own] = _divided(2 * int(self.sums.baseline[own].sum()), self.sums.weights[own])
        return baseline, baseline + self.sums.weights

    @property
    def units(self) -> list[Fraction]:
        """Unit of the shares in each stratum."""
        return [self.unit / 2 / int(n) for n in self.n_pairs]

    def mean(self, weights: Sequence[float]) -> PairMean:
        """Return the weighted mean over the strata."""
        return PairMean(self.sums, self.unit, self.kinds, self.strata, np.array(weights))


def shares_of_pairs(rows: JoinedRows, statistic: Statistic, term: PairTerm, types: Types) -> PairedShares:
    """Compute the shares of all examples that are in the test, in pairs that count `term`.

    `types` includes those of :func:`~trackperm.pairing.counts.classes.class_types` where there are classes.

    Raises
    ------
    InputError
        If a stratum or a class has no pairs, sums may reach 2^62, a score cannot be computed, or there are
        too many classes for this number of examples.
    SpecError
        If types of columns do not suit the term, or its pairs are too many to be compared one by one.
    """
    local = in_memory(rows)
    if not len(local.engine.collected(local.rows)):
        raise InputError(f"`{statistic.name}` has no examples, and so no pairs")
    cluster = local.columns.cluster
    clusters = None if cluster is None else numbered(local, cluster)[1]
    if term.has_classes:
        return _by_class(local, statistic, term, types, clusters)
    names, strata = numbered(local, local.columns.strata)
    places = [f" in the stratum {name!r}" for name in names] or [""]
    pairs = _pairs(local, statistic, term, types, strata, places)
    totals = [f"{SHARE}[{name}]" for name in names] or [SHARE]
    units = dict(zip(totals, pairs.units, strict=True))
    statistic = load_statistic(statistic, strata=names or None, units=units)
    shares = zip(SIDES, pairs.shares, strict=True)
    frame = local.engine.collected(local.rows).with_columns(
        [pl.Series(count_of(side, SHARE), share) for side, share in shares]
    )
    influences = influences_of(
        [pairs.mean(_normalised(statistic, names or [""]))],
        clusters=clusters,
        names=names,
        largest=_largest(term),
    )
    return PairedShares(local, local.engine.local(frame), statistic, influences)


def _by_class(
    rows: JoinedRows, statistic: Statistic, term: PairTerm, types: Types, clusters: Integers | None
) -> PairedShares:
    """Compute the shares in the score of every class, whose pairs and scores may read the class."""
    frame = rows.engine.collected(rows.rows)
    n_examples, classes = len(frame), statistic.classes
    if rows.columns.classes is not None:
        labels = rows.engine.collected(rows.rows.select(rows.example(rows.columns.classes).alias("class")))
        classes = tuple(sorted(labels["class"].unique().to_list()))
    require_few(n_examples, "examples", statistic, len(classes))
    strata = np.zeros(n_examples, dtype=np.int64)
    found = {
        class_text(value): _pairs(
            rows, statistic, term.of_class(value), types, strata, [f" in the class {value!r}"], value
        )
        for value in classes
    }
    weights = None
    if term.average == "weighted":
        weights = {name: Fraction(int(np.count_nonzero(each.sums.partners))) for name, each in found.items()}
    units = {f"{SHARE}[{name}]": each.units[0] for name, each in found.items()}
    statistic = load_statistic(statistic, classes=classes, units=units, weights=weights)
    shares = [each.shares for each in found.values()]
    baseline, candidate = (np.stack([of_class[i] for of_class in shares], axis=1)[..., None] for i in (0, 1))
    counts = ClassCounts(baseline, candidate, np.ones(n_examples, dtype=np.int64), statistic, ())
    of_classes = zip(found.values(), _normalised(statistic, list(found)), strict=True)
    influences = influences_of(
        [each.mean([weight]) for each, weight in of_classes],
        clusters=clusters,
        names=[*found],
        largest=_largest(term),
    )
    frame = frame.with_columns(counts.pooled().get_columns())
    return PairedShares(rows, rows.engine.local(frame), statistic, influences, counts)


def _largest(term: PairTerm) -> float | None:
    """Return the largest difference of two scores as a float; None if the term alone does not bound it."""
    return None if term.largest_difference is None else float(term.largest_difference)


def _normalised(statistic: Statistic, names: Sequence[str]) -> list[float]:
    """Return the weights of strata or classes as shares of their sum."""
    weights = [statistic.weights.get(name, Fraction(1)) for name in names]
    return [float(weight / sum(weights)) for weight in weights]


def _pairs(
    rows: JoinedRows,
    statistic: Statistic,
    term: PairTerm,
    types: Types,
    strata: Integers,
    places: Sequence[str],
    class_: ClassValue | None = None,
) -> _Pairs:
    """Sum the terms of all pairs; `places` say in messages which strata, or which class, these are."""
    read_columns = dict(statistic.columns)
    if term.score is not None:
        read_columns[SCORE] = SCORE
        types = {**types, SCORE: ColumnType.DECIMAL}
    term.check(*of_columns(read_columns, types))
    values = values_of(rows, statistic, term.example_names, types, class_)
    if term.score is not None:
        _require_known_scores(rows, statistic, values)
    sums, unit, kinds = term.sums(values, read_columns, types, strata)
    n_pairs = np.zeros(len(places), dtype=np.int64)
    np.add.at(n_pairs, strata, sums.partners)
    _require_pairs(statistic, term, places, n_pairs, values, strata)
    return _Pairs(sums, unit, kinds, strata, n_pairs)


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


def values_of(
    rows: JoinedRows,
    statistic: Statistic,
    read: Iterable[str],
    types: Types,
    class_: ClassValue | None = None,
) -> pl.DataFrame:
    """Return values of the examples and the scores of both runs, as :meth:`PairTerm.sums` reads them.

    `read` are names of columns of the examples. It raises InputError if a score cannot be computed.
    """
    f, frame = rows.functions, rows.rows
    if class_ is not None:
        frame = frame.with_columns(f.lit(class_).alias(of(side, CLASS_COLUMN)) for side in SIDES)
    frame = with_counters(rows, frame, statistic, (None, None), None)
    names = dict.fromkeys(statistic.columns[name] for name in read)
    return rows.engine.collected(
        frame.select(
            *(
                pair_score_expression(statistic, types, COLUMN_OF[side], f).alias(score_column(side))
                for side in SIDES
            ),
            *(rows.example(name).alias(example_column(name)) for name in names),
        )
    )


def _require_known_scores(rows: JoinedRows, statistic: Statistic, values: pl.DataFrame) -> None:
    """Refuse scores that cannot be computed on an example."""
    for side, run in zip(SIDES, rows.runs, strict=True):
        found = values[score_column(side)].cast(pl.Float64)
        wrong = ~(found.is_finite() & (found.abs() < OUT_OF_RANGE))
        if wrong.any():
            key = rows.engine.collected(rows.rows)[KEY][int(wrong.arg_true()[0])]
            raise InputError(
                f"the score of `{statistic.name}` is undefined, infinite or beyond 64 bits on example"
                f" {shown(key)} of `{run.origin}`",
                hint="`score` in its file needs a finite value on every example.",
            )


def _require_pairs(
    statistic: Statistic,
    term: PairTerm,
    places: Sequence[str],
    n_pairs: Integers,
    values: pl.DataFrame,
    strata: Integers,
) -> None:
    """Refuse strata and classes without pairs; `places` are their names in the message.

    Pairs depend on what the runs share, so that no exchange of outputs gives them others.
    """
    empty = np.flatnonzero(n_pairs == 0)
    if not empty.size:
        return
    place, is_part = places[empty[0]], len(places) > 1
    own = values.filter(pl.Series(strata == empty[0]))
    given = ", ".join(f"`{name}` is {value!r}" for name, value in statistic.parameters.items())
    reads_label = LABEL in term.example_names
    labels = own[example_column(statistic.columns[LABEL])].unique() if reads_label else pl.Series()
    if labels.len() == 1 and own.height > 1:
        hint = "it needs examples with different labels"
        if is_part:
            hint += " in every stratum: leave out the examples of this one, or join it with another"
        raise UntestableError(
            f"`{statistic.name}` is undefined{place}: all {own.height:,} examples have the"
            f" `{statistic.columns[LABEL]}` {labels[0]!r}",
            hint=f"{hint}; `--label NAME` names another column.",
        )
    conditions = {"left": term.left, "right": term.right}
    written = " and ".join(f"`{key}: {each}`" for key, each in conditions.items() if each is not None)
    raise UntestableError(
        f"`{statistic.name}` has no pairs{place}: no two of its {own.height:,} examples are a left and a"
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
