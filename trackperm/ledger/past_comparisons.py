"""Sample sizes from past comparisons: how often runs disagreed on a test set before.

The number of examples that a comparison needs depends on how often two runs disagree. A single pilot
estimates this poorly; all comparisons on the same test set say more: the least, the median and the greatest
discordance give a range. The logged counts are read back, so that a share refers to the examples that the
statistic counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trackperm.choices import Alternative
from trackperm.comparison import count_table_test
from trackperm.comparison.planning.planned_unit import PlannedUnit
from trackperm.comparison.planning.sample_size import (
    Plan,
    null_deviation,
    paired_discordance,
    plan_from_counts,
)
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
from trackperm.messages import amount, listed
from trackperm.statistic import Statistic
from trackperm.statistic.written_spec import written_spec
from trackperm.trackers.base import Tracker
from trackperm.trackers.publication import COMPARISON, LoggedComparison

_STATISTIC, _SLICE = "trackperm.statistic", "trackperm.slice"
_DIGEST = 12  # digits of a test set
_HINT = (
    "`trackperm compare` logs comparisons; `trackperm power --difference 0.03 --discordance 0.1` needs none."
)


@dataclass(frozen=True)
class PastPlan:
    """Sample sizes from all past comparisons on a test set.

    Attributes
    ----------
    statistic, test_set : str
        Name of the statistic, and digest of the examples.
    n_comparisons : int
        Number of past comparisons; two comparisons of the same data count as one.
    discordances : tuple of float or None
        For 0/1 scores, the shares of examples on which exactly one run is right, in ascending order.
    least, median, greatest : Plan or None
        Plans from the past comparisons with the least, the median (of an even number, the upper one) and the
        greatest discordance; for other statistics, the standard deviation of the null distribution per
        example decides. None if runs that disagree so little cannot differ by the difference.
    notes : tuple of str
        Comparisons that were left out, and why.
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
        """Return the plans as lines for a terminal."""
        n = self.n_comparisons
        past = amount(n, "past comparison")
        found = [f"{past} by {self.statistic} on test set {self.test_set[:_DIGEST]}"]
        shares = self.discordances
        if shares is not None and n > 1:
            ends = dict.fromkeys(f"{share:.4g}" for share in (shares[0], shares[-1]))
            found[0] += f": discordance {' to '.join(ends)}"
            found[0] += f", median {shares[n // 2]:.4g}" if n > 2 and len(ends) > 1 else ""
        named = {"least": self.least, "median": self.median, "greatest": self.greatest}
        shown = {1: ("greatest",), 2: ("least", "greatest")}.get(n, tuple(named))
        if self.least is not None and self.least.lines() == self.greatest.lines():
            shown = ("greatest",)
        for name in shown:
            plan, label = named[name], f"{name}: " if len(shown) > 1 else ""
            if plan is None:
                found.append(f"{label}the difference is larger than these runs could show")
                continue
            first, *others = plan.lines()
            found += [f"{label}{first}", *(f"  {line}" for line in others)]
        return [*found, *self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return the plans as JSON values."""
        plans = {"least": self.least, "median": self.median, "greatest": self.greatest}
        written = {name: None if plan is None else plan.to_dict() for name, plan in plans.items()}
        return {**asdict(self), **written}


@dataclass(frozen=True)
class _Past:
    """Counts of a past comparison, and their spread.

    Attributes
    ----------
    share : float or None
        Discordance, for 0/1 scores.
    deviation : float
        sqrt(n) times the standard deviation of the null distribution: for 0/1 scores the square root of the
        discordance, for others the largest difference that such examples can show.
    """

    statistic: Statistic
    table: CountTable
    share: float | None
    deviation: float
    unit: PlannedUnit

    @property
    def largest(self) -> float:
        """Largest difference that the examples can show, if all discordant ones favour the same run."""
        return self.deviation if self.share is None else self.share

    @classmethod
    def of(cls, statistic: Statistic, table: CountTable, n_paired: int) -> _Past:
        unit = PlannedUnit.of(statistic, table.n_examples, n_paired)
        if not table.n_discordant:
            return cls(statistic, table, 0.0, 0.0, unit)
        share, _ = paired_discordance(statistic, table)
        if share is not None:
            return cls(statistic, table, share, math.sqrt(share), unit)
        deviation = null_deviation(statistic, table) * math.sqrt(table.n_examples)
        return cls(statistic, table, None, deviation, unit)


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
    """Plan from the comparisons that are logged in an experiment or project; options as in ``power``.

    Plans are exact for 0/1 scores. For other statistics they use the normal approximation, and resample the
    logged counts of the three chosen comparisons. `test_set` may also be the digest of a slice. The
    alternative is that of the planned test; past tests may have had others.

    Raises
    ------
    InputError
        If no suitable comparison is logged, there are several test sets, or no past comparison disagreed
        often enough for the difference.
    TrackerError
        If the tracker cannot be reached or refuses.
    CapacityError
        If too many examples are needed.
    """
    comparisons = [each for each in tracker.comparisons(container) if each.kind == COMPARISON]
    family = _family(comparisons, container, statistic, test_set)
    found, notes = _read(tracker, family)
    if not found:
        raise InputError(
            f"none of {len(family.entries)} comparisons by `{statistic}` in `{container}` has readable counts"
            + "".join(f"; {note}" for note in notes),
            hint=_HINT,
        )
    found.sort(key=lambda past: past.deviation)
    if not abs(difference) <= found[-1].largest:
        raise InputError(
            f"`difference` is {difference}; expected at most {found[-1].largest:.3g}, the largest that the"
            f" {len(found)} past comparisons by `{statistic}` could show",
            hint="choose a smaller `--difference`.",
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
            unit=found[i].unit,
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
    """Return the comparisons by a statistic on one test set; a slice is a test set too."""
    names = sorted({each.tags[_STATISTIC] for each in logged if _STATISTIC in each.tags})
    if not names:
        raise InputError(
            f"no comparison is logged in `{container}`, so the discordance is unknown",
            hint=_HINT,
        )
    chosen = [each for each in logged if each.tags.get(_STATISTIC) == statistic]
    if not chosen:
        raise InputError(
            f"no comparison by `{statistic}` is logged in `{container}`",
            hint=f"choose one of {listed(names)} by `--statistic`.",
        )
    whole = [each for each in chosen if test_set is not None or _SLICE not in each.tags]
    found = [each for each in families(whole) if each.test_set.startswith(test_set or "")]
    if len(found) == 1:
        return found[0]
    sets = [f"{each.test_set[:_DIGEST]} ({len(each.entries)})" for each in found or families(chosen)]
    problem = f"are on {len(found)} test sets" if found else "are on other test sets"
    if not found and test_set is None:
        problem = "are comparisons of slices only"
    raise InputError(
        f"the comparisons by `{statistic}` in `{container}` {problem}",
        hint=f"choose one by `--test-set`; the test sets, with their numbers of comparisons: {listed(sets)}.",
    )


def _read(tracker: Tracker, family: TestFamily) -> tuple[list[_Past], list[str]]:
    """Return the counts of a family's comparisons by the newest spec, and notes on what was left out."""
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
            document = document or written_spec(statistic)
            if written_spec(statistic) != document:
                left_out["by an older spec of that name"] += 1
            elif of_both not in found:  # the same runs may be compared with other options, or exchanged
                table = read_count_table(files[COUNTS], statistic)
                found[of_both] = _Past.of(statistic, table, int(data["pairing"]["n_paired"]))
        except UNREADABLE:
            left_out["without readable counts"] += 1
    notes = [f"left out: {n} {why}" for why, n in left_out.items() if n]
    return list(found.values()), notes
