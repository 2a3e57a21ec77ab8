"""Pairing of two runs: the only package that decides which rows are the same example."""

from trackperm.pairing.ids import require_ids
from trackperm.pairing.pair import Pairing, PairingResult
from trackperm.pairing.report import PairingReport

__all__ = ["Pairing", "PairingReport", "PairingResult", "require_ids"]
