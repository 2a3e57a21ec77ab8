"""Parts of a comparison: cases of missing predictions, adjusted p-values, and slices."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trackperm.choices import Missing
from trackperm.comparison.inference.verdict import Sign
from trackperm.exact.result import Relation, format_pvalue


@dataclass(frozen=True)
class MissingDataCase:
    """Result of two runs under one assumption about the missing predictions.

    Attributes
    ----------
    missing : {'worst', 'best'}
        The assumption: the worst or the best case for the candidate.
    difference, pvalue, log10_pvalue : float
        The statistic, its p-value and the decimal logarithm of that.
    relation : {'=', '≤', '≈'}
        Sign between p and its number; see :data:`~trackperm.exact.result.Relation`.
    verdict : {'better', 'worse', 'undecided'}
        Verdict on the sign of the difference.
    """

    missing: Missing
    difference: float
    pvalue: float
    log10_pvalue: float
    relation: Relation
    verdict: Sign


@dataclass(frozen=True)
class AdjustedPValue:
    """p-value that is corrected for a family of tests.

    Attributes
    ----------
    method, title : str
        Name of the correction, for programs and for people.
    controls : {'FWER', 'FDR'}
        The error rate that the correction keeps below alpha.
    valid_under : str
        The dependence among the tests under which this holds.
    n_tests : int
        Size of the family.
    pvalue, log10_pvalue : float
        The adjusted p-value and its decimal logarithm. The correction uses the upper end of each p-value's
        interval.
    rejected : bool
        Whether the hypothesis of no difference is rejected.
    relation : {'=', '≤', '≈'}
        Sign between p and its number: that of its own p-value, or of another test's on which it depends.
        ``≈`` is for Monte Carlo, ``≤`` for certified upper ends and tilted sampling.
    """

    method: str
    title: str
    controls: str
    valid_under: str
    n_tests: int
    pvalue: float
    log10_pvalue: float
    rejected: bool
    relation: Relation = "="

    def level_of_one(self, alpha: float) -> float:
        """Return the level below which a p-value is rejected at alpha, whatever the other tests show.

        It is that of the first step of Holm's correction, alpha over the number of tests, which suffices for
        every correction but Benjamini and Yekutieli's.
        """
        steps = math.fsum(1.0 / k for k in range(1, self.n_tests + 1)) if self.method == "by" else 1.0
        return alpha / (self.n_tests * steps)

    def format_pvalue(self, digits: int = 3, level: float = 1.0) -> str:
        """Format the adjusted p-value, as :meth:`PermutationTest.format_pvalue` does."""
        return format_pvalue(self.pvalue, self.log10_pvalue, digits, level, self.relation)


@dataclass(frozen=True)
class Slice:
    """Examples that have one value in a column.

    Attributes
    ----------
    column, value : str
        The column, and its value as text.
    declared : bool
        Whether the spec declares the column; other slices are exploratory.
    """

    column: str
    value: str
    declared: bool

    def __str__(self) -> str:
        return f"{self.column} = {self.value}"
