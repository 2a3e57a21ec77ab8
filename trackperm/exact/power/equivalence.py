r"""Power of equivalence: the probability that both one-sided tests at a margin reject.

Equivalence within m is found if the interval of confidence 1 - 2 alpha lies within (-m, m), that is, if both
tests of a difference of at least m reject. How often that happens depends on the true difference t, which is
given here, such as 0. It is *not* the observed one: the power at the observed difference is a function of the
p-value, and explains nothing (Hoenig and Heisey 2001). From the data come only the number of examples and how
much the runs disagree. There is a law of the data for each kind of interval.

1. *Paired proportions.* The number of discordant examples is M ~ Binomial(n, s), with s the observed share,
   and B | M ~ Binomial(M, (1 + t/s) / 2) of them are better. The test at the margin rejects if B is at most
   b(M), with b from the interval's own tail

       P(pi (1 - 2 theta) >= m) < alpha,    theta ~ Beta(M - B, B + 1),    pi ~ Beta(M + 1, n - M),

   so the power is E P(M - b(M) <= B <= b(M) | M), a sum over both numbers.
2. *Shifts.* With S^2 the variance of the differences, the sign-flip test of a shift m rejects about where the
   mean D is below m - z S / sqrt(n - z^2), because its standard deviation is that of differences from m, not
   from D. D is normal with mean t. S^2 varies as chi-square / f, with f = 2 n / (kurtosis - 1), and is
   averaged over.
3. *Score intervals.* The law of the data is the most likely one with the difference t. Under it D is normal
   with the standard deviation of this law, and the test at the margin rejects where D is below m - z sd, with
   sd that of the most likely law with the difference m, fitted to data that have the shares of the first
   law. The result is multiplied by the probability that enough examples differ for an interval.
4. *Means over pairs* have score intervals, too. Their laws are over the influences of examples, which add up
   to the difference to first order. The interval needs an effective number of examples e, of n; that of other
   data is taken as binomial with the mean e.

The normal approximations are compared with simulations in the documentation.

References
----------
J. M. Hoenig and D. M. Heisey (2001), "The abuse of power", The American Statistician 55.
D. J. Schuirmann (1987), "A comparison of the two one-sided tests procedure and the power approach for
assessing the equivalence of average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, betainc, betaincinv, chdtri, ndtr, ndtri

from trackperm.errors import CapacityError, InputError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.engines.lattice.statistic import Statistic
from trackperm.exact.intervals.additive import AdditiveScores
from trackperm.exact.intervals.coverage import ScoredNumber
from trackperm.exact.intervals.of_pairs import fewest_effective, laws_of_influences
from trackperm.exact.intervals.score import ConstrainedLaws, possible_outcomes
from trackperm.exact.intervals.unseen import UnseenDifferences
from trackperm.exact.pairwise import Influences
from trackperm.exact.power.binomial_law import binomial_masses, binomial_window
from trackperm.exact.power.normal import require_power
from trackperm.exact.power.paired import MOST_EXAMPLES
from trackperm.exact.types import IntArray

NODES = 32
"""Nodes of a mean over quantiles: its error of a level is far below that of a printed power."""

LISTED = 40
"""Most numbers of discordant examples whose least rejected number is searched; it is linear in between."""

FEWEST = 8
"""Number of examples from which on a sample size is searched; fewer show no useful equivalence."""

HALVINGS = 40
"""Halvings of a bracket of numbers of examples: below a millionth of an example."""

_GAUSS_NODES, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(NODES)
_LEVELS, _SHARES = (_GAUSS_NODES + 1.0) / 2.0, _GAUSS_WEIGHTS / 2.0


@dataclass(frozen=True)
class EquivalencePower:
    """Probability that such a comparison finds equivalence, for given true differences.

    Attributes
    ----------
    margin, alpha : float
        Margin of the equivalence, and level of both one-sided tests.
    n_examples : int
        Number of examples, or clusters.
    at_zero, at_half : float
        Power if the true difference is 0, and the smaller of the powers if it is half the margin on either
        side.
    """

    margin: float
    alpha: float
    n_examples: int
    at_zero: float
    at_half: float

    def __str__(self) -> str:
        return (
            f"power of equivalence within {self.margin:g}: {percent(self.at_zero)} if the true difference is"
            f" 0, {percent(self.at_half)} if it is half the margin"
        )


def equivalence_power(law: DifferenceLaw, margin: float, alpha: float) -> EquivalencePower:
    """Return the power of equivalence within the margin, for as many examples as the law is fitted to."""
    n = law.n_examples
    at_zero = law.power(margin, 0.0, alpha, n)
    at_half = min(law.power(margin, side * margin / 2.0, alpha, n) for side in (1.0, -1.0))
    return EquivalencePower(margin, alpha, n, at_zero, at_half)


def examples_for_equivalence(
    law: DifferenceLaw, margin: float, difference: float, *, power: float, alpha: float
) -> int:
    """Return about how many examples find equivalence with the required power, by bisection.

    Raises
    ------
    InputError
        If an argument is out of range, or the difference is not within the margin.
    CapacityError
        If more than 10^7 examples are needed.
    """
    require_power(power, alpha)
    if not abs(difference) < margin:
        raise InputError(
            f"`difference` is {difference} and `margin` {margin}; expected a difference within the margin"
        )
    low, high = 0, FEWEST
    while law.power(margin, difference, alpha, high) < power:
        if high == MOST_EXAMPLES:
            raise CapacityError(f"equivalence within {margin:g} needs more than {MOST_EXAMPLES:,} examples")
        low, high = high, min(2 * high, MOST_EXAMPLES)
    while high - low > 1:
        middle = (low + high) // 2
        if law.power(margin, difference, alpha, middle) < power:
            low = middle
        else:
            high = middle
    return high


def percent(power: float) -> str:
    """Return a power in percent, without decimals and never 0 or 100."""
    if power < 0.01:
        return "below 1 %"
    return f"{100.0 * power:.0f} %" if power <= 0.99 else "above 99 %"


class DifferenceLaw(Protocol):
    """Law of data with a given true difference, for tests of equivalence."""

    @property
    def n_examples(self) -> int:
        """Number of examples of the data that the law is fitted to."""

    def power(self, margin: float, difference: float, alpha: float, n_examples: int) -> float:
        """Return the probability of equivalence within the margin, if that is the true difference."""


@dataclass(frozen=True)
class PairedLaw:
    """Law of 0/1 scores.

    Attributes
    ----------
    discordance : float
        Probability that exactly one run is right on an example.
    n_examples : int
        Number of examples of the data.
    gap : float
        Difference between the two scores.
    """

    discordance: float
    n_examples: int
    gap: float = 1.0

    @classmethod
    def of(cls, scores: AdditiveScores) -> PairedLaw:
        """Return the law with the discordance of scores with two values.

        Half an example more is discordant: if none was, some still may be.
        """
        share = (scores.n_up + scores.n_down + 0.5) / (scores.n_rows + 1.0)
        return cls(share, scores.n_rows, 1.0 if scores.gap is None else float(scores.gap))

    def power(self, margin: float, difference: float, alpha: float, n_examples: int) -> float:
        """Return the probability of equivalence within the margin, if that is the true difference."""
        size, true = margin / self.gap, difference / self.gap
        share = min(max(self.discordance, abs(true)), 1.0)
        low, high = binomial_window(n_examples, share)
        m = np.arange(low, high + 1)
        masses = binomial_masses(n_examples, share, low, high)
        most = np.floor(_most_better(m, n_examples, size, alpha)).astype(np.int64)
        better = min((1.0 + true / share) / 2.0, 1.0)
        within = _binomial_cdf(most, m, better) - _binomial_cdf(m - most - 1, m, better)
        return float(masses @ np.maximum(within, 0.0))


def _binomial_cdf(k: IntArray, n: IntArray, p: float) -> FloatArray:
    """Return P(Binomial(n, p) <= k) for k <= n, also below 0."""
    return np.where(k < 0, 0.0, bdtr(np.maximum(k, 0), n, p))


def _most_better(m: IntArray, n_examples: int, margin: float, alpha: float) -> FloatArray:
    """Return the largest real number of better examples of m for which the test at the margin rejects.

    It is below 0 if no number is rejected.
    """
    if margin >= 1.0:
        return m.astype(np.float64)
    listed = np.unique(np.rint(np.linspace(m[0], m[-1], min(m.size, LISTED))).astype(np.int64))
    at = listed.astype(np.float64)
    # The share of discordant examples at its quantiles beyond the margin, below which no split of them
    # exceeds it: without worse examples the integrand is a step there. It is 1 if all are discordant.
    own = at[:, None] + 1.0, np.maximum(n_examples - at, 1.0)[:, None]
    are_all = (at >= n_examples)[:, None]
    within = np.where(are_all, 0.0, betainc(*own, margin))
    shares = np.where(are_all, 1.0, betaincinv(*own, within + (1.0 - within) * _LEVELS))
    reach = np.maximum(1.0 - margin / np.maximum(shares, margin), 0.0) / 2.0

    def is_rejected(better: FloatArray) -> npt.NDArray[np.bool_]:
        worse = (at - better)[:, None]
        below = betainc(np.maximum(worse, 1e-12), better[:, None] + 1.0, reach)
        below = np.where(worse > 0.0, below, 1.0)
        return np.asarray((1.0 - within[:, 0]) * (below @ _SHARES) < alpha)

    low, high = np.where(is_rejected(np.zeros(at.size)), 0.0, -1.0), at + 0.0
    low = np.where(is_rejected(high), high, low)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        rejected = is_rejected(np.maximum(middle, 0.0)) & (low >= 0.0)
        low, high = np.where(rejected, middle, low), np.where(rejected, high, middle)
    return np.interp(m, at, low)


@dataclass(frozen=True)
class ShiftLaw:
    """Law of scores that are averaged, with the spread of the differences in the data.

    Attributes
    ----------
    deviation : float
        Standard deviation of the mean difference, times the square root of the number of examples.
    freedom : float
        Degrees of freedom of the variance of one example.
    n_examples : int
        Number of examples.
    unseen : UnseenDifferences or None
        Differences that no example showed, which no smaller margin guards against; None if any margin does.
    """

    deviation: float
    freedom: float
    n_examples: int
    unseen: UnseenDifferences | None = None

    @classmethod
    def of(cls, scores: AdditiveScores, unseen: UnseenDifferences | None = None) -> ShiftLaw:
        """Return the law with the spread of these scores."""
        n, counts = scores.n_rows, scores.multiplicities.astype(np.float64)
        moves, weights = scores.moves.astype(np.float64), scores.weights.astype(np.float64)
        total = float(counts @ weights)
        rest = moves - float(counts @ moves) / total * weights
        square = float(counts @ rest**2) / n
        kurtosis = float(counts @ rest**4) / n / square**2 if square > 0.0 else 3.0
        deviation = float(scores.unit) * math.sqrt(square * n / max(n - 1, 1)) * n / total
        return cls(deviation, 2.0 / max(kurtosis - 1.0, 2.0 / n), n, unseen)

    def power(self, margin: float, difference: float, alpha: float, n_examples: int) -> float:
        """Return the probability of equivalence within the margin, if that is the true difference."""
        z, n = float(-ndtri(alpha)), n_examples
        if n <= z * z or _is_hidden(margin, self.unseen, alpha, n / self.n_examples):
            return 0.0
        if self.deviation == 0.0:
            return float(abs(difference) < margin)
        freedom = max(self.freedom * n, 1.0)
        roots = np.sqrt(chdtri(freedom, _LEVELS) / freedom)
        reach = margin - z * self.deviation * roots / math.sqrt(n - z * z)
        return float(_between(reach, reach, difference, self.deviation / math.sqrt(n)) @ _SHARES)


@dataclass(frozen=True)
class ScoreLaw:
    """Law of any statistic of sums of counts, by the most likely laws over the outcomes.

    Attributes
    ----------
    laws : ConstrainedLaws
        Laws over the outcomes of the data.
    n_examples : int
        Number of examples, or clusters.
    scored : ScoredNumber
        How many of them distinguish the runs, and their effective number.
    unseen : UnseenDifferences or None
        Differences that no example showed, in a mean over strata or classes.
    """

    laws: ConstrainedLaws
    n_examples: int
    scored: ScoredNumber
    unseen: UnseenDifferences | None = None

    @classmethod
    def of(
        cls,
        observed: IntArray,
        swapped: IntArray,
        h: Statistic,
        multiplicities: IntArray,
        unseen: UnseenDifferences | None = None,
    ) -> ScoreLaw | None:
        """Return the law of these examples; None if no example distinguishes the runs."""
        laws, n = (
            ConstrainedLaws(*possible_outcomes(observed, swapped, multiplicities), h),
            int(multiplicities.sum()),
        )
        scored = ScoredNumber.of(observed, swapped, h, multiplicities)
        if not 0.0 < laws.spread < math.inf or scored.effective == 0.0:
            return None
        return cls(laws, n, scored, unseen)

    def power(self, margin: float, difference: float, alpha: float, n_examples: int) -> float:
        """Return the probability of equivalence within the margin, if that is the true difference.

        It is 0 if no law over the outcomes has such a difference.
        """
        scale = n_examples / self.n_examples
        if _is_hidden(margin, self.unseen, alpha, scale):
            return 0.0
        inside = _power_by_laws(self.laws, (-margin, margin), difference, alpha, 1.0 / scale)
        fewest, share = self.scored.fewest(float(-ndtri(alpha))), self.scored.n_moved / self.n_examples
        if self.unseen is not None:
            fewest = max(fewest, self.unseen.fewest(alpha, scale))
        return inside * _at_least(fewest, n_examples, share)


@dataclass(frozen=True)
class PairsLaw:
    """Law of means over pairs, by the most likely laws over the influences of examples.

    Attributes
    ----------
    influences : Influences
        Influences on the difference.
    laws : ConstrainedLaws
        Laws over them, in their units.
    unseen : UnseenDifferences or None
        Differences that no example showed, in a mean over strata or classes.
    """

    influences: Influences
    laws: ConstrainedLaws
    unseen: UnseenDifferences | None = None

    @classmethod
    def of(cls, influences: Influences, unseen: UnseenDifferences | None = None) -> PairsLaw | None:
        """Return the law of these influences; None if all are 0."""
        return cls(influences, laws_of_influences(influences), unseen) if influences.unit else None

    @property
    def n_examples(self) -> int:
        """Number of examples, or clusters."""
        return sum(self.influences.counts)

    def power(self, margin: float, difference: float, alpha: float, n_examples: int) -> float:
        """Return the probability of equivalence within the margin, if that is the true difference.

        It is 0 if no law over the influences has such a difference.
        """
        scale = n_examples / self.n_examples
        if _is_hidden(margin, self.unseen, alpha, scale):
            return 0.0
        low, true, high = (
            self.laws.difference + (value - self.influences.difference) / self.influences.unit
            for value in (-margin, difference, margin)
        )
        inside = _power_by_laws(self.laws, (low, high), true, alpha, 1.0 / scale)
        share = min(self.influences.n_effective / self.n_examples, 1.0)
        shown = _at_least(fewest_effective(float(-ndtri(alpha))), n_examples, share)
        if self.unseen is not None:
            moved = min(int(self.unseen.moved.sum()) / self.n_examples, 1.0)
            shown = min(shown, _at_least(self.unseen.fewest(alpha, scale), n_examples, moved))
        return inside * shown


def _is_hidden(margin: float, unseen: UnseenDifferences | None, alpha: float, scale: float) -> bool:
    """Return whether unseen differences may change the score by the margin."""
    return unseen is not None and margin <= unseen.largest(alpha, scale)


def _power_by_laws(
    laws: ConstrainedLaws, limits: tuple[float, float], difference: float, alpha: float, scale: float
) -> float:
    """Return the probability that the score tests of both limits reject, given the true difference.

    `scale` multiplies the variances. The probability is 0 if no law over the outcomes has such a difference.
    """
    true = laws.fitted(difference, laws.masses)
    if true is None:
        return 0.0
    law, deviation = true
    expected = laws.expecting(law)
    z, ends = float(-ndtri(alpha)) * math.sqrt(scale), []
    for side, limit in zip((-1.0, 1.0), limits, strict=True):
        if side * laws.extreme(side) <= side * limit:
            ends.append(side * math.inf)  # no law has such a difference, so all data exclude it
            continue
        found = expected.fitted(limit, law)
        ends.append(-side * math.inf if found is None else limit - side * z * found[1])
    return float(_between(-ends[0], ends[1], difference, deviation * math.sqrt(scale)))


def _at_least(needed: float, n: int, share: float) -> float:
    """Return P(Binomial(n, share) >= needed)."""
    low, high = binomial_window(n, share)
    masses = binomial_masses(n, share, low, high)
    return float(masses[np.arange(low, high + 1) >= needed].sum())


def _between(
    below: npt.ArrayLike, above: npt.ArrayLike, difference: float, deviation: float
) -> npt.NDArray[np.float64]:
    """Return P(-below < D < above) for a normal D; 0 if no number is between."""
    upper = (np.asarray(above) - difference) / deviation
    lower = (-np.asarray(below) - difference) / deviation
    return np.asarray(np.maximum(ndtr(upper) - ndtr(lower), 0.0))
