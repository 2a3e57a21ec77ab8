"""Losses of predicted probabilities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import UncountableError

OUTCOMES = (1, 0)
"""Whether the event of the probability happened; it does by default."""

CLIPPED = float(np.finfo(np.float64).eps)
"""Distance from 0 and 1 to which probabilities are clipped, as by scikit-learn: log(0) is not finite."""


def log_loss(probability: pl.Series, outcome: int) -> npt.NDArray[np.float64]:
    """Return -log of the probability of what happened, with probabilities clipped as by scikit-learn."""
    values = probability.cast(pl.Float64).to_numpy()
    outside = ~((values >= 0.0) & (values <= 1.0))
    if outside.any():
        row = int(outside.argmax())
        raise UncountableError(
            row,
            f"`{probability.name}` is {values[row]}; expected a probability from 0 to 1",
            "convert other scores, such as logits or percentages, first.",
        )
    clipped = np.clip(values, CLIPPED, 1.0 - CLIPPED)
    losses: npt.NDArray[np.float64] = -np.log(clipped if outcome else 1.0 - clipped)
    return losses
