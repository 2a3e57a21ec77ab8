"""What the benchmarks run on: seeded inputs of any size, and the programs that stand beside ours."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from trackperm.exact import (
    PermutationTest,
    RationalStatistic,
    RealStatistic,
    difference_test,
    structured_test,
)

Integers = npt.NDArray[np.int64]


def paper_tokens(n_examples: int, seed: int = 0) -> tuple[Integers, Integers]:
    """Tokens tagged right by two systems: Zmigrod, Vieira and Cotterell (2022), section 5, Table 1."""
    rng = np.random.default_rng(seed)
    lengths = np.maximum(np.ceil(np.abs(rng.normal(12, 10, n_examples))), 1).astype(np.int64)

    def right(mean: float) -> Integers:
        return rng.binomial(lengths, np.clip(rng.normal(mean, 0.1116, n_examples), 0, 1))

    return right(0.9543), right(0.98 * 0.9543)


def answers(n_examples: int, seed: int = 0) -> tuple[Integers, Integers]:
    """Right and wrong answers, 1 and 0, of two systems that agree on most examples."""
    rng = np.random.default_rng(seed)
    baseline = rng.binomial(1, 0.88, n_examples)
    candidate = np.where(rng.random(n_examples) < 0.8, baseline, rng.binomial(1, 0.9, n_examples))
    return candidate, baseline


def entities(n_examples: int, seed: int = 0) -> tuple[Integers, Integers]:
    """(true positives, incorrect predictions) of two systems: stay and swap, four counts each."""
    rng = np.random.default_rng(seed)
    u = rng.binomial(3, (0.8, 0.2), size=(n_examples, 2))
    v = rng.binomial(3, (0.79, 0.21), size=(n_examples, 2))
    return np.hstack([u, v]), np.hstack([v, u])


def binary_labels(n_examples: int, seed: int = 0) -> tuple[Integers, Integers]:
    """The same counts from two classifiers of binary labels, where a swap moves one of two counts."""
    rng = np.random.default_rng(seed)
    label = rng.random(n_examples) < 0.4

    def counts(right: float) -> Integers:
        said = np.where(rng.random(n_examples) < right, label, ~label)
        return np.stack([said & label, said ^ label], axis=1).astype(np.int64)

    u, v = counts(0.82), counts(0.8)
    return np.hstack([u, v]), np.hstack([v, u])


def long_texts(n_examples: int, seed: int = 0) -> tuple[Integers, Integers]:
    """The same counts with 10 entities in an example on average: more than a hundred distinct differences."""
    rng = np.random.default_rng(seed)
    gold = rng.poisson(10, n_examples)

    def counts(recall: float, spurious: float) -> Integers:
        found = rng.binomial(gold, recall)
        return np.stack([found, gold - found + rng.poisson(spurious, n_examples)], axis=1)

    u, v = counts(0.8, 4.0), counts(0.79, 4.2)
    return np.hstack([u, v]), np.hstack([v, u])


def strata(n_examples: int, n_strata: int, seed: int = 0) -> tuple[Integers, Integers, Integers]:
    """Answers of two systems, and the stratum of each example; strata of random, nearly equal sizes."""
    candidate, baseline = answers(n_examples, seed)
    sizes = np.random.default_rng(seed).multinomial(n_examples, np.full(n_strata, 1 / n_strata))
    return candidate, baseline, np.repeat(np.arange(n_strata), sizes)


@cache
def f1_difference() -> RationalStatistic:
    """F1 of the candidate minus that of the baseline, from the four counts of :func:`entities`."""
    tp_u, in_u, tp_v, in_v = (RationalStatistic.variable(i, 4) for i in range(4))
    return tp_u.divide(tp_u + in_u / 2, undefined=0) - tp_v.divide(tp_v + in_v / 2, undefined=0)


def f1_test(observed: Integers, swapped: Integers) -> PermutationTest:
    return structured_test(observed, swapped, f1_difference())


def class_predictions(
    n_examples: int, n_classes: int, baseline: float, candidate: float, seed: int = 0
) -> tuple[Integers, Integers]:
    """Distinct (label, candidate, baseline) of classifiers of given accuracies, and their numbers."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, n_classes, n_examples)

    def predicted(right: float) -> Integers:
        return np.where(rng.random(n_examples) < right, label, rng.integers(0, n_classes, n_examples))

    outcomes = np.stack([label, predicted(candidate), predicted(baseline)], axis=1)
    return np.unique(outcomes, axis=0, return_counts=True)


