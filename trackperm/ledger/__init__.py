"""The ledger: what was compared on a test set before, as the tracker has it.

Every logged comparison carries the digest of its test set. All with the same one in an experiment or project
are a family, whatever their statistic and runs. It is made anew from the runs each time and stored nowhere,
so that writers cannot get in each other's way; what was deleted, never logged, or logged elsewhere is unseen.

A logged leaderboard is one entry of as many hypotheses as it has pairs. Each enters with its p-value before
the leaderboard's own correction, and counts in every correction; a pair that was looked at again, by another
leaderboard or alone, counts again.
"""

from trackperm.ledger.entries import (
    ADAPTIVE,
    UNSEEN,
    LedgerEntry,
    TestFamily,
    correction_sentence,
    families,
    without_test_set,
)

__all__ = [
    "ADAPTIVE",
    "UNSEEN",
    "LedgerEntry",
    "TestFamily",
    "correction_sentence",
    "families",
    "without_test_set",
]
