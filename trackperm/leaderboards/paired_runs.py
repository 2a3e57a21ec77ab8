"""Pairing of all runs of a leaderboard with one reference run.

:func:`trackperm.pairing.pair` checks that the labels, inputs and ids of each run agree with those of the
reference run, so that all runs agree with each other. A run that fails is left out, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from trackperm.choices import MissingOfMany, MissingRule
from trackperm.comparison import RunData
from trackperm.errors import InputError, InputTypeError, PairingError, SpecError
from trackperm.exact.options import require_choice
from trackperm.leaderboards.reference_run import (
    Failures,
    most_agreed,
    reference_run,
    unseen_predictions,
    with_all_examples,
)
from trackperm.messages import amount, listed, printable
from trackperm.pairing import Pairing
from trackperm.pairing.checks.label_values import (
    require_listed_classes,
    with_positive,
)
from trackperm.pairing.counts.decimal_columns import DecimalsOfMany
from trackperm.pairing.counts.paired_counts import PairedCounts
from trackperm.pairing.many_runs import PairedRun, pair_many
from trackperm.pairing.pair import pair_in_memory
from trackperm.statistic import Statistic, load_statistic
from trackperm.statistic.expressions.frames import Decimals
from trackperm.statistic.rank_score import CLUSTER
from trackperm.tables.columns.truths import with_like_truths, with_truths
from trackperm.tables.columns.whole_numbers import with_like_whole_numbers
from trackperm.tables.columns.written_numbers import with_numbers
from trackperm.tables.table import ExampleTable, id_columns

Progress = Callable[[str], None]

_SHOWN = 20  # incomplete runs in an error
_OF_ONE_RUN = re.compile("`--(?:baseline|candidate)-column ")
_OF_ONE_PAIR = re.compile("`--missing drop` tests .*?, and the result says so")


@dataclass(frozen=True)
class ExcludedRun:
    """Run that is excluded from the comparisons, with the reason.

    Attributes
    ----------
    name, origin : str
        Display name, and name in messages.
    reason : str
        Description of the missing or different data.
    hint : str or None
        The next step that lets the run be compared, where one is known.
    """

    name: str
    origin: str
    reason: str
    hint: str | None = None


@dataclass(frozen=True, eq=False)
class Entry:
    """Run with its pairing with the reference run.

    Attributes
    ----------
    data : RunData
        The run.
    pairing : Pairing or PairedRun
        The run as candidate, paired with the reference run as baseline.
    """

    data: RunData
    pairing: Pairing | PairedRun


@dataclass(frozen=True, eq=False)
class PairedRuns:
    """Paired runs on the same examples.

    Attributes
    ----------
    statistic : Statistic
        The statistic as declared.
    reference : RunData
        The run with which all runs were paired; one of the entries.
    entries : tuple of Entry
        The complete runs, including the reference, in input order.
    incomplete : tuple of ExcludedRun
        The excluded runs.
    n_examples : int
        Number of examples, or of clusters, that are tested.
    n_largest : int
        Number of rows of the largest complete run.
    is_read_by_pair : bool
        Whether pairs of runs are paired anew, as some are computed in integers and others in floats.
    """

    statistic: Statistic
    reference: RunData
    entries: tuple[Entry, ...]
    incomplete: tuple[ExcludedRun, ...]
    n_examples: int
    n_largest: int
    is_read_by_pair: bool = False


def pair_all(
    runs: Sequence[RunData],
    statistic: Statistic,
    *,
    baseline: RunData | None = None,
    missing: MissingOfMany = "error",
    by_position: bool = False,
    allow_unseen: bool = False,
    progress: Progress = lambda _: None,
) -> PairedRuns:
    """Pair all runs with a reference run: the baseline, or the run that agrees with most others.

    Options are those of :func:`trackperm.leaderboard`; the baseline is one of `runs`. `progress` receives a
    description of each step before it begins.

    Raises
    ------
    InputError
        If fewer than two runs are complete, if the baseline is not, or if an option does not suit the
        statistic.
    """
    _require_missing_rule(missing, statistic)
    place = next((i for i, run in enumerate(runs) if run is baseline), None)
    runs = _with_like_values(runs, statistic, by_position=by_position)
    failures = {} if allow_unseen else unseen_predictions(runs, statistic)
    order = most_agreed(runs, statistic, by_position=by_position) if place is None else [place]
    first = next((i for i in order if i not in failures), order[0])
    statistic = with_positive([runs[first].table], statistic, allow_unseen=allow_unseen)
    if not allow_unseen:
        require_listed_classes([run.table for run in runs], statistic)

    def paired(
        reference: ExampleTable, run: RunData, decimals: Mapping[str, Decimals] | None = None
    ) -> Pairing:
        progress(f"pairing: {run.name}")
        return pair_in_memory(
            reference, run.table, statistic, missing=missing, by_position=by_position, decimals=decimals
        )

    reference, failures = reference_run(runs, order, failures, paired, is_baseline=baseline is not None)
    if missing == "wrong":
        table = with_all_examples(reference, runs, statistic, failures, paired, by_position=by_position)
        reference = replace(reference, table=table)
        runs = [reference if failures.get(i, "") is None else run for i, run in enumerate(runs)]
    tables = [run.table for run in runs]
    read = _common_decimals(reference.table, tables, statistic, missing, by_position=by_position)
    at_once = pair_many(
        reference.table,
        tables,
        statistic,
        missing=missing,
        by_position=by_position,
        decimals=None if read is None else read.decimals,
    )
    entries = _entries(runs, at_once, failures, partial(paired, reference.table), read)
    incomplete = tuple(
        ExcludedRun(runs[i].name, runs[i].table.origin, error.message, _hint_of_many(error))
        for i, error in sorted(failures.items())
        if error is not None
    )
    if len(entries) < 2:
        hints = (_hint_of_many(failure) for failure in failures.values() if failure is not None)
        raise too_few_runs([entry.data for entry in entries], incomplete, next(hints, None))
    incomplete = tuple(_beside_others(run, runs) for run in incomplete)
    if missing == "drop":
        entries = _on_common_examples(entries)
    _require_one_order(entries)
    if not statistic.depends_on_both:
        _require_one_reading(entries)
    is_clustered_rank = statistic.rank_score is not None and statistic.cluster is not None
    unit = f"candidate.{CLUSTER}" if is_clustered_rank else "id"
    n_examples = entries[0].pairing.counts.frame.get_column(unit).n_unique()
    n_largest = max(len(entry.data.table) for entry in entries)
    is_read_by_pair = read is not None and not read.is_of_pairs
    return PairedRuns(
        statistic, reference, tuple(entries), incomplete, n_examples, n_largest, is_read_by_pair
    )


def _with_like_values(
    runs: Sequence[RunData], statistic: Statistic, *, by_position: bool
) -> Sequence[RunData]:
    """Keep the examples with scores, and read numbers, booleans and ids alike in all runs."""
    runs = [run.for_statistic(statistic) for run in runs]
    tables = [with_truths(run.table, statistic.truth_columns) for run in runs]
    tables = with_numbers(tables, statistic.ordered_columns)
    tables = with_like_truths(tables, statistic.answer_columns)
    runs = [replace(run, table=table) for run, table in zip(runs, tables, strict=True)]
    return runs if by_position else _with_like_ids(runs, statistic)


def _beside_others(excluded: ExcludedRun, runs: Sequence[RunData]) -> ExcludedRun:
    """Name the runs in a reason and a hint as the leaderboard does."""
    hint = None if excluded.hint is None else with_names(excluded.hint, runs)
    return replace(excluded, reason=with_names(excluded.reason, runs), hint=hint)


def _hint_of_many(error: InputError | InputTypeError) -> str | None:
    """Return the hint of an error; of options for one run or two, what leaderboards have in their place."""
    if error.hint is None:
        return None
    hint = _OF_ONE_PAIR.sub(
        "`--missing drop` compares all runs on the examples that all of them have", error.hint
    )
    if not _OF_ONE_RUN.search(hint):
        return hint
    return (
        "leaderboards read columns of the same names from all runs: log them again under the same names. In"
        f" `trackperm compare`, {hint}"
    )


def _require_missing_rule(missing: MissingOfMany, statistic: Statistic) -> None:
    """Refuse a rule for missing predictions that leaderboards, or those by this statistic, do not have."""
    of_two = "`trackperm compare` computes worst and best cases of two runs."
    is_of_two = missing in get_args(MissingRule)
    require_choice("missing", missing, get_args(MissingOfMany), hint=of_two if is_of_two else "")
    if missing != "error" and (
        statistic.has_classes
        or statistic.looks_up_labels
        or statistic.depends_on_both
        or (missing == "drop" and statistic.cluster is not None)
    ):
        has = "classes" if statistic.has_classes else "clusters" if statistic.cluster is not None else "pairs"
        has = "counts of all labels" if statistic.looks_up_labels else has
        raise InputError(
            f"`--missing {missing}` is not supported in leaderboards by `{statistic.name}`, which has {has}",
            hint="exclude such runs by `--missing error`.",
        )


def _entries(
    runs: Sequence[RunData],
    at_once: Sequence[PairedRun | None],
    failures: Failures,
    paired: Callable[[RunData, Mapping[str, Decimals] | None], Pairing],
    read: DecimalsOfMany | None,
) -> list[Entry]:
    """Pair the runs that have not failed and were not paired at once; record those that cannot be paired."""
    entries = []
    for i, run in enumerate(runs):
        if failures.get(i) is not None:
            continue
        try:
            decimals = read.decimals if read is not None and i in read.runs else None
            entries.append(Entry(run, at_once[i] or paired(run, decimals)))
        except SpecError:
            raise
        except (InputError, InputTypeError) as error:
            failures[i] = error
    return entries


def _common_decimals(
    reference: ExampleTable,
    tables: Sequence[ExampleTable],
    statistic: Statistic,
    missing: MissingOfMany,
    *,
    by_position: bool,
) -> DecimalsOfMany | None:
    """Return the decimal columns of all runs, unless each pair of runs is paired anew in any case."""
    if statistic.depends_on_both:
        return None
    return DecimalsOfMany.find(reference, tables, statistic, missing=missing, by_position=by_position)


def _with_like_ids(runs: Sequence[RunData], statistic: Statistic) -> list[RunData]:
    """Convert integers in id columns to text in all runs, if a file without types has text there.

    Examples are sorted by their ids, and texts are in another order than integers. Where a run has typed
    text, the pairing refuses integers.
    """
    names = id_columns(statistic.columns["id"], [run.table for run in runs])
    tables = with_like_whole_numbers([run.table for run in runs], names)
    result = [replace(run, table=table) for run, table in zip(runs, tables, strict=True)]
    for name in names:
        having = [(i, run.table) for i, run in enumerate(result) if name in run.table.columns]
        texts = [table for _, table in having if not table.schema[name].is_numeric()]
        integers = [i for i, table in having if table.schema[name].is_integer()]
        if not texts or not all(table.is_untyped(name) for table in texts):
            continue
        for i in integers:
            table = result[i].table.with_text(name)
            note = f"`{name}` has integers, which were compared as text"
            result[i] = replace(result[i], table=replace(table, notes=(*table.notes, note)))
    return result


def _require_one_order(entries: Sequence[Entry]) -> None:
    """Refuse runs whose examples are not in the same order: their counts are put side by side."""
    first, *others = (entry.pairing.counts.frame.get_column("id") for entry in entries)
    for entry, ids in zip(entries[1:], others, strict=True):
        if not ids.equals(first):
            raise InputTypeError(
                f"the ids of `{entries[0].data.table.origin}` and `{entry.data.table.origin}` differ or have"
                " different types",
                hint="store the ids with the same type in all runs.",
            )


def _require_one_reading(entries: Sequence[Entry]) -> None:
    """Refuse runs whose column types change how the counts of the reference run are read."""
    first = entries[0].pairing
    if first.statistic.predicts_classes:
        return  # sums over the classes depend on the pair, which is paired again
    for entry in entries[1:]:
        for name in first.counts.names:
            sides = [side_values(pairing, name, "baseline") for pairing in (first, entry.pairing)]
            # Units of decimals differ between pairs, and are relative to the largest count.
            unit = 1e-12 * float(np.abs(sides[0]).max(initial=0.0))
            if not np.allclose(sides[0], sides[1], rtol=1e-9, atol=unit):
                raise InputTypeError(
                    f"the columns of `{entries[0].data.table.origin}` and `{entry.data.table.origin}` have"
                    f" different types, which change how the count `{name}` is read",
                    hint="store the columns with the same types in all runs.",
                )


def side_values(
    pairing: Pairing | PairedRun, name: str, side: Literal["baseline", "candidate"]
) -> npt.NDArray[Any]:
    """Return a count of one run in the units of the spec, shape (N,): integers, or floats for decimals."""
    values = pairing.counts.frame.get_column(f"{side}.{name}").to_numpy()
    units = pairing.statistic.resolution
    if isinstance(units, Fraction) or name not in units:
        return np.asarray(values)
    unit = units[name]
    if max(unit.numerator, unit.denominator) < 2**53:
        return np.asarray(values.astype(np.float64) * float(unit.numerator) / float(unit.denominator))
    return np.asarray(values.astype(np.float64) * float(unit))


def own_values(pairing: Pairing | PairedRun, name: str) -> npt.NDArray[Any] | None:
    """Return a count of the candidate as it was counted, shape (N,): integers, or floats for decimals.

    None for decimals that were rounded to the unit of the pair and then added up.
    """
    real = PairedCounts.real(name)
    if real in pairing.counts.frame.columns:
        return np.asarray(pairing.counts.frame.get_column(real).to_numpy())
    units = pairing.statistic.resolution
    unit = None if isinstance(units, Fraction) else units.get(name)
    if unit is not None and _is_binary(unit):
        return None
    return side_values(pairing, name, "candidate")


def _is_binary(unit: Fraction) -> bool:
    """Whether a unit is that of floats with all digits: a power of two, or a mean of rows of one.

    Those of 9 decimals and of fractions, whose denominators are up to 10^4, have fewer factors of 2.
    """
    p, q = unit.numerator, unit.denominator
    return p % 2 == 0 or (q & -q) > 2**20 or (q > 1 and q & (q - 1) == 0)


def _on_common_examples(entries: Sequence[Entry]) -> list[Entry]:
    """Restrict all pairings to the examples that they have in common; refuse runs that have none."""
    ids = [entry.pairing.counts.frame.get_column("id") for entry in entries]
    if all(len(own) == len(ids[0]) and (own == ids[0]).all() for own in ids[1:]):
        return list(entries)
    common = ids[0].unique()
    for own in ids[1:]:
        common = common.filter(common.is_in(own.implode()))
    if not len(common):
        raise PairingError(
            "the runs have no example in common",
            hint="leave out the runs that share the fewest; `--missing error` lists runs that lack examples.",
        )
    kept = []
    for entry, own in zip(entries, ids, strict=True):
        rows = own.is_in(common.implode())
        pairing = entry.pairing
        counts = replace(pairing.counts, frame=pairing.counts.frame.filter(rows))
        found = replace(pairing, counts=counts)
        if pairing.strata is not None:
            strata = pairing.strata.filter(rows)
            left = load_statistic(pairing.statistic, strata=strata.unique().sort().to_list())
            found = replace(found, strata=strata, statistic=left)
        kept.append(replace(entry, pairing=found))
    return kept


def with_names(message: str, runs: Iterable[RunData]) -> str:
    """Return a message with the runs called as in the table, not by references such as ``mlflow:RUN_ID``."""
    names = {run.table.origin: run.name for run in runs}
    called = re.compile(f"`({'|'.join(map(re.escape, names))})`")
    return called.sub(lambda found: f"`{names[found[1]]}`", message)


def too_few_runs(
    complete: Sequence[RunData], incomplete: Sequence[ExcludedRun], hint: str | None
) -> InputError:
    """Error for fewer than two complete runs, with the reason of each incomplete run."""
    found = amount(len(complete), "run") + " with all examples" * bool(incomplete)
    names = f" ({listed(run.name for run in complete)})" if complete else ""
    reasons = [
        run.reason if f"({run.name})" in run.reason else f"`{printable(run.name)}`: {run.reason}"
        for run in incomplete[:_SHOWN]
    ]
    more = [f"and {amount(len(incomplete) - _SHOWN, 'run')} more"] if len(incomplete) > _SHOWN else []
    message = f"`leaderboard` got {found}{names}; expected at least 2"
    return InputError("\n\n".join([message, *reasons, *more]), hint=hint)
