"""A comparison as plain values, which JSON can hold: what is logged, printed by `--json`, and verified."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from trackperm.comparison.result import Comparison
from trackperm.exact.intervals import EffectSizes, Interval


def plain(comparison: Comparison) -> dict[str, Any]:
    """Return the result as plain values; numbers that are not finite become None."""
    return {
        "statistic": comparison.statistic.name,
        "score": comparison.statistic.score_text,
        "baseline": comparison.baseline,
        "candidate": comparison.candidate,
        "baseline_name": comparison.baseline_name,
        "candidate_name": comparison.candidate_name,
        "baseline_score": _finite(comparison.baseline_score),
        "candidate_score": _finite(comparison.candidate_score),
        "difference": comparison.difference,
        "pvalue": comparison.pvalue if comparison.pvalue > 0.0 else None,
        "log10_pvalue": comparison.log10_pvalue,
        "error_bound": _finite(comparison.error_bound),
        "pvalue_interval": list(comparison.test.interval),
        "mid_p": comparison.test.mid_p,
        "n_samples": comparison.test.n_samples,
        "log10_smallest_pvalue": comparison.test.log10_smallest_pvalue,
        "alternative": comparison.test.alternative,
        "alpha": comparison.alpha,
        "corrected": None if comparison.corrected is None else asdict(comparison.corrected),
        "margin": comparison.margin,
        "verdict": comparison.verdict,
        "sign": comparison.decision.sign,
        "equivalent": comparison.decision.equivalent,
        "slice": None if comparison.part is None else asdict(comparison.part),
        "interval": _plain_interval(comparison.interval),
        "no_interval": comparison.no_interval,
        "effect_sizes": _plain_effect_sizes(comparison.effect_sizes),
        "minimum_detectable_effect": None if comparison.detectable is None else asdict(comparison.detectable),
        "method": comparison.method,
        "why": comparison.test.why,
        "ties": comparison.test.ties,
        "n_examples": comparison.n_examples,
        "n_discordant": comparison.n_discordant,
        "n_better": comparison.n_better,
        "n_worse": comparison.n_worse,
        "cases": [asdict(case) for case in comparison.cases],
        "second_opinions": [asdict(each) for each in comparison.second_opinions],
        "pairing": comparison.pairing.to_dict(),
        "options": dict(comparison.options),
        "signature": comparison.signature,
        "key": comparison.key,
    }


def _plain_effect_sizes(found: EffectSizes) -> dict[str, Any]:
    return {
        "relative_change": _finite(found.relative_change),
        "cohens_dz": _finite(found.cohens_dz),
        "odds": _finite(found.odds),
        "odds_interval": _plain_interval(found.odds_interval),
    }


def _plain_interval(interval: Interval | None) -> dict[str, Any] | None:
    """Return an interval as plain values, with None for an end that nothing bounds."""
    if interval is None:
        return None
    ends = {"low": _finite(interval.low), "high": _finite(interval.high)}
    return {
        **ends,
        "confidence": interval.confidence,
        "alternative": interval.alternative,
        "method": interval.method,
        "relation": interval.relation,
        "note": interval.note,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
