"""Who is better than whom, rank ranges and clones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trackperm.errors import InputError, InputTypeError
from trackperm.exact.ranking.ranks import clones, rank_ranges, significantly_better

pairs_of_systems = st.integers(1, 9).flatmap(
    lambda k: st.tuples(
        st.just(k),
        st.lists(
            st.tuples(st.sampled_from([-0.1, 0.0, 0.2]), st.sampled_from([0.001, 0.049, 0.05, 0.3])),
            min_size=k * (k - 1) // 2,
            max_size=k * (k - 1) // 2,
        ),
    )
)


@given(pairs_of_systems)
@settings(deadline=None)
def test_verdicts_and_ranges_against_counting(family):
    k, found = family
    pairs = list(itertools.combinations(range(k), 2))
    differences = [d for d, _ in found]
    adjusted = [1.0 if d == 0 else p for d, p in found]
    better = significantly_better(k, np.array(pairs, dtype=int).reshape(-1, 2), differences, adjusted)
    won = {
        (i, j) if d > 0 else (j, i)
        for (i, j), d, p in zip(pairs, differences, adjusted, strict=True)
        if p < 0.05
    }
    assert {(int(i), int(j)) for i, j in np.argwhere(better)} == won
    ranges = rank_ranges(better)
    for system in range(k):
        losses = sum(loser == system for _, loser in won)
        wins = sum(winner == system for winner, _ in won)
        assert ranges[system].tolist() == [1 + losses, k - wins]


@given(st.permutations(range(6)), st.integers(0, 5))
@settings(deadline=None)
def test_verdicts_that_are_true_hold_the_true_rank(order, width):
    rank = np.array(order)
    better = rank[:, None] + width < rank
    ranges = rank_ranges(better)
    assert (ranges[:, 0] <= rank + 1).all()
    assert (rank + 1 <= ranges[:, 1]).all()
    if width == 0:
        assert (ranges == (rank + 1)[:, None]).all()


def test_the_order_within_a_pair_does_not_matter():
    better = significantly_better(3, [[0, 1], [1, 2]], [0.1, 0.2], [0.01, 0.5])
    assert better.tolist() == significantly_better(3, [[1, 0], [1, 2]], [-0.1, 0.2], [0.01, 0.5]).tolist()


def test_a_baseline_alone_leaves_the_others_undecided():
    better = significantly_better(4, [[1, 0], [2, 0], [3, 0]], [0.1, 0.2, -0.1], [0.01, 0.2, 0.01])
    assert rank_ranges(better).tolist() == [[2, 3], [1, 3], [1, 4], [2, 4]]


@pytest.mark.parametrize(
    ("pairs", "differences", "adjusted", "message"),
    [
        ([[0, 1], [1, 0]], [1, 1], [0.1, 0.1], "two systems twice"),
        ([[0, 1], [2, 2]], [1, 1], [0.1, 0.1], "with itself"),
        ([[0, 1], [1, 3]], [1, 1], [0.1, 0.1], "integers 0 to 2"),
        ([[0, 1], [1, 2]], [1], [0.1, 0.1], "expected two systems"),
        ([[0, 1], [1, 2]], [1, 0], [0.1, 0.01], "systems 1 and 2 differ significantly, by 0"),
        ([[0, 1], [1, 2]], [1, float("nan")], [0.1, 0.01], "by nan"),
        ([[0, 1], [1, 2]], [1, 1], [0.1, float("nan")], "index 1 is nan"),
    ],
)
def test_refuses_invalid_families(pairs, differences, adjusted, message):
    with pytest.raises(InputError, match=message):
        significantly_better(3, pairs, differences, adjusted)


def test_refuses_contradictions():
    with pytest.raises(InputError, match="each better than the other"):
        rank_ranges([[0, 1], [1, 0]])
    with pytest.raises(InputError, match="shape"):
        rank_ranges([[0, 1]])


def test_all_pairs_of_129_systems():
    scores = np.random.default_rng(0).normal(size=129)
    first, second = np.triu_indices(129, 1)
    differences = scores[first] - scores[second]
    adjusted = np.where(np.abs(differences) > 1, 0.01, 0.9)
    better = significantly_better(129, np.stack([first, second], axis=1), differences, adjusted)
    assert (better == (scores[:, None] - scores > 1)).all()


@given(st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), max_size=12))
@settings(deadline=None)
def test_clones_against_comparing_all(systems):
    groups = clones(systems)
    together = {frozenset(pair) for group in groups for pair in itertools.combinations(group, 2)}
    expected = {
        frozenset((i, j))
        for i, j in itertools.combinations(range(len(systems)), 2)
        if systems[i] == systems[j]
    }
    assert together == expected
    assert list(groups) == sorted(groups)


def test_clones_of_other_types_and_shapes():
    counts = np.arange(6).reshape(3, 2)
    assert clones([counts, counts.astype(float), counts + 1]) == ((0, 1),)
    assert clones([np.array([True, False]), np.array([1, 0], dtype=np.int8)]) == ((0, 1),)
    assert clones([[0.0, 1.0], [-0.0, 1.0]]) == ((0, 1),)
    with pytest.raises(InputError, match="system 1 has counts of shape"):
        clones([[1, 2], [1]])
    with pytest.raises(InputError, match="system 1 has a NaN"):
        clones([[1, 2], [1, float("nan")]])
    with pytest.raises(InputTypeError, match="expected integers"):
        clones([["a"], ["a"]])
