"""Confidence intervals for the difference, and effect sizes; approximate ones are labelled."""

from trackperm.exact.intervals.additive import AdditiveScores, additive_scores, strata_of_rows
from trackperm.exact.intervals.bootstrap import bootstrap_interval
from trackperm.exact.intervals.coverage import (
    why_bent,
    why_not_resampled,
    why_not_scored,
    why_not_shifted,
)
from trackperm.exact.intervals.effect_size import EffectSizes, effect_sizes, odds_interval, relative_change
from trackperm.exact.intervals.interval import Interval, IntervalMethod, Relation
from trackperm.exact.intervals.of_pairs import interval_of_pairs
from trackperm.exact.intervals.paired_proportions import (
    binary_interval,
    mcnemar_pvalue,
    paired_proportions_interval,
)
from trackperm.exact.intervals.score import score_interval
from trackperm.exact.intervals.shift import shift_interval
from trackperm.exact.intervals.unseen import HeaviestPart, UnseenDifferences

__all__ = [
    "AdditiveScores",
    "EffectSizes",
    "HeaviestPart",
    "Interval",
    "IntervalMethod",
    "Relation",
    "UnseenDifferences",
    "additive_scores",
    "binary_interval",
    "bootstrap_interval",
    "effect_sizes",
    "interval_of_pairs",
    "mcnemar_pvalue",
    "odds_interval",
    "paired_proportions_interval",
    "relative_change",
    "score_interval",
    "shift_interval",
    "strata_of_rows",
    "why_bent",
    "why_not_resampled",
    "why_not_scored",
    "why_not_shifted",
]
