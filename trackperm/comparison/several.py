"""Several statistics, and slices of the examples, of the same two runs: one family of tests."""

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
    """Compare two runs by several statistics, on all examples and on slices, and correct for all of them.

    Parameters
    ----------
    baseline, candidate : RunData
        The runs.
    statistics : sequence of Statistic
        What is tested; the slices that each declares are compared as well.
    options : TestOptions, optional
        Alternative, level and engine.
    slices : sequence of str
        Columns whose values make further slices, which are exploratory.
    correction : str
        A key of :data:`~trackperm.comparison.CORRECTIONS`, or ``none``; one comparison alone needs none.
    margin, missing, by_position, engine
        As in :func:`~trackperm.comparison.compare.compare`.
    begin : callable
        Receives what is tested next.

    Returns
    -------
    list of Comparison
        By each statistic: all examples, then its slices in ascending order of their values.

    Raises
    ------
    InputError
        As by :func:`compare_runs` and :func:`corrected`; also if a column makes no slices, or two statistics
        have the same name.
    PairingError
        If an example is not in the same slice in both runs, or a slice is of one run alone.
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
            found.append(replace(one, part=part, options={**one.options, "slice": str(part)}))
    if len(found) < 2:
        return found
    return uncorrected(found) if correction == "none" else corrected(found, correction)


def _require_distinct_names(statistics: Sequence[Statistic]) -> None:
    """Refuse two statistics of one name, which nothing that is shown or logged tells apart.

    Raises
    ------
    InputError
        If there are; the correction would count the same statistic as two tests.
    """
    names = [statistic.name for statistic in statistics]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(
            f"two statistics are called {listed(twice)}",
            hint="leave one out; with other parameters or columns, a spec gives it a name of its own.",
        )
