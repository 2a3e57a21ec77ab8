"""The looks at a test set that were logged, in their order, and p-values adjusted for all of them."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import SourceError
from trackperm.exact.multiplicity import Correction, adjust_log10, adjustment
from trackperm.exact.multiplicity.alpha_spending import ALPHA_SPENDING, adjust_spending_log10, spending_levels
from trackperm.ledger.comparison_publication import LOG10_P_TAG
from trackperm.ledger.leaderboard_publication import LOG10_COLUMN, PAIRS_FILE
from trackperm.pairing.digests import SUM
from trackperm.trackers.base import Tracker
from trackperm.trackers.publication import (
    COMPARISON,
    KEY_TAG,
    KIND_TAG,
    LEADERBOARD,
    TEST_SET_TAG,
    LoggedComparison,
)
from trackperm.trackers.references import TrackedRun

UNSEEN = (
    "counted is what is logged here: looks that were deleted, not logged, or logged in another experiment or "
    "project are unseen"
)
ADAPTIVE = (
    "valid for hypotheses that were fixed beforehand, not for candidates that were built or chosen after "
    "looking at this test set"
)
OF_LEADERBOARDS = (
    "a leaderboard counts once for each of its pairs, and is shown with the smallest p-value of them; a pair "
    "that was looked at again counts again"
)
_HALF = 0.5
_UNKNOWN = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class LoggedPair:
    """One pair of a logged leaderboard.

    Attributes
    ----------
    candidate, baseline : str
        References of the two runs.
    log10_pvalue : float
        Decimal logarithm of the p-value, not corrected; its certified upper end where it is not exact.
    """

    candidate: str
    baseline: str
    log10_pvalue: float


@dataclass(frozen=True)
class LedgerEntry:
    """One logged comparison or leaderboard of a family.

    Attributes
    ----------
    number : int
        The place of the comparison, or of the first pair of the leaderboard, by the time when its writing was
        begun, and by the id of its run where that is the same, from 1. An unfinished one has a place too, so
        that no other changes when it is completed.
    key : str
        Digest of the comparison; several runs with one key are one entry.
    run : TrackedRun
        Its own run.
    created : datetime or None
        When its writing was begun; None where it broke off before that was written.
    is_finished : bool
        Whether it was written to its end; one that was not has no p-value here.
    tags : mapping of str to str
        As logged.
    n_pairs : int
        How many hypotheses it is: 1, or the pairs of a leaderboard.
    in_leaderboards : int
        How many of the comparisons before it are pairs of leaderboards.
    pairs : tuple of LoggedPair
        Of a leaderboard, if they were read: see :meth:`TestFamily.with_pairs`.
    """

    number: int
    key: str
    run: TrackedRun
    created: datetime | None
    is_finished: bool
    tags: Mapping[str, str]
    n_pairs: int = 1
    in_leaderboards: int = 0
    pairs: tuple[LoggedPair, ...] = ()

    @property
    def is_leaderboard(self) -> bool:
        """Whether it is a leaderboard."""
        return self.tags.get(KIND_TAG) == LEADERBOARD

    @property
    def log10_pvalue(self) -> float | None:
        """Decimal logarithm of the p-value, the smallest one of a leaderboard.

        None of an unfinished comparison, or where it cannot be read.
        """
        if self.is_leaderboard:
            return min((pair.log10_pvalue for pair in self.pairs), default=None)
        try:
            value = float(self.tags[LOG10_P_TAG]) if self.is_finished else math.nan
        except (KeyError, ValueError):
            return None
        return value if math.isfinite(value) and value <= 0.0 else None

    @property
    def log10_pvalues(self) -> list[float]:
        """Those of all its hypotheses; what cannot be read counts as p = 1."""
        if self.is_leaderboard and self.pairs:
            return [pair.log10_pvalue for pair in self.pairs]
        return [self.log10_pvalue or 0.0] * self.n_pairs

    def tag(self, name: str) -> str:
        """Return what is logged as ``trackperm.<name>``, or nothing."""
        return self.tags.get(f"trackperm.{name}", "")


@dataclass(frozen=True)
class TestFamily:
    """All logged comparisons on one test set.

    Attributes
    ----------
    test_set : str
        Digest of the examples; see :class:`trackperm.pairing.digests.Digests`.
    entries : tuple of LedgerEntry
        In the order of their numbers.
    n_without_test_set : int
        Comparisons of the same experiment that name no test set, as older versions logged them, and are in
        no family.
    """

    __test__ = False  # or test tools would collect it

    test_set: str
    entries: tuple[LedgerEntry, ...]
    n_without_test_set: int = 0

    @property
    def n_comparisons(self) -> int:
        """How many comparisons were logged, each pair of a leaderboard being one."""
        return sum(entry.n_pairs for entry in self.entries)

    @property
    def finished(self) -> tuple[LedgerEntry, ...]:
        """The looks that enter the adjustment."""
        return tuple(entry for entry in self.entries if entry.is_finished)

    @property
    def unreadable(self) -> tuple[LedgerEntry, ...]:
        """Finished entries whose p-value cannot be read; a family has no gaps, so they count with p = 1."""
        return tuple(entry for entry in self.finished if entry.log10_pvalue is None)

    def place(self, key: str) -> int | None:
        """Return the number of the comparison with that key, or None where it is not logged."""
        return next((entry.number for entry in self.entries if entry.key == key), None)

    def with_pairs(self, tracker: Tracker) -> TestFamily:
        """Read the pairs of its leaderboards, without which they count with p = 1.

        Raises
        ------
        TrackerError
            If `tracker`, which has them, cannot be reached or refuses.
        """
        entries = (
            replace(entry, pairs=_pairs(entry, tracker))
            if entry.is_leaderboard and entry.is_finished
            else entry
            for entry in self.entries
        )
        return replace(self, entries=tuple(entries))

    def adjusted(self, method: str = "holm") -> dict[int, float]:
        """Return decimal logarithms of adjusted p-values of the finished entries, by their numbers.

        That of a leaderboard is the smallest of its pairs.

        Raises
        ------
        InputError
            If there is no such method.
        """
        return _smallest(self.adjusted_pairs(method))

    def adjusted_pairs(self, method: str = "holm") -> dict[int, list[float]]:
        """Return the same with one value for each pair of a leaderboard, in the order of its pairs."""
        finished = self.finished
        adjusted = adjust_log10([value for entry in finished for value in entry.log10_pvalues], method)
        return dict(zip((entry.number for entry in finished), _split(adjusted, finished), strict=True))

    def spent(self) -> dict[int, float]:
        """Return decimal logarithms of p-values adjusted by alpha spending, of the finished entries.

        Look i spends its share by its number, so that neither later entries nor the end of an earlier
        unfinished one change it. A leaderboard of m pairs spends the shares of m places, the same part on
        each pair: an order of the pairs that came from the data would not be one fixed beforehand.
        """
        return _smallest(self.spent_pairs())

    def spent_pairs(self) -> dict[int, list[float]]:
        """Return the same with one value for each pair of a leaderboard, in the order of its pairs."""
        entries = self.entries
        adjusted = adjust_spending_log10([value for entry in entries for value in entry.log10_pvalues])
        shares = spending_levels(self.n_comparisons, _HALF) / _HALF
        found = {}
        for entry, values, own in zip(
            entries, _split(adjusted, entries), _split(shares, entries), strict=True
        ):
            if entry.n_pairs > 1:
                share = math.log10(math.fsum(own) / entry.n_pairs)
                values = [min(value - share, 0.0) for value in entry.log10_pvalues]
            if entry.is_finished:
                found[entry.number] = values
        return found

    def to_dict(self, method: str = "holm", *, spend: bool = False) -> dict[str, Any]:
        """Return the family with adjusted p-values as plain values that JSON can hold."""
        columns = {method: self.adjusted_pairs(method), **({"spent": self.spent_pairs()} if spend else {})}
        corrections = [adjustment(method), *([ALPHA_SPENDING] if spend else [])]
        return {
            "test_set": self.test_set,
            "n_looks": len(self.entries),
            "n_finished": len(self.finished),
            "n_comparisons": self.n_comparisons,
            "adjustments": [correction_sentence(each) for each in corrections],
            "notes": self.notes(),
            "comparisons": [_plain(entry, columns) for entry in self.entries],
        }

    def notes(self) -> list[str]:
        """Say what a reader of the numbers must know."""
        notes = [ADAPTIVE, UNSEEN]
        if any(entry.is_leaderboard for entry in self.entries):
            notes.append(OF_LEADERBOARDS)
        if self.unreadable:
            numbers = ", ".join(str(entry.number) for entry in self.unreadable)
            notes.append(f"no p-value can be read of {numbers}, which count with p = 1")
        mid_p = [str(entry.number) for entry in self.finished if "|p:mid|" in entry.tag("signature")]
        if mid_p:
            notes.append(
                f"mid-p: {', '.join(mid_p)}; adjusted or not, such p-values may be below their level"
            )
        if not self.test_set.startswith(SUM):
            notes.append(
                "logged by an earlier version, which digested test sets otherwise: comparisons on the same"
                " examples that were logged since are in another family"
            )
        if self.n_without_test_set:
            notes.append(
                f"in no family: {self.n_without_test_set} logged without a test set, as older versions did"
            )
        return notes


def correction_sentence(correction: Correction) -> str:
    """Say what a correction controls, and when."""
    return f"{correction.title}: {correction.controls}, valid under {correction.valid_under}"


def families(comparisons: Iterable[LoggedComparison]) -> list[TestFamily]:
    """Group logged comparisons by test set, the one that was looked at first first.

    Those without a test set, which older versions logged, are in none.
    """
    by_test_set: dict[str, list[LoggedComparison]] = {}
    for each in comparisons:
        if TEST_SET_TAG in each.tags:
            by_test_set.setdefault(each.tags[TEST_SET_TAG], []).append(each)
    found = [TestFamily(test_set, _entries(members)) for test_set, members in by_test_set.items()]
    return sorted(found, key=lambda family: (family.entries[0].created or _UNKNOWN, family.test_set))


def without_test_set(comparisons: Iterable[LoggedComparison]) -> list[LoggedComparison]:
    """Return the comparisons that are in no family."""
    return [each for each in comparisons if TEST_SET_TAG not in each.tags]


def _entries(comparisons: Sequence[LoggedComparison]) -> tuple[LedgerEntry, ...]:
    """Give comparisons numbers by their beginning; of runs with one key, the newest finished counts."""
    by_key: dict[str, list[LoggedComparison]] = {}
    for each in sorted(comparisons, key=_order):
        by_key.setdefault(each.tags.get(KEY_TAG, str(each.run.reference)), []).append(each)
    entries: list[LedgerEntry] = []
    number, in_leaderboards = 1, 0
    for key, runs in by_key.items():
        shown = max(runs, key=lambda run: (run.is_finished, *_order(run)))
        n_pairs = max(run.n_pairs for run in runs)
        entries.append(
            LedgerEntry(
                number,
                key,
                shown.run,
                runs[0].created,
                shown.is_finished,
                shown.tags,
                n_pairs=n_pairs,
                in_leaderboards=in_leaderboards,
            )
        )
        number += n_pairs
        in_leaderboards += n_pairs if entries[-1].is_leaderboard else 0
    return tuple(entries)


def _pairs(entry: LedgerEntry, tracker: Tracker) -> tuple[LoggedPair, ...]:
    """Read the pairs of a leaderboard; none where they are gone, changed, or not as many as it counts for."""
    try:
        frame = pl.read_parquet(io.BytesIO(tracker.files(entry.run)[PAIRS_FILE]))
        columns = [frame["candidate_run"], frame["baseline_run"], frame[LOG10_COLUMN].cast(pl.Float64)]
    except (SourceError, KeyError, pl.exceptions.PolarsError):
        return ()
    if any(column.null_count() for column in columns) or len(frame) != entry.n_pairs:
        return ()
    pairs = tuple(LoggedPair(*row) for row in zip(*columns, strict=True))
    return pairs if all(-math.inf < pair.log10_pvalue <= 0.0 for pair in pairs) else ()


def _smallest(values: Mapping[int, Sequence[float]]) -> dict[int, float]:
    return {number: min(each) for number, each in values.items()}


def _split(values: npt.NDArray[np.float64], entries: Sequence[LedgerEntry]) -> list[list[float]]:
    """Cut values of all hypotheses into those of each entry."""
    ends = np.cumsum([entry.n_pairs for entry in entries])
    return [part.tolist() for part in np.split(values, ends[:-1])] if entries else []


def _plain(entry: LedgerEntry, columns: Mapping[str, Mapping[int, list[float]]]) -> dict[str, Any]:
    values = {f"log10_p_{name}": found.get(entry.number) for name, found in columns.items()}
    of_pairs = {}
    if entry.is_leaderboard:
        of_pairs["pairs"] = [
            {
                "baseline": pair.baseline,
                "candidate": pair.candidate,
                "log10_p": pair.log10_pvalue,
                **{name: found[i] for name, found in values.items() if found is not None},
            }
            for i, pair in enumerate(entry.pairs)
        ]
    return {
        "number": entry.number,
        "kind": LEADERBOARD if entry.is_leaderboard else COMPARISON,
        "n_pairs": entry.n_pairs,
        "reference": str(entry.run.reference),
        "name": entry.run.name,
        "created": None if entry.created is None else entry.created.isoformat(),
        "finished": entry.is_finished,
        "statistic": entry.tag("statistic"),
        "baseline": entry.tag("baseline"),
        "candidate": entry.tag("candidate"),
        "verdict": entry.tag("verdict") if entry.is_finished else None,
        "log10_p": entry.log10_pvalue,
        **{name: None if found is None else min(found) for name, found in values.items()},
        "key": entry.key,
        **of_pairs,
    }


def _order(comparison: LoggedComparison) -> tuple[datetime, str]:
    return comparison.created or _UNKNOWN, comparison.run.reference.locator
