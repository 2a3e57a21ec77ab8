"""Counts of every class on every example, computed once for each kind of example.

Examples with the same label and the same two predictions have the same counts; they are one kind. There are
far fewer kinds than examples, so that counting by kind saves time and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import InputError
from trackperm.exact import CountTable
from trackperm.pairing.checks.differences import shown
from trackperm.pairing.columns.roles import PairedColumns
from trackperm.pairing.counts.counting import DIFFERS, MAX_CELLS, counted, require_small_sums
from trackperm.pairing.engines.base import Frame
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.joined import KEY, SIDES, SIZE, JoinedRows, count_of, of
from trackperm.statistic import Outcome, Statistic, load_statistic
from trackperm.statistic.definition import CLASS_COLUMN, ClassValue
from trackperm.statistic.expressions.frames import Decimals
from trackperm.statistic.expressions.types import literal_type
from trackperm.tables.columns.types import LISTS, ColumnType

KIND = "kind"
"""Column with the number of a row's kind."""

_CLASS = "class_number"
_SIZE = "kind_size"
_SHOWN = 3

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Counts of every class on each kind of example.

    Attributes
    ----------
    baseline, candidate : ndarray of int64, shape (K, C, p)
        The p counts of C classes on K kinds of examples.
    sizes : ndarray of int64, shape (K,)
        Number of examples of each kind.
    statistic : Statistic
        The statistic that was counted.
    notes : tuple of str
        Remarks on the counts for readers of the result.
    decimals : mapping of str to Decimals
        Columns of both runs whose values are decimals, among those with which counts are computed.
    """

    baseline: Integers
    candidate: Integers
    sizes: Integers
    statistic: Statistic
    notes: tuple[str, ...]
    decimals: Mapping[str, Decimals] = field(default_factory=dict)

    def summed(self, units: Integers, kinds: Integers, sizes: Integers) -> ClassCounts:
        """Add up the counts of the examples of each unit.

        Row l of `units`, `kinds` and `sizes` is the number of a unit and of a kind, each from 0, and the
        number of examples of this kind in this unit. Sums that may reach 2^62, or counts that would not fit
        in memory, are refused.
        """
        n_units = int(units.max()) + 1
        self.require_few_units(n_units)
        largest = max(int(np.abs(counts).max()) for counts in (self.baseline, self.candidate))
        of_unit = np.bincount(units, weights=sizes)
        require_small_sums(largest, int(of_unit.max()), self.statistic)
        from scipy import sparse  # imported late, because the import takes as long as a small comparison

        incidence = sparse.csr_array((sizes, (units, kinds)), shape=(n_units, len(self.baseline)))
        baseline, candidate = (
            (incidence @ counts.reshape(len(counts), -1)).reshape(-1, *counts.shape[1:])
            for counts in (self.baseline, self.candidate)
        )
        return replace(self, baseline=baseline, candidate=candidate, sizes=np.ones(n_units, dtype=np.int64))

    def require_few_units(self, n_units: int) -> None:
        """Refuse units whose counts of every class would not fit in memory."""
        require_few(n_units, "units that are exchanged together", self.statistic, self.baseline.shape[1])

    def pooled(self) -> pl.DataFrame:
        """Return the counts of each kind, added up over the classes, and :data:`DIFFERS`.

        Shares in scores of pairs are averaged with the weights of the classes, in units of the score.
        """
        columns: dict[str, npt.NDArray[Any]] = {}
        for side, counts in zip(SIDES, (self.baseline, self.candidate), strict=True):
            if self.statistic.pair_term is None:
                require_small_sums(int(np.abs(counts).max(initial=0)), counts.shape[1], self.statistic)
                totals = counts.sum(axis=1)
            else:
                totals = counts.transpose(0, 2, 1) @ self._slopes
            columns |= {
                count_of(side, name): totals[:, i] for i, name in enumerate(self.statistic.count_names)
            }
        differ = (self.baseline != self.candidate).any(axis=(1, 2))
        return pl.DataFrame({KIND: np.arange(len(differ)), **columns, DIFFERS: differ})

    @property
    def _slopes(self) -> npt.NDArray[np.float64]:
        """Change of a mean over classes with each of their counts, shape (C,), for one count of each."""
        weights, units = self.statistic.weights, self.statistic.resolution
        assert isinstance(units, Mapping)  # noqa: S101
        share, total = [*units.values()], sum(weights.values())
        return np.array([float(w * unit / total) for w, unit in zip(weights.values(), share, strict=True)])

    def count_table(self) -> CountTable:
        """Group the counts: one row for all examples with the same counts of every class."""
        n_kinds = len(self.baseline)
        return CountTable.from_counts(
            self.statistic.total_names,
            self.candidate.reshape(n_kinds, -1),
            self.baseline.reshape(n_kinds, -1),
            self.sizes,
        )


def class_types(
    statistic: Statistic, columns: PairedColumns, types: Mapping[str, ColumnType]
) -> dict[str, ColumnType]:
    """Return the type of the column of classes of a statistic that has them."""
    of_classes = literal_type(statistic.classes[0]) if columns.classes is None else types[columns.classes]
    return {CLASS_COLUMN: of_classes}


def counted_by_class(
    rows: JoinedRows,
    statistic: Statistic,
    types: Mapping[str, ColumnType],
    outcomes: tuple[Outcome, Outcome] | None,
    decimals: Mapping[str, Decimals] | None = None,
    *,
    units: Mapping[str, Fraction] | None = None,
) -> tuple[Frame, ClassCounts]:
    """Count the outcomes of both runs for every class.

    `types` includes those of :func:`class_types`; `outcomes` replace missing predictions of baseline and
    candidate; `decimals` may be known. `units` are known if the rows are a part, perhaps an empty one, of
    those by which they and the classes of `statistic` were found. It returns the rows in the test, with the
    number of their kind and the columns of :meth:`ClassCounts.pooled`, and the counts of the kinds.

    Raises
    ------
    InputError
        If a count is undefined on an example or out of range, if there are too many classes or different
        examples, or if a class that the statistic lists does not occur.
    """
    engine, columns = rows.engine, rows.columns
    classes: tuple[ClassValue, ...] = statistic.classes
    if columns.classes is not None and units is None:
        found = rows.in_test.select(rows.example(columns.classes).alias("class")).unique()
        known = set(engine.collected(found)["class"].to_list())
        if statistic.predicts_classes:
            known |= _predicted(rows, statistic, types)
        classes = tuple(sorted(known))
        statistic = load_statistic(statistic, classes=classes)
    read = [name for name in columns.used if name in statistic.used_columns or name == columns.label]

    def require_few_kinds(n: int) -> None:
        require_few(n, "different examples", statistic, len(classes))

    frame, kinds = _with_kinds(rows, read, types, require_few_kinds)
    in_memory = InMemory()
    of_kinds = replace(rows, engine=in_memory, types={**rows.types, **types})
    if decimals is not None:
        decimals = {**decimals, **_bound(classes)}
    every = in_memory.local(_for_every(classes, kinds))
    own = counted(of_kinds, every, statistic, dict(types), outcomes, decimals=decimals, units=units)
    if own.statistic is not statistic:  # counting has set its units
        statistic = load_statistic(own.statistic, classes=classes)
    shape = (len(kinds), len(classes), len(statistic.count_names))
    values = in_memory.collected(own.frame).sort(KIND, _CLASS)
    baseline, candidate = (
        np.ascontiguousarray(
            values.select(count_of(side, name) for name in statistic.count_names).to_numpy(), dtype=np.int64
        ).reshape(shape)
        for side in SIDES
    )
    occurs = (baseline != 0).any(axis=(0, 2)) | (candidate != 0).any(axis=(0, 2))
    if units is None and not occurs.all():
        value = classes[int(np.argmin(occurs))]
        raise InputError(
            f"the class {value!r} of `{statistic.name}` counts 0 on every example of both runs",
            hint="check how the class is written in the data.",
        )
    notes = (*own.notes, *_predicted_alone(rows, classes, statistic, types))
    counts = ClassCounts(baseline, candidate, kinds[_SIZE].to_numpy(), statistic, notes, own.decimals)
    return engine.kept(frame.join(engine.local(counts.pooled()), on=KIND, how="left")), counts


def _bound(classes: Sequence[ClassValue]) -> dict[str, Decimals]:
    """Return the bound of classes that are integers, with which counts may compute."""
    if not classes or any(type(value) is not int for value in classes):
        return {}
    return {CLASS_COLUMN: Decimals(1, max(abs(int(value)) for value in classes))}


def _with_kinds(
    rows: JoinedRows,
    read: Sequence[str],
    types: Mapping[str, ColumnType],
    require_few_kinds: Callable[[int], None],
) -> tuple[Frame, pl.DataFrame]:
    """Assign to each row the number of its kind; return these rows, and one row of each kind.

    Rows are of one kind if both runs have the same values in all columns that are read. `require_few_kinds`
    is called with the number of kinds before the kinds are brought into memory.
    """
    engine, f, frame = rows.engine, rows.functions, rows.examples
    if rows.columns.repeats or any(types[name] in LISTS for name in read):
        require_few_kinds(int(engine.collected(frame.select(f.len())).item()))
        kinds = engine.collected(frame).sort(*rows.keys).with_row_index(KIND)
        kinds = kinds.with_columns(pl.col(KIND).cast(pl.Int64), pl.col(SIZE).alias(_SIZE))
        return engine.local(kinds.drop(_SIZE)), kinds
    first = "first_of_kind"
    values = [of(side, name) for side in SIDES for name in read]
    frame = engine.kept(frame.with_columns(f.col(KEY).min().over(*values).alias(first)))
    require_few_kinds(int(engine.collected(frame.select(f.col(first).n_unique())).item()))
    sizes = engine.collected(frame.group_by(first).agg(f.col(SIZE).sum().cast(f.Int64).alias(_SIZE)))
    sizes = sizes.sort(first).with_row_index(KIND).with_columns(pl.col(KIND).cast(pl.Int64))
    examples = engine.collected(frame.filter(f.col(KEY) == f.col(first))).join(sizes, on=first).sort(KIND)
    numbers = engine.local(sizes.select(first, KIND))
    return frame.join(numbers, on=first, how="left").drop(first), examples


def _for_every(classes: tuple[ClassValue, ...], kinds: pl.DataFrame) -> pl.DataFrame:
    """Repeat each row for every class."""
    named = pl.DataFrame({_CLASS: range(len(classes)), CLASS_COLUMN: list(classes)})
    both = [pl.col(CLASS_COLUMN).alias(of(side, CLASS_COLUMN)) for side in SIDES]
    return kinds.join(named.with_columns(*both), how="cross")


def require_few(n: int, what: str, statistic: Statistic, n_classes: int) -> None:
    """Refuse more counts of classes than :data:`~trackperm.pairing.counts.counting.MAX_CELLS`."""
    if n * n_classes * 2 * len(statistic.count_names) > MAX_CELLS:
        raise InputError(
            f"{n} {what} are too many for the counts of {n_classes} classes",
            hint="`classes: [a, b]` in the file of the statistic lists fewer of them.",
        )


def _predicted(rows: JoinedRows, statistic: Statistic, types: Mapping[str, ColumnType]) -> set[ClassValue]:
    """Return the predictions of both runs, if they have the type of the classes."""
    column = statistic.columns.get("prediction")
    if column is None or types[column] is not types[CLASS_COLUMN]:
        return set()
    found = [rows.engine.collected(rows.in_test.select(of(side, column)).unique()) for side in SIDES]
    return {value for values in found for value in values.to_series().to_list()} - {None}


def _predicted_alone(
    rows: JoinedRows, classes: tuple[ClassValue, ...], statistic: Statistic, types: Mapping[str, ColumnType]
) -> list[str]:
    """Note the classes that are predicted but are not labels, if the classes are taken from the labels."""
    if statistic.class_column is None or statistic.predicts_classes:
        return []
    others = sorted(_predicted(rows, statistic, types) - set(classes))
    if not others:
        return []
    names = ", ".join(map(shown, others[:_SHOWN])) + (" …" if len(others) > _SHOWN else "")
    place = "sums" if statistic.adds_classes else "mean"
    return [f"classes: {len(others)} that occur in predictions only are not in the {place} ({names})"]
