"""Rate at which the exchange of ranks rejects equal areas under ROC curves; the table in the documentation.

``python -m exact.pairwise.levels`` in the folder of the tests prints it. The scores of both systems share a
part and have normal errors; those of the second one are exponentiated, so that the two are on different
scales. In one column, the positives of the second system have twice the standard deviation, and the same
area. In the last one, the systems have probabilities of three classes, by softmax of logits that are twice as
large in the second system; the statistic is the mean of the areas of the classes.
"""

from __future__ import annotations

import math
import sys

import numpy as np
import numpy.typing as npt

from trackperm.exact import difference_test
from trackperm.exact.pairwise import PairScores, PairSums, Roles, ranked_pairs, ranked_scores

SIZES = (20, 50, 100, 200, 500)
SHARES = (0.1, 0.3, 0.5)
ALPHA = 0.05

Floats = npt.NDArray[np.float64]


def area_sums(label: npt.NDArray[np.bool_], scores: PairScores) -> PairSums:
    """Return sums over pairs of a positive and a negative: 2 if they are in order, 1 if they tie."""
    zeros = np.zeros(label.size, dtype=np.int64)
    roles = Roles(np.where(label, 0, -1), np.where(label, -1, 0), zeros, zeros, zeros, zeros)
    terms = np.array([0, 1, 2])[None, None, None].repeat(3, axis=2)
    return ranked_pairs(scores, roles, terms, np.ones((1, 1, 3), dtype=bool))


def weights(label: npt.NDArray[np.bool_], candidate: Floats, baseline: Floats) -> npt.NDArray[np.int64]:
    """Return twice the weights of the examples in the difference of areas, times the number of pairs."""
    return area_sums(label, ranked_scores(candidate, baseline)).weights


def pvalue(added: npt.NDArray[np.int64]) -> float:
    return difference_test(added, np.zeros_like(added)).pvalue


def rate(n: int, share: float, n_samples: int, *, spread: float = 1.0, seed: int = 0) -> float:
    """Return the share of samples with p <= 5 %; `spread` is the deviation of one system's positives."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) < max(2, round(share * n))
    rejected = 0
    for _ in range(n_samples):
        shared, first, second = rng.normal(size=(3, n))
        a, b = ((shared + own) / np.sqrt(2.0) for own in (first, second))
        # Areas are Phi(mean / sqrt(1 + variance)): both 0.76.
        a = a + label
        b = np.where(label, spread * b + np.sqrt((1.0 + spread**2) / 2.0), b)
        rejected += pvalue(weights(label, np.exp(b), a)) <= ALPHA
    return rejected / n_samples


def rate_of_classes(n: int, n_samples: int, *, seed: int = 0) -> float:
    """Return the share of samples of three classes with p <= 5 %; half of the labels are of the first one."""
    rng = np.random.default_rng(seed)
    label = np.searchsorted((0.5, 0.8), np.arange(n) / n, side="right")
    sizes = np.bincount(label)
    n_pairs = [int(size * (n - size)) for size in sizes]
    rejected = 0
    for _ in range(n_samples):
        shared, first, second = rng.normal(size=(3, n, 3))
        runs = []
        for own, scale in ((first, 1.0), (second, 2.0)):
            odds = np.exp(scale * (shared + own + 2.0 * (label[:, None] == np.arange(3))))
            runs.append(odds / odds.sum(axis=1, keepdims=True))
        added = sum(
            math.lcm(*n_pairs) // n_pairs[c] * weights(label == c, runs[1][:, c], runs[0][:, c])
            for c in range(3)
        )
        rejected += pvalue(added) <= ALPHA
    return rejected / n_samples


def table(n_samples: int) -> list[str]:
    header = "| examples | " + " | ".join(f"{100 * share:.0f} % positive" for share in SHARES)
    lines = [f"{header} | 30 %, unequal spread | three classes |", "|---" * (len(SHARES) + 3) + "|"]
    for n in SIZES:
        rates = [rate(n, share, n_samples) for share in SHARES]
        rates.append(rate(n, 0.3, n_samples, spread=2.0))
        rates.append(rate_of_classes(n, n_samples))
        lines.append(f"| {n} | " + " | ".join(f"{each:.3f}" for each in rates) + " |")
    return lines


if __name__ == "__main__":
    sys.stdout.write("\n".join([*table(2_000), ""]))
