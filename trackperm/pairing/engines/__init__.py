"""Data frame engines that pair runs: polars in memory, DuckDB out of memory, Spark on a cluster."""

from trackperm.pairing.engines.base import Engine, Frame, Types
from trackperm.pairing.engines.choice import engine_for

__all__ = ["Engine", "Frame", "Types", "engine_for"]
