"""Comparison of two runs by several statistics and on slices, as one family of tests."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from trackperm.choices import CorrectionName, EngineName, MissingRule
from trackperm.comparison.context import Slice
from trackperm.comparison.corrections import corrected, uncorrected
from trackperm.comparison.result import Comparison
from trackperm.comparison.runs import RunData
from trackperm.comparison.single import compare_runs
from trackperm.comparison.slices import slices_of
from trackperm.errors import (
    DisjointError,
    InputError,
    InputTypeError,
    TrackpermError,
    UndefinedStatisticError,
    UntestableError,
)
from trackperm.exact import TestOptions
from trackperm.messages import listed
from trackperm.statistic import Statistic


def compare_statistics(
    baseline: RunData,
    candidate: RunData,
    statistics: Sequence[Statistic],
    options: TestOptions | None = None,
    *,
    slices: Sequence[str] = (),
    correction: CorrectionName = "holm",
    margin: float | None = None,
    missing: MissingRule = "error",
    by_position: bool = False,
    engine: EngineName = "auto",
    require_slices: bool = False,
    begin: Callable[[str], None] = lambda _: None,
) -> list[Comparison]:
    """Compare two runs by several statistics, on all examples and on slices, with correction.

    For each statistic, the result has all examples, then the slices in ascending order of their values: those
    that the statistic declares, and those by the columns of `slices`. `begin` receives a description of each
    step before it begins; other options are those of :func:`~trackperm.comparison.compare.compare`.

    A slice without a value of the statistic after every exchange of outputs, or of which `missing` leaves out
    all examples, is not tested, unless all slices of its column are such or `require_slices`: a note of the
    comparison of all examples names it. As no exchange changes which slices are tested, the correction for
    those stays valid.

    Raises
    ------
    InputError
        As in :func:`compare_runs`, :func:`corrected` and :func:`slices_of`; also if two statistics have the
        same name.
    """
    _require_distinct_names(statistics)
    compared = partial(
        compare_runs, options=options, margin=margin, missing=missing, by_position=by_position, engine=engine
    )
    found = []
    for statistic in statistics:
        begin(f"pairing and testing: {statistic.title}")
        try:
            whole = compared(baseline, candidate, statistic)
        except (InputError, InputTypeError) as error:
            metrics = [each.columns["score"] for each in statistics if "score" in each.columns]
            others = [name for name in metrics if name != statistic.columns.get("score")]
            if statistic.chosen and others:
                alone = f"`--metric {shlex.quote(others[0])}` compares one metric only."
                error.hint = f"{error.hint} {alone}" if error.hint else alone
            raise
        tested: list[Comparison] = []
        untestable: list[tuple[Slice, UntestableError]] = []
        notes: list[str] = []
        for part, first, second in slices_of(
            baseline.for_statistic(statistic),
            candidate.for_statistic(statistic),
            statistic,
            slices,
            by_position=by_position,
            engine=engine,
            note=notes.append,
        ):
            begin(f"pairing and testing: {statistic.title}, {part}")
            test = partial(compared, first, second, statistic, is_slice=True)
            one = _compared_slice(part, test, is_required=require_slices, missing=missing)
            if isinstance(one, Comparison):
                tested.append(one)
            else:
                untestable.append((part, one))
        _require_tested(tested, untestable)
        notes += (f"slice {part} is not tested: {error.message}" for part, error in untestable)
        found += [_with_notes(whole, notes), *tested]
    if len(found) < 2:
        return found
    return uncorrected(found) if correction == "none" else corrected(found, correction)


def _compared_slice(
    part: Slice, test: Callable[..., Comparison], *, is_required: bool, missing: MissingRule
) -> Comparison | UntestableError:
    """Compare the runs on a slice; return why it cannot be tested unless `is_required`."""
    try:
        try:
            one = test()
        except DisjointError as error:
            raise UntestableError("no example of it is complete in both runs") from error
    except UntestableError as error:
        if not is_required and (missing != "bounds" or _is_untestable_in_both_cases(test)):
            return error
        _name_slice(error, part)
        raise
    except TrackpermError as error:
        _name_slice(error, part)
        raise
    return replace(one, slice=part, options={**one.options, "slice": str(part)})


def _is_untestable_in_both_cases(test: Callable[..., Comparison]) -> bool:
    """Whether a slice cannot be tested in the worst and the best case of missing predictions."""
    for case in ("worst", "best"):
        try:
            test(missing=case)
        except UntestableError:
            continue
        return False
    return True


def _require_tested(
    tested: Sequence[Comparison], untestable: Sequence[tuple[Slice, UntestableError]]
) -> None:
    """Refuse columns none of whose slices can be tested."""
    columns = {each.slice.column for each in tested if each.slice is not None}
    for part, error in untestable:
        if part.column not in columns:
            _name_slice(error, part)
            raise error


def _with_notes(whole: Comparison, notes: Sequence[str]) -> Comparison:
    """Add notes on slices to the comparison of all examples."""
    return replace(whole, pairing=replace(whole.pairing, notes=(*whole.pairing.notes, *notes)))


def _name_slice(error: TrackpermError, part: Slice) -> None:
    """Name the slice of an error in its message, and the way without the slice in its hint."""
    error.message = f"slice {part}: {error.message}"
    if isinstance(error, UndefinedStatisticError):
        option = f"`--slice {shlex.quote(part.column)}`"
        if part.declared:
            option = f"`{part.column}` among the `slices` of the statistic's file"
        without = f"leave these examples out in both runs, or compare without {option}."
        is_other = error.hint is None or isinstance(error, UntestableError)
        error.hint = without if is_other else f"{error.hint} Or {without}"


def _require_distinct_names(statistics: Sequence[Statistic]) -> None:
    """Refuse two statistics with the same name, since outputs and logs could not distinguish them."""
    names = [statistic.name for statistic in statistics]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(
            f"two statistics have the name {listed(twice)}",
            hint="leave one out, or give it another `name:` in a spec.",
        )
