"""Statistics in fewer linear forms of their counts, on lattices of lower rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trackperm.exact.counts import LARGEST, DifferenceHistogram
from trackperm.exact.engines.lattice.lattice import Lattice, echelon_basis
from trackperm.exact.functions.degrees import linear_forms
from trackperm.exact.functions.rational import RationalStatistic
from trackperm.exact.functions.real import RealStatistic


def in_fewer_forms(
    h: RationalStatistic | RealStatistic, histogram: DifferenceHistogram, lattice: Lattice
) -> tuple[RationalStatistic | RealStatistic, DifferenceHistogram] | None:
    """Return h and the histogram in linear forms of the counts that vary; None if that keeps the rank.

    F1 from true positives, predicted and actual items depends on the sum of the last two alone, so that its
    rank is 2 although all three vary.
    """
    constants = {
        i: histogram.observed[i] for i, row in enumerate(lattice.basis) if not any(row) and i in h.variables
    }
    forms, tree = linear_forms(h, constants)
    if not forms:
        return None
    steps = [
        [sum(f * row[j] for f, row in zip(form, lattice.basis, strict=True)) for j in range(lattice.rank)]
        for form in forms
    ]
    echelon = echelon_basis(np.array(steps, dtype=object).reshape(len(forms), lattice.rank))
    largest = max(sum(map(abs, form)) for form in forms) * int(np.abs(histogram.differences).max())
    if echelon is None or len(echelon[0]) == lattice.rank or largest > LARGEST:
        return None
    moves = histogram.differences @ np.array(forms, dtype=np.int64).T
    n_down = histogram.multiplicities - histogram.n_up
    n_same = histogram.n_examples - histogram.n_discordant
    observed = np.vstack([moves, -moves, np.zeros_like(moves[:1])])
    counts = np.concatenate([histogram.n_up, n_down, [n_same]])
    present = counts > 0
    found = DifferenceHistogram.from_pairs(
        observed[present], np.zeros_like(observed[present]), counts[present]
    )
    start = [sum(f * x for f, x in zip(form, histogram.observed, strict=True)) for form in forms]
    shift = [s - x for s, x in zip(start, found.observed, strict=True)]

    def shifted(totals: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(x + s for x, s in zip(totals, shift, strict=True))

    return tree, replace(
        found,
        origin=shifted(found.origin),
        observed=shifted(found.observed),
        swapped=shifted(found.swapped),
    )
