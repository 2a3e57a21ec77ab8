"""Compact letter displays, in which systems that share a letter are not distinguished.

Letters are cliques of the graph whose edges join systems that are not distinguished, and they have to cover
its edges. Piepho's insert-and-absorb (2004) lists all maximal cliques that insertion meets: 2^k cliques for k
disjoint distinguished pairs. A cover needs far fewer, of the order of log k. Finding the least one is NP-hard
(Gramm, Guo, Hueffner, Niedermeier, Piepho and Schmid 2007); here cliques are grown greedily.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact.distributions.characteristic import FloatArray
from trackperm.exact.types import IntArray

BoolArray = npt.NDArray[np.bool_]

MOST_LETTERS = 26 + 26**2
"""Largest number of letters: a to z, then aa to zz."""


@dataclass(frozen=True)
class LetterDisplay:
    """Groups of systems that are not distinguished, and their letters.

    Attributes
    ----------
    groups : tuple of tuple of int
        Systems that share a letter, the best first; groups in the order of their letters. Two systems are in
        a common group exactly when they are not distinguished.
    letters : tuple of str
        Letters of each system: ``abc``, or ``a b aa`` if there are more than 26. All are empty if there would
        be more than MOST_LETTERS.
    note : str or None
        Explanation of letters after z, or of missing letters.
    """

    groups: tuple[tuple[int, ...], ...]
    letters: tuple[str, ...]
    note: str | None


def letter_display(distinguished: npt.ArrayLike, scores: npt.ArrayLike) -> LetterDisplay:
    """Return the letters of systems from the pairs that are distinguished.

    Parameters
    ----------
    distinguished : array_like of bool, shape (k, k)
        Whether the two systems differ significantly; symmetric, False on the diagonal.
    scores : array_like of float, shape (k,)
        Scores: systems are ordered by decreasing score, and equal ones as given. The best have an ``a``.

    Raises
    ------
    InputError
        If the matrix does not fit or is not symmetric, or a score is NaN.

    Examples
    --------
    The first is better than the last; the middle one is distinguished from neither:

    >>> letter_display([[0, 0, 1], [0, 0, 0], [1, 0, 0]], [0.9, 0.8, 0.7]).letters
    ('a', 'ab', 'b')

    References
    ----------
    Piepho (2004); Gramm et al. (2007).
    """
    differ, values = _checked(distinguished, scores)
    order = np.argsort(-values, kind="stable")
    groups = tuple(
        tuple(int(order[place]) for place in clique) for clique in clique_cover(~differ[np.ix_(order, order)])
    )
    n_groups = len(groups)
    if n_groups > MOST_LETTERS:
        none = f"{n_groups} groups would be needed, more than there are letters; see the pairs"
        return LetterDisplay(groups, ("",) * values.size, none)
    own: list[list[str]] = [[] for _ in range(values.size)]
    for number, group in enumerate(groups):
        for system in group:
            own[system].append(_letter(number))
    beyond_z = n_groups > len(ascii_lowercase)
    note = f"{n_groups} groups: letters go on after z with aa, ab, and so on" if beyond_z else None
    separator = " " if beyond_z else ""
    return LetterDisplay(groups, tuple(separator.join(mine) for mine in own), note)


def clique_cover(adjacent: BoolArray) -> list[tuple[int, ...]]:
    """Return cliques of a graph that cover its edges and vertices, each in ascending order, sorted.

    A clique starts at the first vertex with an uncovered edge, and grows by common neighbours of its members
    until none is left. The neighbour with most uncovered edges to members is next; ties go to most edges to
    remaining candidates, then to the first. So each clique is a maximal set of systems that are not
    distinguished. Cliques whose edges are all covered by others are removed at the end.

    Parameters
    ----------
    adjacent : ndarray of bool, shape (k, k)
        Symmetric, True on the diagonal.
    """
    left = adjacent.copy()
    cliques = []
    for first in range(len(adjacent)):
        while left[first].any():
            clique = _grown(first, adjacent, left)
            left[np.ix_(clique, clique)] = False
            cliques.append(tuple(sorted(clique)))
    return sorted(_without_redundant(cliques, len(adjacent)))


def _grown(first: int, adjacent: BoolArray, left: BoolArray) -> list[int]:
    clique = [first]
    candidates = adjacent[first].copy()
    candidates[first] = False
    gains: IntArray = left[first].astype(np.int64)
    ahead = left[:, candidates].sum(axis=1)
    while candidates.any():
        best = int(np.argmax(np.where(candidates, gains * (len(left) + 1) + ahead, -1)))
        clique.append(best)
        remaining = candidates & adjacent[best]
        remaining[best] = False
        # Each candidate is subtracted from the sums once, so a clique of any size costs k^2.
        ahead -= left[:, candidates & ~remaining].sum(axis=1)
        candidates = remaining
        gains += left[best]
    return clique


def _without_redundant(cliques: list[tuple[int, ...]], n_vertices: int) -> list[tuple[int, ...]]:
    """Remove cliques whose edges and vertices are covered by others, the smallest first."""
    times = np.zeros((n_vertices, n_vertices), dtype=np.int64)
    for clique in cliques:
        times[np.ix_(clique, clique)] += 1
    kept = []
    for clique in sorted(cliques, key=lambda members: (len(members), members)):
        block = np.ix_(clique, clique)
        if (times[block] > 1).all():
            times[block] -= 1
        else:
            kept.append(clique)
    return kept


def _letter(number: int) -> str:
    """Return a, ..., z for 0 to 25, then aa, ab, ..., zz."""
    high, low = divmod(number, len(ascii_lowercase))
    return (ascii_lowercase[high - 1] if high else "") + ascii_lowercase[low]


def _checked(distinguished: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[BoolArray, FloatArray]:
    values = np.asarray(scores, dtype=np.float64)
    differ = np.asarray(distinguished).astype(np.bool_)
    if values.ndim != 1 or np.isnan(values).any():
        raise InputError("`scores` is not a list of numbers; expected one for each system, without NaN")
    if differ.shape != (values.size, values.size):
        raise InputError(
            f"`distinguished` has shape {differ.shape}; expected {(values.size, values.size)}, "
            "a row and a column for each score"
        )
    if not np.array_equal(differ, differ.T) or differ.diagonal().any():
        raise InputError("`distinguished` is not symmetric, or its diagonal is not False")
    return differ, values
