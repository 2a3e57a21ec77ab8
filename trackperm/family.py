"""The ledger: what was compared on a test set before, as the tracker has it.

Every logged comparison carries the digest of its test set. All with the same one in an experiment or project
are a family, whatever their statistic and runs. It is made anew from the runs each time and stored nowhere,
so that writers cannot get in each other's way; what was deleted, never logged, or logged elsewhere is unseen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from trackperm.comparison import Comparison
from trackperm.exact.alpha_spending import ALPHA_SPENDING, adjust_spending_log10
from trackperm.exact.multiplicity import Correction, adjust_log10, adjustment
from trackperm.publish import LOG10_P_TAG, OPINIONS_TAG, publication
from trackperm.trackers.base import (
    KEY_TAG,
    TEST_SET_TAG,
    LoggedComparison,
    Published,
    TrackedRun,
    Tracker,
)

UNSEEN = (
    "counted is what is logged here: looks that were deleted, not logged, or logged in another experiment or "
    "project are unseen"
)
ADAPTIVE = (
    "valid for hypotheses that were fixed beforehand, not for candidates that were built or chosen after "
    "looking at this test set"
)
_TRIES = 3
_SETTLING_SECONDS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)
_UNKNOWN = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Look:
    """One logged comparison of a family.

    Attributes
    ----------
    number : int
        Its place by the time when its writing was begun, and by the id of its run where that is the same,
        from 1. An unfinished one has a place too, so that no other changes when it is completed.
    key : str
        Digest of the comparison; several runs with one key are one look.
    run : TrackedRun
        The comparison's own run.
    created : datetime or None
        When its writing was begun; None where it broke off before that was written.
    is_finished : bool
        Whether it was written to its end; one that was not has no p-value here.
    tags : mapping of str to str
        As logged.
    """

    number: int
    key: str
    run: TrackedRun
    created: datetime | None
    is_finished: bool
    tags: Mapping[str, str]

    @property
    def log10_pvalue(self) -> float | None:
        """Decimal logarithm of the p-value; None of an unfinished comparison, or where it cannot be read."""
        try:
            value = float(self.tags[LOG10_P_TAG]) if self.is_finished else math.nan
        except (KeyError, ValueError):
            return None
        return value if math.isfinite(value) and value <= 0.0 else None

    def tag(self, name: str) -> str:
        """Return what is logged as ``trackperm.<name>``, or nothing."""
        return self.tags.get(f"trackperm.{name}", "")


@dataclass(frozen=True)
class Family:
    """All logged comparisons on one test set.

    Attributes
    ----------
    test_set : str
        Digest of the examples; see :func:`trackperm.pairing.test_set.digest_of_test_set`.
    looks : tuple of Look
        In the order of their numbers.
    """

    test_set: str
    looks: tuple[Look, ...]

    @property
    def finished(self) -> tuple[Look, ...]:
        """The looks that enter the adjustment."""
        return tuple(look for look in self.looks if look.is_finished)

    @property
    def unreadable(self) -> tuple[Look, ...]:
        """Finished looks whose p-value cannot be read; a family has no gaps, so they count with p = 1."""
        return tuple(look for look in self.finished if look.log10_pvalue is None)

    def place(self, key: str) -> int | None:
        """Return the number of the comparison with that key, or None where it is not logged."""
        return next((look.number for look in self.looks if look.key == key), None)

    def adjusted(self, method: str = "holm") -> dict[int, float]:
        """Return decimal logarithms of adjusted p-values of the finished looks, by their numbers.

        Raises
        ------
        InputError
            If there is no such method.
        """
        adjusted = adjust_log10([look.log10_pvalue or 0.0 for look in self.finished], method)
        return dict(zip((look.number for look in self.finished), adjusted.tolist(), strict=True))

    def spent(self) -> dict[int, float]:
        """Return decimal logarithms of p-values adjusted by alpha spending, of the finished looks.

        Look i spends its share by its number, so that neither later looks nor the end of an earlier
        unfinished one change it.
        """
        adjusted = adjust_spending_log10([look.log10_pvalue or 0.0 for look in self.looks])
        pairs = zip(self.looks, adjusted.tolist(), strict=True)
        return {look.number: value for look, value in pairs if look.is_finished}

    def to_dict(self, method: str = "holm", *, spend: bool = False) -> dict[str, Any]:
        """Return the family with adjusted p-values as plain values that JSON can hold."""
        columns = {method: self.adjusted(method), **({"spent": self.spent()} if spend else {})}
        corrections = [adjustment(method), *([ALPHA_SPENDING] if spend else [])]
        return {
            "test_set": self.test_set,
            "n_looks": len(self.looks),
            "n_finished": len(self.finished),
            "adjustments": [correction_sentence(each) for each in corrections],
            "notes": self.notes(),
            "comparisons": [
                {
                    "number": look.number,
                    "reference": str(look.run.reference),
                    "name": look.run.name,
                    "created": None if look.created is None else look.created.isoformat(),
                    "finished": look.is_finished,
                    "statistic": look.tag("statistic"),
                    "baseline": look.tag("baseline"),
                    "candidate": look.tag("candidate"),
                    "verdict": look.tag("verdict") if look.is_finished else None,
                    "log10_p": look.log10_pvalue,
                    **{f"log10_p_{name}": values.get(look.number) for name, values in columns.items()},
                    "key": look.key,
                }
                for look in self.looks
            ],
        }

    def notes(self) -> list[str]:
        """Say what a reader of the numbers must know."""
        notes = [ADAPTIVE, UNSEEN]
        if self.unreadable:
            numbers = ", ".join(str(look.number) for look in self.unreadable)
            notes.append(f"no p-value can be read of {numbers}, which count with p = 1")
        mid_p = [str(look.number) for look in self.finished if "|p:mid|" in look.tag("signature")]
        if mid_p:
            notes.append(
                f"mid-p: {', '.join(mid_p)}; adjusted or not, such p-values may be below their level"
            )
        return notes


def correction_sentence(correction: Correction) -> str:
    """Say what a correction controls, and when."""
    return f"{correction.title}: {correction.controls}, valid under {correction.valid_under}"


def families(comparisons: Iterable[LoggedComparison]) -> list[Family]:
    """Group logged comparisons by test set, the one that was looked at first first.

    Those without a test set, which older versions logged, are in none.
    """
    by_test_set: dict[str, list[LoggedComparison]] = {}
    for each in comparisons:
        if TEST_SET_TAG in each.tags:
            by_test_set.setdefault(each.tags[TEST_SET_TAG], []).append(each)
    found = [Family(test_set, _looks(members)) for test_set, members in by_test_set.items()]
    return sorted(found, key=lambda family: (family.looks[0].created or _UNKNOWN, family.test_set))


def without_test_set(comparisons: Iterable[LoggedComparison]) -> list[LoggedComparison]:
    """Return the comparisons that are in no family."""
    return [each for each in comparisons if TEST_SET_TAG not in each.tags]


def log_comparison(
    comparison: Comparison,
    tracker: Tracker,
    container: str | None = None,
    *,
    alert: bool = False,
    tag_runs: bool = False,
) -> Published:
    """Write `comparison` to `tracker`, with its place among the logged ones on its test set.

    The place is read off before writing, and again afterwards: where another writer came first in the
    meantime, the description is brought up to date. Who comes first is settled as in a bakery (Lamport 1974):
    a writer makes its run, then draws a time, and counts when no other run is about to draw one.

    Raises
    ------
    InputError
        If neither the candidate nor `container` says where to write.
    TrackerError
        If the tracker failed; the next call completes what was begun.
    """
    near = comparison.candidate_run if container is None else container
    if near is None or (container is None and comparison.candidate_data.tracker is None):
        return tracker.publish(publication(comparison), container, alert=alert, tag_runs=tag_runs)
    place, size, earlier = _place(comparison, tracker, near)
    if earlier is not None and OPINIONS_TAG in earlier.tags:  # what was asked for once stays there
        comparison = comparison.with_second_opinions()
    expected = place or size + 1
    published = tracker.publish(publication(comparison, expected), container, alert=alert, tag_runs=tag_runs)
    for _ in range(_TRIES):
        place, _, _ = _place(comparison, tracker, near)
        if place in (None, expected):
            break
        expected = place
        again = tracker.publish(publication(comparison, expected), container)
        published = replace(again, created=published.created)
    return replace(published, look=place)


def _place(
    comparison: Comparison, tracker: Tracker, near: TrackedRun | str
) -> tuple[int | None, int, Look | None]:
    """Return the number of a comparison, how many there are on its test set, and its look, if it is there."""
    logged: list[LoggedComparison] = []
    for seconds in _SETTLING_SECONDS:
        time.sleep(seconds)
        logged = tracker.comparisons(near, comparison.pairing.test_set)
        if not any(each.is_beginning and each.tags.get(KEY_TAG) != comparison.key for each in logged):
            break
    test_set = comparison.pairing.test_set
    family = next((each for each in families(logged) if each.test_set == test_set), Family(test_set, ()))
    earlier = next((look for look in family.looks if look.key == comparison.key), None)
    return family.place(comparison.key), sum(look.created is not None for look in family.looks), earlier


def _looks(comparisons: Sequence[LoggedComparison]) -> tuple[Look, ...]:
    """Give comparisons numbers by their beginning; of runs with one key, the newest finished counts."""
    by_key: dict[str, list[LoggedComparison]] = {}
    for each in sorted(comparisons, key=_order):
        by_key.setdefault(each.tags.get(KEY_TAG, str(each.run.reference)), []).append(each)
    looks = []
    for number, (key, runs) in enumerate(by_key.items(), start=1):
        shown = max(runs, key=lambda run: (run.is_finished, *_order(run)))
        looks.append(Look(number, key, shown.run, runs[0].created, shown.is_finished, shown.tags))
    return tuple(looks)


def _order(comparison: LoggedComparison) -> tuple[datetime, str]:
    return comparison.created or _UNKNOWN, comparison.run.reference.locator
