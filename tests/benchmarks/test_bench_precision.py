"""How far p-values are from the truth in integers, and how much more than that their certificates claim."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from fractions import Fraction

import flint
import numpy as np
from benchmarks.summary import Row
from support import oracles

from trackperm.exact import PermutationTest, RationalStatistic, difference_test, structured_test

ROUNDING = 2.0**-52
SMALLEST = Fraction(1, 10**300)

Case = tuple[PermutationTest, Fraction]


def one_way(histogram: dict[int, int], shares: np.ndarray) -> Iterator[Case]:
    """Differences of which a share is in favour of the candidate, from half of them to all."""
    sizes = np.repeat(list(histogram), list(histogram.values()))
    order = np.random.default_rng(0).permutation(len(sizes))
    for share in shares:
        signs = np.where(order < round(share * len(sizes)), 1, -1)
        differences = signs * sizes
        truth = oracles.difference_pvalues(differences.tolist())["two-sided"]
        yield difference_test(differences, np.zeros_like(differences), method="lattice"), truth


def f1_cases() -> Iterator[Case]:
    """F1 of two systems whose counts add up to the same totals, so that two sums say it all."""
    rng = np.random.default_rng(0)
    for n_examples, better in [(60, 0.5), (120, 0.8), (200, 0.95), (240, 1.0)]:
        tp_u = rng.binomial(1, better, n_examples)
        in_u = rng.binomial(1, 0.1, n_examples)
        observed, swapped = np.stack([tp_u, in_u], axis=1), np.stack([1 - tp_u, 1 - in_u], axis=1)
        tp, wrong = (RationalStatistic.variable(i, 2) for i in range(2))
        other = n_examples - tp
        h = (2 * tp).divide(2 * tp + wrong, undefined=0) - (2 * other).divide(
            2 * other + n_examples - wrong, undefined=0
        )
        counts = oracles.sums_by_polynomial([*map(tuple, observed.tolist())], [*map(tuple, swapped.tolist())])
        points = [*map(tuple, observed.tolist())]

        def score(tp: int, wrong: int) -> Fraction:
            return Fraction(2 * tp, 2 * tp + wrong) if tp + wrong else Fraction(0)

        def difference(point, n=n_examples, score=score):
            return score(*point) - score(n - point[0], n - point[1])

        truth = oracles.structured_pvalues(counts, points, difference)["two-sided"]
        yield structured_test(observed, swapped, h, method="lattice"), truth


def test_relative_error(benchmark, table):
    def cases() -> list[Case]:
        return [
            *one_way({1: 996}, np.linspace(0.5, 1, 51)),
            *one_way({1: 500, 2: 250, 3: 120, 5: 60, 8: 30}, np.linspace(0.5, 1, 26)),
            *one_way({1: 600, 40: 300}, np.linspace(0.5, 1, 11)),
            *f1_cases(),
        ]

    checked = [(result, truth) for result, truth in benchmark.pedantic(cases, rounds=1) if truth > SMALLEST]
    errors = [float(abs(Fraction(result.pvalue) / truth - 1)) for result, truth in checked]
    bounds = [result.error_bound for result, _ in checked]
    smallest = min(result.log10_pvalue for result, _ in checked)
    work = f"{len(checked)} p-values from 1 to 1e{smallest:.0f}: "
    table.add(
        Row(
            work + "largest relative error",
            max(errors),
            unit="",
            limit=1e-10,
            note=f"bound {max(bounds):.1e}",
        )
    )
    ratios = [bound / max(error, ROUNDING) for bound, error in zip(bounds, errors, strict=True)]
    table.add(
        Row(
            work + "error_bound / max(error, 2^-52), median",
            statistics.median(ratios),
            unit="",
            limit=1_000,
            note=f"least {min(ratios):.2g}",
        )
    )
    assert all(error <= bound for error, bound in zip(errors, bounds, strict=True))


def test_relative_error_of_the_logarithm(benchmark, table):
    def cases() -> list[Case]:
        shares = np.array([0.9, 0.95, 1.0])
        return [
            *one_way({1: 3_000}, shares),
            *one_way({1: 2_000, 2: 1_000}, shares),
            *one_way({1: 10_000}, shares),
        ]

    checked = [(result, truth) for result, truth in benchmark.pedantic(cases, rounds=1) if truth < SMALLEST]
    with flint.ctx.workprec(200):
        tens = flint.arb(10).log()
        logs = [flint.arb(flint.fmpq(p.numerator, p.denominator)).log() / tens for _, p in checked]
        errors = [
            abs(float(result.log10_pvalue / log - 1)) for (result, _), log in zip(checked, logs, strict=True)
        ]
    smallest = min(result.log10_pvalue for result, _ in checked)
    table.add(
        Row(
            f"{len(checked)} p-values from 1e-300 to 1e{smallest:.0f}: largest relative error of log10 p",
            max(errors),
            unit="",
            limit=1e-10,
        )
    )
