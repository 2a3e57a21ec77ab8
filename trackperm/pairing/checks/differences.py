"""Differences that prevent a pairing: counted, and refused with the first cases of each kind."""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import narwhals as nw
import polars as pl
from polars import selectors

from trackperm.choices import Missing
from trackperm.errors import DisjointError, PairingError
from trackperm.messages import amount, side_by_side
from trackperm.pairing.checks.single_precision import hint_on_single_precision
from trackperm.pairing.columns.facts import are_traces
from trackperm.pairing.columns.id_hint import id_hint
from trackperm.pairing.columns.repeated_rows import repeated_rows, rows_of_value
from trackperm.pairing.columns.roles import PairedColumns
from trackperm.pairing.columns.shared_values import agreeing_ids
from trackperm.pairing.engines.base import Engine
from trackperm.pairing.joined import KEY, MATCHED, SIDES, JoinedRows, KeyedRun, of
from trackperm.pairing.report import OUTCOMES, ExampleCounts
from trackperm.tables.table import ExampleTable

_NORMAL_FORM = "normal_form"
_SHORT = 2  # letters and digits of a grade or of an abbreviation
_SHOWN = 5
_WARNING = "look: "
_WIDTH = 40
_NAMED = 3  # columns that a hint names
_WORD = 30  # characters of a verdict
_COMPARED = 100_000
_LOOKED_AT = 10_000  # rows that are read to find a few different examples to show
_SLICE = 2**18  # rows that are read at once


@dataclass(frozen=True)
class Cases:
    """Cases of one kind: their number, and the first cases as text."""

    n: int = 0
    first: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, *columns: pl.Series) -> Cases:
        """Take every row of `columns`, which are ordered by example, as a case."""
        return cls(len(columns[0]), tuple(zip(*map(few, columns), strict=True)))

    def listed(self) -> str:
        """Write the first cases, of one column, in brackets."""
        return f"(first: {', '.join(case for (case,) in self.first)})"


@dataclass(frozen=True)
class RunDifferences:
    """Differences of one run that prevent a pairing.

    Attributes
    ----------
    origin : str
        Name of the run in messages.
    n_rows, n_keyed : int
        Number of examples, and of examples that have an id; each row without an id counts as an example.
    without_id : Cases
        Rows without an id, by row number.
    repeated : Cases
        Number of rows that share their id with another row, and the first such ids.
    alone : Cases
        Examples that the other run lacks.
    alone_ids : tuple of str
        Ids of the first examples that the other run lacks, if ids are text.
    lacking : Cases
        Examples without a value that the statistic reads.
    lacking_in : frozenset of str
        Columns in which these examples have no value.
    """

    origin: str
    n_rows: int = 0
    n_keyed: int = 0
    without_id: Cases = Cases()
    repeated: Cases = Cases()
    alone: Cases = Cases()
    alone_ids: tuple[str, ...] = ()
    lacking: Cases = Cases()
    lacking_in: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Differences:
    """Differences of two runs that prevent a pairing.

    Attributes
    ----------
    runs : (RunDifferences, RunDifferences)
        Differences of baseline and candidate.
    n_matched, n_paired : int
        Number of examples that both runs have, and of these the number that have all values.
    disagreements : mapping of str to Cases
        For each column that has to agree, the matched rows on which it differs: example and both values.
    """

    runs: tuple[RunDifferences, RunDifferences]
    n_matched: int
    n_paired: int
    disagreements: Mapping[str, Cases]


def ids_of(engine: Engine, run: KeyedRun, ids: Sequence[str]) -> RunDifferences:
    """Find rows that have no id, or share their id with another row."""
    found = RunDifferences(run.origin, run.n_rows, run.n_keyed, _without_id(run, ids))
    f = engine.functions
    repeated = run.frame.group_by(KEY).agg(f.len().alias("n")).filter(f.col("n") > 1)
    sizes = engine.collected(repeated.select(f.col("n").sum()))
    first = engine.collected(repeated.sort(KEY).head(_SHOWN).select(KEY))
    return replace(found, repeated=Cases(int(sizes.item() or 0), Cases.of(first[KEY]).first))


def differences(rows: JoinedRows, counts: ExampleCounts) -> Differences:
    """Find the differences that prevent a pairing: one query counts them, others read the first cases."""
    f, needed = rows.functions, rows.columns.needed(rows.missing)
    conditions = {}
    for side, other in (SIDES, tuple(reversed(SIDES))):
        is_of_run = f.col(MATCHED) if rows.counts_missing else rows.there(side)
        conditions[f"{side} alone"] = rows.keyed(side) & ~rows.keyed(other) & ~f.col(MATCHED)
        conditions[f"{side} lacking"] = is_of_run & ~rows.present(side, needed)
        for name in needed:
            conditions[f"{side} lacking {name}"] = is_of_run & f.col(of(side, name)).is_null()
    n = rows.counted(**conditions)
    return Differences(
        (
            _run_differences(rows, 0, counts, conditions, n),
            _run_differences(rows, 1, counts, conditions, n),
        ),
        counts.n_matched,
        counts.n_paired,
        {name: _cases(rows, rows.disagree(name), n, name) for name, n in counts.n_disagreeing.items()},
    )


