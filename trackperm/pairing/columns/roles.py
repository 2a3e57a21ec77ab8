"""Roles of the columns of two runs: id, label, and those that the statistic reads; checks of ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trackperm.choices import Missing, RepeatsInSpec
from trackperm.errors import InputError, PairingError
from trackperm.pairing.columns.facts import are_traces, dataset_names
from trackperm.pairing.columns.lacking import lacking_columns
from trackperm.pairing.columns.numbers_as_text import text_columns
from trackperm.pairing.columns.objects import require_no_objects
from trackperm.pairing.report import OUTCOMES
from trackperm.statistic import Statistic
from trackperm.tables.columns.names import (
    INPUTS,
    LABELS,
    MEDIA,
    TEXTS,
    input_name,
    may_be_output,
    names_individuals,
    names_input,
    names_rows,
)
from trackperm.tables.columns.types import ColumnType, unusable
from trackperm.tables.table import ExampleTable, id_columns, shared_columns

REWORDED = ("prompt", "input", "inputs", "user_input", "instruction", *TEXTS)
"""Names of inputs that runs on the same examples may write in other words, as with another template."""


@dataclass(frozen=True)
class PairedColumns:
    """Roles of the columns that two runs share.

    Attributes
    ----------
    id : str or None
        The id as the user named it: a column, or several separated by commas, such as ``id,epoch``; None
        where rows are paired by position.
    ids : tuple of str
        The columns of the id.
    label : str or None
        The column of reference answers; None if a run lacks it and the statistic does not read it.
    used : tuple of str
        The columns that the statistic reads, including those of clusters, strata and classes.
    texts : tuple of str
        Columns of an untyped table that stay text: counters read them, or
        :mod:`~trackperm.pairing.columns.numbers_as_text` found a number that is written in two ways.
    cluster, strata, classes : str or None
        The columns of clusters, strata and classes.
    of_pairs : tuple of str
        Columns besides the label that belong to the examples because pairs are defined by them.
    identity : tuple of str
        Columns of both runs that identify an example's input, such as its hash.
    inputs : tuple of str
        Other columns of both runs with the name of an input, those that no run rewords first.
    other_ids : tuple of str
        Other columns of both runs with the name of an id or a key, but not of one that each run gives its
        rows anew.
    repeats : str or None
        Treatment of several rows with one id; None if an id may have only one row.
    notes : tuple of str
        Remarks for readers of the result.
    clusters : tuple of str
        Other columns that may hold clusters of examples, which an engine joins beside those that are read.
    """

    id: str | None
    ids: tuple[str, ...]
    label: str | None
    used: tuple[str, ...]
    texts: tuple[str, ...]
    cluster: str | None
    strata: str | None
    classes: str | None
    of_pairs: tuple[str, ...]
    identity: tuple[str, ...]
    inputs: tuple[str, ...]
    other_ids: tuple[str, ...]
    repeats: RepeatsInSpec | None
    notes: tuple[str, ...]
    clusters: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """Columns of clusters, strata and classes."""
        names = (self.cluster, self.strata, self.classes)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that are read."""
        names = (*self.ids, self.label, *self.used, *self.identity)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @property
    def carried(self) -> tuple[str, ...]:
        """All columns that are joined: those that are read, and those that may hold clusters."""
        return tuple(dict.fromkeys((*self.names, *self.clusters)))

    @property
    def of_examples(self) -> tuple[str, ...]:
        """Columns that belong to the example, not to a run: ids, label and groups."""
        names = (*self.ids, self.label, *self.groups, *self.of_pairs)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @property
    def agreeing(self) -> tuple[str, ...]:
        """Columns that have to be the same in both runs."""
        names = (self.label, *self.identity, *self.groups, *self.of_pairs)
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @property
    def of_runs(self) -> tuple[str, ...]:
        """Columns that the statistic reads from each run, such as predictions."""
        return tuple(name for name in self.used if name not in self.of_examples)

    def without_labels(self, note: str) -> PairedColumns:
        """Return the columns without labels, with a note that says why."""
        return replace(self, label=None, notes=(*self.notes, note))

    def same_as(self, other: PairedColumns) -> bool:
        """Whether the same columns have the same roles; notes are ignored."""
        return replace(self, notes=()) == replace(other, notes=())

    def needed(self, missing: Missing) -> tuple[str, ...]:
        """Columns in which a row needs a value to be in the test."""
        if missing in OUTCOMES:
            return tuple(name for name in self.used if name in self.of_examples)
        return self.used

    @property
    def tie_breakers(self) -> tuple[str, ...]:
        """Columns by which the rows of one id are ordered."""
        if not self.repeats:
            return ()
        names = dict.fromkeys((*self.of_examples, *sorted(self.used)))
        return tuple(name for name in names if name not in self.ids)

    @classmethod
    def find(
        cls,
        baseline: ExampleTable,
        candidate: ExampleTable,
        statistic: Statistic,
        by_position: bool,
        missing: Missing,
    ) -> PairedColumns:
        """Find the columns that `statistic` names.

        Raises
        ------
        InputTypeError
            If a column holds objects that the statistic does not read by name.
        InputError
            If a run lacks a column that the statistic reads, or the id column where rows are not paired by
            position; or if examples of several rows are to be paired by position.
        """
        tables = (baseline, candidate)
        if by_position and statistic.has_several_rows:
            raise InputError(
                f"`{statistic.name}` combines the rows of an example, but pairing by position cannot find"
                " them",
                hint="`--id NAME` names a column that identifies the examples.",
            )
        id_, label = statistic.columns["id"], _column(statistic, "label")
        strata, classes = (_column(statistic, name) for name in (statistic.strata, statistic.class_column))
        ids = id_columns(id_, tables)
        cluster = ids[0] if statistic.cluster == "id" else _column(statistic, statistic.cluster)
        of_missing = label if missing in OUTCOMES and statistic.missing_reads_label else None
        names = (*statistic.used_columns, of_missing, cluster, strata, classes)
        used = tuple(dict.fromkeys(name for name in names if name is not None))
        needed = used if by_position else (*ids, *used)
        if any(name not in table.columns for table in tables for name in needed):
            raise lacking_columns(tuple(dict.fromkeys(needed)), tables, statistic, ids)
        columns_read = [(table, name) for table in tables for name in dict.fromkeys(needed)]
        if any(name in table.unusable or table.schema[name].is_nested() for table, name in columns_read):
            require_no_objects(columns_read, statistic)
        notes = list(statistic.found)
        if by_position and all(name in table.columns for table in tables for name in ids):
            notes.append(f"column `{id_}` was not used, because rows are paired by position")
        if statistic.tests_labels:
            notes.append(f"labels were not compared: `{label}` is the column that is tested")
            label = None
        elif label is not None and label not in used:
            reason = _label_reason(label, tables)
            if reason:
                notes.append(f"labels were not compared: {reason}")
                label = None
        texts: tuple[str, ...] = ()
        if all(table.untyped for table in tables):
            read = dict.fromkeys(name for name in (label, *used) if name is not None and name not in ids)
            texts, found = text_columns(tables, statistic, list(read), statistic.counter_columns)
            notes += found
        taken = {*(() if by_position else ids), label, *used, *statistic.columns.values(), *statistic.slices}
        identity = tuple(name for name in baseline.identity if name in candidate.identity and name not in ids)
        others = [name for name in shared_columns(tables) if name not in taken]
        return cls(
            None if by_position else id_,
            () if by_position else ids,
            label,
            used,
            (*statistic.counter_columns, *texts),
            cluster,
            strata,
            classes,
            statistic.example_columns,
            identity,
            tuple(_inputs(others)),
            tuple(
                name
                for name in others
                if names_individuals(name) and (not names_rows(name) or may_be_output(name))
            ),
            statistic.repeats if statistic.has_several_rows else None,
            (*notes, *_notes_of_files(baseline, candidate)),
        )


