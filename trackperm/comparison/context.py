"""What a comparison is one of: cases of missing predictions, tests corrected for each other, slices."""

from __future__ import annotations

from dataclasses import dataclass

from trackperm.choices import Missing
from trackperm.comparison.verdict import Sign
from trackperm.exact.result import format_pvalue


@dataclass(frozen=True)
class Case:
    """What two runs come to in one of the cases that missing predictions leave open.

    Attributes
    ----------
    missing : {'worst', 'best'}
        The case, seen from the candidate.
    difference, pvalue : float
        The statistic and its p-value.
    verdict : {'better', 'worse', 'undecided'}
        On the sign.
    """

    missing: Missing
    difference: float
    pvalue: float
    verdict: Sign


@dataclass(frozen=True)
class AdjustedPValue:
    """A p-value corrected for all the tests that were made together.

    Attributes
    ----------
    method, title : str
        Name of the correction, for machines and for people.
    controls : {'FWER', 'FDR'}
        The error rate that it keeps below alpha.
    valid_under : str
        The dependence among the tests under which it does.
    n_tests : int
        Size of the family.
    pvalue, log10_pvalue : float
        The adjusted p-value, of the upper end of what is known of each, and its decimal logarithm.
    rejected : bool
        Whether the hypothesis of no difference is rejected.
    is_drawn : bool
        Whether it rests on a p-value by Monte Carlo: its own, or that of another test of the family.
    """

    method: str
    title: str
    controls: str
    valid_under: str
    n_tests: int
    pvalue: float
    log10_pvalue: float
    rejected: bool
    is_drawn: bool = False

    def format_pvalue(self, digits: int = 3, level: float = 1.0) -> str:
        """Write the adjusted p-value, as :meth:`PermutationTest.format_pvalue` does."""
        return format_pvalue(self.pvalue, self.log10_pvalue, digits, level)


@dataclass(frozen=True)
class Slice:
    """The part of the examples that has one value in a column.

    Attributes
    ----------
    column, value : str
        The column, and its value as text.
    declared : bool
        Whether the spec declares the slices; others were thought of later, and are exploratory.
    """

    column: str
    value: str
    declared: bool

    def __str__(self) -> str:
        return f"{self.column} = {self.value}"
