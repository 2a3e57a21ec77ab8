"""The conductor of two runs: read, pair, count, test.

Numerics know nothing of runs and trackers know nothing of numerics: they meet here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from trackperm.comparison.context import Case
from trackperm.comparison.result import Comparison, score_of
from trackperm.comparison.runs import RunData, load_run, reference_answers, require_artifacts_of_runs
from trackperm.errors import InputError, UndefinedStatisticError
from trackperm.exact import (
    Alternative,
    CountTable,
    Method,
    PermutationTest,
    RationalStatistic,
    structured_test,
)
from trackperm.exact.outcome import N_SAMPLES
from trackperm.exact.scores.resolution import Resolution
from trackperm.pairing import Missing, paired
from trackperm.statistic import Statistic, load_statistic
from trackperm.verdict import require_margin

_RATIO_HINT = (
    "`contrast: difference` tests the difference of the scores; a constant keeps them above 0, as in"
    " `score: (wrong + 0.5) / (n + 1)`."
)

MissingRule = Missing | Literal["bounds"]
"""As `Missing`, or the worst and the best case beside each other."""


def compare(
    baseline: Any,
    candidate: Any,
    statistic: str | Path | Statistic = "accuracy",
    *,
    alternative: Alternative | None = None,
    alpha: float = 0.05,
    margin: float | None = None,
    parameters: Mapping[str, object] | None = None,
    columns: Mapping[str, str] | None = None,
    resolution: Resolution | Mapping[str, Resolution] | None = None,
    artifact: str | tuple[str, str] | None = None,
    labels: str | Path | None = None,
    missing: MissingRule = "error",
    by_position: bool = False,
    mid_p: bool = False,
    method: Method = "auto",
    n_samples: int = N_SAMPLES,
    seed: int = 0,
    exceedances: int | None = None,
    tracking_uri: str | None = None,
) -> Comparison:
    """Compare two runs on the same examples by the exact paired-permutation test.

    Nothing is logged; see :meth:`Comparison.log`.

    Parameters
    ----------
    baseline, candidate : str, path or data frame
        ``mlflow:<run id>``, ``mlflow:<experiment>/<run name>``, ``wandb:<entity>/<project>/<run>``,
        ``wandb:<folder of an offline run>``, the path of a file of any format in :mod:`trackperm.sources`,
        ``FILE::PART`` for one system, filter or scorer in it, or a data frame that narwhals accepts.
    statistic : str, path or Statistic
        Name of a built-in statistic, or the path of a spec.
    alternative : {'two-sided', 'less', 'greater'}, optional
        By default as the spec says. ``greater``: the candidate's score is greater.
    alpha : float
        Significance level of the verdict, between 0 and 1.
    margin : float, optional
        The smallest difference that matters, in units of the statistic: runs are equivalent where the
        interval of confidence 1 - 2 alpha lies within it.
    parameters : mapping, optional
        Values of the spec's parameters, such as ``{"positive": "yes"}``.
    columns : mapping, optional
        Column names that differ from those in the spec, such as ``{"id": "question_id"}``.
    resolution : str, float, Fraction, Decimal, or mapping of str to such, optional
        What decimal counts are rounded to multiples of, all or by name, in place of what the spec says.
    artifact : str or (str, str), optional
        Artifact path in the runs, or one for each.
    labels : str or path, optional
        File of the reference answers, where they lie apart from the predictions.
    missing : {'error', 'drop', 'wrong', 'worst', 'best', 'bounds'}
        What to do with examples that only one run has, or that lack a value: refuse, leave them out, or count
        what the statistic says of a missing prediction; or, for the worst or best case of the candidate, of
        the worst possible one in one run and the best possible one in the other; ``bounds`` reports both
        cases, and concludes what they agree on.
    by_position : bool
        Pair rows by position where there is no id column.
    mid_p : bool
        Count ties with the observed value half: less conservative, but no longer a valid p-value.
    method : {'auto', 'binomial', 'enumerate', 'dp', 'lattice', 'bracket', 'monte-carlo'}
        Numerical engine.
    n_samples, seed, exceedances : int
        For Monte Carlo: random swaps, the seed that they come from, and the number of them at least as
        extreme as the observed one at which drawing stops, if it should.
    tracking_uri : str, optional
        Tracking server or store of run references; by default as the tracker decides.

    Raises
    ------
    InputError
        If anything about the input cannot be used; subclasses say what.
    TrackerError
        If a tracker cannot be reached or refuses.

    References
    ----------
    Zmigrod, Vieira and Cotterell (2022), Exact Paired-Permutation Testing for Structured Test Statistics.
    """
    first, second = (artifact, artifact) if artifact is None or isinstance(artifact, str) else artifact
    require_artifacts_of_runs(artifact, baseline, candidate)
    gold = reference_answers(labels, columns or {}, by_position=by_position)
    return compare_runs(
        load_run(baseline, "baseline", artifact=first, gold=gold, tracking_uri=tracking_uri),
        load_run(candidate, "candidate", artifact=second, gold=gold, tracking_uri=tracking_uri),
        load_statistic(statistic, parameters=parameters or {}, columns=columns or {}, resolution=resolution),
        alternative=alternative,
        alpha=alpha,
        margin=margin,
        missing=missing,
        by_position=by_position,
        mid_p=mid_p,
        method=method,
        n_samples=n_samples,
        seed=seed,
        exceedances=exceedances,
    )


def compare_runs(
    baseline: RunData,
    candidate: RunData,
    statistic: Statistic,
    *,
    alternative: Alternative | None = None,
    alpha: float = 0.05,
    margin: float | None = None,
    missing: MissingRule = "error",
    by_position: bool = False,
    mid_p: bool = False,
    method: Method = "auto",
    n_samples: int = N_SAMPLES,
    seed: int = 0,
    exceedances: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> Comparison:
    """Compare two runs that were read before; options as in :func:`compare`.

    Where that takes long because they are large, `progress` is told from time to time which part of the
    pairing is done, from 0 to 1.
    """
    if not 0.0 < alpha < 1.0:
        raise InputError(f"`alpha` is {alpha}; expected a number between 0 and 1, such as 0.05")
    require_margin(margin, alpha)
    compared = partial(
        _compared,
        baseline,
        candidate,
        statistic,
        alternative=alternative,
        alpha=alpha,
        margin=margin,
        by_position=by_position,
        mid_p=mid_p,
        method=method,
        n_samples=n_samples,
        seed=seed,
        exceedances=exceedances,
        progress=progress,
    )
    if missing != "bounds":
        return compared(missing=missing)
    both = [compared(missing="worst"), compared(missing="best")]
    cases = tuple(
        Case(each.pairing.missing, each.difference, each.pvalue, each.decision.sign) for each in both
    )
    weaker = max(both, key=lambda comparison: comparison.pvalue)
    return replace(weaker, options={**weaker.options, "missing": "bounds"}, cases=cases, outcomes=tuple(both))


def _compared(
    baseline: RunData,
    candidate: RunData,
    statistic: Statistic,
    *,
    alternative: Alternative | None,
    alpha: float,
    margin: float | None,
    missing: Missing,
    by_position: bool,
    mid_p: bool,
    method: Method,
    n_samples: int,
    seed: int,
    exceedances: int | None,
    progress: Callable[[float], object] | None,
) -> Comparison:
    pairing = paired(
        baseline.table,
        candidate.table,
        statistic,
        missing=missing,
        by_position=by_position,
        progress=progress,
    )
    statistic = pairing.statistic
    table = pairing.count_table
    _require_defined_scores(statistic, table)
    _require_ratio(statistic, table, baseline, candidate)
    tested = alternative or statistic.alternative
    test = count_table_test(
        statistic,
        table,
        alternative=tested,
        mid_p=mid_p,
        method=method,
        n_samples=n_samples,
        seed=seed,
        exceedances=exceedances,
    )
    options = {"alternative": tested, "alpha": repr(alpha), "missing": missing, "method": method}
    if mid_p:
        options["mid_p"] = "true"
    if margin is not None:
        options["margin"] = repr(margin)
    if test.method == "monte-carlo":
        options |= {"n_samples": str(n_samples), "seed": str(seed), "exceedances": str(exceedances)}
    return Comparison(
        statistic=statistic,
        baseline_data=baseline,
        candidate_data=candidate,
        test=test,
        alpha=alpha,
        count_table=table,
        pairing=pairing.report,
        discordant=pairing.discordant,
        options=options,
        margin=margin,
    )


def count_table_test(
    statistic: Statistic,
    table: CountTable,
    *,
    alternative: Alternative,
    mid_p: bool = False,
    method: Method = "auto",
    n_samples: int = N_SAMPLES,
    seed: int = 0,
    exceedances: int | None = None,
) -> PermutationTest:
    """Test `statistic` on counts alone; options as in :func:`compare`.

    Raises
    ------
    InputError
        If the counts leave 64 bits, or a division by zero has no value.
    UndefinedStatisticError
        If some swaps of outputs leave the statistic without a value.
    CapacityError
        If the engine that was asked for cannot take the problem.
    """
    stay, swap = statistic.pairs(table.candidate, table.baseline)
    try:
        return structured_test(
            stay,
            swap,
            statistic.tested(stay, swap, table.multiplicities),
            alternative=alternative,
            multiplicities=table.multiplicities,
            mid_p=mid_p,
            method=method,
            n_samples=n_samples,
            seed=seed,
            exceedances=exceedances,
        )
    except UndefinedStatisticError as error:
        if statistic.contrast != "log ratio":
            raise
        raise UndefinedStatisticError(
            f"some swaps of outputs make a score by `{statistic.name}` 0 in one of the runs, of which"
            " `contrast: log ratio` cannot take the logarithm",
            hint=_RATIO_HINT,
        ) from error


def _require_defined_scores(statistic: Statistic, table: CountTable) -> None:
    """Refuse two scores that are both 0/0: a declared value would be compared with itself.

    Raises
    ------
    InputError
        If every division is by 0, in both scores and in every stratum or class.
    """
    score, p = statistic.part_score, len(statistic.count_names)
    if not isinstance(score, RationalStatistic) or not score.divisors:
        return
    parts = [totals[i : i + p] for totals in table.totals() for i in range(0, len(totals), p)]
    if all(divisor(part) == 0 for divisor in score.divisors for part in parts):
        given = ", ".join(f"`{name}` is {value!r}" for name, value in statistic.parameters.items())
        raise InputError(
            f"`{statistic.name}` is 0/0 in both runs, so there is nothing to compare",
            hint=f"{given}: does it occur in the data as written?" if given else None,
        )


def _require_ratio(statistic: Statistic, table: CountTable, baseline: RunData, candidate: RunData) -> None:
    """Refuse a log ratio of scores that are not above 0.

    Raises
    ------
    InputError
        If one of the scores is not; says whose.
    """
    if statistic.contrast != "log ratio":
        return
    sides = ("candidate", candidate), ("baseline", baseline)
    for (role, run), totals in zip(sides, table.totals(), strict=True):
        score = score_of(statistic, totals)
        if score is not None and score <= 0:
            raise InputError(
                f"the {role} `{run.table.origin}` has a score of {score:.4g} by `{statistic.name}`, of which"
                " `contrast: log ratio` cannot take the logarithm",
                hint=_RATIO_HINT,
            )
