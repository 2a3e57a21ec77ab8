"""``trackperm.leaderboard``: test, correct and rank many runs on the same examples.

The family of tests contains every pair of the ranked runs. A run that cannot be compared with all others is
excluded from the ranking, and is listed with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from trackperm.choices import Alternative, CorrectionOfPairs, Method, MissingOfMany, Repeats, Unit
from trackperm.comparison import Question, reference_answers
from trackperm.comparison.argument_types import require_types, with_known_options
from trackperm.comparison.single import ROUNDED_AWAY
from trackperm.errors import InputError, InputTypeError
from trackperm.exact import TestOptions
from trackperm.exact.multiplicity import Correction, adjustment
from trackperm.exact.options import MEMORY_BUDGET, bytes_of, require_choice
from trackperm.exact.outcome import n_requested
from trackperm.exact.scores.resolution import Resolution
from trackperm.leaderboards.clusters_seen import clusters_seen
from trackperm.leaderboards.intervals import interval_level, intervals_of_rows
from trackperm.leaderboards.loaded_runs import LoadedRuns, load_runs
from trackperm.leaderboards.notes import notes_of
from trackperm.leaderboards.paired_runs import ExcludedRun, PairedRuns, Progress, pair_all
from trackperm.leaderboards.pairs import PairTester
from trackperm.leaderboards.ranking import best_first, ranked_rows, tested_pairs
from trackperm.leaderboards.reference_run import extended
from trackperm.leaderboards.result import Leaderboard, Pair
from trackperm.leaderboards.run_counts import RunCounts
from trackperm.messages import echoed, listed
from trackperm.pairing import PairingReport
from trackperm.pairing.pair import pair_in_memory
from trackperm.statistic import Statistic


@with_known_options
def leaderboard(
    runs: Sequence[Any] | Mapping[str, Any] = (),
    statistic: str | Path | Statistic | None = None,
    *,
    metric: str | None = None,
    experiment: str | None = None,
    baseline: Any = None,
    correction: CorrectionOfPairs = "holm",
    alternative: Alternative | None = None,
    alpha: float = 0.05,
    intervals: bool = True,
    unit: Unit | None = None,
    repeats: Repeats | None = None,
    cluster: str | None = None,
    allow_unseen: bool = False,
    parameters: Mapping[str, object] | None = None,
    columns: Mapping[str, str] | None = None,
    resolution: Resolution | Mapping[str, Resolution] | None = None,
    artifact: str | None = None,
    labels: Any = None,
    missing: MissingOfMany = "error",
    by_position: bool = False,
    method: Method = "auto",
    n_samples: int | None = None,
    seed: int = 0,
    memory_budget: int | str = MEMORY_BUDGET,
    tracking_uri: str | None = None,
) -> Leaderboard:
    """Compare many runs on the same examples, all with each other or with a baseline.

    Use :func:`trackperm.compare` for two runs, for slices or several statistics, and for worst and best cases
    of missing predictions. This function logs nothing; :func:`trackperm.log` writes the result.

    Parameters
    ----------
    runs : sequence, or mapping of str to sources
        Sources as in :func:`trackperm.compare`: references, paths, ``FILE::SYSTEM`` or data frames. The keys
        of a mapping are the names of the runs. Used columns are read into memory, also from Spark.
    statistic : str, path or Statistic, optional
        Name of a built-in statistic, or the path of a spec. It has to give each run a score. By default, it
        is inferred from the runs as in :func:`trackperm.compare`, and has to be a single one.
    metric : str, optional
        A metric of the runs, or a column that scores each example, whose mean is compared; or a value of a
        column, as ``verdict=CORRECT`` or ``verdict!=WRONG``, whose share of the examples is compared.
    experiment : str, optional
        ``mlflow:EXPERIMENT`` or ``wandb:ENTITY/PROJECT``: all of its finished runs, except comparisons.
    baseline : optional
        One of `runs`, or its name, or a further source; all others are compared with it only. By default, all
        pairs are compared.
    correction : {'holm', 'by', 'bonferroni'}
        Correction for the number of comparisons. Holm and Bonferroni bound the probability of any false
        difference by `alpha`: of calling exchangeable runs different. Benjamini and Yekutieli bound the
        expected share of false differences among those called different. See the notes for signs.
    alternative : {'two-sided', 'less', 'greater'}, optional
        By default that of the spec; a one-sided alternative needs a baseline.
    alpha : float
        Level of the verdicts, between 0 and 1.
    intervals : bool
        Whether rows get intervals for the difference to the baseline or the best run, at the level of the
        corrected verdicts; see :mod:`trackperm.leaderboards.intervals`.
    unit, repeats, cluster, allow_unseen, parameters, columns, resolution, artifact, labels, by_position
        As in :func:`trackperm.compare`.
    method, n_samples, seed, memory_budget, tracking_uri
        As in :func:`trackperm.compare`.
    missing : {'error', 'drop', 'wrong'}
        Treatment of examples that only some runs have. ``error`` lists runs without them as incomplete,
        ``drop`` leaves them out of all runs, and ``wrong`` counts them as missing predictions in every run
        that lacks them.

    Raises
    ------
    InputError
        If any part of the input cannot be used; subclasses name the problem.
    TrackerError
        If a tracker cannot be reached or refuses the request.

    Notes
    -----
    The bounds are proven for differences, under any dependence. A false difference is a pair that is called
    different although its runs are exchangeable on every example. Verdicts and ranges of ranks also claim the
    sign of each difference, which can be wrong if a worse run is called better. Holm's correction of
    two-sided p-values also bounds the probability of any wrong sign if the tests are independent (Shaffer
    1980, under conditions on their distributions). Pairs that share runs and examples are not independent, so
    that no proof is known for leaderboards. Bonferroni's bound also holds for signs if the one-sided tests
    are valid: each two-sided test consists of two one-sided tests at half the level, and the halves add up.

    References
    ----------
    Holm (1979); Shaffer (1980), Control of directional errors with stagewise multiple test procedures;
    Benjamini and Yekutieli (2001); Piepho (2004); Al Mohamad, van Zwet, Solari and Goeman (2021).

    Examples
    --------
    >>> runs = {"old": "baseline.parquet", "new": "candidate.parquet"}
    >>> board = trackperm.leaderboard(runs, "accuracy")
    >>> [(row.rank, row.name, row.letters) for row in board.rows]
    [(1, 'new', 'a'), (2, 'old', 'b')]
    >>> round(board.pair("old", "new").adjusted, 5)
    0.00335
    """
    options = TestOptions(
        alternative=alternative,
        alpha=alpha,
        method=method,
        n_samples=n_samples,
        seed=seed,
        memory_budget=bytes_of(memory_budget),
    )
    _require_types(
        runs,
        metric=metric,
        experiment=experiment,
        intervals=intervals,
        artifact=artifact,
        parameters=parameters,
        columns=columns,
        missing=missing,
        tracking_uri=tracking_uri,
    )
    references = reference_answers(labels, columns or {}, by_position=by_position)
    question = Question(
        statistics=() if statistic is None else (statistic,),
        metrics=() if metric is None else (metric,),
        parameters=parameters or {},
        columns=columns or {},
        resolution=resolution,
        unit=unit,
        repeats=repeats,
        cluster=cluster,
        by_position=by_position,
        allow_unseen=allow_unseen,
    )
    question.require_loadable()
    loaded = load_runs(
        runs,
        baseline=baseline,
        experiment=experiment,
        artifact=artifact,
        references=references,
        tracking_uri=tracking_uri,
    )
    return leaderboard_of_runs(
        loaded,
        question.statistic_of([run.table for run in loaded.runs], check_labels=False),
        options,
        correction=correction,
        intervals=intervals,
        missing=missing,
        by_position=by_position,
        allow_unseen=allow_unseen,
    )


def _require_types(runs: object, **options: object) -> None:
    """Refuse runs that are not several, and options of other types than they take."""
    if not isinstance(runs, Iterable) or isinstance(runs, str | bytes) or hasattr(runs, "columns"):
        raise InputTypeError(
            f"`runs` is {echoed(runs)}; expected a list of runs, or a mapping of names to runs",
            hint='`trackperm.leaderboard(["a.csv", "b.csv"])`, for example.',
        )
    require_types(**options)


def leaderboard_of_runs(
    loaded: LoadedRuns,
    statistic: Statistic,
    options: TestOptions | None = None,
    *,
    correction: CorrectionOfPairs = "holm",
    intervals: bool = True,
    missing: MissingOfMany = "error",
    by_position: bool = False,
    allow_unseen: bool = False,
    progress: Progress = lambda _: None,
) -> Leaderboard:
    """Rank loaded runs; options as in :func:`leaderboard`."""
    why = "pairs that share a run are dependent; these corrections are valid under any dependence."
    require_choice("correction", correction, get_args(CorrectionOfPairs), hint=why)
    rule = adjustment(correction)
    options = (TestOptions() if options is None else options).with_default(statistic.alternative)
    tested, alpha = options.tested, options.alpha
    _require_rankable(statistic, tested, all_pairs=loaded.baseline is None)
    paired = pair_all(
        loaded.runs,
        statistic,
        baseline=loaded.baseline,
        missing=missing,
        by_position=by_position,
        allow_unseen=allow_unseen,
        progress=progress,
    )
    test_set = _test_set(paired, missing)
    paired, counted = _with_scores(paired, loaded)
    order = best_first(counted)
    reference = None
    if loaded.baseline is not None:
        reference = next(
            place for place, i in enumerate(order) if counted.entries[i].data.name == loaded.baseline.name
        )
    progress("testing pairs")
    pairs = tested_pairs(PairTester.of(counted, options), order, reference, rule, alpha, statistic)
    level = interval_level(rule, pairs, alpha)
    against = 0 if reference is None else reference
    of_reference = [pair for pair in pairs if intervals and pair.baseline == against]
    found = intervals_of_rows(of_reference, counted, order, options, level, progress)
    rows, letters_note = ranked_rows(counted, order, pairs, reference, rule, alpha, found)
    return Leaderboard(
        statistic=counted.statistic,
        rows=rows,
        pairs=pairs,
        incomplete=(*paired.incomplete, *loaded.unreadable),
        baseline=reference,
        correction=rule,
        alpha=alpha,
        alternative=tested,
        interval_level=level,
        n_examples=paired.n_examples,
        n_largest=paired.n_largest,
        missing=missing,
        paired_by="position" if by_position else "id",
        test_set=test_set,
        notes=(
            *([] if letters_note is None else [letters_note]),
            *notes_of(paired, {counted.entries[order[place]].data.name: why for place, why in found.items()}),
            *clusters_seen(paired),
        ),
        options=_options_used(options, rule, missing, pairs),
        digests=tuple(counted.entries[i].pairing.report.candidate_digest for i in order),
    )


def _options_used(
    options: TestOptions, rule: Correction, missing: MissingOfMany, pairs: Sequence[Pair]
) -> dict[str, str]:
    """Return the options with which the pairs were tested, as text for logs."""
    used = {"alternative": options.tested, "alpha": repr(options.alpha), "correction": rule.name}
    used |= {"missing": missing, "method": options.method}
    numbers = {n_requested(pair.test, options) for pair in pairs} - {None}
    if numbers:
        used |= {"n_samples": listed(map(str, sorted(filter(None, numbers)))), "seed": str(options.seed)}
    return used


def _test_set(paired: PairedRuns, missing: MissingOfMany) -> str:
    """Return the digest of the examples that any run has, with the columns that the runs share.

    It is that of a pair if the pair has all of these examples. The pairing of the reference run with itself
    checks its labels even if no other run has any. That pairing is therefore used only if another run had the
    same checks.
    """
    others = [entry for entry in paired.entries if entry.data.name != paired.reference.name]
    own = [entry for entry in paired.entries if entry.data.name == paired.reference.name]
    checked = {_checks(entry.pairing.report) for entry in others}
    same = [entry for entry in own if _checks(entry.pairing.report) in checked]
    chosen = (same or others or own)[0]
    further = [entry for entry in others if _n_further(entry.pairing.report)]
    if missing != "drop" or not further:
        return chosen.pairing.report.test_set
    table = paired.reference.table
    for entry in sorted(further, key=lambda entry: entry.pairing.report.candidate_digest):
        table = extended(table, entry.data.table, paired.statistic, by_position=False)
    return pair_in_memory(table, chosen.data.table, paired.statistic, missing="drop").report.test_set


def _checks(report: PairingReport) -> tuple[bool, tuple[str, ...]]:
    return report.labels_checked, report.inputs_checked


def _n_further(report: PairingReport) -> int:
    """Return how many examples the candidate has that the baseline lacks."""
    return report.n_dropped - (report.n_baseline - report.n_paired)


def _require_rankable(statistic: Statistic, tested: Alternative, *, all_pairs: bool) -> None:
    if not statistic.has_score:
        raise InputError(
            f"the statistic `{statistic.name}` has no score of a single run, which a ranking needs",
            hint="write its spec with `score:` in place of `g:` and `h:`.",
        )
    if statistic.repeats == "attempts":
        raise InputError(
            "leaderboards exchange whole examples; `--unit attempt` exchanges attempts within examples",
            hint="use `--repeats mean`, or `trackperm compare` for two runs.",
        )
    if all_pairs and tested != "two-sided":
        raise InputError(
            f"the alternative of `{statistic.name}` is `{tested}`; expected `two-sided` for all pairs",
            hint="compare with one run by `--baseline RUN`, or use `--alternative two-sided`.",
        )


def _with_scores(paired: PairedRuns, loaded: LoadedRuns) -> tuple[PairedRuns, RunCounts]:
    """Exclude runs whose score is undefined, or is 0/0 like that of another run; refuse such a baseline."""
    counted = RunCounts.of(paired)
    statistic = paired.statistic
    empty = [i for i in range(len(counted)) if counted.is_empty(i)]
    base = loaded.baseline
    reasons: dict[int, str] = {}
    for i, score in enumerate(counted.scores):
        if counted.is_rounded_away(i):
            reasons[i] = f"`{statistic.name}` {ROUNDED_AWAY}"
        elif score is None or not math.isfinite(score):
            reasons[i] = f"its score `{statistic.name}` is undefined"
        elif statistic.contrast == "log ratio" and score <= 0:
            reasons[i] = f"its score is {score:.4g}; `contrast: log ratio` needs a score above 0"
        elif i in empty and len(empty) > 1:
            reasons[i] = f"`{statistic.name}` is 0/0 in this run and in others, which cannot be compared"
    is_base = [base is not None and entry.data.name == base.name for entry in paired.entries]
    if any(is_base) and is_base.index(True) in reasons:
        place = is_base.index(True)
        if place not in empty:
            raise InputError(
                f"the baseline `{paired.entries[place].data.name}` cannot be used: {reasons[place]}"
            )
        del reasons[place]
    elif base is not None:
        reasons = {i: reason for i, reason in reasons.items() if i not in empty or _unscored(counted, i)}
    if not reasons:
        return paired, counted
    lost = tuple(
        ExcludedRun(paired.entries[i].data.name, paired.entries[i].data.table.origin, reason)
        for i, reason in reasons.items()
    )
    kept = tuple(entry for i, entry in enumerate(paired.entries) if i not in reasons)
    if len(kept) < 2:
        reasons_of = "\n".join(f"    {run.name}: {run.reason}" for run in (*paired.incomplete, *lost))
        raise InputError(f"a leaderboard needs two runs with a score\n\n{reasons_of}")
    paired = replace(paired, entries=kept, incomplete=(*paired.incomplete, *lost))
    return paired, RunCounts.of(paired)


def _unscored(counted: RunCounts, i: int) -> bool:
    score = counted.scores[i]
    return score is None or not math.isfinite(score)
