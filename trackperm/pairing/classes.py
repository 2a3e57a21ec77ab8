"""Classes: every example is counted for each of them, and examples that are alike only once.

The counts of every class on every example are many, but what they are counted from takes few values: as many
as there are triples of a label and two predictions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact import CountTable
from trackperm.pairing.checks.differences import shown
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.counting import paired_counts
from trackperm.pairing.grouping import MAX_CELLS, require_small_sums
from trackperm.pairing.keyed_run import KeyedRun
from trackperm.pairing.missing import counted_runs
from trackperm.pairing.paired_counts import PairedCounts
from trackperm.statistic import Outcome, Statistic, load_statistic
from trackperm.statistic.definition import CLASS_COLUMN, ClassValue
from trackperm.statistic.expressions.types import literal_type
from trackperm.tables.column_types import LISTS, ColumnType

_ROW = "trackperm.row"
_SHOWN = 3

Runs = tuple[KeyedRun, KeyedRun]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Counts of every class on examples of which many are alike.

    Attributes
    ----------
    baseline, candidate : ndarray of int64, shape (K, C, p)
        The p counts of C classes on each kind of example.
    kinds : ndarray of int64, shape (N,)
        The kind of every example, as a row of these.
    statistic : Statistic
        What was counted.
    notes : tuple of str
        What a reader should know of the counts.
    """

    baseline: Integers
    candidate: Integers
    kinds: Integers
    statistic: Statistic
    notes: tuple[str, ...]

    def summed(self, units: nw.Series[Any]) -> ClassCounts:
        """Add up the counts of the examples of each unit, in the order of the units.

        Raises
        ------
        InputError
            If sums may reach 2^62, or the units are too many for counts of every class.
        """
        of_example = np.unique(units.to_numpy(), return_inverse=True)[1]
        n_units = int(of_example.max()) + 1
        _require_few(n_units, "units that are exchanged together", self.statistic, self.baseline.shape[1])
        largest = max(int(np.abs(counts).max()) for counts in (self.baseline, self.candidate))
        require_small_sums(largest, int(np.bincount(of_example).max()), self.statistic)
        from scipy import sparse  # importing it takes as long as a small comparison

        shape = (n_units, len(self.baseline))
        ones = np.ones(len(self.kinds), dtype=np.int64)
        incidence = sparse.csr_array((ones, (of_example, self.kinds)), shape=shape)
        baseline, candidate = (
            (incidence @ counts.reshape(len(counts), -1)).reshape(-1, *counts.shape[1:])
            for counts in (self.baseline, self.candidate)
        )
        return replace(self, baseline=baseline, candidate=candidate, kinds=np.arange(n_units))

    def pooled(self, keys: nw.Series[Any]) -> PairedCounts:
        """Return the counts of every example, added up over the classes.

        Raises
        ------
        InputError
            If sums may reach 2^62.
        """
        sides = []
        for counts in (self.baseline, self.candidate):
            require_small_sums(int(np.abs(counts).max()), counts.shape[1], self.statistic)
            totals = counts.sum(axis=1)[self.kinds]
            columns = {name: totals[:, i] for i, name in enumerate(self.statistic.count_names)}
            sides.append(nw.from_dict(columns, backend="polars"))
        return paired_counts(keys, *sides)

    def differ(self) -> nw.Series[Any]:
        """Whether the counts of any class differ between the runs, by example."""
        found = (self.baseline != self.candidate).any(axis=(1, 2))[self.kinds]
        return nw.new_series("differ", found, backend="polars")

    def count_table(self) -> CountTable:
        """Group the counts: one row for all examples with the same counts of every class."""
        n_kinds = len(self.baseline)
        return CountTable.from_counts(
            self.statistic.total_names,
            self.candidate.reshape(n_kinds, -1),
            self.baseline.reshape(n_kinds, -1),
            np.bincount(self.kinds, minlength=n_kinds),
        )


def class_types(
    statistic: Statistic, columns: PairedColumns, types: Mapping[str, ColumnType]
) -> dict[str, ColumnType]:
    """Return the type of the column of classes that the counts read; nothing where there are none."""
    if not statistic.has_classes:
        return {}
    of_classes = literal_type(statistic.classes[0]) if columns.classes is None else types[columns.classes]
    return {CLASS_COLUMN: of_classes}