def macro_f1_of(
    problem: tuple[Integers, Integers],
) -> tuple[Integers, Integers, RationalStatistic, Integers]:
    """Counts of both runs for the difference in macro-F1, the statistic, and multiplicities."""
    (label, u, v), multiplicities = problem[0].T, problem[1]
    k = int(label.max()) + 1
    one = np.eye(k, dtype=np.int64)

    def counts(predicted: Integers) -> Integers:
        return np.hstack([one[predicted] * (predicted == label)[:, None], one[predicted], one[label]])

    x = [RationalStatistic.variable(i, 6 * k) for i in range(6 * k)]

    def score(first: int) -> RationalStatistic:
        tp, predicted, actual = (x[first + i * k : first + (i + 1) * k] for i in range(3))
        each = [(2 * t).divide(p + a, undefined=0) for t, p, a in zip(tp, predicted, actual, strict=True)]
        return sum(each[1:], each[0]) / k

    there, back = counts(u), counts(v)
    return np.hstack([there, back]), np.hstack([back, there]), score(0) - score(3 * k), multiplicities


def class_test(problem: tuple[Integers, Integers], **options: Any) -> PermutationTest:
    observed, swapped, h, multiplicities = macro_f1_of(problem)
    return structured_test(observed, swapped, h, multiplicities=multiplicities, **options)


def multiclass_mcc_of(
    problem: tuple[Integers, Integers],
) -> tuple[Integers, Integers, RealStatistic, Integers]:
    """Counts of both runs for the difference in the correlation of all classes (Gorodkin 2004)."""
    (label, u, v), multiplicities = problem[0].T, problem[1]
    k, n = int(label.max()) + 1, int(multiplicities.sum())
    actual = np.bincount(label, weights=multiplicities, minlength=k).astype(int).tolist()

    def counts(predicted: Integers) -> Integers:
        return np.hstack([(predicted == label)[:, None], np.eye(k, dtype=np.int64)[predicted]])

    x = [RealStatistic.variable(i, 2 * (k + 1)) for i in range(2 * (k + 1))]

    def score(first: int) -> RealStatistic:
        correct, predicted = x[first], x[first + 1 : first + 1 + k]
        covariance = n * correct - sum(p * a for p, a in zip(predicted, actual, strict=True))
        spread = n**2 - sum(p * p for p in predicted)
        return covariance.divide((spread * (n**2 - sum(a * a for a in actual))).sqrt(), undefined=0)

    there, back = counts(u), counts(v)
    return np.hstack([there, back]), np.hstack([back, there]), score(0) - score(k + 1), multiplicities


def share_and_count(n_examples: int, seed: int = 0) -> tuple[Integers, Integers, RationalStatistic, None]:
    """Counts of the mean of accuracy in one half of the examples and precision in the other."""
    rng = np.random.default_rng(seed)
    half = np.arange(n_examples) < n_examples // 2

    def run(right: float) -> Integers:
        found = rng.binomial(3, (right, 1 - right), size=(n_examples, 2)) * ~half[:, None]
        return np.hstack([found, half[:, None] & (rng.random((n_examples, 1)) < right)])

    there, back = run(0.8), run(0.78)
    x = [RationalStatistic.variable(i, 6) for i in range(6)]

    def score(first: int) -> RationalStatistic:
        right, wrong, correct = x[first : first + 3]
        return right.divide(right + wrong, undefined=0) + correct / int(half.sum())

    return np.hstack([there, back]), np.hstack([back, there]), score(0) - score(3), None


