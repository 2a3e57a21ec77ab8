r"""Weights of examples in a sum over pairs of examples, which is linear in the swaps.

Let T(s) be the sum, over ordered pairs (i, j) of a left and a right example, of f_ij(s_i, s_j): the same f_ij
for both systems u and v, and which pairs there are does not depend on the scores. Let the sign of example i
be +1 if its outputs stay and -1 if they are swapped. The difference of the terms of one pair is alpha =
f(u_i, u_j) - f(v_i, v_j) for the signs (+, +), -alpha for (-, -), beta = f(u_i, v_j) - f(v_i, u_j) for (+, -)
and -beta for (-, +), which is sign_i (alpha + beta) / 2 + sign_j (alpha - beta) / 2. So

.. math:: T(u) - T(v) = \sum_i sign_i d_i, \qquad
    2 d_i = L_i(u_i) - L_i(v_i) + R_i(u_i) - R_i(v_i),

where L_i(x) is the sum of f_ij(x, y) over the right partners j of i and both of their scores y, and R_i(x)
that of f_ji(y, x) over its left partners. If groups of examples are swapped together, their weights add up.

If f depends on the scores through comparisons of them alone, and on the other values through comparisons and
few distinct values, each L_i and R_i is a sum of few counts of points below bounds: O(N log N) in all.

References
----------
A. I. Bandos, H. E. Rockette and D. Gur (2005), "A permutation test sensitive to differences in areas for
comparing ROC curves from a paired design", Statistics in Medicine 24.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact.counts import LARGEST
from trackperm.exact.pairwise.dominance import KeyOrder, n_below
from trackperm.exact.pairwise.scores import PairScores
from trackperm.exact.types import IntArray

Terms = npt.NDArray[np.int64]

BLOCK = 2**19
"""Pairs that are compared at once: arrays of 4 MiB, which suit the cache of most processors."""


@dataclass(frozen=True)
class Roles:
    """Roles of N examples in pairs: values that are the same for both systems.

    Attributes
    ----------
    left, right : ndarray of int64, shape (N,)
        Kind of each example as the left and as the right one of a pair; -1 if it never is.
    left_place, right_place : ndarray of int64, shape (N,)
        Codes, at least 0, by which the two examples of a pair are ordered.
    left_group, right_group : ndarray of int64, shape (N,)
        Only examples of equal groups, numbered from 0, are pairs.
    """

    left: IntArray
    right: IntArray
    left_place: IntArray
    right_place: IntArray
    left_group: IntArray
    right_group: IntArray

    def in_order(self, examples: IntArray) -> Roles:
        """Return the roles of the examples with these indices."""
        parts = (self.left, self.right, self.left_place, self.right_place, self.left_group, self.right_group)
        distinct = {id(part): part[examples] for part in parts}
        return Roles(*(distinct[id(part)] for part in parts))


@dataclass(frozen=True)
class PairSums:
    """A sum over pairs for two systems, in integers of one unit, by example.

    Attributes
    ----------
    weights : ndarray of int64, shape (N,)
        Twice d_i: the weights whose signed sum is twice the difference of the two sums.
    candidate, baseline : ndarray of int64, shape (N,)
        The sum of the terms of each system, by the left example.
    partners : ndarray of int64, shape (N,)
        Number of the pairs whose left example it is.
    own : ndarray of int64, shape (N,)
        Difference of the systems in the sum of the terms of all pairs with the example, left or right.
    pairs : ndarray of int64, shape (N,)
        Number of the pairs with the example, left or right.
    """

    weights: IntArray
    candidate: IntArray
    baseline: IntArray
    partners: IntArray
    own: IntArray
    pairs: IntArray

    def in_order(self, examples: IntArray) -> PairSums:
        """Return the sums of the examples in the order of these indices."""
        parts = (self.weights, self.candidate, self.baseline, self.partners, self.own, self.pairs)
        return PairSums(*(part[examples] for part in parts))


def ranked_pairs(scores: PairScores, roles: Roles, terms: Terms, is_pair: npt.NDArray[np.bool_]) -> PairSums:
    """Sum terms that depend on order alone over all pairs, in O(N log N) steps.

    Parameters
    ----------
    scores : PairScores
        The scores of both systems, with k steps.
    roles : Roles
        Kinds, places and groups of the examples.
    terms : ndarray of int64, shape (n_left, n_right, 3, 2 k + 1)
        Term of a pair: by the kinds of both examples, by whether the left one's place is below, at or above
        that of the right one, and by the region of the difference of scores, in ascending order.
    is_pair : ndarray of bool, shape (n_left, n_right, 3)
        Whether such examples are a pair; `terms` are 0 elsewhere.

    Raises
    ------
    InputError
        If sums may reach 2^62.
    """
    require_room(int(np.abs(terms).max(initial=0)), scores.u.size)
    # Queries in the order of places read the levels of a tree from one end to the other.
    order = np.argsort(roles.left_place, kind="stable")
    scores = replace(scores, u=scores.u[order], v=scores.v[order])
    roles, terms, is_pair = _with_fewer_kinds(roles.in_order(order), terms, is_pair)
    n_places = int(max(roles.left_place.max(initial=0), roles.right_place.max(initial=0))) + 1
    left = _Side(roles.left, roles.left_place, roles.left_group, scores.left, scores.n_codes, n_places)
    right = _Side(roles.right, roles.right_place, roles.right_group, scores.right, scores.n_codes, n_places)
    # The partners of a left example, in ascending order of their places and scores, have terms in descending
    # order; for a right example, the kinds are exchanged.
    from_left, from_right = terms[:, :, ::-1, ::-1], terms.transpose(1, 0, 2, 3)
    of_left = left.sums(right, scores, from_left)
    partners = left.n_partners(right, is_pair[:, :, ::-1])
    if left.equals(right) and np.array_equal(from_left, from_right):
        of_right, n_right = of_left, partners
    else:
        of_right = right.sums(left, scores, from_right)
        n_right = right.n_partners(left, is_pair.transpose(1, 0, 2))
    uu, uv, vu, vv = (first + second for first, second in zip(of_left, of_right, strict=True))
    found = PairSums(
        weights=uu + uv - vu - vv,
        candidate=of_left[0],
        baseline=of_left[3],
        partners=partners,
        own=uu - vv,
        pairs=partners + n_right,
    )
    inverse = np.empty_like(order)
    inverse[order] = np.arange(order.size)
    return found.in_order(inverse)


def _with_fewer_kinds(
    roles: Roles, terms: Terms, is_pair: npt.NDArray[np.bool_]
) -> tuple[Roles, Terms, npt.NDArray[np.bool_]]:
    """Join kinds of right examples that only differ in pairs of equal places, by moving their places.

    If equal places count as the left one being below, all such right examples are moved up by half a place,
    or else down by half a place; places are doubled and one is added, so that they are integers of at least
    0.
    """
    keys = np.concatenate([terms, is_pair[..., None]], axis=3)
    moves = np.zeros(terms.shape[1], dtype=np.int64)
    moves[(keys[:, :, 1] == keys[:, :, 2]).all(axis=(0, 2))] = -1
    moves[(keys[:, :, 1] == keys[:, :, 0]).all(axis=(0, 2))] = 1
    found: dict[bytes, int] = {}
    joined = np.empty_like(moves)
    for kind, move in enumerate(moves.tolist()):
        own = keys[:, kind, ::2] if move else keys[:, kind]
        joined[kind] = found.setdefault(bytes([move != 0]) + own.tobytes(), kind)
    if len(found) == moves.size:
        return roles, terms, is_pair
    kept, numbers = np.unique(joined, return_inverse=True)
    is_right = roles.right >= 0
    right = np.where(is_right, numbers[roles.right], -1)
    right_place = 2 * roles.right_place + 1 + np.where(is_right, moves[roles.right], 0)
    roles = replace(roles, right=right, left_place=2 * roles.left_place + 1, right_place=right_place)
    return roles, terms[:, kept], is_pair[:, kept]


@dataclass(frozen=True)
class _Side:
    """Examples on the left or the right of pairs, as integer codes of what is compared.

    Places and groups are those of :class:`Roles`, and edges those of :class:`PairScores`.
    """

    kinds: IntArray
    places: IntArray
    groups: IntArray
    edges: tuple[IntArray, ...]
    n_codes: int
    n_places: int

    def equals(self, other: _Side) -> bool:
        """Whether the other side has the same kinds, places, groups and edges."""
        sides = [(side.kinds, side.places, side.groups, *side.edges) for side in (self, other)]
        return all(a is b or np.array_equal(a, b) for a, b in zip(*sides, strict=True))

    def n_partners(self, others: _Side, is_pair: npt.NDArray[np.bool_]) -> IntArray:
        """Count the partners of each example; `is_pair` is in the ascending order of the partners' places."""
        nowhere = np.zeros_like(self.kinds)
        one = PairScores(nowhere, nowhere, 1, (), ())
        return replace(self, edges=()).sums(others, one, is_pair[..., None].astype(np.int64), systems=1)[0]

    def sums(self, others: _Side, scores: PairScores, terms: Terms, systems: int = 2) -> list[IntArray]:
        """Add up the terms of each example with all of its partners.

        `terms`, shape (n_kinds, n_kinds of others, 3, number of regions), are in the ascending order of the
        partners. The sums are those of u with partners of u, u with v, v with u and v with v, or only the
        first. The term of an example with itself is left out.
        """
        codes = (scores.u, scores.v)[:systems]
        found = [np.zeros(self.kinds.size, dtype=np.int64) for _ in range(systems**2)]
        for kind in range(terms.shape[1]):
            # Sums by parts: terms times counts between edges are steps times counts below edges.
            steps = terms[:, kind].copy()
            steps[:, :-1] -= terms[:, kind, 1:]
            steps[..., :-1] -= steps[..., 1:].copy()
            members = np.flatnonzero(others.kinds == kind)
            asking = np.flatnonzero(np.isin(self.kinds, np.flatnonzero(steps.any(axis=(1, 2)))))
            if not members.size or not asking.size:
                continue
            for j, counted in enumerate(self._counted(others, members, asking, codes, steps)):
                for i, part in enumerate(np.split(counted, systems)):
                    found[systems * i + j][asking] += part
        itself, place = self._paired_with_themselves(others, terms)
        for i, own in enumerate(codes):
            for j, other in enumerate(codes):
                region = np.zeros(itself.size, dtype=np.int64)
                for edge in self.edges:
                    region += other[itself] >= edge[own[itself]]
                found[systems * i + j][itself] -= terms[
                    self.kinds[itself], others.kinds[itself], place, region
                ]
        return found

    def _paired_with_themselves(self, others: _Side, terms: Terms) -> tuple[IntArray, IntArray]:
        """Return the examples that are counted as their own partners, and the relations of their places."""
        both = np.flatnonzero((self.kinds >= 0) & (others.kinds >= 0) & (self.groups == others.groups))
        place = 1 + np.sign(others.places[both] - self.places[both])
        is_counted = np.asarray(terms.any(axis=3))[self.kinds[both], others.kinds[both], place]
        return both[is_counted], place[is_counted]

    def _counted(
        self, others: _Side, members: IntArray, asking: IntArray, codes: tuple[IntArray, ...], steps: Terms
    ) -> Iterator[IntArray]:
        """Yield sums of steps times the number of members below each pair of edges, by the members' system.

        `codes` are the scores of each system; each sum, shape (len(codes) * number of asking,), has a block
        for each system of the asking.
        """
        groups, theirs = self.groups[asking], others.groups[members]
        places, kinds = others.places[members], self.kinds[asking]
        low = self.places[asking]
        last = steps.shape[2] - 1
        fixed = np.zeros(asking.size, dtype=np.int64)
        # All members of the groups before the own one are below the bounds.
        before = n_below(theirs, groups)
        for i, bound in enumerate((low, low + 1, np.full_like(low, self.n_places))):
            if steps[:, i, last].any():
                counts = n_below(theirs * self.n_places + places, groups * self.n_places + bound)
                fixed += steps[:, i, last][kinds] * (counts - before)
        fixed, kinds, low, before, groups = (
            np.tile(each, len(codes)) for each in (fixed, kinds, low, before, groups)
        )
        orders = {i: KeyOrder.of(places, theirs, low + i, groups) for i in (0, 1) if steps[:, i, :last].any()}
        own = np.concatenate([each[asking] for each in codes])
        for each in codes:
            other, found = each[members], fixed.copy()
            for r in range(0, last, 2):
                edges = [edge[own] for edge in self.edges[r : r + 2]]
                for s, edge in enumerate(edges, start=r):
                    if steps[:, 2, s].any():
                        counts = n_below(theirs * self.n_codes + other, groups * self.n_codes + edge)
                        found += steps[:, 2, s][kinds] * (counts - before)
                for i, order in orders.items():
                    lower, equal = order.below(other, edges[0])
                    first, second = steps[:, i, r], steps[:, i, r + 1]
                    # The second edge is the first one or the next code.
                    found += (first + second)[kinds] * lower
                    found += second[kinds] * np.where(edges[1] > edges[0], equal, 0)
            yield found


