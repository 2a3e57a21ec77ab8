"""Levels of tilted sampling under the null hypothesis, each configuration weighted by its probability.

For given draws, the p-value of a configuration depends on its point alone. The law of the points is known, so
only the draws are simulated. `python -m support.tilted_levels`, from the folder `tests`, prints the table of
`docs/pages/method/method.md`.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trackperm.exact.distributions.characteristic import SwapDistribution
from trackperm.exact.engines.tilted_draws import tilted_swaps
from trackperm.exact.engines.tilted_sampling import Mixture, Path, ladder

Floats = npt.NDArray[np.float64]
Proposal = Callable[[SwapDistribution, Callable[[Floats], Floats], npt.NDArray[np.int64]], Mixture]

LEVELS = (0.05, 0.01, 1e-3, 1e-4)


@dataclass(frozen=True)
class Null:
    """Law of swaps, and a statistic of its points, shape (r, n)."""

    law: SwapDistribution
    value: Callable[[Floats], Floats]

    def points(self) -> tuple[npt.NDArray[np.int64], Floats]:
        """All points, shape (r, n), and their probabilities."""
        found: Counter[tuple[int, ...]] = Counter({(0,) * self.law.rank: 1})
        for step, count in zip(self.law.coordinates.tolist(), self.law.multiplicities.tolist(), strict=True):
            following: Counter[tuple[int, ...]] = Counter()
            for (point, ways), heads in itertools.product(found.items(), range(count + 1)):
                moved = tuple(x + heads * s for x, s in zip(point, step, strict=True))
                following[moved] += ways * math.comb(count, heads)
            found = following
        points = np.array(list(found), dtype=np.int64).T
        return points, np.array([ways / 2**self.law.n_coins for ways in found.values()])


def fixed_ladder(null: Null) -> Mixture:
    """The proposal of the engine, which does not read the observed point."""
    return ladder(Path(null.law, null.value), null.law)


def two_blocks(n: int = 12) -> Null:
    """The greater of two sums of n signs."""
    law = SwapDistribution(np.eye(2, dtype=np.int64), np.array([n, n]))
    return Null(law, lambda points: 2.0 * points.max(axis=0) - n)


def macro_f1(n: int = 22, seed: int = 3) -> Null:
    """Difference in macro-F1 of three classes; n examples, and some 40 on which the runs agree."""
    rng = np.random.default_rng(seed)
    label, u, v = (rng.integers(0, 3, n) for _ in range(3))
    one = np.eye(3, dtype=np.int64)
    steps = np.hstack([one[u] * (u == label)[:, None], one[u]])
    steps -= np.hstack([one[v] * (v == label)[:, None], one[v]])
    kept = steps.any(axis=1)
    law = SwapDistribution(steps[kept], np.ones(int(kept.sum()), dtype=np.int64))
    total = np.array(law.total)[:, None]
    agreed = 10.0 + rng.integers(0, 10, (3, 1))
    labels = np.bincount(label, minlength=3)[:, None] + agreed

    def score(centred: Floats) -> Floats:
        hits, predicted = agreed + n / 6 + centred[:3] / 2, agreed + n / 3 + centred[3:] / 2
        return (2.0 * hits / (predicted + labels)).mean(axis=0)

    return Null(law, lambda points: score(2.0 * points - total) - score(total - 2.0 * points))


def bleu(n: int = 14, seed: int = 4) -> Null:
    """Difference of geometric means of two pooled precisions, with a brevity penalty."""
    rng = np.random.default_rng(seed)
    steps = np.stack([rng.integers(-2, 3, n), rng.integers(-1, 2, n), rng.integers(-2, 3, n)], axis=1)
    law = SwapDistribution(steps, np.ones(n, dtype=np.int64))
    total = np.array(law.total)[:, None]

    def score(centred: Floats) -> Floats:
        ones, twos, length = 60 + centred[0] / 2, 30 + centred[1] / 2, 100 + centred[2] / 2
        precision = ones / length * (twos / (length - n))
        return np.sqrt(precision) * np.exp(np.minimum(0.0, 1.0 - 101.0 / length))

    return Null(law, lambda points: score(2.0 * points - total) - score(total - 2.0 * points))


def one_sum(n: int = 16, seed: int = 5) -> Null:
    """A sum of unequal differences, cubed."""
    steps = np.random.default_rng(seed).integers(1, 40, (n, 1))
    law = SwapDistribution(steps, np.ones(n, dtype=np.int64))
    return Null(law, lambda points: (points[0] - law.total[0] / 2) ** 3 + 100.0 * points[0])


NULLS: dict[str, Callable[[], Null]] = {
    "the greater of two sums": two_blocks,
    "macro-F1 of 3 classes": macro_f1,
    "geometric mean with brevity penalty": bleu,
    "a cubic of one sum": one_sum,
}


def drawn_pvalues(
    null: Null,
    points: npt.NDArray[np.int64],
    mixture: Mixture,
    n_draws: int,
    n_sets: int,
    rng: np.random.Generator,
) -> Iterator[Floats]:
    """Valid p-values of points, shape (r, n), by independent sets of draws from one proposal."""
    own = np.exp(-mixture.log_density(points))
    own_value = np.round(null.value(points.astype(np.float64)), 9)
    for _ in range(n_sets):
        counts = rng.multinomial(n_draws, mixture.shares)
        drawn = np.hstack(
            [
                tilted_swaps(null.law, tilt, int(size), rng)
                for tilt, size in zip(mixture.tilts, counts, strict=True)
                if size
            ]
        )
        weights = np.exp(-mixture.log_density(drawn))
        heights = np.round(null.value(drawn.astype(np.float64)), 9)
        order = np.argsort(heights)
        above = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
        extreme = above[np.searchsorted(heights[order], own_value, side="left")]
        yield (own + extreme) / (n_draws + 1)


def rejection_rates(
    null: Null,
    n_draws: int,
    n_sets: int,
    proposal: Proposal | None = None,
    levels: Sequence[float] = LEVELS,
) -> Floats:
    """P(p <= a) at levels a, and its standard errors, in two rows; `n_sets` independent sets of draws.

    The proposal is that of the engine, or a function of the observed point, if one is given. Points with
    equal proposals share draws; p = (w + sum of the weights as extreme) / (n_draws + 1).
    """
    points, mass = null.points()
    if proposal is None:
        proposals = [fixed_ladder(null)] * points.shape[1]
    else:
        proposals = [proposal(null.law, null.value, point) for point in points.T]
    groups: dict[bytes, list[int]] = {}
    for place, each in enumerate(proposals):
        groups.setdefault(each.tilts.tobytes(), []).append(place)
    rng = np.random.default_rng(0)
    rates = np.zeros((n_sets, len(levels)))
    for places in groups.values():
        chosen, own_mass = points[:, places], mass[places]
        sets = drawn_pvalues(null, chosen, proposals[places[0]], n_draws, n_sets, rng)
        for number, pvalue in enumerate(sets):
            rates[number] += [float(own_mass[pvalue <= level].sum()) for level in levels]
    return np.array([rates.mean(axis=0), rates.std(axis=0) / math.sqrt(n_sets)])


def table(n_sets: int = 2_000) -> str:
    """Markdown table of simulated levels, one row for each statistic and number of draws."""
    lines = [
        f"| statistic | draws | {' | '.join(f'a = {level:g}' for level in LEVELS)} |",
        "|---|---:|" + "---:|" * 4,
    ]
    for name, make in NULLS.items():
        for n_draws in (20, 200, 2_000):
            rates, _ = rejection_rates(make(), n_draws, n_sets)
            lines.append(f"| {name} | {n_draws} | {' | '.join(f'{rate:.2g}' for rate in rates)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")
