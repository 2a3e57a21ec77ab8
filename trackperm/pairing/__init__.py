"""Pairing of two runs: the only package that decides which rows are the same example."""

from trackperm.pairing.ids import require_ids
from trackperm.pairing.report import PairingReport
from trackperm.pairing.result import Pairing, PairingResult

__all__ = ["Pairing", "PairingReport", "PairingResult", "require_ids"]
