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

    For each statistic, the result has all examples, then the slices in ascending order of their values: those
    that the statistic declares, and those by the columns of `slices`. `begin` receives a description of each
    step before it begins; other options are those of :func:`~trackperm.comparison.compare.compare`.

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
            found.append(compared(baseline, candidate, statistic))
        except InputError as error:
            if statistic.chosen and len(statistics) > 1 and "score" in statistics[0].columns:
                alone = f"`--metric {statistics[0].columns['score']}` compares one metric only."
                error.hint = f"{error.hint} {alone}" if error.hint else alone
            raise
        for part, first, second in slices_of(
            baseline, candidate, statistic, slices, by_position=by_position, engine=engine
        ):
            begin(f"pairing and testing: {statistic.title}, {part}")
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
    """Refuse two statistics with the same name, since outputs and logs could not distinguish them."""
    names = [statistic.name for statistic in statistics]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(
            f"two statistics have the name {listed(twice)}",
            hint="leave one out, or give it another `name:` in a spec.",
        )