def compared_pairs(
    term: Callable[[Any, Any, Any, Any], IntArray],
    pairs: Callable[[Any, Any], npt.NDArray[np.bool_]],
    n: int,
) -> PairSums:
    """Sum any terms over all pairs, in O(N^2) steps and O(N) memory.

    Parameters
    ----------
    term : callable
        Returns the integer terms of pairs, shape (P,): arguments are the indices of the left and right
        examples, and whether the left and the right score is that of the candidate.
    pairs : callable
        Returns whether examples with these left and right indices are pairs.
    n : int
        Number of examples.

    Raises
    ------
    InputError
        If sums may reach 2^62.
    """
    weights, own, pairs_of = (np.zeros(n, dtype=np.int64) for _ in range(3))
    candidate, baseline, partners = (np.zeros(n, dtype=np.int64) for _ in range(3))
    for left, right in _blocks(n):
        is_pair = pairs(left, right)
        left, right = left[is_pair], right[is_pair]
        uu, vv, uv, vu = (
            term(left, right, *systems)
            for systems in ((True, True), (False, False), (True, False), (False, True))
        )
        require_room(max((int(np.abs(part).max(initial=0)) for part in (uu, vv, uv, vu)), default=0), n)
        np.add.at(candidate, left, uu)
        np.add.at(baseline, left, vv)
        np.add.at(weights, left, uu + uv - vv - vu)
        np.add.at(weights, right, uu + vu - vv - uv)
        np.add.at(partners, left, 1)
        for index in (left, right):
            np.add.at(own, index, uu - vv)
            np.add.at(pairs_of, index, 1)
    return PairSums(weights, candidate, baseline, partners, own, pairs_of)


def _blocks(n: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the indices of all ordered pairs of different examples, in blocks."""
    height = max(1, BLOCK // n)
    for first in range(0, n, height):
        rows = np.arange(first, min(n, first + height))
        left, right = np.repeat(rows, n), np.tile(np.arange(n), rows.size)
        different = left != right
        yield left[different], right[different]


def require_room(largest: int, n: int) -> None:
    """Refuse terms whose sums over all pairs of `n` examples may reach 2^62."""
    if largest * (2 * n) ** 2 >= LARGEST:
        raise InputError(
            "the terms of pairs may add up to 2^62 and more",
            hint="use terms with fewer digits, or a coarser `resolution`.",
        )
