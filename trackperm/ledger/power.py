"""Plan how many examples it takes: by a discordance, a pilot, or what was compared before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, overload

from trackperm.choices import Alternative
from trackperm.comparison.compare import compare
from trackperm.comparison.sample_size import Plan, plan_from_pilot, plan_paired
from trackperm.errors import InputError
from trackperm.exact.power.simulated import N_RESAMPLES
from trackperm.ledger.past_comparisons import PastPlan, plan_from_past
from trackperm.statistic import Statistic
from trackperm.trackers.opened import opened

if TYPE_CHECKING:
    from typing_extensions import Unpack

StatisticName = str | Path | Statistic


class _Options(TypedDict, total=False):
    test_set: str | None
    statistic: StatisticName | Sequence[StatisticName] | None
    difference: float | None
    discordance: float | None
    n_examples: int | None
    power: float
    alpha: float
    alternative: Alternative
    n_resamples: int
    seed: int
    parameters: Mapping[str, object] | None
    tracking_uri: str | None


@overload
def power(
    baseline: Any = None, candidate: Any = None, *, experiment: None = None, **options: Unpack[_Options]
) -> Plan: ...


@overload
def power(
    baseline: Any = None, candidate: Any = None, *, experiment: str, **options: Unpack[_Options]
) -> list[PastPlan]: ...


def power(
    baseline: Any = None,
    candidate: Any = None,
    *,
    experiment: str | None = None,
    test_set: str | None = None,
    statistic: StatisticName | Sequence[StatisticName] | None = None,
    difference: float | None = None,
    discordance: float | None = None,
    n_examples: int | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    parameters: Mapping[str, object] | None = None,
    tracking_uri: str | None = None,
) -> Plan | list[PastPlan]:
    """Plan how many examples it takes to see a difference between two runs.

    A plan is made from one of three: from a pilot, which is two runs; from `discordance`; or from
    `experiment`, where comparisons were logged. Exact for 0/1 scores; for other statistics by the normal
    approximation, and by resampling the counts. To learn the smallest difference that a comparison which was
    made already would have shown, read ``detectable`` of the :class:`trackperm.Comparison`.

    Parameters
    ----------
    baseline, candidate : str, Path, TrackedRun or data frame, optional
        The runs of a pilot, as in :func:`trackperm.compare`.
    experiment : str, optional
        ``mlflow:EXPERIMENT`` or ``wandb:ENTITY/PROJECT``, in place of a pilot: plan from all comparisons
        that are logged there.
    test_set : str, optional
        With `experiment`, the first hexadecimal digits of the digest of a test set; needed where several
        were compared on.
    statistic : str, Path or Statistic, or sequence of str
        That of the pilot, by default as the runs say; with `experiment`, one name that was logged or several,
        by default ``accuracy``.
    difference : float, optional
        The true difference to be seen, in units of the statistic; by default that of the pilot.
    discordance : float, optional
        Share of examples, from 0 to 1, on which one run alone is right, in place of a pilot.
    n_examples : int, optional
        A number of examples whose power is computed as well.
    power, alpha : float
        The chance of p < alpha to be had, and alpha; both between 0 and 1.
    alternative : {'two-sided', 'less', 'greater'}
        Which values of the statistic are extreme.
    n_resamples, seed : int
        Resampled comparisons, for other than 0/1 scores, and their seed.
    parameters : mapping, optional
        Values of the statistic's parameters, such as ``{"positive": "yes"}``, for a pilot.
    tracking_uri : str, optional
        Tracking server or store; by default as the tracker decides.

    Returns
    -------
    Plan or list of PastPlan
        A plan; with `experiment`, one for each statistic, each by the least, the median and the greatest
        discordance of the past comparisons.

    Raises
    ------
    InputError
        If not exactly one of the three is given, or nothing can be planned from it.
    TrackerError
        If a tracker cannot be reached or refuses.
    CapacityError
        If it takes too many examples.

    Examples
    --------
    >>> trackperm.power(difference=0.03, discordance=0.1).needed.first
    920
    >>> plan = trackperm.power("baseline.parquet", "candidate.parquet", difference=0.03)
    >>> round(plan.discordance, 3), plan.needed.first
    (0.135, 1229)
    """
    _require_one_source(baseline, discordance, experiment)
    if experiment is None and test_set is not None:
        raise InputError("`--test-set` is one of those in an experiment", hint="add `--experiment`.")
    if baseline is None and difference is None:
        source = "discordance" if experiment is None else "experiment"
        raise InputError(f"`--{source}` needs the `--difference` that is to be seen")
    names = [statistic] if isinstance(statistic, str | Path | Statistic) else list(statistic or ())
    test: dict[str, Any] = {"alpha": alpha, "alternative": alternative}
    sought: dict[str, Any] = {"n_examples": n_examples, "power": power}
    drawn: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed}
    if experiment is not None and difference is not None:
        if parameters:
            raise InputError(
                "`--set` is for a pilot; logged comparisons have the spec that they were made by"
            )
        tracker, container = opened(experiment, tracking_uri, hint="`--experiment mlflow:EXPERIMENT`.")
        past = {"test_set": test_set, "difference": difference, **sought, **test, **drawn}
        logged = [_logged_name(name) for name in names] or ["accuracy"]
        return [plan_from_past(tracker, container, name, **past) for name in logged]
    if discordance is not None and difference is not None:
        return plan_paired(difference, discordance, **sought, **test)
    if candidate is None:
        raise InputError("a pilot has two runs", hint="`trackperm power BASELINE CANDIDATE`.")
    if len(names) > 1 or (statistic is not None and not names):
        raise InputError("a pilot is compared by one statistic", hint="give `--statistic` once.")
    named = names[0] if names else None
    pilot = compare(baseline, candidate, named, parameters=parameters, tracking_uri=tracking_uri, **test)
    return plan_from_pilot(pilot, difference=difference, **sought, **drawn)


def _require_one_source(baseline: object, discordance: object, experiment: object) -> None:
    if sum(source is not None for source in (baseline, discordance, experiment)) != 1:
        raise InputError(
            "`trackperm power` plans from a pilot, two runs, or from `--discordance`, or from `--experiment`",
            hint="`trackperm power --difference 0.03 --discordance 0.1`, for example.",
        )


def _logged_name(statistic: StatisticName) -> str:
    """Return the name under which comparisons by a statistic are logged."""
    return statistic.name if isinstance(statistic, Statistic) else str(statistic)
