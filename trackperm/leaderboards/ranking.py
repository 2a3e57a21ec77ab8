"""Ranking of runs from tests of pairs: corrected verdicts, order, groups and ranks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from trackperm.comparison.inference.verdict import Sign, decide_sign
from trackperm.exact import PermutationTest
from trackperm.exact.intervals import Interval
from trackperm.exact.multiplicity import Adjustment, adjust, adjust_log10
from trackperm.exact.ranking.letters import letter_display
from trackperm.exact.ranking.ranks import clones, rank_ranges, significantly_better
from trackperm.leaderboards.pairs import PairTester
from trackperm.leaderboards.result import Pair, Row
from trackperm.leaderboards.run_counts import RunCounts
from trackperm.statistic import Statistic

_UNDERFLOW = 1e-300  # below it floats lose digits, and only logarithms are exact


def best_first(counted: RunCounts) -> list[int]:
    """Order runs by score, best first; ties by name and data, independently of the input order."""
    sign = -1.0 if counted.statistic.greater_is_better else 1.0

    def place(i: int) -> tuple[float, str, str]:
        entry = counted.entries[i]
        return sign * (counted.scores[i] or 0.0), entry.data.name, entry.pairing.report.candidate_digest

    return sorted(range(len(counted)), key=place)


def tested_pairs(
    tester: PairTester,
    order: Sequence[int],
    reference: int | None,
    rule: Adjustment,
    alpha: float,
    statistic: Statistic,
) -> tuple[Pair, ...]:
    """Test all pairs, or all pairs with the reference, and correct them; places are those in `order`."""
    places = range(len(order))
    if reference is None:
        chosen = [(second, first) for first, second in combinations(places, 2)]
    else:
        chosen = [(place, reference) for place in places if place != reference]
    tests = tester.tests([(order[candidate], order[baseline]) for candidate, baseline in chosen])
    log10_upper = np.array([_log10_upper(found) for found in tests])
    log10_adjusted = adjust_log10(log10_upper, rule.name).tolist()
    upper_ends = [max(found.pvalue, found.interval[1]) for found in tests]
    adjusted = [
        10.0**log10 if log10 < math.log10(_UNDERFLOW) else pvalue
        for pvalue, log10 in zip(adjust(upper_ends, rule.name).tolist(), log10_adjusted, strict=True)
    ]
    return tuple(
        Pair(
            candidate=candidate,
            baseline=baseline,
            test=found,
            log10_upper=float(log10_upper[k]),
            adjusted=adjusted[k],
            log10_adjusted=log10_adjusted[k],
            verdict=_verdict(found, adjusted[k], alpha, statistic),
        )
        for k, ((candidate, baseline), found) in enumerate(zip(chosen, tests, strict=True))
    )


def _log10_upper(test: PermutationTest) -> float:
    """Return the decimal logarithm of the upper end of the p-value's interval."""
    if test.pvalue >= _UNDERFLOW:
        return min(max(math.log10(max(test.pvalue, test.interval[1])), test.log10_pvalue), 0.0)
    error = test.error_bound if test.error_bound < 1.0 else 0.0
    return test.log10_pvalue + math.log1p(error) / math.log(10.0)


def _verdict(test: PermutationTest, adjusted: float, alpha: float, statistic: Statistic) -> Sign:
    return decide_sign(
        adjusted,
        test.observed,
        alternative=test.alternative,
        greater_is_better=statistic.greater_is_better,
        alpha=alpha,
    )


def ranked_rows(
    counted: RunCounts,
    order: Sequence[int],
    pairs: Sequence[Pair],
    reference: int | None,
    rule: Adjustment,
    alpha: float,
    intervals: Mapping[int, Interval | str],
) -> tuple[tuple[Row, ...], str | None]:
    """Build the rows, best first; return them with a note on the letters, if there is one."""
    scores = [float(counted.scores[i] or 0.0) for i in order]
    names = [counted.entries[i].data.name for i in order]
    sign = 1.0 if counted.statistic.greater_is_better else -1.0
    letters: Sequence[str | None] = [None] * len(order)
    ranks: Sequence[tuple[int, int] | None] = [None] * len(order)
    note = None
    if reference is None:
        better = significantly_better(
            len(order),
            np.array([(pair.candidate, pair.baseline) for pair in pairs]),
            [sign * pair.difference for pair in pairs],
            [pair.adjusted for pair in pairs],
            alpha,
        )
        display = letter_display(better | better.T, [sign * score for score in scores])
        letters = display.letters
        if rule.controls == "FWER":
            ranks = [(int(low), int(high)) for low, high in rank_ranges(better)]
        else:
            note = display.note  # with so many groups, ranks are shown in place of letters
    equal = _clones(counted, order, pairs)
    against = {pair.candidate: pair for pair in pairs if pair.baseline == (reference or 0)}
    by_score = Counter(scores)
    rows = []
    for place, i in enumerate(order):
        interval = intervals.get(place)
        group = next((group for group in equal if place in group), ())
        rows.append(
            Row(
                data=counted.entries[i].data,
                name=names[place],
                score=scores[place],
                rank=1 + sum(n for score, n in by_score.items() if sign * score > sign * scores[place]),
                ranks=ranks[place],
                letters=letters[place],
                clones=tuple(names[other] for other in group if other != place),
                pair=against.get(place),
                interval=interval if isinstance(interval, Interval) else None,
            )
        )
    return tuple(rows), note


def _clones(counted: RunCounts, order: Sequence[int], pairs: Sequence[Pair]) -> Sequence[tuple[int, ...]]:
    """Return groups of runs, by their places, with the same counts on every example.

    Counts of classes and of pairs are not stored by run; for them, tested pairs without discordant examples
    are used.
    """
    if not counted.statistic.has_classes and not counted.statistic.depends_on_both:
        varying = counted.varying
        if not varying:
            return [tuple(range(len(order)))]
        return clones([np.stack([counted.values[i][c] for c in varying], axis=1) for i in order])
    groups = {place: {place} for place in range(len(order))}
    for pair in pairs:
        if pair.test.n_discordant == 0:
            union = groups[pair.candidate] | groups[pair.baseline]
            groups.update(dict.fromkeys(union, union))
    return sorted({tuple(sorted(group)) for group in groups.values() if len(group) > 1})
