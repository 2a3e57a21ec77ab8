"""P-values that a null distribution allows."""

from __future__ import annotations

import numpy as np
import pytest

from trackperm.choices import Alternative
from trackperm.exact.null_distribution import NullDistribution


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_no_pvalue_is_above_1(alternative: Alternative) -> None:
    """Masses are rounded, so their sum may be a little above 1."""
    law = NullDistribution(np.array([-1.0, 0.0, 1.0]), np.array([0.25, 0.5 + 1e-12, 0.25]), 1e-11)
    assert law.attainable_pvalues(alternative).max() == 1.0
