"""Fractions in one run and percentages in another are noticed, and ordinary differences are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.comparisons import numbered
from support.questions import the_one

import trackperm
from trackperm.errors import InputError
from trackperm.report import text

RNG = np.random.default_rng(3)
FRACTIONS = RNG.uniform(0.6, 1.0, 40).round(3)
PERCENT = RNG.uniform(30.0, 70.0, 40).round(1)
BINARY = RNG.integers(0, 2, 40)
RATINGS = RNG.integers(1, 6, 40)

IN_TWO_UNITS = {
    "decimals": (FRACTIONS, PERCENT),
    "the same values": (FRACTIONS, 100 * FRACTIONS),
    "0 and 1 against 0 and 100": (BINARY, 100 * BINARY),
    "one right against many": (np.arange(40) < 1, 100 * (np.arange(40) < 39)),
    "0 and 1 against percentages": (BINARY, PERCENT),
    "fractions against grades of 100": (FRACTIONS, RNG.integers(40, 101, 40)),
    "fractions against ratings": (FRACTIONS, RATINGS),
    "some are 0": (np.where(BINARY, FRACTIONS, 0.0), np.where(BINARY, PERCENT, 0.0)),
}

ORDINARY = {
    "fractions": (FRACTIONS, RNG.uniform(0.0, 1.0, 40)),
    "percentages": (PERCENT, RNG.uniform(0.0, 100.0, 40)),
    "counts": (BINARY, RNG.integers(0, 4, 40)),
    "rare counts": (np.arange(40) < 1, np.where(BINARY, 3, 0)),
    "more counts": (BINARY, RNG.integers(0, 10, 40)),
    "0 and 1 against ratings": (BINARY, RATINGS),
    "one rating": (np.ones(40, dtype=int), RATINGS),
    "beyond 100": (FRACTIONS, RNG.uniform(100.0, 900.0, 40)),
    "below 0": (FRACTIONS, PERCENT - 50.0),
    "many below 1": (FRACTIONS, np.where(BINARY, PERCENT / 10, 0.5)),
    "all are wrong": (np.zeros(40), PERCENT),
    "a bonus": (FRACTIONS, np.where(np.arange(40) < 5, 3.0, 1.0)),
    "nothing above 1 by much": (FRACTIONS, FRACTIONS + 1.0),
}


def frames(sides: Any, name: str = "score") -> list[pl.DataFrame]:
    return [numbered(**{name: np.asarray(side, dtype=float)}) for side in sides]


@pytest.mark.sample(6)
@pytest.mark.parametrize("sides", IN_TWO_UNITS.values(), ids=IN_TWO_UNITS)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_two_units(sides: Any, is_reversed: bool) -> None:
    both = frames(sides)[:: -1 if is_reversed else 1]
    with pytest.raises(InputError, match="`score` of `baseline` lies between") as caught:
        trackperm.compare(*both)
    assert "and that of `candidate` between" in caught.value.message
    found = trackperm.compare(*both, metric="score")
    (line,) = [line for line in text.lines(found) if line.startswith("look: `score` of ")]
    assert "percentages" in line
    assert any("percentages" in note for note in trackperm.compare(*both, "mean").pairing.notes)


def test_a_policy_names_no_metric_for_these_runs(tmp_path: Path) -> None:
    """Regression: gates passed percentages against fractions, since their policy names a metric."""
    both = frames((FRACTIONS, PERCENT))
    for named in ({"metrics": ("score",)}, {"statistics": ("mean",)}):
        with pytest.raises(InputError, match="fractions and percentages") as caught:
            the_one(*both, **named, is_standing=True)
        assert "A spec with `ranges: {score: [0, 100]}` compares them" in str(caught.value.hint)
    spec = tmp_path / "points.yaml"
    spec.write_text("counts: {total: score, n: 1}\nscore: total / n\nranges: {score: [0, 100]}\n")
    assert the_one(*both, statistics=(spec,), is_standing=True).found == ()


@pytest.mark.sample(8)
@pytest.mark.parametrize("sides", ORDINARY.values(), ids=ORDINARY)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_ordinary_scores(sides: Any, is_reversed: bool) -> None:
    both = frames(sides)[:: -1 if is_reversed else 1]
    assert the_one(*both).name == "score"
    assert the_one(*both, metrics=("score",)).found == ()


@pytest.mark.parametrize(
    ("name", "least", "most", "is_refused"),
    [
        ("loss", 3.0, 9.0, False),
        ("latency", 1.5, 8.0, False),
        ("wer", 30.0, 90.0, True),
        ("reward", 2.0, 9.0, False),
        ("reward", 30.0, 90.0, True),
    ],
)
def test_metrics_without_a_bound(name: str, least: float, most: float, is_refused: bool) -> None:
    """Losses, times and rewards may be below 1 in one run and above 1 in the other."""
    sides = frames((FRACTIONS, RNG.uniform(least, most, 40)), name)
    if name != "reward":
        sides = [frame.rename({name: f"score.{name}"}) for frame in sides]
    if is_refused:
        with pytest.raises(InputError, match="fractions and percentages"):
            the_one(*sides)
    else:
        assert the_one(*sides).columns["score"].endswith(name)


def test_a_statistic_without_units() -> None:
    labels = pl.Series("label", BINARY)
    both = [frame.with_columns(labels) for frame in frames((FRACTIONS, PERCENT))]
    assert not [note for note in the_one(*both, statistics=("roc_auc",)).found if "percent" in note]


def test_the_message_names_both_ranges() -> None:
    with pytest.raises(InputError) as caught:
        trackperm.compare(*frames(([0.25, 0.5, 1.0] * 4, [20.0, 50.5, 90.0] * 4)))
    assert caught.value.message == (
        "`score` of `baseline` lies between 0.25 and 1, and that of `candidate` between 20 and 90: they seem"
        " to have two units, such as fractions and percentages"
    )
    assert "`--metric score` compares them as they are" in str(caught.value.hint)


def test_a_leaderboard_names_the_run_that_differs() -> None:
    sides = FRACTIONS, FRACTIONS[::-1], PERCENT, FRACTIONS**2
    runs = dict(zip("abcd", frames(sides), strict=True))
    with pytest.raises(InputError, match=r"`score` of `c` lies between .* that of the other 3 runs between"):
        trackperm.leaderboard(runs)
    board = trackperm.leaderboard(runs, metric="score")
    assert [note for note in board.notes if note.startswith("look: `score` of `c` lies between")]
    del runs["c"]
    assert not [note for note in trackperm.leaderboard(runs).notes if "percent" in note]
