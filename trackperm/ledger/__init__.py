"""Ledger of the comparisons on a test set, read from the tracker.

Every logged comparison has the digest of its test set. All comparisons with the same digest in an experiment
or project are a family, whatever their statistics and runs. The family is assembled from the runs each time
and stored nowhere, so that concurrent writers do not interfere. Comparisons that were deleted, never logged,
or logged elsewhere are not counted.

A logged leaderboard is one entry with as many hypotheses as pairs. Each pair has its p-value before the
leaderboard's own correction, and counts in every correction; a pair that was compared again, in another
leaderboard or alone, counts again.
"""

from trackperm.ledger.entries import LedgerEntry, TestFamily, families

__all__ = ["LedgerEntry", "TestFamily", "families"]