def rewritten_ids(
    baseline: ExampleTable, candidate: ExampleTable, columns: PairedColumns, types: Mapping[str, ColumnType]
) -> list[str]:
    """Note the id columns whose integers in one run were compared with texts in the other."""
    return [
        f"`{name}` of `{table.origin}` has integers, which were compared as text"
        for name in columns.ids
        for table in (baseline, candidate)
        if types[name] is ColumnType.TEXT and table.schema[name].is_numeric()
    ]


def require_group_types(columns: PairedColumns, types: Mapping[str, ColumnType]) -> None:
    """Refuse clusters, strata and classes that are decimals or lists."""
    for name in columns.groups:
        if types[name] not in (ColumnType.INTEGER, ColumnType.TEXT, ColumnType.BOOLEAN):
            raise PairingError(
                f"column `{name}` is {types[name].value}; clusters, strata and classes must be integers,"
                " text or booleans"
            )


def require_id_types(ids: Sequence[str], types: Mapping[str, ColumnType]) -> None:
    """Refuse ids that are neither integers nor text."""
    for name in ids:
        if types[name] not in (ColumnType.INTEGER, ColumnType.TEXT):
            raise PairingError(
                f"column `{name}` is {types[name].value}; ids must be integers or text",
                hint="convert them to text, or name another column by `--id NAME`.",
            )


def _notes_of_files(baseline: ExampleTable, candidate: ExampleTable) -> list[str]:
    """Return the notes of the readers, and a note for every fact in which the two files differ."""
    notes = [f"`{table.origin}`: {note}" for table in (baseline, candidate) for note in table.notes]
    for name in [name for name in baseline.facts if name in candidate.facts]:
        facts = baseline.facts[name], candidate.facts[name]
        if facts[0] != facts[1] and not _differ_in_answers(name, facts, (baseline, candidate)):
            notes.append(f"{name} differs: `{facts[0]}` in the baseline, `{facts[1]}` in the candidate")
    return notes


def _differ_in_answers(name: str, facts: tuple[str, str], tables: tuple[ExampleTable, ExampleTable]) -> bool:
    """Whether data sets differ in digests alone, which include answers that are evaluated without calls."""
    return name == "dataset" and are_traces(tables) and dataset_names(facts[0]) == dataset_names(facts[1])


def _inputs(names: Sequence[str]) -> list[str]:
    """Return the names of inputs, those that no run rewords first."""
    usual = [*(name for name in (*INPUTS, *MEDIA) if name not in REWORDED), *REWORDED]
    return sorted(filter(names_input, names), key=lambda name: usual.index(input_name(name)))


def _column(statistic: Statistic, name: str | None) -> str | None:
    return None if name is None else statistic.columns[name]


def _label_reason(label: str, tables: tuple[ExampleTable, ...]) -> str | None:
    lacking = [table for table in tables if label not in table.columns]
    if len(lacking) == len(tables):
        others = [name for name in LABELS if all(name in table.columns for table in tables)]
        named = f"; `--label {others[0]}` compares them" if len(others) == 1 else ""
        return f"neither run has a column `{label}`{named}"
    if lacking:
        return f"`{lacking[0].origin}` has no column `{label}`"
    return next((reason for table in tables if (reason := unusable(table, label))), None)