def _run_differences(
    rows: JoinedRows, place: int, counts: ExampleCounts, conditions: dict[str, nw.Expr], n: dict[str, int]
) -> RunDifferences:
    run, side = rows.runs[place], SIDES[place]
    alone, ids = conditions[f"{side} alone"], tuple[str, ...]()
    if n[f"{side} alone"] and n[f"{SIDES[1 - place]} alone"]:
        found = rows.first(alone & rows.is_first(), _COMPARED)[KEY]
        ids = tuple(found.to_list()) if found.dtype == pl.String else ()
    return RunDifferences(
        run.origin,
        counts.n_examples[place],
        counts.n_keyed[place],
        _without_id(run, rows.columns.ids),
        Cases(),
        _cases(rows, alone, n[f"{side} alone"]),
        ids,
        _cases(rows, conditions[f"{side} lacking"], n[f"{side} lacking"]),
        frozenset(name for name in rows.columns.needed(rows.missing) if n[f"{side} lacking {name}"]),
    )


def _cases(rows: JoinedRows, condition: nw.Expr, n: int, name: str | None = None) -> Cases:
    """Count the examples on which a condition holds, and list the first of them."""
    if not n:
        return Cases()
    names = () if name is None else tuple(of(side, name) for side in SIDES)
    if not rows.columns.repeats:
        found = rows.first(condition, _SHOWN, *names)
        return Cases(n, Cases.of(*found.get_columns()).first)
    n = int(
        rows.engine.collected(rows.frame.filter(condition).select(rows.functions.col(KEY).n_unique())).item()
    )
    found = rows.first(condition, _LOOKED_AT, *names).unique(KEY, keep="first", maintain_order=True)
    return Cases(n, Cases.of(*found.head(_SHOWN).get_columns()).first)


def _without_id(run: KeyedRun, ids: Sequence[str]) -> Cases:
    n = run.n_rows - run.n_keyed
    if not n:
        return Cases()
    rows: list[int] = []
    if run.table.ordered:
        start = 0
        for part in run.table.slices(ids, _SLICE):
            known = part.with_columns(selectors.float().fill_nan(None))
            lacks = known.select(pl.any_horizontal(pl.all().is_null()).alias("lacks"))["lacks"]
            rows += (lacks.arg_true() + start).to_list()
            start += len(part)
            if len(rows) >= _SHOWN:
                break
    return Cases(n, tuple((str(row),) for row in rows[:_SHOWN]))


