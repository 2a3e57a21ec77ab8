"""Power of any statistic's test by resampling the counts of a pilot comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trackperm.errors import InputError
from trackperm.exact.counts import CountTable
from trackperm.exact.engines.monte_carlo import exact_interval
from trackperm.exact.power.paired_sign import SignTest
from trackperm.exact.result import PermutationTest

N_RESAMPLES = 1000
"""Default number of resampled comparisons: the 99 % interval of the power is then +-0.04 or narrower."""


@dataclass(frozen=True)
class SimulatedPower:
    """Monte Carlo estimate of the power.

    Attributes
    ----------
    power : float
        Share of resampled comparisons with p < alpha.
    interval : tuple of float
        99 % confidence interval (Clopper and Pearson 1934) of the power if the pilot's counts were the
        population. It does not include the distance of the pilot from the population.
    n_rejected, n_resamples : int
        Number of resampled comparisons with p < alpha, and of all.
    n_undefined : int
        Number of comparisons with an undefined statistic; they count as not rejected.
    n_examples : int
        Number of examples, or clusters, of each comparison.
    effect : float
        Share of the pilot's difference that is assumed to be true.
    alpha : float
        Level of the test.
    seed : int
        Seed that gives the same numbers again.
    """

    power: float
    interval: tuple[float, float]
    n_rejected: int
    n_resamples: int
    n_undefined: int
    n_examples: int
    effect: float
    alpha: float
    seed: int

    def sentence(self, units: str) -> str:
        """Return the power as a sentence; `units` are the examples or clusters with their noun."""
        low, high = self.interval
        refused = f", {self.n_undefined} of them undefined" if self.n_undefined else ""
        return (
            f"power {self.power:.3g} [{low:.3g}, {high:.3g}] with {units}"
            f" (Monte Carlo: {self.n_resamples:,} resamples of the pilot{refused}, 99 % interval)"
        )


def simulated_power(
    pilot: CountTable,
    test: Callable[[CountTable], PermutationTest],
    n_examples: int,
    *,
    effect: float = 1.0,
    alpha: float = 0.05,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> SimulatedPower:
    """Estimate the probability of p < alpha on `n_examples` examples like those of a pilot comparison.

    Examples are drawn with replacement from the pilot: the multiplicities of its distinct counts are
    multinomial. The outputs of an example are then exchanged with probability (1 - effect)/2, which scales a
    mean difference, and approximately any other statistic, by that share; with 0 the null hypothesis holds.
    A pilot's difference tends to exceed the true one if it was the reason to continue, so the power at
    ``effect=1`` is then too optimistic.

    Parameters
    ----------
    pilot : CountTable
        Counts of both runs; of clusters if these are exchanged as a whole.
    test : callable
        Test of a CountTable with these counts. A p-value counts as below alpha if its whole interval is.
    n_examples : int
        Number of examples, or clusters, to draw.
    effect : float
        Share of the pilot's difference that is assumed to be true, from 0 to 1.
    alpha : float
        Level of the test.
    n_resamples, seed : int
        Number of comparisons to draw, and their seed.

    Raises
    ------
    InputError
        If an argument is out of range, or the test refuses the pilot itself.

    References
    ----------
    Clopper and Pearson (1934).
    """
    SignTest(alpha, "two-sided")
    least = {"n_examples": (n_examples, 1), "n_resamples": (n_resamples, 1), "seed": (seed, 0)}
    for name, (value, smallest) in least.items():
        if value < smallest:
            raise InputError(f"`{name}` is {value}; expected an integer of at least {smallest}")
    if not 0.0 <= effect <= 1.0:
        raise InputError(f"`effect` is {effect}; expected a share of the pilot's difference, from 0 to 1")
    test(pilot)
    generator = np.random.default_rng(seed)
    shares = pilot.multiplicities / pilot.n_examples
    u = np.vstack([pilot.candidate, pilot.baseline])
    v = np.vstack([pilot.baseline, pilot.candidate])
    rejected = undefined = 0
    for _ in range(n_resamples):
        drawn = generator.multinomial(n_examples, shares)
        exchanged = generator.binomial(drawn, (1.0 - effect) / 2.0)
        counts = np.concatenate([drawn - exchanged, exchanged])
        kept = counts > 0
        try:
            found = test(CountTable.from_counts(pilot.names, u[kept], v[kept], counts[kept]))
        except InputError:  # the pilot itself was not refused
            undefined += 1
            continue
        rejected += max(found.pvalue, found.interval[1]) < alpha
    return SimulatedPower(
        power=rejected / n_resamples,
        interval=exact_interval(rejected, n_resamples, stopped=False),
        n_rejected=rejected,
        n_resamples=n_resamples,
        n_undefined=undefined,
        n_examples=n_examples,
        effect=effect,
        alpha=alpha,
        seed=seed,
    )
