"""Compact letter displays: what they say, how many letters they take, and in which order."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trackperm.errors import InputError
from trackperm.exact.ranking.letters import MOST_LETTERS, clique_cover, letter_display


@st.composite
def graphs(draw, most: int = 14) -> np.ndarray:
    k = draw(st.integers(1, most))
    edges = draw(st.lists(st.booleans(), min_size=k * (k - 1) // 2, max_size=k * (k - 1) // 2))
    apart = np.zeros((k, k), dtype=bool)
    apart[np.triu_indices(k, 1)] = edges
    return apart | apart.T


def distinguished_pairs(n_pairs: int) -> np.ndarray:
    """Systems 0 and 1 are distinguished, 2 and 3, and so on; no others."""
    apart = np.zeros((2 * n_pairs, 2 * n_pairs), dtype=bool)
    even = np.arange(0, 2 * n_pairs, 2)
    apart[even, even + 1] = apart[even + 1, even] = True
    return apart


def sharing(letters: tuple[str, ...]) -> np.ndarray:
    """Which systems share a letter, as a reader of the display sees it."""
    own = [set(text.split(" ") if " " in "".join(letters) else text) for text in letters]
    return np.array([[bool(a & b) for b in own] for a in own])


@given(graphs(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_systems_share_a_letter_exactly_when_they_are_not_distinguished(apart, random):
    scores = [random.choice([0.1, 0.2, 0.3, 0.4]) for _ in apart]
    display = letter_display(apart, scores)
    assert (sharing(display.letters) == ~apart).all()
    assert all(display.letters)


@given(graphs())
@settings(deadline=None)
def test_groups_are_maximal_and_none_is_redundant(apart):
    groups = letter_display(apart, np.zeros(len(apart))).groups
    together = [set(group) for group in groups]
    for group in groups:
        outside = set(range(len(apart))) - set(group)
        assert all(apart[system, list(group)].any() for system in outside)
        rest = [other for other in together if other != set(group)]
        pairs = [{a, b} for a in group for b in group]
        assert not all(any(pair <= other for other in rest) for pair in pairs)
    assert len(set(groups)) == len(groups)


@given(graphs(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_in_which_systems_are_given_does_not_matter(apart, random):
    scores = np.arange(len(apart))[::-1] / 7.0
    shuffled = list(range(len(apart)))
    random.shuffle(shuffled)
    letters = letter_display(apart, scores).letters
    found = letter_display(apart[np.ix_(shuffled, shuffled)], scores[shuffled]).letters
    assert found == tuple(letters[i] for i in shuffled)


def test_letters_run_with_the_scores():
    scores = np.array([0.5, 0.9, 0.6, 0.8, 0.2])
    apart = np.abs(scores[:, None] - scores) > 0.25
    assert letter_display(apart, scores).letters == ("c", "a", "bc", "ab", "d")


def test_ordered_scores_make_runs_of_neighbours():
    scores = np.sort(np.random.default_rng(0).random(40))[::-1]
    display = letter_display(np.abs(scores[:, None] - scores) > 0.1, scores)
    assert all(group == tuple(range(group[0], group[-1] + 1)) for group in display.groups)
    starts = [group[0] for group in display.groups]
    assert starts == sorted(starts)


@pytest.mark.parametrize(("n_pairs", "most"), [(1, 2), (2, 4), (5, 8), (12, 10), (25, 12), (65, 16)])
def test_disjoint_pairs_do_not_explode(n_pairs, most):
    # Insert-and-absorb: 2^n_pairs letters. At least log2 n_pairs are needed.
    apart = distinguished_pairs(n_pairs)
    display = letter_display(apart, np.zeros(2 * n_pairs))
    assert len(display.groups) <= most
    assert (sharing(display.letters) == ~apart).all()


def test_everybody_and_nobody():
    assert letter_display(np.zeros((3, 3)), [1, 2, 3]).letters == ("a", "a", "a")
    assert letter_display(~np.eye(3, dtype=bool), [1, 2, 3]).letters == ("c", "b", "a")
    assert letter_display(np.zeros((0, 0)), []).letters == ()


def test_letters_go_on_after_z():
    display = letter_display(~np.eye(60, dtype=bool), -np.arange(60))
    assert display.letters[:2] == ("a", "b")
    assert display.letters[25:28] == ("z", "aa", "ab")
    assert display.letters[51:53] == ("az", "ba")
    assert display.note == "60 groups: letters go on after z with aa, ab, and so on"
    assert letter_display(~np.eye(26, dtype=bool), np.zeros(26)).note is None


def test_letters_after_z_are_separated_by_spaces():
    scores = -np.arange(40.0)
    apart = np.abs(scores[:, None] - scores) > 1
    display = letter_display(apart, scores)
    assert display.letters[27] == "aa ab"
    assert (sharing(display.letters) == ~apart).all()


def test_beyond_the_cap_there_are_groups_and_a_note():
    # No triangle: each of 28 x 28 edges is a group.
    side = np.arange(56) < 28
    apart = (side[:, None] == side) & ~np.eye(56, dtype=bool)
    display = letter_display(apart, np.zeros(56))
    assert len(display.groups) == 784 > MOST_LETTERS
    assert set(display.letters) == {""}
    assert "784 groups would be needed" in (display.note or "")


@pytest.mark.parametrize("kind", ["neighbours", "random", "pairs", "no triangle"])
def test_130_systems_take_well_under_a_second(kind):
    rng, k = np.random.default_rng(0), 130
    side = np.arange(k) < k // 2
    scores = rng.normal(size=k)
    random = np.triu(rng.random((k, k)) < 0.5, 1)
    apart = {
        "neighbours": np.abs(scores[:, None] - scores) > 0.8,
        "random": random | random.T,
        "pairs": distinguished_pairs(k // 2),
        "no triangle": (side[:, None] == side) & ~np.eye(k, dtype=bool),
    }[kind]
    started = time.process_time()
    cover = clique_cover(~apart)
    assert time.process_time() - started < 1.0
    covered = np.zeros((k, k), dtype=bool)
    for clique in cover:
        covered[np.ix_(clique, clique)] = True
    assert (covered == ~apart).all()


@pytest.mark.parametrize(
    ("apart", "scores", "message"),
    [
        ([[0, 1], [0, 0]], [1, 2], "symmetric"),
        ([[1, 0], [0, 0]], [1, 2], "symmetric"),
        (np.zeros((3, 3)), [1, 2], r"expected \(2, 2\)"),
        (np.zeros((2, 2)), [1, float("nan")], "NaN"),
    ],
)
def test_refuses_invalid_graphs(apart, scores, message):
    with pytest.raises(InputError, match=message):
        letter_display(apart, scores)
