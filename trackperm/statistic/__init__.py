"""Specs in YAML, and the statistics into which they are compiled."""

from trackperm.statistic.definition import Outcome, Statistic
from trackperm.statistic.expressions.frames import OUT_OF_RANGE
from trackperm.statistic.function import from_function
from trackperm.statistic.load import builtin_names, load_statistic, read_statistic
from trackperm.statistic.schema import json_schema
from trackperm.tables.columns.types import ColumnType

__all__ = [
    "OUT_OF_RANGE",
    "ColumnType",
    "Outcome",
    "Statistic",
    "builtin_names",
    "from_function",
    "json_schema",
    "load_statistic",
    "read_statistic",
]
