"""Verification of a logged comparison, from its count table and spec, or from the runs.

The count table is all that a test needs (:class:`~trackperm.exact.CountTable`), so that every number of a
comparison follows from its logged files, without the predictions and without a network.
"""

from trackperm.ledger.verification.checks import Check, Verification
from trackperm.ledger.verification.files import COUNTS, run_references
from trackperm.ledger.verification.recomputation import verify_files, verify_from_runs

__all__ = ["COUNTS", "Check", "Verification", "run_references", "verify_files", "verify_from_runs"]
