"""Plans from the comparisons that a tracker has: how often runs disagreed on a test set before.

How many examples it takes depends on how often two runs disagree, of which one pilot says little. Everything
that was compared on the same test set says more: the least, the median and the greatest discordance give a
range. What was logged is read back as counts, so that a share is of the examples that the statistic counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trackperm.choices import Alternative
from trackperm.comparison import count_table_test
from trackperm.comparison.sample_size import Plan, null_deviation, paired_discordance, plan_from_counts
from trackperm.errors import InputError, SourceError
from trackperm.exact import CountTable, TestOptions
from trackperm.exact.power.simulated import N_RESAMPLES
from trackperm.ledger import TestFamily, families
from trackperm.ledger.verification.files import (
    COUNTS,
    SPEC,
    UNREADABLE,
    read_count_table,
    read_result,
    read_spec,
)
from trackperm.messages import listed
from trackperm.statistic import Statistic
from trackperm.trackers.base import Tracker
from trackperm.trackers.publication import COMPARISON, LoggedComparison

_STATISTIC, _SLICE = "trackperm.statistic", "trackperm.slice"
_DIGEST = 12  # digits of a test set that are shown
_HINT = "`trackperm compare` logs them; `trackperm power --difference 0.03 --discordance 0.1` plans without."


@dataclass(frozen=True)
class PastPlan:
    """What it takes, by all that was compared on a test set before.

    Attributes
    ----------
    statistic, test_set : str
        Its name, and the digest of the examples.
    n_comparisons : int
        Past comparisons that this is over; two of the same data are one.
    discordances : tuple of float or None
        For 0/1 scores, in each the share of examples on which exactly one run is right, in ascending order.
    least, median, greatest : Plan or None
        By the past comparison of the least, the median (of an even number, the upper one) and the greatest
        discordance; for other statistics, standard deviation of the null distribution per example. None where
        so little cannot make the difference.
    notes : tuple of str
        What was left out, and why.
    """

    statistic: str
    test_set: str
    n_comparisons: int
    discordances: tuple[float, ...] | None
    least: Plan | None
    median: Plan | None
    greatest: Plan
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Say it in lines for a terminal."""
        n = self.n_comparisons
        found = [
            f"{n} past comparison{'s' * (n != 1)} by {self.statistic} on test set {self.test_set[:_DIGEST]}"
        ]
        shares = self.discordances
        if shares is not None and n > 1:
            found[0] += f": discordance {shares[0]:.4g} to {shares[-1]:.4g}"
            found[0] += f", median {shares[n // 2]:.4g}" if n > 2 else ""
        named = {"least": self.least, "median": self.median, "greatest": self.greatest}
        shown = {1: ("greatest",), 2: ("least", "greatest")}.get(n, tuple(named))
        for name in shown:
            plan, label = named[name], f"{name}: " if n > 1 else ""
            if plan is None:
                found.append(f"{label}runs that disagree so little cannot differ by so much")
                continue
            first, *others = plan.lines()
            found += [f"{label}{first}", *(f"  {line}" for line in others)]
        return [*found, *self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True)
class _Past:
    """The counts of a past comparison, and how far they spread.

    Attributes
    ----------
    share : float or None
        The discordance, for 0/1 scores.
    deviation : float
        sqrt(n) times the standard deviation of the null distribution, the largest difference that such
        examples can show; for 0/1 scores the square root of the discordance.
    """

    statistic: Statistic
    table: CountTable
    share: float | None
    deviation: float

    @property
    def largest(self) -> float:
        """The largest difference that the examples can show, if all that differ point the same way."""
        return self.deviation if self.share is None else self.share

    @classmethod
    def of(cls, statistic: Statistic, table: CountTable) -> _Past:
        if not table.n_discordant:
            return cls(statistic, table, 0.0, 0.0)
        share, _ = paired_discordance(statistic, table)
        if share is not None:
            return cls(statistic, table, share, math.sqrt(share))
        deviation = null_deviation(statistic, table) * math.sqrt(table.n_examples)
        return cls(statistic, table, None, deviation)


