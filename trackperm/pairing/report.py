"""Report of a pairing, which is stored with the result of the test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from trackperm.choices import Missing
from trackperm.exact.pairwise import Influences
from trackperm.messages import amount
from trackperm.statistic import Outcome

OUTCOMES: Mapping[Missing, tuple[Outcome, Outcome]] = {
    "wrong": ("missing", "missing"),
    "worst": ("best", "worst"),
    "best": ("worst", "best"),
}
"""Outcomes that replace missing predictions of baseline and candidate, by the option `missing`."""


MISSING_PREDICTIONS = "missing predictions"
"""Start of the note on predictions that are missing and counted."""


@dataclass(frozen=True)
class ExampleCounts:
    """Numbers of examples of two runs, and of those that are the same.

    Attributes
    ----------
    n_examples, n_keyed : (int, int)
        Number of examples of baseline and candidate, and of those that have an id; each row without an id
        counts as an example.
    n_matched, n_paired : int
        Number of examples that both runs have, and of these the number that have all values.
    n_disagreeing : mapping of str to int
        Number of matched rows on which a column differs, by column that has to agree.
    """

    n_examples: tuple[int, ...]
    n_keyed: tuple[int, ...]
    n_matched: int
    n_paired: int
    n_disagreeing: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PairingReport:
    """Report on how the examples of two runs were paired.

    Attributes
    ----------
    by : {"id", "position"}
        Whether examples were matched by id or by the order of rows.
    n_baseline, n_candidate : int
        Number of examples in each run.
    n_paired : int
        Number of examples that are in the test.
    n_dropped : int
        Number of examples of either run that are not in the test.
    labels_checked : bool
        Whether the reference answers of both runs were compared and agree.
    inputs_checked : tuple of str
        Columns that identify an example's input, such as its hash, and agree between the runs.
    missing : {"error", "drop", "wrong", "worst", "best"}
        Treatment of examples that lack a partner or a value.
    notes : tuple of str
        Remarks for readers of the result.
    baseline_digest, candidate_digest : str
        SHA-256 of each run's id, label and the columns that the statistic reads: the same for any order of
        rows (by id) and any data frame engine.
    test_set : str
        SHA-256 of the examples that either run has, independent of predictions and statistic; see
        :class:`trackperm.pairing.digests.Digests`.
    asymptotic : str or None
        Reason why the level of the test holds only for many examples; None if the test is exact.
    n_changed : int or None
        Number of the `n_paired` rows whose predictions differ between the runs; None if it is unknown, see
        :func:`trackperm.pairing.pair.n_changed`.
    n_shown : int or None
        Number of discordant examples that are shown, the first by id; None if all are shown.
    influences : Influences or None
        Influences of examples on the difference of two scores over pairs of examples; None for other
        statistics.
    """

    by: Literal["id", "position"]
    n_baseline: int
    n_candidate: int
    n_paired: int
    n_dropped: int
    labels_checked: bool
    inputs_checked: tuple[str, ...]
    missing: Missing
    notes: tuple[str, ...]
    baseline_digest: str
    candidate_digest: str
    test_set: str
    asymptotic: str | None = None
    n_changed: int | None = None
    n_shown: int | None = None
    influences: Influences | None = None

    def lines(self) -> list[str]:
        """Describe how examples were paired, one sentence per line."""
        lines = [f"{amount(self.n_paired, 'example')} paired by {self.by}"]
        if self.by == "position":
            lines[0] += ": nothing proves that the rows belong together"
        if self.n_dropped:
            lines.append(
                f"{amount(self.n_dropped, 'example')} without a partner or a value dropped"
                f" ({self.n_baseline:,} in the baseline, {self.n_candidate:,} in the candidate)"
            )
        if self.labels_checked:
            lines.append("labels of both runs agree")
        if self.inputs_checked:
            lines.append(f"inputs of both runs agree ({', '.join(self.inputs_checked)})")
        if self.n_changed is not None:
            lines.append(self.changed)
        return [*lines, *self.notes]

    @property
    def changed(self) -> str:
        """Number of changed predictions as a sentence; a prediction of only one run is not called changed."""
        is_complete = not any(note.startswith(MISSING_PREDICTIONS) for note in self.notes)
        or_missing = "" if is_complete else " or are missing in one run"
        return f"{self.n_changed or 0:,} of {amount(self.n_paired, 'prediction')} changed{or_missing}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {**asdict(self), "inputs_checked": list(self.inputs_checked), "notes": list(self.notes)}