def f1_by_strata(n_strata: int) -> RationalStatistic:
    """Mean F1 of strata, the candidate's minus the baseline's."""
    m = 4 * n_strata
    x = [RationalStatistic.variable(i, m) for i in range(m)]
    parts = [x[i].divide(x[i] + x[i + 1] / 2, undefined=0) for i in range(0, m, 2)]
    mean = [sum(half[1:], half[0]) / n_strata for half in (parts[:n_strata], parts[n_strata:])]
    return mean[0] - mean[1]


def strata_of_f1(
    n_examples: int,
    n_strata: int,
    seed: int = 0,
    rates: tuple[float, float] = (0.8, 0.77),
    n_items: int = 3,
) -> tuple[Integers, Integers, RationalStatistic]:
    """Counts of the difference in the mean of F1 over strata."""
    rng = np.random.default_rng(seed)
    stratum = rng.integers(0, n_strata, n_examples)

    def run(right: float) -> Integers:
        counts = np.zeros((n_examples, 2 * n_strata), dtype=np.int64)
        counts[np.arange(n_examples), 2 * stratum] = rng.binomial(n_items, right, n_examples)
        counts[np.arange(n_examples), 2 * stratum + 1] = rng.binomial(n_items, 1 - right, n_examples)
        return counts

    there, back = (run(rate) for rate in rates)
    return np.hstack([there, back]), np.hstack([back, there]), f1_by_strata(n_strata)


def scipy_f1_resamples(observed: Integers, n_resamples: int = 9_999, batch: int = 500) -> float:
    """P-value of the difference in F1 by SciPy, vectorised: its arrays hold one number each, so two counts
    are the parts of a complex one.
    """

    def difference(u: npt.NDArray[Any], v: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
        f1 = [sums.real / (sums.real + sums.imag / 2) for sums in (u.sum(axis=axis), v.sum(axis=axis))]
        return f1[0] - f1[1]

    data = (observed[:, 0] + 1j * observed[:, 1], observed[:, 2] + 1j * observed[:, 3])
    return _scipy_pvalue(data, difference, n_resamples, batch)


def counting(candidate: Integers, baseline: Integers) -> Integers:
    """The least that a test of the difference has to do."""
    return np.bincount(np.abs(candidate - baseline))


def scipy_resamples(
    candidate: npt.ArrayLike, baseline: npt.ArrayLike, n_resamples: int = 9_999, batch: int = 500
) -> float:
    """P-value of the difference in mean by SciPy, vectorised; its default batch would take 6 GiB."""

    def mean_difference(u, v, axis):
        return np.mean(u, axis=axis) - np.mean(v, axis=axis)

    return _scipy_pvalue((candidate, baseline), mean_difference, n_resamples, batch)


def _scipy_pvalue(data: tuple[Any, Any], statistic: Callable, n_resamples: int, batch: int) -> float:
    result = stats.permutation_test(
        data,
        statistic,
        permutation_type="samples",
        vectorized=True,
        n_resamples=n_resamples,
        batch=batch,
        rng=np.random.default_rng(0),
    )
    return float(np.real(result.pvalue))  # of complex type where the data are


def seconds(
    function: Callable, *args, rounds: int = 1, clock: Callable[[], float] = time.perf_counter, **kwargs
) -> float:
    """Median time of a call, on the wall unless another clock is given."""

    def once() -> float:
        start = clock()
        function(*args, **kwargs)
        return clock() - start

    return statistics.median(once() for _ in range(rounds))


def of_processor(function: Callable[[], object], rounds: int) -> float:
    """Seconds of processor time of a call, of all threads: the fewest."""

    def once() -> float:
        start = time.process_time()
        function()
        return time.process_time() - start

    once()
    return min(once() for _ in range(rounds))


MEASURED = {"difference_test": (answers, difference_test), "f1_test": (entities, f1_test)}
"""Inputs and calls whose memory is measured, by name, so that a fresh process can find them."""
