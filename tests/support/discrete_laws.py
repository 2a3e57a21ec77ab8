"""Families of discrete tests for the tests of corrections, and all their outcomes with probabilities."""

from __future__ import annotations

import itertools

import numpy as np


def random_supports(rng: np.random.Generator, m: int, most: int) -> list[np.ndarray]:
    """Attainable p-values of m tests, each with at most `most`; some coarse, some equal, all up to 1."""
    return [
        np.unique(np.append(np.round(rng.random(rng.integers(0, most)) ** 2 + 1e-3, 3).clip(0, 1), 1.0))
        for _ in range(m)
    ]


def outcomes(supports: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """All families of p-values, shape (n, m), and their probabilities under independent true hypotheses."""
    pvalues = np.array(list(itertools.product(*supports)))
    masses = [np.diff(support, prepend=0.0) for support in supports]
    return pvalues, np.array([np.prod(mass) for mass in itertools.product(*masses)])
