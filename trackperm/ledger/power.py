"""Sample size of a comparison, from a discordance, a pilot, or past comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, overload

from trackperm.choices import Alternative, MissingRule, Repeats, Unit
from trackperm.comparison.argument_types import require_types, with_known_options
from trackperm.comparison.compare import compare
from trackperm.comparison.planning.equivalence_plan import EquivalencePlan, plan_equivalence
from trackperm.comparison.planning.pilot import Pilot
from trackperm.comparison.planning.sample_size import Plan, plan_from_pilot, plan_paired
from trackperm.errors import InputError, InputTypeError
from trackperm.exact.options import checked_integer, checked_level, plain_number
from trackperm.exact.power.simulated import N_RESAMPLES
from trackperm.ledger.past_comparisons import PastPlan, plan_from_past
from trackperm.messages import echoed
from trackperm.report.notes import cautions_of
from trackperm.report.phrases import statistic_title
from trackperm.statistic import Statistic
from trackperm.trackers.opened import opened

if TYPE_CHECKING:
    from typing_extensions import Unpack

StatisticName = str | Path | Statistic
AnyPlan = Plan | EquivalencePlan | list[PastPlan]


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
    metric: str | None
    parameters: Mapping[str, object] | None
    columns: Mapping[str, str] | None
    missing: MissingRule
    by_position: bool
    unit: Unit | None
    repeats: Repeats | None
    cluster: str | None
    allow_unseen: bool
    tracking_uri: str | None


@overload
def power(
    baseline: Any = None,
    candidate: Any = None,
    *,
    margin: float,
    experiment: None = None,
    **options: Unpack[_Options],
) -> EquivalencePlan: ...


@overload
def power(
    baseline: Any = None,
    candidate: Any = None,
    *,
    margin: None = None,
    experiment: None = None,
    **options: Unpack[_Options],
) -> Plan: ...


@overload
def power(
    baseline: Any = None,
    candidate: Any = None,
    *,
    margin: None = None,
    experiment: str,
    **options: Unpack[_Options],
) -> list[PastPlan]: ...


@with_known_options
def power(
    baseline: Any = None,
    candidate: Any = None,
    *,
    experiment: str | None = None,
    test_set: str | None = None,
    statistic: StatisticName | Sequence[StatisticName] | None = None,
    difference: float | None = None,
    margin: float | None = None,
    discordance: float | None = None,
    n_examples: int | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    metric: str | None = None,
    parameters: Mapping[str, object] | None = None,
    columns: Mapping[str, str] | None = None,
    missing: MissingRule = "error",
    by_position: bool = False,
    unit: Unit | None = None,
    repeats: Repeats | None = None,
    cluster: str | None = None,
    allow_unseen: bool = False,
    tracking_uri: str | None = None,
) -> AnyPlan:
    """Return the number of examples that are needed to detect a difference, or to find equivalence.

    A plan starts from one of three sources: a pilot, which is two runs; a `discordance`; or an `experiment`
    with logged comparisons. It is exact for 0/1 scores; for other statistics it uses the normal
    approximation, and resamples the counts. For the smallest difference that an existing comparison could
    have detected, read ``detectable`` of the :class:`trackperm.Comparison`.

    Parameters
    ----------
    baseline, candidate : str, Path, TrackedRun or data frame, optional
        Runs of a pilot, as in :func:`trackperm.compare`.
    experiment : str, optional
        ``mlflow:EXPERIMENT`` or ``wandb:ENTITY/PROJECT`` with logged comparisons, instead of a pilot.
    test_set : str, optional
        With `experiment`, the first hexadecimal digits of the digest of a test set; needed if there are
        several test sets.
    statistic : str, Path or Statistic, or sequence of str
        Statistic of the pilot, by default as the runs say; with `experiment`, one or several logged names, by
        default ``accuracy``.
    difference : float, optional
        True difference that the test should detect, in units of the statistic; by default that of the pilot.
        With `margin`, the true difference for which equivalence should be found, by default 0.
    margin : float, optional
        Smallest difference that matters, in units of the statistic: the plan is for finding equivalence
        within it, from a pilot or a discordance.
    discordance : float, optional
        Share of examples, from 0 to 1, on which exactly one run is right, instead of a pilot.
    n_examples : int, optional
        Number of examples whose power is computed as well; of rows with ``unit="row"``. If clusters are
        tested, it is converted to clusters by their mean size in the pilot.
    power, alpha : float
        Probability of p < alpha under the difference, and alpha; both between 0 and 1.
    alternative : {'two-sided', 'less', 'greater'}
        Which values of the statistic are extreme.
    n_resamples, seed : int
        Number of resampled comparisons and their seed, for other than 0/1 scores.
    parameters : mapping, optional
        Values of the statistic's parameters, such as ``{"positive": "yes"}``, for a pilot.
    columns : mapping, optional
        Columns of a pilot, such as ``{"label": "gold"}``, as in :func:`trackperm.compare`.
    metric, missing, by_position, unit, repeats, cluster, allow_unseen
        For a pilot, as in :func:`trackperm.compare`.
    tracking_uri : str, optional
        Tracking server or store; by default as the tracker decides.

    Returns
    -------
    Plan, EquivalencePlan or list of PastPlan
        A plan, for equivalence with `margin`; with `experiment`, plans for each statistic by the least, the
        median and the greatest discordance of the past comparisons.

    Raises
    ------
    InputError, InputTypeError
        If not exactly one source is given, no plan can be made from it, or an option is no number.
    TrackerError
        If a tracker cannot be reached or refuses.
    CapacityError
        If too many examples are needed.

    Examples
    --------
    >>> trackperm.power(difference=0.03, discordance=0.1).needed.first
    920
    >>> plan = trackperm.power("baseline.parquet", "candidate.parquet", difference=0.03)
    >>> round(plan.discordance, 3), plan.needed.first
    (0.135, 1229)
    >>> trackperm.power(margin=0.03, discordance=0.1).needed
    1026
    """
    require_types(
        experiment=experiment,
        test_set=test_set,
        metric=metric,
        parameters=parameters,
        columns=columns,
        missing=missing,
        tracking_uri=tracking_uri,
    )
    power, alpha = _number("power", power), checked_level(alpha)
    difference = None if difference is None else _number("difference", difference)
    margin = None if margin is None else _number("margin", margin)
    discordance = None if discordance is None else _number("discordance", discordance)
    n_examples = None if n_examples is None else checked_integer("examples", n_examples, 1)
    n_resamples = checked_integer("resamples", n_resamples, 1)
    seed = checked_integer("seed", seed, 0)
    _require_one_source(baseline, discordance, experiment)
    if experiment is None and test_set is not None:
        raise InputError("`--test-set` needs an experiment", hint="add `--experiment`.")
    if margin is not None and experiment is not None:
        raise InputError(
            "`--margin` and `--experiment` cannot be combined; equivalence is planned from two runs or from a"
            " discordance",
            hint="give two runs or `--discordance` in place of `--experiment`.",
        )
    if margin is not None and alternative != "two-sided":
        raise InputError(
            "`--margin` and `--alternative` cannot be combined; equivalence is two one-sided tests",
            hint="omit `--alternative`.",
        )
    if baseline is None and difference is None and margin is None:
        source = "discordance" if experiment is None else "experiment"
        raise InputError(f"`--{source}` needs a `--difference`", hint="add `--difference 0.03`, for example.")
    of_pilot: dict[str, Any] = {
        "metric": metric,
        "parameters": parameters,
        "columns": columns,
        "missing": missing,
        "by_position": by_position,
        "unit": unit,
        "repeats": repeats,
        "cluster": cluster,
        "allow_unseen": allow_unseen,
    }
    if baseline is None:
        _require_pilot(of_pilot, experiment)
    names = _names(statistic)
    test: dict[str, Any] = {"alpha": alpha, "alternative": alternative}
    sought: dict[str, Any] = {"n_examples": n_examples, "power": power}
    drawn: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed}
    if experiment is not None and difference is not None:
        tracker, container = opened(experiment, tracking_uri, hint="`--experiment mlflow:EXPERIMENT`.")
        past = {"test_set": test_set, "difference": difference, **sought, **test, **drawn}
        logged = [name.name if isinstance(name, Statistic) else str(name) for name in names]
        return [plan_from_past(tracker, container, name, **past) for name in logged or ["accuracy"]]
    equivalence: dict[str, Any] = {"difference": difference, **sought, "alpha": alpha}
    if discordance is not None and margin is not None:
        return plan_equivalence(margin, discordance, **equivalence)
    if discordance is not None and difference is not None:
        return plan_paired(difference, discordance, **sought, **test)
    if candidate is None:
        raise InputError("a pilot needs two runs", hint="write `trackperm power BASELINE CANDIDATE`.")
    if len(names) > 1 or (statistic is not None and not names):
        raise InputError("a pilot takes one statistic", hint="give `--statistic` once.")
    named = names[0] if names else None
    compared = compare(baseline, candidate, named, **of_pilot, tracking_uri=tracking_uri, **test)
    pilot = Pilot.of(compared, statistic_title(compared), cautions_of(compared))
    if margin is not None:
        return replace(plan_equivalence(margin, compared, **equivalence), pilot=pilot)
    return replace(plan_from_pilot(compared, difference=difference, **sought, **drawn), pilot=pilot)


def _names(statistic: object) -> list[StatisticName]:
    """Return the named statistics as a list; refuse values of other types."""
    given = statistic if isinstance(statistic, list | tuple) else () if statistic is None else (statistic,)
    for each in given:
        if not isinstance(each, StatisticName):
            raise InputTypeError(
                f"`statistic` is {echoed(statistic)}; expected a name, a path, a statistic, or a list of them"
            )
    return list(given)


def _number(name: str, value: object) -> float:
    """Return an option's value as a Python number; refuse all but numbers."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"`{name}` is {echoed(value)}; expected a number")
    return plain_number(value)


def _require_pilot(options: Mapping[str, Any], experiment: object) -> None:
    """Refuse options of a pilot beside another source."""
    why = "`--discordance` is all that is known of the examples"
    if experiment is not None:
        why = "logged comparisons have their own spec"
    for name, value in options.items():
        if value and value != "error":
            option = {"parameters": "set", "columns": "column"}.get(name, name.replace("_", "-"))
            raise InputError(
                f"`--{option}` needs a pilot, which is two runs; {why}",
                hint=f"omit `--{option}`, or write `trackperm power BASELINE CANDIDATE`.",
            )


def _require_one_source(baseline: object, discordance: object, experiment: object) -> None:
    if sum(source is not None for source in (baseline, discordance, experiment)) != 1:
        raise InputError(
            "expected one of: a pilot, which is two runs; `--discordance`; or `--experiment`",
            hint="write `trackperm power --difference 0.03 --discordance 0.1`, for example.",
        )
