"""Notes on dependent examples in a leaderboard."""

from __future__ import annotations

import numpy as np
import polars as pl
from support.comparisons import numbered

import trackperm
from trackperm.leaderboards import Leaderboard

N_DOCUMENTS, SIZE = 40, 10


def runs(effect: float, n_runs: int = 4) -> dict[str, pl.DataFrame]:
    """Runs on the same examples, each of which some documents suit more than others, by `effect`."""
    rng = np.random.default_rng(1)
    document = np.repeat(np.arange(N_DOCUMENTS), SIZE)
    common = rng.normal(0.8, 1.0, document.size)
    return {
        f"m{i}": numbered(
            document=document,
            correct=(
                common + effect * rng.normal(size=N_DOCUMENTS)[document] + rng.normal(size=document.size) > 0
            ).astype(int),
        )
        for i in range(n_runs)
    }


def looks(board: Leaderboard) -> list[str]:
    return [note for note in board.notes if "design effect" in note]


def test_a_document_effect() -> None:
    (line,) = looks(trackperm.leaderboard(runs(1.0), metric="correct"))
    assert line.startswith("look: the differences between runs are correlated within each `document`")
    assert "in 3 of 3 pairs with `m0`" in line
    assert line.endswith("`--cluster document` tests whole clusters")


def test_no_effect() -> None:
    assert looks(trackperm.leaderboard(runs(0.0), metric="correct")) == []


def test_clusters_that_are_declared() -> None:
    assert looks(trackperm.leaderboard(runs(1.0), metric="correct", cluster="document")) == []


def test_rows_that_are_paired_by_position() -> None:
    by_position = {name: frame.drop("id") for name, frame in runs(1.0).items()}
    (line,) = looks(trackperm.leaderboard(by_position, metric="correct", by_position=True))
    assert [line] == looks(trackperm.leaderboard(runs(1.0), metric="correct"))