def plan_from_past(
    tracker: Tracker,
    container: str,
    statistic: str = "accuracy",
    *,
    difference: float,
    test_set: str | None = None,
    n_examples: int | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> PastPlan:
    """Plan from the comparisons that are logged in an experiment or project.

    Exact for 0/1 scores. For other statistics by the normal approximation, and by resampling the logged
    counts of the three comparisons that are named.

    Parameters
    ----------
    tracker : Tracker
        As :func:`trackperm.open_tracker` opens it.
    container : str
        Experiment, project or folder of offline runs.
    statistic : str
        Name of the statistic that was logged.
    difference : float
        The difference to be seen.
    test_set : str, optional
        First digits of the digest of a test set, one of a slice too; needed where several were compared on.
    n_examples, power, alpha, n_resamples, seed
        As in :func:`plan_from_counts`.
    alternative : {'two-sided', 'less', 'greater'}
        Of the test that is planned for; the past ones may have had others.

    Raises
    ------
    InputError
        If nothing was logged that a plan can be made from, or several test sets were compared on, or no past
        comparison disagreed often enough for the difference.
    TrackerError
        If the tracker cannot be reached or refuses.
    CapacityError
        If it takes too many examples.
    """
    comparisons = [each for each in tracker.comparisons(container) if each.kind == COMPARISON]
    family = _family(comparisons, container, statistic, test_set)
    found, notes = _read(tracker, family)
    if not found:
        raise InputError(
            f"no counts of {len(family.entries)} comparisons by `{statistic}` in `{container}` can be read"
            + "".join(f"; {note}" for note in notes),
            hint=_HINT,
        )
    found.sort(key=lambda past: past.deviation)
    if not abs(difference) <= found[-1].largest:
        raise InputError(
            f"`difference` is {difference}, and runs that disagree as in the {len(found)} past comparisons by"
            f" `{statistic}` differ by {found[-1].largest:.3g} at most",
            hint="a smaller `--difference` can be planned for.",
        )
    plans = {
        i: plan_from_counts(
            found[i].statistic,
            found[i].table,
            count_table_test(found[i].statistic, found[i].table, TestOptions(alternative=alternative)),
            difference,
            n_examples=n_examples,
            power=power,
            alpha=alpha,
            n_resamples=n_resamples,
            seed=seed,
        )
        for i in {0, len(found) // 2, len(found) - 1}
        if abs(difference) <= found[i].largest
    }
    shares = tuple(past.share for past in found if past.share is not None)
    return PastPlan(
        statistic,
        family.test_set,
        len(found),
        shares if len(shares) == len(found) else None,
        least=plans.get(0),
        median=plans.get(len(found) // 2),
        greatest=plans[len(found) - 1],
        notes=tuple(notes),
    )


def _family(
    logged: Sequence[LoggedComparison], container: str, statistic: str, test_set: str | None
) -> TestFamily:
    """Choose the comparisons by a statistic on one test set; a slice is a test set of its own."""
    names = sorted({each.tags[_STATISTIC] for each in logged if _STATISTIC in each.tags})
    if not names:
        raise InputError(
            f"no comparison is logged in `{container}`, so that nothing tells how often runs disagree",
            hint=_HINT,
        )
    chosen = [each for each in logged if each.tags.get(_STATISTIC) == statistic]
    if not chosen:
        raise InputError(
            f"no comparison by `{statistic}` is logged in `{container}`",
            hint=f"comparisons there are by {listed(names)}; `--statistic` chooses one.",
        )
    whole = [each for each in chosen if test_set is not None or _SLICE not in each.tags]
    found = [each for each in families(whole) if each.test_set.startswith(test_set or "")]
    if len(found) == 1:
        return found[0]
    sets = [f"{each.test_set[:_DIGEST]} ({len(each.entries)})" for each in found or families(chosen)]
    if not sets:
        raise InputError(
            f"the comparisons by `{statistic}` in `{container}` say no test set, as those of older versions",
            hint="`trackperm compare` brings one up to date where it compares the same runs again.",
        )
    problem = f"are on {len(found)} test sets" if found else "are on no such test set"
    if not found and test_set is None:
        problem = "are of slices alone"
    raise InputError(
        f"the comparisons by `{statistic}` in `{container}` {problem}",
        hint=f"`--test-set` chooses one, with so many comparisons each: {listed(sets)}.",
    )


def _read(tracker: Tracker, family: TestFamily) -> tuple[list[_Past], list[str]]:
    """Read the counts of a family, those of the newest spec, and say what was left out."""
    found: dict[frozenset[str], _Past] = {}
    left_out = Counter[str]()
    left_out["unfinished"] = len(family.entries) - len(family.finished)
    document = None
    for entry in reversed(family.finished):
        try:
            files = tracker.files(entry.run)
        except SourceError:
            files = {}
        try:
            data = read_result(files)
            statistic = read_spec(files[SPEC], data)
            of_both = frozenset(str(data["pairing"][f"{run}_digest"]) for run in ("baseline", "candidate"))
            document = document or statistic.document()
            if statistic.document() != document:
                left_out["by another spec of that name than the newest"] += 1
            elif of_both not in found:  # other options, or the other way round
                found[of_both] = _Past.of(statistic, read_count_table(files[COUNTS], statistic))
        except UNREADABLE:
            left_out["without counts to plan from"] += 1
    notes = [f"not among them: {n} {why}" for why, n in left_out.items() if n]
    return list(found.values()), notes
