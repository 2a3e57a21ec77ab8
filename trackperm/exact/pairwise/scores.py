"""Scores of two systems as codes, and where differences of scores cross given values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError
from trackperm.exact.scores.scaling import scale_scores
from trackperm.exact.types import IntArray


@dataclass(frozen=True)
class PairScores:
    """Scores of two systems as codes in the order of the scores.

    The difference of the scores of the left and the right example of a pair is below, at or above each of k
    steps, which makes 2 k + 1 regions.

    Attributes
    ----------
    u, v : ndarray of int64, shape (N,)
        Codes of the candidate's and of the baseline's scores; equal scores have equal codes.
    n_codes : int
        Number of codes: they are at least 0 and below it.
    left : tuple of ndarray of int64, shape (n_codes,)
        For a left example with a code: the codes of right examples below which the difference is above the
        last step, at least the last step, above the last but one, and so on; 2 k arrays that ascend.
    right : tuple of ndarray of int64, shape (n_codes,)
        For a right example with a code: the codes of left examples below which the difference is below the
        first step, at most the first step, and so on.
    """

    u: IntArray
    v: IntArray
    n_codes: int
    left: tuple[IntArray, ...]
    right: tuple[IntArray, ...]


def ranked_scores(candidate: npt.NDArray[Any], baseline: npt.NDArray[Any]) -> PairScores:
    """Replace scores by mid-ranks within each system; the only step is 0.

    Raises
    ------
    InputError
        If a score is NaN or infinite.

    References
    ----------
    E. S. Venkatraman and C. B. Begg (1996), Biometrika 83.
    """
    _require_finite(candidate, baseline)
    return _of_order(_twice_the_midranks(candidate), _twice_the_midranks(baseline), 2 * candidate.size + 1)


def coded_scores(
    candidate: npt.NDArray[Any], baseline: npt.NDArray[Any], steps: Sequence[Fraction] = (Fraction(0),)
) -> PairScores:
    """Replace scores by their places among the scores of both systems; `steps` ascend.

    With other steps than 0, floats are taken as the decimals or fractions that they stand for, so that
    0.3 - 0.1 is 0.2.

    Raises
    ------
    InputError
        If a score is NaN or infinite.
    """
    _require_finite(candidate, baseline)
    n = candidate.size
    if list(steps) == [Fraction(0)]:
        values, codes = np.unique(np.concatenate([candidate, baseline]), return_inverse=True)
        return _of_order(codes[:n], codes[n:], values.size)
    scores = scale_scores(candidate, baseline, None, wide=False)
    both = np.concatenate([scores.candidate, scores.baseline])
    values, codes = np.unique(both, return_inverse=True)
    left: list[IntArray] = []
    right: list[IntArray] = []
    for step in steps:
        exact = step / scores.unit
        up, down = math.ceil(exact), math.floor(exact)
        # a - b > c exactly if b < a - c; for integers, if b < a - floor(c).
        above, at_least = values - down, values - up + 1
        left[:0] = [_places(values, above), _places(values, at_least)]
        right += [_places(values, values + up), _places(values, values + down + 1)]
    return PairScores(codes[:n], codes[n:], values.size, tuple(left), tuple(right))


def _of_order(u: IntArray, v: IntArray, n_codes: int) -> PairScores:
    codes = np.arange(n_codes, dtype=np.int64)
    edges = codes, codes + 1
    return PairScores(u, v, n_codes, edges, edges)


def _places(values: IntArray, bounds: IntArray) -> IntArray:
    return np.searchsorted(values, bounds).astype(np.int64)


def _twice_the_midranks(scores: npt.NDArray[Any]) -> IntArray:
    """Return the number of scores below each score plus that of scores at most as large, plus 1."""
    _, codes, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    return (2 * ends - sizes + 1)[codes]


def _require_finite(*arrays: npt.NDArray[Any]) -> None:
    for scores in arrays:
        if scores.dtype.kind == "f" and not np.isfinite(scores).all():
            raise InputError(
                "a score is NaN or infinite",
                hint="give such examples a finite score in both runs, or drop them.",
            )
