"""Rank ranges of systems from verdicts on their pairs, and groups of identical systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError, InputTypeError
from trackperm.exact.multiplicity.family import checked_pvalues
from trackperm.exact.options import checked_level
from trackperm.exact.types import IntArray

BoolArray = npt.NDArray[np.bool_]


def significantly_better(
    n_systems: int,
    pairs: npt.ArrayLike,
    differences: npt.ArrayLike,
    adjusted: npt.ArrayLike,
    alpha: float = 0.05,
) -> BoolArray:
    """Return the relation "significantly better" among systems; shape (k, k).

    Entry (i, j) is True if the adjusted p-value of i and j is below `alpha`, and the difference is in favour
    of i. :func:`~trackperm.exact.ranking.letters.letter_display` expects ``better | better.T``.

    Parameters
    ----------
    n_systems : int
        Number of systems k.
    pairs : array_like of int, shape (m, 2)
        Two systems of each comparison, numbered from 0; each pair once, in either order.
    differences : array_like of float, shape (m,)
        Score of the first minus that of the second, or another number of that sign.
    adjusted : array_like of float, shape (m,)
        Two-sided p-values, adjusted for all m comparisons.
    alpha : float
        Level of the verdicts.

    Raises
    ------
    InputError
        If shapes or numbers do not fit, or a pair without a difference is significant.
    """
    ends, signs = np.asarray(pairs), np.sign(np.asarray(differences, dtype=np.float64))
    checked_level(alpha)
    significant = checked_pvalues(adjusted) < alpha
    if ends.shape != (significant.size, 2) or signs.shape != significant.shape:
        raise InputError(
            f"{significant.size} p-values, `pairs` of shape {ends.shape} and `differences` of shape "
            f"{signs.shape}; expected two systems and a difference for each p-value"
        )
    better = np.zeros((n_systems, n_systems), dtype=np.bool_)
    if not significant.size:
        return better
    if ends.dtype.kind not in "iu" or ends.min() < 0 or ends.max() >= n_systems:
        raise InputError(f"`pairs` has other values than systems; expected integers 0 to {n_systems - 1}")
    first, second = ends.T.astype(np.int64)
    if (first == second).any() or np.unique(np.sort(ends, axis=1), axis=0).shape != ends.shape:
        raise InputError("`pairs` compares a system with itself, or two systems twice")
    unsigned = np.flatnonzero(significant & ~(np.abs(signs) == 1.0))
    if unsigned.size:
        index = int(unsigned[0])
        raise InputError(
            f"systems {first[index]} and {second[index]} differ significantly, by {signs[index]}; "
            "expected a difference with a sign"
        )
    up, down = significant & (signs > 0), significant & (signs < 0)
    better[first[up], second[up]] = True
    better[second[down], first[down]] = True
    return better


def rank_ranges(better: npt.ArrayLike) -> IntArray:
    """Return the best and the worst rank of each system that the verdicts allow; shape (k, 2).

    They are 1 + the number of systems significantly better than it, and k - the number of systems that it is
    significantly better than. If the probability of any false verdict is at most alpha, wrong directions
    included, all ranges hold at once with probability 1 - alpha, since a false range needs a false verdict
    (Al Mohamad, Goeman and van Zwet 2022). For Bonferroni wrong directions are included if the
    one-sided tests are valid; for Holm that is proven under independence, not for every dependence (Shaffer
    1980).

    Parameters
    ----------
    better : array_like of bool, shape (k, k)
        Result of :func:`significantly_better` for all pairs. Missing pairs count as undecided.

    Raises
    ------
    InputError
        If it is not square, or two systems are each better than the other.

    Examples
    --------
    >>> rank_ranges([[0, 0, 1], [0, 0, 0], [0, 0, 0]]).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    wins = np.asarray(better).astype(np.bool_)
    if wins.ndim != 2 or wins.shape[0] != wins.shape[1]:
        raise InputError(f"`better` has shape {wins.shape}; expected a row and a column for each system")
    if (wins & wins.T).any():
        raise InputError(
            "`better` is contradictory: two systems are each better than the other, or one than itself"
        )
    return np.stack([1 + wins.sum(axis=0), len(wins) - wins.sum(axis=1)], axis=1).astype(np.int64)


def clones(counts: Sequence[npt.ArrayLike]) -> tuple[tuple[int, ...], ...]:
    """Return groups of systems with the same counts on every example, equal by every statistic.

    Parameters
    ----------
    counts : sequence of array_like, length k, each of shape (N, ...)
        Counts or scores of each system on each example, in the same order of examples.

    Returns
    -------
    tuple of tuple of int
        Groups of at least two systems, each ascending, in the order of their first members.

    Raises
    ------
    InputError
        If shapes differ, or there is a NaN.
    InputTypeError
        If counts are not numbers.

    Examples
    --------
    >>> clones([[1, 0, 1], [1, 1, 0], [1, 0, 1]])
    ((0, 2),)
    """
    arrays: list[npt.NDArray[Any]] = [np.asarray(system) for system in counts]
    kinds = np.result_type(*arrays) if arrays else np.dtype(np.int64)
    if kinds.kind not in "biuf":
        raise InputTypeError(f"counts of type {kinds}; expected integers, booleans or floats")
    groups: dict[int, list[list[int]]] = {}
    for index, system in enumerate(arrays):
        if system.shape != arrays[0].shape:
            raise InputError(
                f"system {index} has counts of shape {system.shape}, system 0 of {arrays[0].shape}; "
                "expected the same examples"
            )
        if kinds.kind == "f" and np.isnan(system).any():
            raise InputError(f"system {index} has a NaN; expected numbers on every example")
        # Adding 0 turns -0.0 into 0.0, so equal arrays have equal bytes.
        same_hash = groups.setdefault(hash((system.astype(kinds) + 0).tobytes()), [])
        for group in same_hash:
            if np.array_equal(arrays[group[0]], system):
                group.append(index)
                break
        else:
            same_hash.append([index])
    found = [tuple(group) for same_hash in groups.values() for group in same_hash if len(group) > 1]
    return tuple(sorted(found))
