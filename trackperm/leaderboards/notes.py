"""Notes of a leaderboard: those of the pairings with the reference run, in the words of many runs."""

from __future__ import annotations

from collections.abc import Mapping

from trackperm.exact.intervals import Interval
from trackperm.leaderboards.paired_runs import Entry, PairedRuns, with_names
from trackperm.messages import amount, listed
from trackperm.pairing.checks.label_values import other_spellings
from trackperm.pairing.notes import CREDIT, counted_as_wrong

MOST_REASONS = 5
"""Most reasons for missing intervals that notes list, so that notes stay shorter than the table."""

_LABELS = "labels were not compared"


def notes_of(paired: PairedRuns, intervals: Mapping[str, Interval | str]) -> list[str]:
    """Return notes: those of all runs once, the others with the name of their run.

    `intervals` has the interval of each run, or the reason why there is none.
    """
    reference = paired.reference.name
    others = [entry for entry in paired.entries if entry.data.name != reference]
    of_run = [dict.fromkeys(_of_pairing(entry, reference)) for entry in others]
    shared = [note for note in of_run[0] if all(note in notes for notes in of_run)]
    notes = [*_on_labels(others), *shared, *_missing_predictions(others, reference)]
    for entry, own in zip(others, of_run, strict=True):
        prefix = f"`{entry.data.table.origin}`: "  # of notes on a table
        notes += [f"{entry.data.name}: {note.removeprefix(prefix)}" for note in own if note not in shared]
    notes += other_spellings([entry.data.table for entry in paired.entries], paired.statistic)
    levels = dict.fromkeys(entry.pairing.report.asymptotic for entry in others)
    notes += [f"asymptotic: {level}" for level in levels if level is not None]
    notes += _refusals({run: why for run, why in intervals.items() if isinstance(why, str)})
    runs = [entry.data for entry in paired.entries]
    return [with_names(note, runs) for note in notes]


def _of_pairing(entry: Entry, reference: str) -> list[str]:
    """Return the notes of a pairing that name its two runs; others than those on labels and missing ones."""
    return [
        note.replace("the baseline", f"`{reference}`")
        .replace("the candidate", f"`{entry.data.name}`")
        .replace("`--slice ", "`trackperm compare --slice ")  # leaderboards have no such option
        for note in entry.pairing.report.notes
        if counted_as_wrong(note) is None and not note.startswith((_LABELS, CREDIT))
    ]


def _on_labels(others: list[Entry]) -> list[str]:
    """Return one note if labels were not compared, with the reason if there is one."""
    reasons = dict.fromkeys(
        note.removeprefix(f"{_LABELS}: ").replace("neither run has", "no run has")
        for entry in others
        for note in entry.pairing.report.notes
        if note.startswith(_LABELS)
    )
    if len(reasons) == 1:
        return [f"{_LABELS}: {next(iter(reasons))}"]
    is_compared = not reasons and (not others or others[0].pairing.report.labels_checked)
    return [] if is_compared else [f"{_LABELS}, because not all runs have them"]


def _missing_predictions(others: list[Entry], reference: str) -> list[str]:
    """Return a note on each run with missing predictions that were counted as wrong."""
    lacking: dict[str, int] = {}
    for entry in others:
        for note in entry.pairing.report.notes:
            if (found := counted_as_wrong(note)) is not None:
                lacking |= {reference: found[0], entry.data.name: found[1]}
    return [f"{name}: {amount(n, 'missing prediction')} counted as wrong" for name, n in lacking.items() if n]


def _refusals(reasons: Mapping[str, str]) -> list[str]:
    """Return notes on rows without an interval, by reason; of many reasons, the first ones only."""
    runs: dict[str, list[str]] = {}
    for run, reason in reasons.items():
        runs.setdefault(reason, []).append(run)
    lines = [f"no interval of {listed(names)}: {reason}" for reason, names in runs.items()]
    shown = lines[:MOST_REASONS]
    rest = len(reasons) - sum(len(names) for names in list(runs.values())[:MOST_REASONS])
    return [*shown, *([f"no interval of {rest} more runs, for other reasons"] if rest else [])]
