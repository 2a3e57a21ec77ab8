"""Differences in accuracy beside the paper's algorithms (its Figure 1), SciPy, and the cost of counting."""

from __future__ import annotations

import pytest
from benchmarks.memory import bytes_beyond_inputs
from benchmarks.summary import Row
from benchmarks.workloads import (
    answers,
    counting,
    paper_tokens,
    scipy_resamples,
    seconds,
)
from support.paper_algorithms import exact_perm_test

from trackperm.exact import PermutationTest, difference_test

PAPER = [500, 1_000, 2_000, 4_000, 6_000, 8_000, 10_000]


def note(result: PermutationTest) -> str:
    return f"p = {result.format_pvalue()}, error_bound {result.error_bound:.1e}"


def certified(result: PermutationTest) -> bool:
    return result.error_bound < 1e-10


PRODUCT_TREE = "the authors' product tree, cells below 1e-8 dropped"


def product_tree(candidate, baseline, rounds: int) -> float:
    difference = candidate - baseline
    return seconds(exact_perm_test, difference, -difference, rounds=rounds)


@pytest.mark.parametrize("n_examples", PAPER)
def test_figure_1(benchmark, table, n_examples: int):
    u, v = paper_tokens(n_examples)
    result = benchmark(difference_test, u, v)
    assert certified(result)
    beside = {PRODUCT_TREE: product_tree(u, v, rounds=5)}
    beside["SciPy, 9,999 resamples"] = seconds(scipy_resamples, u, v)
    for name, theirs in beside.items():
        table.add(
            Row(
                f"token accuracy (Figure 1), N = {n_examples:,}",
                benchmark.stats.stats.median,
                beside=name,
                theirs=theirs,
                series="token accuracy",
                n_examples=n_examples,
                note=note(result),
                summary=n_examples == PAPER[-1],
            )
        )


@pytest.mark.parametrize("exponent", [5, 6, 7])
def test_figure_1_beyond_the_paper(benchmark, table, exponent: int):
    u, v = paper_tokens(10**exponent)
    result = benchmark.pedantic(difference_test, args=(u, v), rounds=5, warmup_rounds=1)
    assert certified(result)
    table.add(
        Row(
            f"token accuracy (Figure 1), N = 10^{exponent}",
            benchmark.stats.stats.median,
            beside="bincount(abs(u - v))",
            theirs=seconds(counting, u, v, rounds=5),
            compare="share",
            series="token accuracy",
            n_examples=10**exponent,
            note=note(result),
        )
    )


FASTER = {1_000: (15, 8_000), 10_000: (30, 30_000)}
"""Least ratios to the product tree and to SciPy, by the number of examples."""


@pytest.mark.parametrize("n_examples", FASTER)
def test_accuracy(benchmark, table, n_examples: int):
    u, v = answers(n_examples)
    result = benchmark(difference_test, u, v)
    assert certified(result)
    beside = {
        PRODUCT_TREE: product_tree(u, v, rounds=7),
        "SciPy, 9,999 resamples": seconds(scipy_resamples, u, v),
    }
    for (name, theirs), limit in zip(beside.items(), FASTER[n_examples], strict=True):
        table.add(
            Row(
                f"accuracy, N = {n_examples:,}",
                benchmark.stats.stats.median,
                beside=name,
                theirs=theirs,
                limit=limit,
                limit_on="ratio",
                note=note(result),
            )
        )


@pytest.mark.parametrize("exponent", [6, 7])
def test_accuracy_beside_counting(benchmark, table, exponent: int):
    u, v = answers(10**exponent)
    before = seconds(counting, u, v, rounds=5)
    result = benchmark.pedantic(difference_test, args=(u, v), rounds=7, warmup_rounds=1)
    assert certified(result)
    table.add(
        Row(
            f"accuracy, N = 10^{exponent}",
            benchmark.stats.stats.median,
            beside="bincount(abs(u - v))",
            theirs=(before + seconds(counting, u, v, rounds=5)) / 2,
            compare="share",
            limit=2.5 if exponent == 7 else None,
            limit_on="ratio",
            note=note(result),
        )
    )


@pytest.mark.parametrize(
    ("call", "work", "exponent", "limit", "limit_on"),
    [("difference_test", "accuracy", 7, 0.5, "ratio"), ("f1_test", "F1", 6, 256 * 2**20, "ours")],
)
def test_memory(benchmark, table, call: str, work: str, exponent: int, limit: float, limit_on: str):
    inputs, beyond = benchmark.pedantic(bytes_beyond_inputs, args=(call, 10**exponent), rounds=1)
    table.add(
        Row(
            f"{work}, N = 10^{exponent}: memory",
            beyond,
            unit="B",
            beside="the inputs",
            theirs=inputs,
            compare="share",
            limit=limit,
            limit_on=limit_on,
        )
    )
