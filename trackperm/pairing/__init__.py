"""Which examples of two runs are the same example: decided here and nowhere else."""

from trackperm.pairing.align import PairedRuns, Pairing, pair
from trackperm.pairing.buckets import paired
from trackperm.pairing.ids import require_ids
from trackperm.pairing.report import Missing, PairingReport

__all__ = ["Missing", "PairedRuns", "Pairing", "PairingReport", "pair", "paired", "require_ids"]
