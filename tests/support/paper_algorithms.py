r"""The algorithm of Zmigrod, Vieira and Cotterell (2022) for one sum, which benchmarks compare with.

It computes :math:`P[h(S) \ge h(\sum_n \text{stay}_n)]` for :math:`S = \sum_n Z_n`, where :math:`Z_n` is
:math:`\text{stay}_n = g(u_n, v_n)` or :math:`\text{swap}_n = g(v_n, u_n)` with equal chance.
:func:`trimmed_product_tree` follows the code that the authors released: a user of that code waits for it.

References
----------
R. Zmigrod, T. Vieira and R. Cotterell (2022), "Exact Paired-Permutation Testing for Structured Test
Statistics", NAACL. Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import signal

Integers = npt.NDArray[np.int64]
Mass = npt.NDArray[np.float64]


def trimmed_product_tree(masses: Sequence[Mass], *, least: float) -> Mass:
    """N-fold convolution by a balanced tree of products; each product drops its ends below `least`.

    The authors' program does so for sums of one count. What is dropped is 0 in the result, so a p-value near
    or below `least` is wrong, or 0.
    """
    level = [(0, mass) for mass in masses if mass.size > 1]
    size = sum(mass.size - 1 for _, mass in level) + 1
    while len(level) > 1:
        paired = [
            _trimmed(first + second, signal.convolve(left, right), least)
            for (first, left), (second, right) in zip(level[::2], level[1::2], strict=False)
        ]
        level = paired + level[2 * len(paired) :]
    law = np.zeros(size)
    for first, mass in level or [(0, np.ones(1))]:
        law[first : first + mass.size] = mass
    return law


def _trimmed(first: int, mass: Mass, least: float) -> tuple[int, Mass]:
    kept = np.flatnonzero(mass >= least)
    return first + int(kept[0]), mass[kept[0] : kept[-1] + 1]


def exact_perm_test(
    observed: Integers,
    swapped: Integers,
    h: Callable[[Integers], npt.NDArray[Any]] = np.abs,
    *,
    least: float = 1e-8,
) -> float:
    """P-value of a statistic of one integer sum (Algorithm 2)."""
    masses = []
    for distance in np.abs(observed - swapped).tolist():
        mass = np.zeros(distance + 1)
        mass[0] += 0.5
        mass[-1] += 0.5
        masses.append(mass)
    law = trimmed_product_tree(masses, least=least)
    values = h(np.minimum(observed, swapped).sum() + np.arange(law.size))
    return float(law[values >= h(observed.sum())].sum())
