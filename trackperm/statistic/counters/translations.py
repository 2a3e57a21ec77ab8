"""Edits of translations, with shifts of phrases, as sacrebleu counts them."""

from __future__ import annotations

import numpy as np
import polars as pl

from trackperm.errors import UncountableError
from trackperm.statistic.counters.base import Integers, require_texts


def translation_edits(prediction: pl.Series, label: pl.Series) -> Integers:
    """Count the insertions, deletions, substitutions and shifts of words that turn one text into the other.

    Words are separated by whitespace, and case does not count: sacrebleu's TER by default. It raises
    UncountableError if sacrebleu is not installed.
    """
    try:
        from sacrebleu.metrics.ter import TER
    except ImportError:
        raise UncountableError(
            0, "its edits are counted by `sacrebleu`, which is not installed", "`pip install sacrebleu`."
        ) from None
    require_texts(prediction, label)
    ter = TER()
    pairs = zip(prediction.to_list(), label.to_list(), strict=True)
    return np.array([ter.sentence_score(p, [y]).num_edits for p, y in pairs], dtype=np.int64)
