"""Which examples of two runs are the same example: decided here and nowhere else."""

from trackperm.pairing.ids import require_ids
from trackperm.pairing.pair import PairedRuns, Pairing
from trackperm.pairing.report import PairingReport

__all__ = ["PairedRuns", "Pairing", "PairingReport", "require_ids"]
