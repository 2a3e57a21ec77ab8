"""Hints about pairings that nothing disproves."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from trackperm.pairing.pair import pair_in_memory as pair
from trackperm.statistic import load_statistic
from trackperm.tables.table import ExampleTable

N = 2_000
RNG = np.random.default_rng(5)
LABELS = RNG.integers(0, 4, N)


def noisy(labels: Any, share: float, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(labels)) < share, labels, rng.integers(0, 4, len(labels)))


FIRST, SECOND = noisy(LABELS, 0.6, 1), noisy(LABELS, 0.7, 2)
QUALITY = RNG.normal(size=N)


def table(origin: str, identity: tuple[str, ...] = (), **columns: Any) -> ExampleTable:
    frame = ExampleTable.from_native(
        pl.DataFrame({"id": np.arange(len(next(iter(columns.values())))), **columns}), origin
    )
    return ExampleTable(frame.frame, origin, identity=identity)


def looks(
    baseline: ExampleTable, candidate: ExampleTable, name: str = "accuracy", **options: Any
) -> list[str]:
    report = pair(baseline, candidate, load_statistic(name), **options).report
    return [note.removeprefix("look: ") for note in report.notes if note.startswith("look: ")]


def test_ordinary_runs_have_no_warnings() -> None:
    assert (
        looks(table("a", prediction=FIRST, label=LABELS), table("b", prediction=SECOND, label=LABELS)) == []
    )
    scores = [QUALITY + np.random.default_rng(seed).normal(size=N) for seed in (1, 2)]
    assert looks(table("a", score=scores[0]), table("b", score=scores[1]), "mean") == []


@pytest.mark.parametrize("shift", [1, -2])
def test_shifted_rows(shift: int) -> None:
    moved = np.roll(SECOND, -shift)
    found = looks(
        table("a", prediction=FIRST, label=LABELS),
        table("b", prediction=moved, label=LABELS),
        by_position=True,
    )
    assert found == [
        f"`prediction` of the runs agrees if the candidate's rows move by {shift:+d}; they may be shifted"
    ]


def test_unrelated_rows() -> None:
    other = np.random.default_rng(9).permutation(SECOND)
    found = looks(table("a", prediction=FIRST, label=LABELS), table("b", prediction=other, label=LABELS))
    assert found == [
        "`prediction` of the runs agrees no better than by chance; the rows may be paired wrongly"
    ]
    scores = [np.random.default_rng(seed).normal(size=N) for seed in (1, 2)]
    assert (
        "`score` of the runs agrees no better"
        in looks(table("a", score=scores[0]), table("b", score=scores[1]), "mean")[0]
    )


def test_integers_that_are_close_and_seldom_equal() -> None:
    """Regression: predictions of a regression that are whole numbers looked like unrelated classes."""
    truth = np.random.default_rng(3).integers(0, 100, N)
    near = [truth + np.random.default_rng(seed).integers(-20, 21, N) for seed in (1, 2)]
    other = np.random.default_rng(9).permutation(near[1])
    run = table("a", prediction=near[0], label=truth)
    for name in ("pearson", "mae"):
        assert looks(run, table("b", prediction=near[1], label=truth), name) == []
        assert (
            "agrees no better than by chance"
            in looks(run, table("b", prediction=other, label=truth), name)[0]
        )


def test_a_column_of_one_value_is_no_shared_input() -> None:
    """Regression: all examples of a TREC run shared their `measure`, which is the same in every row."""
    runs = [
        table(name, ("measure",), score=QUALITY + i * RNG.normal(size=N), measure=["AP"] * N)
        for i, name in enumerate("ab")
    ]
    assert looks(*runs, "mean") == []


def test_few_or_rare_values_have_no_warnings() -> None:
    few = slice(0, 40)
    other = np.random.default_rng(9).permutation(SECOND[few])
    assert (
        looks(
            table("a", prediction=FIRST[few], label=LABELS[few]),
            table("b", prediction=other, label=LABELS[few]),
        )
        == []
    )
    rare = (np.arange(N) % 100 == 0).astype(int), (np.arange(N) % 90 == 7).astype(int)  # hardly ever 1
    assert (
        looks(
            table("a", prediction=rare[0], label=rare[0] * 0),
            table("b", prediction=rare[1], label=rare[0] * 0),
        )
        == []
    )
    texts = [[f"answer {seed} {i}" for i in range(N)] for seed in (1, 2)]
    assert (
        looks(
            table("a", prediction=texts[0], label=texts[1]),
            table("b", prediction=texts[1][::-1], label=texts[1]),
        )
        == []
    )


def test_copies_and_shifted_copies() -> None:
    run = table("a", prediction=FIRST, label=LABELS)
    assert looks(run, run) == ["`prediction` is the same in both runs; one may be a copy of the other"]
    assert looks(table("a", score=QUALITY), table("b", score=QUALITY + 0.25), "mean") == [
        "`score` differs by +0.25 on every example; one run may be a shifted copy"
    ]


def test_labels_logged_as_predictions() -> None:
    found = looks(table("a", prediction=FIRST, label=LABELS), table("b", prediction=LABELS, label=LABELS))
    assert found == [
        "`prediction` equals `label` on every example of `b`; labels may have been logged as predictions"
    ]


@pytest.mark.parametrize(("n", "is_warned"), [(49, False), (50, True)])
def test_fewer_than_50_examples_show_no_pattern(n: int, is_warned: bool) -> None:
    run = table("a", prediction=FIRST[:n], label=LABELS[:n])
    assert bool(looks(run, run)) == is_warned


def test_inputs_that_repeat() -> None:
    """They count as independent, unless they are clusters."""
    hashes = [f"{i % (N - 3)}" for i in range(N)]
    runs = [
        table(name, ("doc_hash",), prediction=prediction, label=LABELS, doc_hash=hashes)
        for name, prediction in (("a", FIRST), ("b", SECOND))
    ]
    assert looks(*runs) == [
        f"6 of {N:,} examples share their `doc_hash` with another, but count as independent"
    ]
    report = pair(*runs, load_statistic("accuracy", cluster="doc_hash")).report
    assert not [note for note in report.notes if "count as independent" in note]


def test_hashes_of_answers_are_not_inputs() -> None:
    """As lm-evaluation-harness logs them: all questions with the answer B have one."""
    runs = [
        table(name, ("target_hash",), prediction=prediction, label=LABELS, target_hash=LABELS.astype(str))
        for name, prediction in (("a", FIRST), ("b", SECOND))
    ]
    assert looks(*runs) == []
