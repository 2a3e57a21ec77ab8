"""Compare many runs on the same examples: read, pair, test, correct, rank.

Every comparison that was asked for is in the family, and none has a gap: a run that cannot be compared with
all others is not in it at all, and is listed with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trackperm.choices import Alternative, CorrectionOfPairs, Method, MissingOfMany
from trackperm.comparison import reference_answers
from trackperm.comparison.effect import interval_of
from trackperm.errors import CapacityError, InputError
from trackperm.exact import TestOptions
from trackperm.exact.intervals import Interval
from trackperm.exact.multiplicity import Adjustment, adjustment
from trackperm.exact.options import N_SAMPLES
from trackperm.exact.scores.resolution import Resolution
from trackperm.leaderboards.counts import Counted
from trackperm.leaderboards.entrants import Entrants, load_runs
from trackperm.leaderboards.paired_runs import Field, Incomplete, Progress, pair_all
from trackperm.leaderboards.pairs import PairTester
from trackperm.leaderboards.ranking import best_first, ranked_rows, tested_pairs
from trackperm.leaderboards.result import Leaderboard
from trackperm.statistic import Statistic, load_statistic


def leaderboard(
    runs: Sequence[Any] | Mapping[str, Any] = (),
    statistic: str | Path | Statistic = "accuracy",
    *,
    experiment: str | None = None,
    baseline: Any = None,
    correction: CorrectionOfPairs = "holm",
    alternative: Alternative | None = None,
    alpha: float = 0.05,
    intervals: bool = True,
    parameters: Mapping[str, object] | None = None,
    columns: Mapping[str, str] | None = None,
    resolution: Resolution | Mapping[str, Resolution] | None = None,
    artifact: str | None = None,
    labels: str | Path | None = None,
    missing: MissingOfMany = "error",
    by_position: bool = False,
    method: Method = "auto",
    n_samples: int = N_SAMPLES,
    seed: int = 0,
    tracking_uri: str | None = None,
) -> Leaderboard:
    """Compare many runs on the same examples, all with each other or with a baseline.

    Parameters
    ----------
    runs : sequence, or mapping of str to sources
        Sources as in :func:`trackperm.compare`: references, paths, ``FILE::SYSTEM`` or data frames. A mapping
        names them.
    statistic : str, path or Statistic
        Name of a built-in statistic, or the path of a spec. It has to give each run a score.
    experiment : str, optional
        ``mlflow:EXPERIMENT`` or ``wandb:ENTITY/PROJECT``: all finished runs of it, comparisons left out.
    baseline : optional
        One of `runs`, or its name, or a further source: all others are compared with it alone. By default
        all pairs are compared.
    correction : {'holm', 'by', 'bonferroni'}
        For the number of comparisons. Holm and Bonferroni bound the probability of any false difference, of a
        pair whose law does not change under swaps, by `alpha`; Benjamini and Yekutieli the expected share of
        such pairs among those that are called different. See the notes for what that says of signs.
    alternative : {'two-sided', 'less', 'greater'}, optional
        As the spec says by default; one-sided needs a baseline.
    alpha : float
        Level of the verdicts, between 0 and 1.
    intervals : bool
        Whether rows get intervals for the difference to the baseline or the best run.
    parameters, columns, resolution, artifact, labels, by_position, method, n_samples, seed, tracking_uri
        As in :func:`trackperm.compare`.
    missing : {'error', 'drop', 'wrong'}
        What becomes of examples that only some runs have: such runs are listed as incomplete; the examples
        are left out of all runs; or they count as a missing prediction, in every run that lacks them.

    Raises
    ------
    InputError
        If anything about the input cannot be used; subclasses say what.
    TrackerError
        If a tracker cannot be reached or refuses.

    Notes
    -----
    The bounds are proven for differences, under any dependence: a false difference is a pair that is called
    different although its runs are exchangeable on every example. Verdicts and ranges of ranks say more, the
    sign of each difference, and that is also wrong where a worse run is called better. Holm's correction of
    two-sided p-values bounds the probability of any wrong sign too where the tests are independent (Shaffer
    1980, under conditions on their distributions). Pairs that share runs and examples are not independent, so
    that here no proof is known. Bonferroni's bound holds for signs as well, where the one-sided tests are
    valid: each two-sided test is two one-sided ones at half the level, and the halves add up.

    References
    ----------
    Holm (1979); Shaffer (1980), Control of directional errors with stagewise multiple test procedures;
    Benjamini and Yekutieli (2001); Piepho (2004); Al Mohamad, van Zwet, Solari and Goeman (2021).
    """
    options = TestOptions(alternative=alternative, alpha=alpha, method=method, n_samples=n_samples, seed=seed)
    gold = reference_answers(labels, columns or {}, by_position=by_position)
    loaded = load_statistic(
        statistic, parameters=parameters or {}, columns=columns or {}, resolution=resolution
    )
    entrants = load_runs(
        runs,
        baseline=baseline,
        experiment=experiment,
        artifact=artifact,
        gold=gold,
        tracking_uri=tracking_uri,
    )
    return leaderboard_of_runs(
        entrants,
        loaded,
        options,
        correction=correction,
        intervals=intervals,
        missing=missing,
        by_position=by_position,
    )


def leaderboard_of_runs(
    entrants: Entrants,
    statistic: Statistic,
    options: TestOptions | None = None,
    *,
    correction: CorrectionOfPairs = "holm",
    intervals: bool = True,
    missing: MissingOfMany = "error",
    by_position: bool = False,
    progress: Progress | None = None,
) -> Leaderboard:
    """Compare runs that were read before; options as in :func:`leaderboard`."""
    rule = _correction(correction)
    _require_scores(statistic)
    options = (TestOptions() if options is None else options).with_default(statistic.alternative)
    tested, alpha = options.tested, options.alpha
    _require_two_sided(statistic, tested, all_pairs=entrants.baseline is None)
    field = pair_all(
        entrants.runs,
        statistic,
        baseline=entrants.baseline,
        missing=missing,
        by_position=by_position,
        progress=progress,
    )
    test_set = _test_set(field)
    field, counted = _with_scores(field, entrants)
    order = best_first(counted)
    reference = None
    if entrants.baseline is not None:
        reference = next(
            place for place, i in enumerate(order) if counted.entries[i].data.name == entrants.baseline.name
        )
    if progress is not None:
        progress("testing pairs")
    pairs = tested_pairs(PairTester.of(counted, options), order, reference, rule, alpha, statistic)
    against = 0 if reference is None else reference
    found: dict[int, Interval | str] = {}
    sampled = {
        frozenset((pair.candidate, pair.baseline)) for pair in pairs if pair.test.method == "monte-carlo"
    }
    if intervals:
        for place in (place for place in range(len(order)) if place != against):
            if progress is not None:
                progress(f"interval: {counted.entries[order[place]].data.name}")
            interval = _pair_interval(counted, order[place], order[against], alpha=alpha, alternative=tested)
            if isinstance(interval, Interval) and frozenset((place, against)) in sampled:
                interval = replace(interval, relation="may disagree")
            found[place] = interval
    rows, letters_note = ranked_rows(counted, order, pairs, reference, rule, alpha, found)
    used = {"alternative": tested, "alpha": repr(alpha), "correction": rule.name, "missing": missing}
    used |= {"method": options.method}
    if any(pair.test.method == "monte-carlo" for pair in pairs):
        used |= {"n_samples": str(options.n_samples), "seed": str(options.seed)}
    return Leaderboard(
        statistic=counted.statistic,
        rows=rows,
        pairs=pairs,
        incomplete=(*field.incomplete, *entrants.unreadable),
        baseline=reference,
        correction=rule,
        alpha=alpha,
        alternative=tested,
        n_examples=field.n_examples,
        n_largest=field.n_largest,
        missing=missing,
        paired_by="position" if by_position else "id",
        test_set=test_set,
        notes=(*([] if letters_note is None else [letters_note]), *_notes(field, found)),
        options=used,
        digests=tuple(counted.entries[i].pairing.report.candidate_digest for i in order),
    )


def _pair_interval(
    counted: Counted, candidate: int, baseline: int, *, alpha: float, alternative: Alternative
) -> Interval | str:
    """Return the interval that goes with the test of these two runs alone, or why there is none.

    It is that of :func:`~trackperm.comparison.effect.interval_of`: its confidence is that of one interval,
    not of all rows together, and not of a row that was chosen for its score.
    """
    table, statistic = counted.count_table(candidate, baseline)
    try:
        return interval_of(statistic, table, alpha=alpha, alternative=alternative)
    except (InputError, CapacityError) as error:
        return error.message


def _test_set(field: Field) -> str:
    """Return the digest of the examples of the reference run, with the columns that others have as well.

    It is paired with itself, so that its own labels count as checked even where no other run has any.
    """
    reports = [entry.pairing.report for entry in field.entries if entry.data.name != field.reference.name]
    own = [entry.pairing.report for entry in field.entries if entry.data.name == field.reference.name]
    checked = {(report.labels_checked, report.inputs_checked) for report in reports}
    alike = [report for report in own if (report.labels_checked, report.inputs_checked) in checked]
    return (alike or reports or own)[0].test_set


def _correction(name: str) -> Adjustment:
    rule = adjustment(name)
    if rule.valid_under != "any dependence":
        raise InputError(
            f"the correction `{name}` needs {rule.valid_under}, which pairs of runs are not known to have",
            hint="leaderboards use `holm`, `bonferroni` or `by`.",
        )
    return rule


def _require_scores(statistic: Statistic) -> None:
    if statistic.score is None:
        raise InputError(
            f"the statistic `{statistic.name}` compares two runs and gives none of them a score to rank by",
            hint="write its spec with `score:` in place of `g:` and `h:`.",
        )


def _require_two_sided(statistic: Statistic, tested: Alternative, *, all_pairs: bool) -> None:
    if all_pairs and tested != "two-sided":
        raise InputError(
            f"all pairs are compared two-sided, and `{statistic.name}` is to be tested for `{tested}`",
            hint="`--baseline RUN` compares with one run, `--alternative two-sided` tests both directions.",
        )


def _with_scores(field: Field, entrants: Entrants) -> tuple[Field, Counted]:
    """Leave out runs whose score is not defined, or that no other such run can be compared with.

    Raises
    ------
    InputError
        If the baseline is such a run, or fewer than two are left.
    """
    counted = Counted.of(field)
    statistic = field.statistic
    empty = [i for i in range(len(counted)) if counted.is_empty(i)]
    base = entrants.baseline
    reasons: dict[int, str] = {}
    for i, score in enumerate(counted.scores):
        if score is None or not math.isfinite(score):
            reasons[i] = f"`{statistic.name}` gives it no score"
        elif statistic.contrast == "log ratio" and score <= 0:
            reasons[i] = f"its score is {score:.4g}, of which `contrast: log ratio` takes no logarithm"
        elif i in empty and len(empty) > 1:
            reasons[i] = f"`{statistic.name}` is 0/0 in it and in others, so that they cannot be compared"
    is_base = [base is not None and entry.data.name == base.name for entry in field.entries]
    if any(is_base) and is_base.index(True) in reasons:
        place = is_base.index(True)
        if place not in empty:
            raise InputError(
                f"the baseline `{field.entries[place].data.name}` cannot be used: {reasons[place]}"
            )
        del reasons[place]
    elif base is not None:
        reasons = {i: reason for i, reason in reasons.items() if i not in empty or _unscored(counted, i)}
    if not reasons:
        return field, counted
    lost = tuple(
        Incomplete(field.entries[i].data.name, field.entries[i].data.table.origin, reason)
        for i, reason in reasons.items()
    )
    kept = tuple(entry for i, entry in enumerate(field.entries) if i not in reasons)
    if len(kept) < 2:
        listed = "\n".join(f"    {run.name}: {run.reason}" for run in (*field.incomplete, *lost))
        raise InputError(f"a leaderboard needs two runs with a score\n\n{listed}")
    field = replace(field, entries=kept, incomplete=(*field.incomplete, *lost))
    return field, Counted.of(field)


def _unscored(counted: Counted, i: int) -> bool:
    score = counted.scores[i]
    return score is None or not math.isfinite(score)


def _notes(field: Field, intervals: Mapping[int, Interval | str]) -> list[str]:
    """Say once what is so of all runs, and by run what is not."""
    others = [entry for entry in field.entries if entry.data.name != field.reference.name]
    of_run = [dict.fromkeys(entry.pairing.report.notes) for entry in others]
    shared = [note for note in of_run[0] if all(note in notes for notes in of_run)]
    notes = list(shared)
    for entry, own in zip(others, of_run, strict=True):
        notes += [f"{entry.data.name}: {note}" for note in own if note not in shared]
    if others and not others[0].pairing.report.labels_checked:
        notes.insert(0, "labels were not compared: not all runs have them")
    refused = {reason for reason in intervals.values() if isinstance(reason, str)}
    return [*notes, *(f"no interval: {reason}" for reason in sorted(refused))]
