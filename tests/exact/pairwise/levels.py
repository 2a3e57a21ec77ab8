"""Rate at which the exchange of ranks rejects equal areas under ROC curves; the table in the documentation.

``python -m exact.pairwise.levels`` in the folder of the tests prints it. The scores of both systems share a
part and have normal errors; those of the second one are exponentiated, so that the two are on different
scales. In the last column, the positives of the second system have twice the standard deviation, and the same
area.
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from trackperm.exact import difference_test
from trackperm.exact.pairwise import Roles, ranked_pairs, ranked_scores

SIZES = (20, 50, 100, 200, 500)
SHARES = (0.1, 0.3, 0.5)
ALPHA = 0.05

Floats = npt.NDArray[np.float64]


def pvalue(label: npt.NDArray[np.bool_], candidate: Floats, baseline: Floats) -> float:
    zeros = np.zeros(label.size, dtype=np.int64)
    roles = Roles(np.where(label, 0, -1), np.where(label, -1, 0), zeros, zeros, zeros, zeros)
    terms = np.array([0, 1, 2])[None, None, None].repeat(3, axis=2)
    sums = ranked_pairs(ranked_scores(candidate, baseline), roles, terms, np.ones((1, 1, 3), dtype=bool))
    return difference_test(sums.weights, np.zeros_like(sums.weights)).pvalue


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
        rejected += pvalue(label, np.exp(b), a) <= ALPHA
    return rejected / n_samples


def table(n_samples: int) -> list[str]:
    header = "| examples | " + " | ".join(f"{100 * share:.0f} % positive" for share in SHARES)
    lines = [f"{header} | 30 %, unequal spread |", "|---" * (len(SHARES) + 2) + "|"]
    for n in SIZES:
        rates = [rate(n, share, n_samples) for share in SHARES]
        rates.append(rate(n, 0.3, n_samples, spread=2.0))
        lines.append(f"| {n} | " + " | ".join(f"{each:.3f}" for each in rates) + " |")
    return lines


if __name__ == "__main__":
    sys.stdout.write("\n".join([*table(2_000), ""]))
