"""Counters: integers of every example, from its lists of tokens, tags or labels, or from its text."""

from trackperm.statistic.counters.base import Counter
from trackperm.statistic.counters.registry import COUNTERS

__all__ = ["COUNTERS", "Counter"]
