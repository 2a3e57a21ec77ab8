"""What is tested: specs in YAML, and the statistics that they compile to."""

from trackperm.statistic.compile import builtin_names, load_statistic
from trackperm.statistic.definition import Statistic
from trackperm.statistic.frames import OUT_OF_RANGE
from trackperm.tables import ColumnType

__all__ = ["OUT_OF_RANGE", "ColumnType", "Statistic", "builtin_names", "load_statistic"]
