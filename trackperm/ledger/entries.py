"""Entries of the ledger: the logged comparisons on a test set in order, with adjusted p-values."""

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
    "only comparisons that are logged in this experiment or project are counted, not those that were deleted,"
    " never logged, or logged elsewhere"
)
ADAPTIVE = (
    "valid for hypotheses that were fixed beforehand, not for candidates that were built or chosen by"
    " results on this test set"
)
OF_LEADERBOARDS = (
    "a leaderboard counts once for each of its pairs, and is shown with their smallest p-value; a pair that "
    "was compared again counts again"
)
_HALF = 0.5  # any level: the shares of alpha do not depend on it
_UNKNOWN = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class LoggedPair:
    """Pair of a logged leaderboard.

    Attributes
    ----------
    candidate, baseline : str
        References of the two runs.
    log10_pvalue : float
        Decimal logarithm of the uncorrected p-value, or of its certified upper end if it is not exact.
    """

    candidate: str
    baseline: str
    log10_pvalue: float


@dataclass(frozen=True)
class LedgerEntry:
    """Logged comparison or leaderboard of a family.

    Attributes
    ----------
    number : int
        Place of the comparison, or of the first pair of the leaderboard, from 1, by the time at which its
        logging began, then by the id of its run. An unfinished entry has a place too, so that the places of
        others do not change when it is completed.
    key : str
        Digest of the comparison; several runs with one key are one entry.
    run : TrackedRun
        Run that holds it.
    created : datetime or None
        Time at which its logging began; None if logging broke off before that was recorded.
    is_finished : bool
        Whether it was logged completely; an unfinished entry has no p-value here.
    tags : mapping of str to str
        Tags of the run.
    n_pairs : int
        Number of hypotheses: 1, or the pairs of a leaderboard.
    in_leaderboards : int
        Number of earlier comparisons that are pairs of leaderboards.
    pairs : tuple of LoggedPair
        Pairs of a leaderboard, if they were read by :meth:`TestFamily.with_pairs`.
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
        """Whether the entry is a leaderboard."""
        return self.tags.get(KIND_TAG) == LEADERBOARD

    @property
    def log10_pvalue(self) -> float | None:
        """Decimal logarithm of the p-value, for a leaderboard of its smallest one.

        None for an unfinished entry, and if it cannot be read.
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
        """Decimal logarithms of the p-values of all hypotheses; unreadable ones count as p = 1."""
        if self.is_leaderboard and self.pairs:
            return [pair.log10_pvalue for pair in self.pairs]
        return [self.log10_pvalue or 0.0] * self.n_pairs

    def tag(self, name: str) -> str:
        """Return the tag ``trackperm.<name>``, or empty text."""
        return self.tags.get(f"trackperm.{name}", "")


@dataclass(frozen=True)
class TestFamily:
    """All logged comparisons on one test set.

    Attributes
    ----------
    test_set : str
        Digest of the examples; see :class:`trackperm.pairing.digests.Digests`.
    entries : tuple of LedgerEntry
        Entries in the order of their numbers.
    """

    __test__ = False  # test tools would collect the class by its name

    test_set: str
    entries: tuple[LedgerEntry, ...]

    @property
    def n_comparisons(self) -> int:
        """Number of logged comparisons, where each pair of a leaderboard is one."""
        return sum(entry.n_pairs for entry in self.entries)

    @property
    def finished(self) -> tuple[LedgerEntry, ...]:
        """Entries that are adjusted."""
        return tuple(entry for entry in self.entries if entry.is_finished)

    @property
    def unreadable(self) -> tuple[LedgerEntry, ...]:
        """Finished entries whose p-value cannot be read; they count with p = 1."""
        return tuple(entry for entry in self.finished if entry.log10_pvalue is None)

    def place(self, key: str) -> int | None:
        """Return the number of the comparison with that key, or None."""
        return next((entry.number for entry in self.entries if entry.key == key), None)

    def with_pairs(self, tracker: Tracker) -> TestFamily:
        """Return the family with the pairs of its leaderboards, which otherwise count with p = 1.

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
        """Return decimal logarithms of adjusted p-values of the finished entries, by number.

        The value of a leaderboard is the smallest of its pairs.

        Raises
        ------
        InputError
            If `method` is not a correction.
        """
        return _smallest(self.adjusted_pairs(method))

    def adjusted_pairs(self, method: str = "holm") -> dict[int, list[float]]:
        """Return the values of :meth:`adjusted` with one value per pair of a leaderboard."""
        finished = self.finished
        adjusted = adjust_log10([value for entry in finished for value in entry.log10_pvalues], method)
        return dict(zip((entry.number for entry in finished), _split(adjusted, finished), strict=True))

    def spent(self) -> dict[int, float]:
        """Return decimal logarithms of p-values adjusted by alpha spending, by number of the finished entry.

        The share of an entry depends on its number alone, so that neither later entries nor the completion of
        an earlier one change it. A leaderboard of m pairs spends the shares of m places in equal parts: an
        order of the pairs that depends on the data would not be fixed beforehand.
        """
        return _smallest(self.spent_pairs())

    def spent_pairs(self) -> dict[int, list[float]]:
        """Return the values of :meth:`spent` with one value per pair of a leaderboard."""
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
        """Return the family with adjusted p-values as JSON values."""
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
        """Return what a reader of the numbers has to know, as sentences."""
        notes = [ADAPTIVE, UNSEEN]
        if any(entry.is_leaderboard for entry in self.entries):
            notes.append(OF_LEADERBOARDS)
        if self.unreadable:
            numbers = ", ".join(str(entry.number) for entry in self.unreadable)
            notes.append(f"the p-values of {numbers} cannot be read; they count as p = 1")
        mid_p = [str(entry.number) for entry in self.finished if "|p:mid|" in entry.tag("signature")]
        if mid_p:
            notes.append(f"mid-p: {', '.join(mid_p)}; the error rate of mid-p-values may exceed their level")
        if not self.test_set.startswith(SUM):
            notes.append(
                "an earlier version logged these comparisons, with another digest of the test set: later"
                " comparisons on the same examples are in another family"
            )
        return notes


def correction_sentence(correction: Correction) -> str:
    """Return what a correction controls, and when it is valid, as a sentence."""
    return f"{correction.title}: {correction.controls}, valid under {correction.valid_under}"


def families(comparisons: Iterable[LoggedComparison]) -> list[TestFamily]:
    """Group logged comparisons by test set, in the order of their first comparisons."""
    by_test_set: dict[str, list[LoggedComparison]] = {}
    for each in comparisons:
        if TEST_SET_TAG in each.tags:
            by_test_set.setdefault(each.tags[TEST_SET_TAG], []).append(each)
    found = [TestFamily(test_set, _entries(members)) for test_set, members in by_test_set.items()]
    return sorted(found, key=lambda family: (family.entries[0].created or _UNKNOWN, family.test_set))


def _entries(comparisons: Sequence[LoggedComparison]) -> tuple[LedgerEntry, ...]:
    """Assign numbers by the time of start; of several runs with one key, the newest finished one counts."""
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
    """Read the pairs of a leaderboard; return none if they are missing, changed, or not `n_pairs` many."""
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
    """Split values of all hypotheses by entry."""
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
