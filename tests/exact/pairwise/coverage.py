"""Coverage of the intervals of means over pairs, by simulation; the tables in the documentation.

``python -m exact.pairwise.coverage`` in the folder of the tests prints them. Both systems' scores have normal
errors, which are independent or share four fifths of their variance. A data set without an interval counts
as covered; another column has the coverage of the intervals that are shown. Laws with large errors are
simulated again with more and new draws, which replace the first ones, because the largest of many errors is
too large by chance.

An interval contains the true difference exactly if the score test does not reject it, which takes one fit
instead of the search for an end.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt
from exact.pairwise.levels import area_sums
from scipy.special import ndtri

from trackperm.exact.intervals.of_pairs import FEWEST, laws_of_influences
from trackperm.exact.pairwise import (
    Influences,
    PairMean,
    PairSums,
    Roles,
    coded_scores,
    influences_of,
    ranked_pairs,
)

AREAS = ((0.6, 0.6), (0.8, 0.75), (0.9, 0.9), (0.95, 0.9), (0.99, 0.99), (0.99, 0.95))
SHARED = (0.0, 0.8)
SIZES = (20, 50, 100, 200, 1000)
SHARES = (0.05, 0.1, 0.5)

N_SAMPLES, N_AGAIN = 2_000, 10_000
SUSPICIOUS = 0.055
"""One-sided error at 5 % from which on a law is simulated again: a standard error above 5 %."""

Floats = npt.NDArray[np.float64]
Sample = Callable[[np.random.Generator], Influences]
"""Influences of the examples of one simulated comparison."""


@dataclass(frozen=True)
class Errors:
    """Numbers of intervals of 95 % that miss, of bounds of 5 % that miss above and below, and of all."""

    n_samples: int
    n_shown: int
    n_missed: int
    n_low: int
    n_high: int

    @property
    def coverage(self) -> float:
        return 1.0 - self.n_missed / self.n_samples

    @property
    def one_sided(self) -> float:
        return max(self.n_low, self.n_high) / self.n_samples


def errors(sample: Sample, truth: float, n_samples: int, seed: int) -> Errors:
    rng = np.random.default_rng(seed)
    both, one = (float(-ndtri(level)) for level in (0.025, 0.05))
    found = [z for z in (score(sample(rng), truth) for _ in range(n_samples)) if z is not None]
    return Errors(
        n_samples,
        len(found),
        sum(abs(z) > both for z in found),
        sum(z > one for z in found),
        sum(z < -one for z in found),
    )


def score(influences: Influences, truth: float) -> float | None:
    """Return the observed minus the true difference, in standard deviations under the law with the true one.

    Return None where too few examples differ for an interval.
    """
    if influences.n_effective < FEWEST:
        return None
    laws = laws_of_influences(influences)
    distance = (influences.difference - truth) / influences.unit
    target, side = laws.difference - distance, math.copysign(1.0, -distance)
    if side * laws.extreme(side) <= side * target:
        return math.copysign(math.inf, distance)
    found = laws.fitted(target, laws.masses)
    return 0.0 if found is None else distance / found[1]


def scores(rng: np.random.Generator, n: int, shared: float) -> Floats:
    common, own = rng.normal(size=n), rng.normal(size=(2, n))
    return np.asarray(np.sqrt(shared) * common + np.sqrt(1.0 - shared) * own)


def influences(sums: PairSums, unit: Fraction, kinds: npt.NDArray[np.int64]) -> Influences:
    return influences_of([PairMean(sums, unit, kinds, np.zeros_like(kinds), np.ones(1))])


def area(n: int, share: float, areas: tuple[float, float], shared: float) -> Sample:
    """Binormal scores with these areas under the ROC curve, and a fixed share of positives, at least 2."""
    positive = (np.arange(n) < max(2, round(share * n))).astype(np.int64)
    means = np.sqrt(2.0) * ndtri(np.array(areas))[:, None]

    def sample(rng: np.random.Generator) -> Influences:
        both = coded_scores(*(scores(rng, n, shared) + means * positive))
        return influences(area_sums(positive == 1, both), Fraction(1, 2), positive)

    return sample


def areas_of_classes(n: int, slopes: tuple[float, float], shared: float) -> Sample:
    """Mean area of three classes, with 50, 30 and 20 % of the labels, from a softmax of normal logits."""
    label = np.searchsorted((0.5, 0.8), np.arange(n) / n, side="right")
    zeros = np.zeros(n, dtype=np.int64)

    def sample(rng: np.random.Generator) -> Influences:
        logits = np.stack([scores(rng, n, shared) for _ in range(3)], axis=-1)
        logits += np.array(slopes)[:, None, None] * (label[:, None] == np.arange(3))
        both = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        means = []
        for place in range(3):
            own = (label == place).astype(np.int64)
            sums = area_sums(label == place, coded_scores(*both[:, :, place]))
            means.append(PairMean(sums, Fraction(1, 2), own, zeros, np.full(1, 1 / 3)))
        return influences_of(means)

    return sample


def concordance(n: int, events: float, slopes: tuple[float, float], shared: float) -> Sample:
    """Exponential times whose logarithms have these slopes in the scores; censored at random."""
    zeros = np.zeros(n, dtype=np.int64)
    terms = np.zeros((1, 2, 3, 3), dtype=np.int64)
    terms[:, :, 0] = terms[:, 1:, 1] = 0, 1, 2

    def sample(rng: np.random.Generator) -> Influences:
        while True:
            both = scores(rng, n, shared)
            risk = np.exp(np.array(slopes) @ both)
            rates = np.array([[1.0], [events / (1.0 - events)]])
            time, censored = rng.exponential(size=(2, n)) / risk * rates
            event = (time <= censored).astype(np.int64)
            places = np.argsort(np.argsort(np.minimum(time, censored)))
            roles = Roles(event - 1, 1 - event, places, places, zeros, zeros)
            sums = ranked_pairs(coded_scores(*both), roles, terms, terms.any(axis=3))
            if sums.partners.any():  # some small samples have no comparable pair
                return influences(sums, Fraction(1, 2), zeros)

    return sample


def tau(n: int, correlations: tuple[float, float], steps: float) -> Sample:
    """Normal scores that correlate with a normal label; `steps` to a unit are told apart, or all if 0."""
    zeros = np.zeros(n, dtype=np.int64)
    terms = np.zeros((1, 1, 3, 3), dtype=np.int64)
    terms[:, :, 0], terms[:, :, 2] = (1, 0, -1), (-1, 0, 1)

    def sample(rng: np.random.Generator) -> Influences:
        label, *own = rng.normal(size=(3, n))
        both = [r * label + np.sqrt(1.0 - r * r) * each for r, each in zip(correlations, own, strict=True)]
        if steps:
            label, *both = (np.rint(steps * each) for each in (label, *both))
        places = np.unique(label, return_inverse=True)[1].astype(np.int64)
        roles = Roles(zeros, zeros, places, places, zeros, zeros)
        sums = ranked_pairs(coded_scores(*both), roles, terms, np.ones((1, 1, 3), dtype=bool))
        return influences(sums, Fraction(1), zeros)

    return sample


def expectation(sample: Callable[[int], Sample], n: int = 100_000, seed: int = 99) -> float:
    """Estimate the true difference from 40 large samples: to 2 % of the standard error of 1,000 examples."""
    rng = np.random.default_rng(seed)
    return float(np.mean([sample(n)(rng).difference for _ in range(40)]))


def laws() -> Iterator[tuple[str, Sample, float]]:
    """Yield the row of the table, a law, and its true difference."""
    for n, share in product(SIZES, SHARES):
        if share * n < 2:
            continue
        for areas, shared in product(AREAS, SHARED):
            name = f"area under the ROC curve, {n} examples, {100 * share:.0f} % positive"
            yield name, area(n, share, areas, shared), areas[0] - areas[1]
    for sample_of, truth in _laws_of_classes():
        for n in SIZES:
            yield f"mean of the areas of three classes, {n} examples", sample_of(n), truth
    for sample_of, truth in _laws_of_concordance():
        for n in SIZES:
            yield f"Harrell's C, {n} examples", sample_of(n), truth
    for sample_of, truth in _laws_of_tau():
        for n in SIZES:
            yield f"Kendall's tau-a, {n} examples", sample_of(n), truth


def _laws_of_classes() -> Iterator[tuple[Callable[[int], Sample], float]]:
    """Yield laws by the number of examples, and their true differences."""
    for slopes, shared in product(((1.0, 1.0), (3.0, 3.0), (3.0, 2.0)), SHARED):
        found = partial(areas_of_classes, slopes=slopes, shared=shared)
        yield found, 0.0 if slopes[0] == slopes[1] else expectation(found)


def _laws_of_concordance() -> Iterator[tuple[Callable[[int], Sample], float]]:
    """Yield laws by the number of examples, of 20 or 70 % events, and their true differences."""
    for events, slopes, shared in product((0.2, 0.7), ((0.7, 0.7), (1.5, 0.3)), SHARED):
        found = partial(concordance, events=events, slopes=slopes, shared=shared)
        yield found, 0.0 if slopes[0] == slopes[1] else expectation(found)


def _laws_of_tau() -> Iterator[tuple[Callable[[int], Sample], float]]:
    """Yield laws by the number of examples, with and without ties, and their true differences."""
    for correlations, steps in product(((0.5, 0.5), (0.95, 0.9), (0.8, 0.3)), (0.0, 1.0)):
        found = partial(tau, correlations=correlations, steps=steps)
        # Without ties tau is 2 / pi times the arc sine of the correlation.
        exact = 2.0 / np.pi * float(np.arcsin(correlations[0]) - np.arcsin(correlations[1]))
        yield found, expectation(found) if steps and exact else exact


def table() -> list[str]:
    rows: dict[str, list[Errors]] = {}
    for seed, (name, sample, truth) in enumerate(laws()):
        found = errors(sample, truth, N_SAMPLES, seed)
        if found.one_sided > SUSPICIOUS or found.coverage < 1.0 - SUSPICIOUS:
            sys.stderr.write(f"{name}: {found}, again\n")
            found = errors(sample, truth, N_AGAIN, seed + 1_000)
        sys.stderr.write(f"{name}: {found.coverage:.4f} {found.one_sided:.4f} {found}\n")
        rows.setdefault(name, []).append(found)
    lines = ["| statistic | least coverage | largest one-sided error at 5 % | shown | of these, cover |"]
    lines.append("|---|---:|---:|---:|---:|")
    for name, all_ in rows.items():
        shown = [each.n_shown / each.n_samples for each in all_]
        missed = [each.n_missed / each.n_samples for each in all_]
        lines.append(
            f"| {name} | {100 * min(each.coverage for each in all_):.1f} %"
            f" | {100 * max(each.one_sided for each in all_):.1f} %"
            f" | {100 * sum(shown) / len(shown):.0f} %"
            f" | {f'{100 * (1 - sum(missed) / sum(shown)):.1f} %' if any(shown) else '-'} |"
        )
    return lines


if __name__ == "__main__":
    sys.stdout.write("\n".join([*table(), ""]))
