"""Exact paired-permutation tests on integer arrays; needs NumPy and SciPy alone."""

from trackperm.exact.counts import CountTable, DifferenceHistogram
from trackperm.exact.distribution import NullDistribution
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.exact.functions.real import RealStatistic
from trackperm.exact.lattice.statistic import Alternative
from trackperm.exact.permutation import difference_test, structured_test
from trackperm.exact.planning import Method
from trackperm.exact.result import PermutationTest

__all__ = [
    "Alternative",
    "CountTable",
    "DifferenceHistogram",
    "Method",
    "NullDistribution",
    "PermutationTest",
    "RationalStatistic",
    "RealStatistic",
    "difference_test",
    "structured_test",
]
