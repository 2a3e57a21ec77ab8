"""Reproduction of the p-values of older programs, for readers who have to reproduce a table.

Both programs use approximate randomisation: each of n shuffles exchanges the two outputs of every example
with probability 1/2, and computes the statistic of the shuffled outputs. This module follows the programs,
with their approximations, and explains each difference from the exact p-value.

*Bikel's comparator* compares evalb's recall and precision of two parsers. A shuffle counts if its difference
is at least as large as the observed one, and on the same side (one tail). The program computes matched
brackets from the recall and precision that evalb prints, with two decimals. p = (nc + 1) / (nt + 1), with
10,000 shuffles.

*sacrebleu* compares corpus scores in floating point. A shuffle counts if its absolute difference is greater
than the observed one; equal ones do not count. p = (c + 1) / (n + 1), with 10,000 shuffles of seed 12345. The
random numbers are drawn as sacrebleu 2 draws them, so that rows in the same order give the same p.

References
----------
D. M. Bikel, Randomized Parsing Evaluation Comparator (software; description of the test).
M. Post (2018), "A Call for Clarity in Reporting BLEU Scores", WMT; the paired approximate randomisation of
sacrebleu 2.0 follows Riezler and Maxwell (2005) and multeval (Clark et al. 2011).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.choices import Compat
from trackperm.comparison import Comparison, compare_runs
from trackperm.errors import CapacityError, InputError
from trackperm.exact import RationalStatistic, TestOptions
from trackperm.pairing.pair import pair_in_memory

N_SHUFFLES = 10_000
SEEDS = {"bikel": 0, "sacrebleu": 12345}
BIKEL_STATISTICS = ("bracket_recall", "bracket_precision", "bracket_f1")
_MAX_SWAPS = 2**31  # swaps are booleans: 2 GiB
_BLOCK = 2**22  # swaps that are multiplied at once, as floats: 32 MiB

Floats = npt.NDArray[np.float64]
Score = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Reproduction:
    """p-value of an older program, with the reasons why it differs from the exact one.

    Attributes
    ----------
    tool : {'bikel', 'sacrebleu'}
        The program.
    pvalue : float
        (n_extreme + 1) / (n_shuffles + 1).
    n_extreme, n_shuffles, seed : int
        Number of extreme shuffles, number of all shuffles, and their seed.
    gaps : tuple of str
        Reasons why it differs from the exact two-sided p-value, one sentence each.
    """

    tool: Compat
    pvalue: float
    n_extreme: int
    n_shuffles: int
    seed: int
    gaps: tuple[str, ...]

    def lines(self) -> list[str]:
        """Format the result as lines to print below a comparison."""
        name = "Bikel's comparator" if self.tool == "bikel" else "sacrebleu"
        drawn = f"({self.n_extreme} + 1) / ({self.n_shuffles} + 1), seed {self.seed}"
        return [f"as {name}: p = {self.pvalue:.4g}  Monte Carlo, {drawn}", *(f"  {gap}" for gap in self.gaps)]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {**dataclasses.asdict(self), "gaps": list(self.gaps)}


def reproduce(
    tool: Compat, comparison: Comparison, *, n_shuffles: int = N_SHUFFLES, seed: int | None = None
) -> Reproduction | None:
    """Compute the p-value that an older program prints for the runs of an exact comparison.

    None for ``bikel`` if the statistic is not ``bracket_recall`` or ``bracket_precision``: Bikel's comparator
    has no other. The seed is by default that of :data:`SEEDS`.

    Raises
    ------
    InputError
        If the statistic has no score of a single run, has strata, or exchanges groups of examples; or if
        `n_shuffles` is below 1.
    CapacityError
        If the shuffles do not fit into memory.
    """
    if n_shuffles < 1:
        raise InputError(f"`--samples` is {n_shuffles}; expected at least 1")
    statistic = comparison.statistic
    if tool == "bikel" and statistic.name not in BIKEL_STATISTICS[:2]:
        return None
    grouped = statistic.weights or statistic.cluster is not None
    if statistic.score is None or statistic.contrast != "difference" or grouped:
        raise InputError(
            f"`--compat {tool}` needs a difference of two scores without strata or clusters, which"
            f" `{statistic.name}` is not",
            hint="leave `--compat` out: the exact test covers this statistic.",
        )
    candidate, baseline = _counts(comparison)
    seed = SEEDS[tool] if seed is None else seed
    if len(candidate) * n_shuffles > _MAX_SWAPS:
        raise CapacityError(
            f"{n_shuffles} shuffles of {len(candidate):,} examples need more than {_MAX_SWAPS >> 20} MiB",
            hint="draw fewer by `--samples`.",
        )
    swapped = np.random.default_rng(seed).integers(2, size=(n_shuffles, len(candidate)), dtype=bool)
    if tool == "bikel":
        n_extreme, gaps = _bikel(comparison, candidate, baseline, swapped)
    else:
        score = statistic.score
        values = score.values if isinstance(score, RationalStatistic) else score
        n_extreme, gaps = _sacrebleu(values, candidate, baseline, swapped)
    return Reproduction(tool, (n_extreme + 1) / (n_shuffles + 1), n_extreme, n_shuffles, seed, gaps)


def _counts(comparison: Comparison) -> tuple[Floats, Floats]:
    """Return the counts of both runs by example, in the order of ids, or of rows if paired by position."""
    paired = pair_in_memory(
        comparison.baseline_data.table,
        comparison.candidate_data.table,
        comparison.statistic,
        missing=comparison.pairing.missing,
        by_position=comparison.pairing.by == "position",
    ).counts
    candidate, baseline = (
        paired.frame.select([f"{run}.{name}" for name in paired.names]).to_numpy().astype(np.float64)
        for run in ("candidate", "baseline")
    )
    return candidate, baseline


def _bikel(
    comparison: Comparison, candidate: Floats, baseline: Floats, swapped: npt.NDArray[np.bool_]
) -> tuple[int, tuple[str, ...]]:
    u, v = (np.column_stack([_as_printed(counts), counts[:, 1]]) for counts in (candidate, baseline))
    observed, drawn = _differences(lambda totals: totals[..., 0] / totals[..., 1], u, v, swapped)
    n_extreme = int(np.sum(drawn >= observed if observed >= 0.0 else drawn <= observed))
    gaps = (
        "it sums one tail, on the side of the observed difference; the exact p-value of that tail is"
        f" {_exact_tail(comparison):.4g}",
        f"the difference is {observed:+.6f} by two decimals, and {comparison.difference:+.6f} by the counts,"
        " so rounding decides whether shuffles equal to it count",
    )
    return n_extreme, gaps


def _sacrebleu(
    score: Score, candidate: Floats, baseline: Floats, swapped: npt.NDArray[np.bool_]
) -> tuple[int, tuple[str, ...]]:
    observed, drawn = _differences(score, candidate, baseline, swapped)
    n_extreme = int(np.sum(np.abs(drawn) > abs(observed)))
    ties = int(np.sum(np.isclose(np.abs(drawn), abs(observed), rtol=1e-12, atol=0.0)))
    gaps = (
        "it does not count shuffles that equal the observed difference: "
        + (f"here {ties}, which makes p too small" if ties else "here there are none"),
        f"the smallest p of {len(drawn)} shuffles is {1 / (len(drawn) + 1):.2g}, and p depends on the seed",
    )
    return n_extreme, gaps


def _differences(
    score: Score, candidate: Floats, baseline: Floats, swapped: npt.NDArray[np.bool_]
) -> tuple[float, Floats]:
    """Return the observed difference of scores, and the differences after the swaps of each row."""
    observed = score(candidate.sum(axis=0, keepdims=True)) - score(baseline.sum(axis=0, keepdims=True))
    # The sum with swaps is sum(v) + swapped @ (u - v), which is exact for integers below 2^53.
    rows = max(1, _BLOCK // len(candidate))
    blocks = [swapped[i : i + rows] @ (baseline - candidate) for i in range(0, len(swapped), rows)]
    moved = np.concatenate(blocks)
    return float(observed[0]), score(candidate.sum(axis=0) + moved) - score(baseline.sum(axis=0) - moved)


def _as_printed(counts: Floats) -> Floats:
    """Compute matched brackets from the percentages that evalb prints."""
    printed = [float(f"{100 * matched / whole:.2f}") if whole else 0.0 for matched, whole in counts.tolist()]
    return np.array(printed) * counts[:, 1] / 100.0


def _exact_tail(comparison: Comparison) -> float:
    """Return the exact p-value of the tail on the side of the observed difference."""
    return compare_runs(
        comparison.baseline_data,
        comparison.candidate_data,
        comparison.statistic,
        TestOptions(alternative="less" if comparison.difference < 0 else "greater", alpha=comparison.alpha),
        missing=comparison.pairing.missing,
        by_position=comparison.pairing.by == "position",
    ).pvalue
