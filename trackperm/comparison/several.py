"""Comparison of two runs by several statistics and on slices, as one family of tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from trackperm.choices import CorrectionName, EngineName, MissingRule
from trackperm.comparison.corrections import corrected, uncorrected
from trackperm.comparison.result import Comparison
from trackperm.comparison.runs import RunData
from trackperm.comparison.single import compare_runs
from trackperm.comparison.slices import slices_of
from trackperm.errors import InputError, TrackpermError
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
    begin: Callable[[str], None] = lambda _: None,
) -> list[Comparison]:
    """Compare two runs by several statistics, on all examples and on slices, with correction.

    Parameters
    ----------
    baseline, candidate : RunData
        The runs.
    statistics : sequence of Statistic
        The statistics to test; the slices that each declares are compared as well.
    options : TestOptions, optional
        Alternative, level and engine.
    slices : sequence of str
        Columns whose values make further slices, which are exploratory.
    correction : str
        A key of :data:`~trackperm.comparison.CORRECTIONS`, or ``none``; a single comparison is not corrected.
    margin, missing, by_position, engine
        As in :func:`~trackperm.comparison.compare.compare`.
    begin : callable
        Receives a description of each step before it begins.

    Returns
    -------
    list of Comparison
        For each statistic: all examples, then its slices in ascending order of their values.

    Raises
    ------
    InputError
        As in :func:`compare_runs` and :func:`corrected`; also if a column makes no slices, or if two
        statistics have the same name.
    PairingError
        If an example is in different slices in the two runs, or a slice occurs in one run only.
    """
    _require_distinct_names(statistics)
    compared = partial(
        compare_runs,
        options=options,
        margin=margin,
        missing=missing,
        by_position=by_position,
        engine=engine,
    )
    found = []
    for statistic in statistics:
        begin(f"pairing and testing: {statistic.name}")
        try:
            found.append(compared(baseline, candidate, statistic))
        except InputError as error:
            if statistic.chosen and len(statistics) > 1:
                alone = (
                    f"`--metric {statistics[0].columns.get('score', 'NAME')}` compares by one metric alone."
                )
                error.hint = f"{error.hint} {alone}" if error.hint else alone
            raise
        for part, first, second in slices_of(
            baseline, candidate, statistic, slices, by_position=by_position, engine=engine
        ):
            begin(f"pairing and testing: {statistic.name}, {part}")
            try:
                one = compared(first, second, statistic, look_for_clusters=False)
            except TrackpermError as error:
                error.message = f"slice {part}: {error.message}"
                raise
            found.append(replace(one, slice=part, options={**one.options, "slice": str(part)}))
    if len(found) < 2:
        return found
    return uncorrected(found) if correction == "none" else corrected(found, correction)


def _require_distinct_names(statistics: Sequence[Statistic]) -> None:
    """Refuse two statistics with the same name, since outputs and logs could not distinguish them.

    Raises
    ------
    InputError
        If two statistics have the same name.
    """
    names = [statistic.name for statistic in statistics]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(
            f"two statistics are called {listed(twice)}",
            hint="leave one out; with other parameters or columns, a spec gives it a name of its own.",
        )
