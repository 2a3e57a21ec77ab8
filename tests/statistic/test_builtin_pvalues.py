"""Every built-in scalar statistic, from tables to p-value, against its definition and all swaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from support.builtin_definitions import DEFINITIONS, random_runs
from support.comparisons import compared_as_they_are
from support.unit_swaps import score_pvalue

from trackperm.comparison import Comparison
from trackperm.errors import InputError
from trackperm.exact import RationalStatistic
from trackperm.statistic import load_statistic

Rows = list[dict[str, Any]]


def compared(name: str, baseline: Rows, candidate: Rows, **options: Any) -> Comparison | None:
    """The comparison; None where it is refused because both scores are 0/0."""
    definition = DEFINITIONS[name]
    frames = [pl.DataFrame(rows) for rows in (baseline, candidate)]
    try:
        return compared_as_they_are(*frames, name, parameters=definition.parameters, **options)
    except InputError as error:
        if "is 0/0 in both runs" not in error.message:
            raise
    return None


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_against_enumeration_and_library(name: str):
    definition, tested = DEFINITIONS[name], 0
    for seed in range(8):
        alternative = ("two-sided", "greater")[seed % 2]
        rng = np.random.default_rng([seed, len(name)])
        baseline, candidate = random_runs(definition, rng, int(rng.integers(2, 8)))
        found = compared(name, baseline, candidate, alternative=alternative)
        if found is None:
            assert definition.score(baseline) is definition.score(candidate) is None
            continue
        expected = score_pvalue(baseline, candidate, definition.score, alternative)
        for score, rows in ((found.baseline_score, baseline), (found.candidate_score, candidate)):
            assert score == pytest.approx(float(definition.score(rows) or 0), abs=1e-14)
            assert score == pytest.approx(definition.oracle(rows), abs=1e-14)
        assert found.test.ties == "exact"
        assert found.pvalue == pytest.approx(float(expected), rel=1e-12)
        tested += 1
    assert tested >= 4


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_against_enumeration_of_ten_examples(name: str):
    definition = DEFINITIONS[name]
    baseline, candidate = random_runs(definition, np.random.default_rng(1), 10)
    for rows, values in ((baseline, 0), (candidate, 1)):  # each value occurs
        for i, row in enumerate(rows):
            row |= {
                key: list(column)[(i * (values + 1) + i // 3) % len(column)]
                for key, column in definition.own.items()
            }
            row |= {key: column[i % len(column)] for key, column in definition.shared.items()}
    found = compared(name, baseline, candidate)
    assert found is not None
    expected = score_pvalue(baseline, candidate, definition.score)
    assert found.pvalue == pytest.approx(float(expected), rel=1e-12)
    assert 0 < found.n_discordant <= 10


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_zero_over_zero_is_zero(name: str):
    """Where the definition has no value in one run, the score is 0, and the p-value counts it so."""
    definition = DEFINITIONS[name]
    undefined = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])
        baseline, candidate = random_runs(definition, rng, 6)
        scores = definition.score(baseline), definition.score(candidate)
        if (scores[0] is None) == (scores[1] is None):
            continue
        found = compared(name, baseline, candidate)
        assert found is not None
        assert (found.baseline_score if scores[0] is None else found.candidate_score) == 0
        expected = score_pvalue(baseline, candidate, definition.score)
        assert found.pvalue == pytest.approx(float(expected), rel=1e-12)
        undefined += 1
        if undefined == 4:
            break
    can_be = {"precision", "f1", "f_beta", "jaccard", "macro_precision", "mcc", "pooled_f1"}
    assert bool(undefined) == (name in can_be)


def test_mcc_alone_is_irrational():
    irrational = {name for name in DEFINITIONS if not isinstance(load_statistic(name).h, RationalStatistic)}
    assert irrational == {"mcc"}
