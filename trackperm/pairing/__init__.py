"""Which examples of two runs are the same example: decided here and nowhere else."""

from trackperm.pairing.align import Pairing, pair
from trackperm.pairing.ids import require_ids
from trackperm.pairing.report import Missing, PairingReport

__all__ = ["Missing", "Pairing", "PairingReport", "pair", "require_ids"]
