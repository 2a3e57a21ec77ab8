"""Power of equivalence of means over pairs, by simulation; the table in the documentation.

``python -m exact.pairwise.powers`` in the folder of the tests prints it. Each row compares the share of data
sets that show equivalence within the margin with the power that is printed beside each of them, for the true
difference of the law.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from exact.pairwise.coverage import Sample, area, concordance, expectation, score, tau
from scipy.special import ndtri

from trackperm.exact.pairwise import Influences
from trackperm.exact.power.equivalence import PairsLaw

ALPHA = 0.05
N_SAMPLES = 2_000


@dataclass(frozen=True)
class Power:
    """Simulated power of equivalence, and mean and standard deviation of the printed one."""

    simulated: float
    printed: float
    deviation: float


def is_equivalent(influences: Influences, margin: float) -> bool:
    """Whether both one-sided tests at the margin reject: whether the interval of 90 % lies within it."""
    z = -float(ndtri(ALPHA))
    scores = [score(influences, end) for end in (margin, -margin)]
    return scores[0] is not None and scores[1] is not None and scores[0] < -z and scores[1] > z


def power(sample: Sample, truth: float, margin: float, n_samples: int, seed: int) -> Power:
    rng = np.random.default_rng(seed)
    seen, printed = 0, []
    for _ in range(n_samples):
        influences = sample(rng)
        seen += is_equivalent(influences, margin)
        law = PairsLaw.of(influences)
        n = sum(influences.counts)
        printed.append(0.0 if law is None else law.power(margin, truth, ALPHA, n))
    return Power(seen / n_samples, float(np.mean(printed)), float(np.std(printed)))


def laws() -> Iterator[tuple[str, Sample, float, float]]:
    """Yield the row of the table, a law, its true difference and a margin."""
    for n, share, areas, shared, margin in (
        (100, 0.5, (0.8, 0.8), 0.8, 0.08),
        (200, 0.1, (0.8, 0.8), 0.8, 0.12),
        (200, 0.5, (0.9, 0.9), 0.0, 0.08),
        (200, 0.5, (0.83, 0.8), 0.8, 0.06),
        (1_000, 0.05, (0.95, 0.95), 0.8, 0.03),
        (1_000, 0.1, (0.82, 0.8), 0.8, 0.04),
        (1_000, 0.5, (0.6, 0.6), 0.0, 0.06),
    ):
        name = f"area, {areas[0]} and {areas[1]} | {100 * share:.0f} % positive | {n:,}"
        yield name, area(n, share, areas, shared), areas[0] - areas[1], margin
    for n, events, shared, margin in ((100, 0.7, 0.8, 0.08), (200, 0.2, 0.8, 0.1), (1_000, 0.2, 0.0, 0.06)):
        sample = concordance(n, events, (0.7, 0.7), shared)
        yield f"Harrell's C, equal | {100 * events:.0f} % events | {n:,}", sample, 0.0, margin
    for n, correlations, steps, margin in (
        (50, (0.5, 0.5), 0.0, 0.25),
        (200, (0.5, 0.5), 1.0, 0.1),
        (1_000, (0.8, 0.78), 1.0, 0.04),
    ):
        of = partial(tau, correlations=correlations, steps=steps)
        truth = expectation(of) if correlations[0] != correlations[1] else 0.0
        yield f"tau-a, correlations {correlations[0]} and {correlations[1]} | | {n:,}", of(n), truth, margin


def table() -> list[str]:
    rows = []
    for seed, (name, sample, truth, margin) in enumerate(laws()):
        found = power(sample, truth, margin, N_SAMPLES, seed)
        rows.append(
            f"| {name} | {truth:.3f} | {margin} | {found.simulated:.2f} | {found.printed:.2f} |"
            f" {found.deviation:.2f} |"
        )
        sys.stderr.write(rows[-1] + "\n")
    return rows


if __name__ == "__main__":
    sys.stdout.write("\n".join(table()) + "\n")
