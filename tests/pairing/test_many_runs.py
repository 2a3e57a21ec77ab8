"""Runs paired at once: what `pair_in_memory` finds of each, and nothing where it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budget import cases

from trackperm.errors import TrackpermError
from trackperm.pairing import many_runs
from trackperm.pairing.many_runs import PairedRun, pair_many
from trackperm.pairing.pair import pair_in_memory
from trackperm.statistic import Statistic, load_statistic, read_statistic
from trackperm.tables.table import ExampleTable

SPREAD = "name: spread\ncounts: {a: score, b: 2 * other, n: 1}\nscore: a / n - b / n\n"
IDS = {
    "text": lambda n: [f"q{i}" for i in range(n)],
    "integers": lambda n: list(range(n)),
    "accents": lambda n: [f"é{i}" for i in range(n)],
}
FLAWS = ["none", "order", "label", "null", "null id", "twice", "short", "other id", "float ids", "no label"]
READINGS = ["noisy", "copy", "shifted", "unrelated", "label", "constant", "swapped"]


def statistic_called(name: str) -> Statistic:
    if name == "pair of ids":
        return load_statistic("accuracy", columns={"id": "id,epoch"})
    return read_statistic(SPREAD, "spread") if name == "spread" else load_statistic(name)


def predictions(label: np.ndarray, how: str, rng: np.random.Generator) -> np.ndarray:
    unrelated = rng.permutation(label)
    return {
        "noisy": np.where(rng.random(label.size) < 0.8, label, unrelated),
        "copy": label,
        "shifted": np.roll(label, 1),
        "unrelated": unrelated,
        "label": label,
        "constant": np.zeros_like(label),
        "swapped": 1 - label,
    }[how]


def table(frame: pl.DataFrame, origin: str, flaw: str, rng: np.random.Generator) -> ExampleTable:
    n = len(frame)
    match flaw:
        case "order":
            frame = frame[rng.permutation(n)]
        case "label":
            frame = frame.with_columns(label=(pl.col("label") + (pl.int_range(n) == 3)))
        case "null":
            frame = frame.with_columns(prediction=pl.when(pl.int_range(n) != 2).then("prediction"))
        case "null id":
            frame = frame.with_columns(id=pl.when(pl.int_range(n) != 2).then("id"))
        case "twice":
            frame = pl.concat([frame.head(n - 1), frame.head(1)])
        case "short":
            frame = frame.head(n - 1)
        case "other id":
            frame = frame.with_columns(
                pl.when(pl.int_range(n) != 2).then("id").otherwise(pl.col("id").last())
            )
        case "float ids":
            frame = frame.with_columns(pl.col("id").cast(pl.Float64, strict=False))
        case "no label":
            frame = frame.drop("label")
    return ExampleTable.from_native(frame, origin)


@given(
    name=st.sampled_from(["accuracy", "f1", "mean", "spread", "macro_f1", "pair of ids"]),
    ids=st.sampled_from(list(IDS)),
    n=st.sampled_from([6, 60, 1200]),
    own_flaw=st.sampled_from(["none", "none", "order", "null id", "twice"]),
    flaws=st.lists(st.sampled_from(FLAWS), min_size=3, max_size=5),
    readings=st.lists(st.sampled_from(READINGS), min_size=6, max_size=6),
    decimals=st.booleans(),
    missing=st.sampled_from(["error", "drop"]),
    together=st.sampled_from([1, 2000, 2**18]),
    seed=st.integers(0, 999),
)
@settings(max_examples=cases(8), deadline=None)
def test_against_pairing_each(name, ids, n, own_flaw, flaws, readings, decimals, missing, together, seed):
    rng = np.random.default_rng(seed)
    label, level, epoch = rng.integers(0, 2, n), rng.integers(0, 8, n) / 4, rng.integers(0, 2, n)
    tables = []
    for i, (flaw, how) in enumerate(zip([own_flaw, *flaws], readings, strict=False)):
        score = level if how == "copy" else level + 0.25 if how == "shifted" else rng.permutation(level)
        frame = pl.DataFrame(
            {
                "id": IDS[ids](n),
                "epoch": epoch,
                "label": label,
                "prediction": predictions(label, how, rng),
                "score": score + (rng.random(n) / 64 if decimals and how == "noisy" else 0),
                "other": rng.integers(0, 3, n),
            }
        )
        tables.append(table(frame, f"run {i}", flaw, rng))
    statistic = statistic_called(name)
    reference = tables[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many_runs, "_TOGETHER", together)
        at_once = pair_many(reference, tables, statistic, missing=missing)
    for candidate, found in zip(tables, at_once, strict=True):
        try:
            expected = pair_in_memory(reference, candidate, statistic, missing=missing)
        except TrackpermError:
            assert found is None
            continue
        if found is not None:
            assert found.report == expected.report
            assert found.statistic.resolution == expected.statistic.resolution
            assert found.counts.names == expected.counts.names
            counts = found.counts.frame.with_columns(pl.exclude("id", "^real\\..*$").cast(pl.Int64))
            assert counts.equals(expected.counts.frame)
            assert found.strata is expected.strata is None
            tables_of_counts = found.count_table, expected.count_table
            for part in ("candidate", "baseline", "multiplicities"):
                own, other = (getattr(each, part) for each in tables_of_counts)
                assert own.tolist() == other.tolist()


def runs(n: int = 100, k: int = 4) -> list[ExampleTable]:
    rng = np.random.default_rng(1)
    label = rng.integers(0, 3, n)
    frames = [
        pl.DataFrame({"id": IDS["text"](n), "prediction": predictions(label, "noisy", rng), "label": label})
        for _ in range(k)
    ]
    return [ExampleTable.from_native(frame[rng.permutation(n)], f"run {i}") for i, frame in enumerate(frames)]


def test_runs_on_the_same_examples_are_paired_at_once():
    tables = runs()
    found = pair_many(tables[0], tables, load_statistic("accuracy"))
    assert all(isinstance(paired, PairedRun) for paired in found)
    assert "one may be a copy of the other" in str(found[0].report.notes)
    assert not any("look" in note for paired in found[1:] for note in paired.report.notes)


def test_only_runs_with_a_flaw_are_left_out():
    tables = runs(k=8)
    flaws = {2: "label", 3: "null", 4: "twice", 5: "short", 6: "other id"}
    for place, flaw in flaws.items():
        rng = np.random.default_rng(place)
        tables[place] = table(tables[place].frame.to_native(), f"run {place}", flaw, rng)
    found = pair_many(tables[0], tables, load_statistic("accuracy"))
    assert [i for i, paired in enumerate(found) if paired is None] == [*flaws]


def test_shared_inputs_are_noted_for_every_run():
    inputs = pl.col("label").cast(pl.String).alias("prompt_hash")
    frames = [each.frame.to_native().with_columns(inputs) for each in runs()]
    tables = [replace(ExampleTable.from_native(each, "run"), identity=("prompt_hash",)) for each in frames]
    statistic = load_statistic("accuracy")
    found = pair_many(tables[0], tables[1:], statistic)
    notes = [pair_in_memory(tables[0], each, statistic).report.notes for each in tables[1:]]
    assert [paired.report.notes for paired in found] == notes
    assert "share their `prompt_hash`" in str(notes[0])


def test_columns_that_are_the_same_in_all_runs_are_in_memory_once():
    tables = runs()
    found = pair_many(tables[0], tables, load_statistic("accuracy"))
    frames = [paired.counts.frame for paired in found]
    for name in ("baseline.correct", "candidate.n"):
        assert len({frame[name].to_numpy().ctypes.data for frame in frames}) == 1


def test_untyped_text_is_read_with_each_run():
    """`1.0` and `1` are one number, but not beside a text: the reference run is read in two ways."""
    statistic = read_statistic("counts: {same: prediction == other, n: 1}\nscore: same / n\n", "same")
    columns = [("1.0", "2"), ("1", "3"), ("a", "b")]
    tables = []
    for i, (prediction, other) in enumerate(columns):
        frame = pl.DataFrame({"id": ["x", "y"], "prediction": [prediction, "2"], "other": ["1", other]})
        tables.append(replace(ExampleTable.from_native(frame, f"run {i}"), untyped=True))
    at_once = pair_many(tables[0], tables, statistic)
    each = [pair_in_memory(tables[0], table, statistic) for table in tables]
    assert [found.report for found in at_once] == [expected.report for expected in each]
    sums = [found.counts.frame.get_column("baseline.same").sum() for found in at_once]
    assert sums == [expected.counts.frame.get_column("baseline.same").sum() for expected in each] == [2, 2, 1]


def test_a_reference_run_with_a_missing_id_is_paired_one_by_one():
    tables = runs()
    frame = tables[0].frame.to_native()
    frame = frame.with_columns(id=pl.when(pl.int_range(len(frame)) != 2).then("id"))
    tables[0] = ExampleTable.from_native(frame, "run 0")
    assert pair_many(tables[0], tables, load_statistic("accuracy"), missing="drop") == [None] * 4


@pytest.mark.parametrize(("option", "value"), [("by_position", True), ("missing", "wrong")])
def test_options_that_pair_one_by_one(option, value):
    tables = runs()
    assert pair_many(tables[0], tables, load_statistic("accuracy"), **{option: value}) == [None] * 4
