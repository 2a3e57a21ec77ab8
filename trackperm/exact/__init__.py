"""Exact paired-permutation tests on integer arrays; needs NumPy and SciPy alone."""

from trackperm.exact.counts import CountTable, DifferenceHistogram
from trackperm.exact.distribution import NullDistribution
from trackperm.exact.lattice_statistic import Alternative
from trackperm.exact.permutation import PermutationTest, difference_test, structured_test
from trackperm.exact.rational import RationalStatistic

__all__ = [
    "Alternative",
    "CountTable",
    "DifferenceHistogram",
    "NullDistribution",
    "PermutationTest",
    "RationalStatistic",
    "difference_test",
    "structured_test",
]
