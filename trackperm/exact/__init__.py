"""Exact paired-permutation tests on integer arrays; needs NumPy and SciPy alone."""

from trackperm.exact.attempts import attempts_test
from trackperm.exact.counts import CountTable, DifferenceHistogram
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.exact.functions.real import RealStatistic
from trackperm.exact.null_distribution import NullDistribution
from trackperm.exact.options import TestOptions
from trackperm.exact.permutation import structured_test
from trackperm.exact.result import PermutationTest
from trackperm.exact.sums import difference_test

__all__ = [
    "CountTable",
    "DifferenceHistogram",
    "NullDistribution",
    "PermutationTest",
    "RationalStatistic",
    "RealStatistic",
    "TestOptions",
    "attempts_test",
    "difference_test",
    "structured_test",
]