def counted_by_class(
    runs: Runs,
    statistic: Statistic,
    columns: PairedColumns,
    types: Mapping[str, ColumnType],
    outcomes: tuple[Outcome, Outcome] | None,
) -> ClassCounts:
    """Count the outcomes of both runs for every class.

    Parameters
    ----------
    runs : (KeyedRun, KeyedRun)
        Baseline and candidate on the same examples.
    types : mapping of str to ColumnType
        Types of the columns, :func:`class_types` among them.
    outcomes : (Outcome, Outcome), optional
        What missing predictions of baseline and candidate are taken for, where they are counted.

    Raises
    ------
    InputError
        If a count is undefined on an example or out of range, if classes or different examples are too many,
        or if a class that the statistic lists does not occur.
    """
    classes: tuple[ClassValue, ...] = statistic.classes
    if columns.classes is not None:
        classes = tuple(runs[0].frame.get_column(columns.classes).unique().sort().to_list())
        statistic = load_statistic(statistic, classes=classes)
    read = [name for name in columns.used if name in statistic.used_columns or name == columns.label]
    examples, kinds = _distinct(runs, read, types)
    _require_few(len(examples[0]), "different examples", statistic, len(classes))
    own = counted_runs(_for_every(classes, examples), statistic, columns, types, outcomes)
    if own.statistic is not statistic:  # it has been given units
        statistic = load_statistic(own.statistic, classes=classes)
    shape = (len(examples[0]), len(classes), len(statistic.count_names))
    baseline, candidate = (
        np.ascontiguousarray(frame.to_numpy(), dtype=np.int64).reshape(shape)
        for frame in (own.baseline, own.candidate)
    )
    occurs = (baseline != 0).any(axis=(0, 2)) | (candidate != 0).any(axis=(0, 2))
    if not occurs.all():
        value = classes[int(np.argmin(occurs))]
        raise InputError(
            f"the class {value!r} of `{statistic.name}` counts 0 on every example of both runs",
            hint="does it occur in the data as written?",
        )
    notes = (*own.notes, *_predicted_alone(runs, classes, statistic, types))
    return ClassCounts(baseline, candidate, kinds, statistic, notes)


def _distinct(
    runs: Runs, read: Sequence[str], types: Mapping[str, ColumnType]
) -> tuple[Runs, npt.NDArray[np.int64]]:
    """Return the first example of each kind, alike in all that is read of both runs, and the kind of each."""
    if any(types[name] in LISTS for name in read):
        return runs, np.arange(len(runs[0]))
    sides = [
        run.frame.select(nw.col(name).alias(f"{i}.{name}") for name in read) for i, run in enumerate(runs)
    ]
    frame = nw.concat(sides, how="horizontal")
    first = frame.with_row_index(_ROW).select(nw.col(_ROW).min().over(*frame.columns))
    rows, kinds = np.unique(first.get_column(_ROW).to_numpy(), return_inverse=True)
    baseline, candidate = (replace(run, frame=run.frame[rows.tolist()]) for run in runs)
    return (baseline, candidate), kinds.astype(np.int64)


def _for_every(classes: tuple[ClassValue, ...], runs: Runs) -> Runs:
    """Repeat each row for every class."""
    rows = np.repeat(np.arange(len(runs[0])), len(classes)).tolist()
    values = nw.new_series(CLASS_COLUMN, list(classes) * len(runs[0]), backend="polars")
    baseline, candidate = (replace(run, frame=run.frame[rows].with_columns(values)) for run in runs)
    return baseline, candidate


def _require_few(n: int, what: str, statistic: Statistic, n_classes: int) -> None:
    if n * n_classes * 2 * len(statistic.count_names) > MAX_CELLS:
        raise InputError(
            f"{n} {what} are too many for the counts of {n_classes} classes",
            hint="`classes: [a, b]` in the file of the statistic lists fewer of them.",
        )


def _predicted_alone(
    runs: Runs, classes: tuple[ClassValue, ...], statistic: Statistic, types: Mapping[str, ColumnType]
) -> list[str]:
    """Say which classes are predicted and belong to no label, where the classes are those of the labels."""
    column = statistic.columns.get("prediction")
    if statistic.class_column is None or column is None or types[column] is not types[CLASS_COLUMN]:
        return []
    predicted = nw.concat([run.frame.select(column) for run in runs]).get_column(column).drop_nulls().unique()
    others = sorted(set(predicted.to_list()) - set(classes))
    if not others:
        return []
    names = ", ".join(map(shown, others[:_SHOWN])) + (" …" if len(others) > _SHOWN else "")
    return [f"classes: {len(others)} that only predictions have are not in the mean ({names})"]