def shown(value: Any) -> str:
    """Return the `repr` of a value, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def few(values: pl.Series) -> list[str]:
    """Return the first values as text."""
    return [shown(value) for value in values.head(_SHOWN).to_list()]


def require_same_length(baseline: KeyedRun, candidate: KeyedRun) -> None:
    """Refuse to pair by position where one run has more rows than the other."""
    if baseline.n_rows != candidate.n_rows:
        raise PairingError(
            f"`{baseline.origin}` has {amount(baseline.n_rows, 'example')} and `{candidate.origin}` has"
            f" {candidate.n_rows:,}:"
            " they cannot be paired by position",
            hint="`--id NAME` names a column that identifies the examples.",
        )


def require_unique_ids(runs: Sequence[RunDifferences], id_: str, tables: Sequence[ExampleTable]) -> None:
    """Refuse ids that several rows share; `tables` have the rows."""
    repeated = [(run, table) for run, table in zip(runs, tables, strict=True) if run.repeated.n]
    if not repeated:
        return
    messages = [
        f"{run.repeated.n:,} of {run.n_keyed:,} rows of `{run.origin}` share their `{id_}` with another row"
        f" {run.repeated.listed()}"
        for run, _ in repeated
    ]
    of_traces = are_traces(table for _, table in repeated)
    hint = _traces(repeated[0][1], id_) if of_traces else f"each example has one row. {_ways(tables, id_)}"
    raise PairingError("\n\n".join(messages), hint=hint)


def _traces(table: ExampleTable, id_: str) -> str:
    """Return a hint on an evaluation with several traces of an example."""
    n = rows_of_value(table, id_)
    reason = "some examples have several traces: the run was evaluated again, or its data repeat inputs"
    if n is not None:
        times = "twice" if n == 2 else f"{n} times"
        reason = f"each example has {n} traces: the run was evaluated {times}, or its data repeat all inputs"
    return f"{reason}. Evaluate into a new run, or take the mean of the traces by `--repeats mean`."


def _ways(tables: Sequence[ExampleTable], id_: str) -> str:
    """Return sentences about the ways on from rows that share their id."""
    hint, repeated = id_hint(tables, id_), repeated_rows(tables, id_)
    twice = (
        "MLflow's `log_table` appends to an existing table, so a table that was logged twice has every row"
    )
    if hint is None:
        return (
            f"{twice} twice: log it to a new file name, or take the mean of identical rows by `--repeats"
            " mean`. Where rows are different examples, `--id NAME` names another column, `--id NAME,NAME`"
            " names several columns that identify an example together."
        )
    if repeated is None or hint != repeated.hint:
        return f"{hint[0].upper()}{hint[1:]}."
    return (
        f"{twice} twice. {hint}, as attempts should be. Where they are different examples, `--id NAME,NAME`"
        " names columns that identify an example together."
    )


def require_distinct_ids(engine: Engine, run: KeyedRun, id_: str) -> None:
    """Refuse ids of one run that are the same text in different Unicode normal forms."""
    f, ids = engine.functions, engine.functions.col(KEY)
    twins = (
        engine.mapped(engine.beyond_ascii(run.frame, KEY).select(KEY).unique(), _with_normal_form)
        .group_by(_NORMAL_FORM)
        .agg(f.len().alias("n"), ids.min().alias("first"), ids.max().alias("last"))
        .filter(f.col("n") > 1)
    )
    for first, last in engine.collected(twins.sort("first").head(1).select("first", "last")).iter_rows():
        raise PairingError(
            f"`{run.origin}` has the `{id_}` {first!a} and {last!a}, which are the same text in two"
            " Unicode normal forms; expected one form of each text",
            hint="normalise the ids with `unicodedata.normalize('NFC', id)`, or name another column by"
            " `--id NAME`.",
        )


def _with_normal_form(batch: pl.DataFrame) -> pl.DataFrame:
    normal = [unicodedata.normalize("NFC", id_value) for id_value in batch[KEY].to_list()]
    return batch.with_columns(pl.Series(_NORMAL_FORM, normal, pl.String))


def refuse_differences(
    found: Differences,
    columns: PairedColumns,
    missing: Missing,
    tables: Sequence[ExampleTable],
    *,
    has_wrong: bool,
    of_sets: str | None = None,
) -> None:
    """Refuse runs with different examples, or whose examples differ in their labels or inputs.

    The message lists all differences, and its hint the options that accept them; `has_wrong` states that the
    statistic defines what a missing prediction counts, and `of_sets` how empty sets are written. If no
    example is left, the error is a :class:`~trackperm.errors.DisjointError`.
    """
    messages, hints = [], []
    if missing != "drop" or not found.n_paired:
        messages = [*_absences(found, columns.id, columns.needed(missing)), *_failures(found, tables)]
        if of_sets is not None:
            hints.append(of_sets)
        if messages and found.n_paired:
            kept = amount(found.n_paired, "paired example")
            tests = f"tests `{columns.used[0]}` on" if len(columns.used) == 1 else "tests"
            hint = f"`--missing drop` {tests} the {kept} only, and the result says so"
            accepts_wrong = has_wrong and missing not in OUTCOMES and _lacks_only_outputs(found, columns)
            hints.append(
                f"{hint}; `--missing wrong` counts the others as wrong." if accepts_wrong else f"{hint}."
            )
        elif messages and columns.id:
            hints.append(f"No example is left to test. {_other_ids(tables, columns)}")
        elif messages:
            hints.append("No example is left to test.")
    for name, cases in found.disagreements.items():
        if not cases.n:
            continue
        table = side_by_side(("example", *(f"`{run.origin}`" for run in found.runs)), cases.first)
        messages.append(
            f"`{name}` differs between the runs on {cases.n:,} of {amount(found.n_matched, 'example')}{table}"
        )
        if (cast := hint_on_single_precision(tables, name, cases.first)) is not None:
            hints.append(cast)
        elif name == columns.label:
            hints.append(
                "Rows in different orders need `--id NAME` instead of `--by-position`."
                if columns.id is None
                else "Both runs need the same reference answers: `--labels FILE` with `--label"
                f" {shlex.quote(f'gold_{name}')}` reads them from a file, `--label NAME` names another column"
                " of answers, `--id NAME` another column of ids."
            )
            if name not in columns.used and _are_words(cases):
                option = shlex.quote(f"{name}=VALUE")
                hints.append(f"Verdicts of a judge are compared by `--metric {option}`.")
            if all(a[:1] == "[" and sorted(a) == sorted(b) for _, a, b in cases.first):
                hints.append("They list the same items in another order: sort the items of every list.")
        elif name in columns.identity:
            hints.append("The inputs differ: evaluate both runs on the same data and prompts.")
        else:
            hints.append(
                "Clusters, strata, classes and the columns that define pairs belong to the examples and"
                " must be the same in both runs."
                if columns.of_pairs
                else "Clusters, strata and classes belong to the examples and must be the same in both runs."
            )
    if messages:
        refusal = PairingError if found.n_paired else DisjointError
        raise refusal("\n\n".join(messages), hint=" ".join(dict.fromkeys(hints)))


def without_id(run: RunDifferences, id_: str | None) -> str:
    """List the rows that have no id."""
    rows = ", ".join(row for (row,) in run.without_id.first)
    where = f" (rows counted from 0: {rows})" if rows else ""
    return (
        f"{run.without_id.n:,} of {amount(run.n_rows, 'example')} of `{run.origin}`"
        f" {_have(run.without_id.n)} no `{id_}`{where}"
    )


def _other_ids(tables: Sequence[ExampleTable], columns: PairedColumns) -> str:
    """Name columns whose values agree, to replace an id whose values all differ between the runs."""
    names = agreeing_ids(tables, (*columns.ids, *columns.used))
    if not names:
        return f"`--id NAME` names another column than `{columns.id}`."
    options = [f"`--id {shlex.quote(name)}`" for name in names[:_NAMED]]
    return f"{' or '.join(options)} names a column whose values agree."


def _are_words(cases: Cases) -> bool:
    """Whether the values of cases are short texts, as verdicts are."""
    values = [value for _, *both in cases.first for value in both]
    return all(value[:1] in ("'", '"') and len(value) <= _WORD for value in values)


def _lacks_only_outputs(found: Differences, columns: PairedColumns) -> bool:
    """Whether every row has an id and the values of its example, such as its label."""
    of_examples = columns.needed("wrong")
    return not any(run.without_id.n or run.lacking_in.intersection(of_examples) for run in found.runs)


def _absences(found: Differences, id_: str | None, needed: Sequence[str]) -> list[str]:
    """List the examples that have no id, no partner, or no value that the statistic reads."""
    messages = [without_id(run, id_) for run in found.runs if run.without_id.n]
    if any(run.n_keyed > found.n_matched for run in found.runs):
        messages.append(_no_partner(found))
    for run in found.runs:
        if run.lacking.n:
            names = " or ".join(f"`{name}`" for name in needed if name in run.lacking_in)
            messages.append(
                f"{run.lacking.n:,} of {amount(run.n_keyed, 'example')} of `{run.origin}`"
                f" {_have(run.lacking.n)} no value in {names}"
                f" {run.lacking.listed()}"
            )
    return messages


def _failures(found: Differences, tables: Sequence[ExampleTable]) -> list[str]:
    """Return what the readers of runs that lack values warn of, such as samples that ended in an error."""
    return [
        f"`{run.origin}`: {note.removeprefix(_WARNING)}"
        for run, table in zip(found.runs, tables, strict=True)
        for note in table.notes
        if run.lacking.n and note.startswith(_WARNING)
    ]


def _have(n: int) -> str:
    return "has" if n == 1 else "have"


def _no_partner(found: Differences) -> str:
    message = " and ".join(
        f"{run.n_keyed - found.n_matched:,} of {amount(run.n_keyed, 'example')} of `{run.origin}`"
        for run in found.runs
    )
    alone = [run for run in found.runs if run.alone.n]
    if len(alone) == 1:
        return f"{message} have no partner {alone[0].alone.listed()}"
    rows = zip_longest(*((case for (case,) in run.alone.first) for run in alone), fillvalue="")
    table = side_by_side([f"only in `{run.origin}`" for run in alone], rows)
    return f"{message} have no partner{table}" + trivial_difference(alone[0].alone_ids, alone[1].alone_ids)


def trivial_difference(first: Sequence[str], second: Sequence[str]) -> str:
    """Name a trivial difference between texts of two sides, such as case; empty if they differ in more."""
    for difference, plain in _PLAIN.items():
        sides = [{plain(text) for text in side} for side in (first, second)]
        n_equal = len(sides[0] & sides[1])
        if n_equal:
            return f"\n\n{n_equal} of them differ only in {difference}."
    return ""


def folded(text: str) -> str:
    """Return a text without case, spaces and punctuation, to find others that mean the same.

    Short texts keep their punctuation: the grades ``A+`` and ``A-`` differ in nothing else.
    """
    letters = "".join(filter(str.isalnum, text.casefold()))
    return letters if len(letters) > _SHORT else "".join(text.casefold().split())


def _without_zeros(text: str) -> str:
    return text.lstrip("0") or "0" if text.isdecimal() else text


_PLAIN: dict[str, Callable[[str], str]] = {
    "leading zeros": _without_zeros,
    "white space": lambda text: "".join(text.split()),
    "Unicode normal form": lambda text: unicodedata.normalize("NFC", text),
    "upper and lower case": str.casefold,
}
