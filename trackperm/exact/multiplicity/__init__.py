"""Corrections for many tests: adjusted p-values."""

from trackperm.exact.multiplicity.adjustments import (
    ADJUSTMENTS,
    Adjustment,
    adjust,
    adjust_log10,
    adjustment,
)
from trackperm.exact.multiplicity.family import Correction
from trackperm.exact.multiplicity.tarone import (
    TARONE_HOLM,
    log10_smallest_pvalue,
    tarone_holm,
    tarone_holm_log10,
)

__all__ = [
    "ADJUSTMENTS",
    "TARONE_HOLM",
    "Adjustment",
    "Correction",
    "adjust",
    "adjust_log10",
    "adjustment",
    "log10_smallest_pvalue",
    "tarone_holm",
    "tarone_holm_log10",
]
