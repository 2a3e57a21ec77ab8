"""Corrections for many tests: adjusted p-values."""

from trackperm.exact.multiplicity.adjustments import (
    ADJUSTMENTS,
    Adjustment,
    adjust,
    adjust_log10,
    adjustment,
)
from trackperm.exact.multiplicity.attainable import AttainablePvalues, attainable_pvalues
from trackperm.exact.multiplicity.discrete_fdr import AHSD, adjust_discrete
from trackperm.exact.multiplicity.family import Correction
from trackperm.exact.multiplicity.tarone import (
    TARONE_HOLM,
    log10_smallest_pvalue,
    tarone_holm,
    tarone_holm_log10,
)

__all__ = [
    "ADJUSTMENTS",
    "AHSD",
    "TARONE_HOLM",
    "Adjustment",
    "AttainablePvalues",
    "Correction",
    "adjust",
    "adjust_discrete",
    "adjust_log10",
    "adjustment",
    "attainable_pvalues",
    "log10_smallest_pvalue",
    "tarone_holm",
    "tarone_holm_log10",
]
