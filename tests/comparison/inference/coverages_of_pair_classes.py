"""Errors of bounds of macro-averaged areas under the ROC curve, by simulation; rows of a documented table.

``python -m comparison.inference.coverages_of_pair_classes`` in the folder of the tests prints them. Scores
are a softmax of normal logits, which are greater for the true class, and by far for the last, rare one. On a
share of the examples of that class the candidate fails. Bounds of 5 % are the ends of the score interval of
90 %, with and without the rule on unseen differences (:mod:`trackperm.exact.intervals.unseen`). An interval
that is not shown counts as containing everything, and equivalence is declared at a margin as large as the
true difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from comparison.inference.coverage_rows import print_rows
from exact.pairwise.levels import area_sums

from trackperm.comparison.inference.unseen import unseen_in_pairs
from trackperm.exact.intervals import Interval, interval_of_pairs
from trackperm.exact.pairwise import Influences, PairMean, coded_scores, influences_of

LEVEL = 0.05
SHARED, OWN = 0.5, 0.6
"""Standard deviations of the errors of logits that both runs have, and of those of each run."""


@dataclass(frozen=True)
class Law:
    """Sizes of classes, how far apart the logits of the last one are, and where the candidate fails on it."""

    sizes: tuple[int, ...]
    separation: float
    failures: float

    def sample(self, rng: np.random.Generator, times: int = 1) -> Influences:
        """Return the influences of a data set of so many times as many examples."""
        labels = np.repeat(np.arange(len(self.sizes)), np.array(self.sizes) * times)
        n, k = labels.size, len(self.sizes)
        rare, shared = labels == k - 1, SHARED * rng.normal(size=(n, k))
        logits = shared + OWN * rng.normal(size=(2, n, k)) + (labels[:, None] == np.arange(k))
        logits[:, rare, k - 1] += self.separation
        failed = rare & (rng.random(n) < self.failures)
        logits[0, failed, k - 1] = rng.normal(size=int(failed.sum())) - 3.0
        both = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        means = []
        for place in range(k):
            own = labels == place
            sums = area_sums(own, coded_scores(*both[:, :, place]))
            kinds = own.astype(np.int64)
            means.append(PairMean(sums, Fraction(1, 2), kinds, 0 * kinds, np.full(1, 1 / k)))
        return influences_of(means, names=[str(place) for place in range(k)], largest=1.0)


LAWS = (
    Law((150, 46, 4), 7.0, 0.15),
    Law((190, 10), 7.0, 0.1),
    Law((160, 30, 10), 7.0, 0.1),
    Law((980, 20), 7.0, 0.05),
    Law((150, 46, 4), 0.0, 0.0),
    Law((140, 100, 60), 1.0, 0.1),
    Law((60, 40) * 5, 1.0, 0.1),
)


def simulated(law: Law, n_sets: int, seed: int) -> np.ndarray:
    """Return shares of data sets, without and with the rule: shown, bound missed, equivalence declared."""
    rng = np.random.default_rng(seed)
    truth = float(np.mean([law.sample(rng, 20).difference for _ in range(40)]))
    found = np.zeros((n_sets, 2, 4))
    for i in range(n_sets):
        influences = law.sample(rng)
        whole, unseen = (
            interval_of_pairs(influences, alpha=2 * LEVEL, largest=1.0),
            unseen_in_pairs(influences),
        )
        assert unseen is not None
        if not isinstance(whole, Interval):
            continue
        found[i, 0] = 1, whole.low > truth, whole.high < truth, whole.within(abs(truth))
        if unseen.why_hidden(2 * LEVEL, "two-sided", "example") is None:
            found[i, 1] = found[i, 0]
            found[i, 1, 3] *= unseen.largest(LEVEL) < abs(truth)
    shares = found.mean(axis=0)
    return np.stack([shares[:, 0], shares[:, 1:3].max(axis=1), shares[:, 3]], axis=1)


if __name__ == "__main__":
    print_rows(__doc__, LAWS, simulated, lambda law: ["macro ROC AUC", str(law.sizes).strip("()")])
