"""A logged leaderboard, in every tracker: one run of its own, which counts for all of its pairs."""

from __future__ import annotations

import io
from pathlib import Path
from uuid import uuid4

import polars as pl
import pytest
from support.comparisons import answers
from support.mlflow_stores import MlflowExperiments, MlflowStore
from support.processes import at_once
from support.tracker_stores import TrackerStore

import trackperm
from trackperm.errors import InputError
from trackperm.leaderboards import Leaderboard
from trackperm.ledger import TestFamily, families
from trackperm.ledger.comparison_publication import look_sentence, looks_sentence

pytestmark = [pytest.mark.tracker, pytest.mark.contract]

RIGHT = {"first": 30, "second": 29, "third": 8}
FILES = {
    "leaderboard.md",
    "leaderboard.csv",
    "leaderboard.json",
    "leaderboard.png",
    "trackperm_leaderboard.html",
    "trackperm/statistic.yaml",
    "trackperm/pairs.parquet",
}


@pytest.fixture
def runs(store: TrackerStore, experiment: str) -> dict[str, str]:
    """References of three runs on 40 examples."""
    scheme = store.address()[0]
    made = {
        name: answers([i < right for i in range(40)]).to_dict(as_series=False)
        for name, right in RIGHT.items()
    }
    return {
        name: f"{scheme}:{store.run(experiment, name, {'predictions.json': rows})}"
        for name, rows in made.items()
    }


def board_of(store: TrackerStore, runs: dict[str, str], **options: object) -> Leaderboard:
    return trackperm.leaderboard(list(runs.values()), tracking_uri=store.tracking_uri, **options)


def ledger(store: TrackerStore, experiment: str) -> TestFamily:
    tracker = store.tracker()
    (found,) = families(tracker.comparisons(experiment))
    return found.with_pairs(tracker)


@pytest.mark.extended
def test_a_leaderboard_is_a_run_of_its_own(store: TrackerStore, experiment: str, runs: dict[str, str]):
    short = store.run(experiment, "short", {"predictions.json": answers([True] * 9).to_dict(as_series=False)})
    locators = [reference.partition(":")[2] for reference in runs.values()]
    before = [store.snapshot(locator) for locator in locators]
    tracker = store.tracker()
    listed = tracker.runs(experiment)
    board = board_of(store, runs | {"short": f"{tracker.scheme}:{short}"})
    published = trackperm.log(board)
    assert (published.created, published.look, published.remarks) == (True, 1, ())

    (kept,) = store.comparisons(experiment, "leaderboard")
    assert (kept.locator, kept.is_finished) == (published.run.reference.locator, True)
    assert kept.name == "accuracy: leaderboard of 3 of 4 runs"
    assert kept.files.keys() == FILES
    assert kept.files["leaderboard.json"].decode() == board.to_json() + "\n"
    assert kept.tags["trackperm.n_pairs"] == "3"
    assert kept.metrics["accuracy/n_significant"] == 2
    pairs = pl.read_parquet(io.BytesIO(kept.files["trackperm/pairs.parquet"]))
    assert pairs["log10_p"].to_list() == [pair.test.log10_pvalue for pair in board.pairs]
    rows = kept.tables["board"]["data"]
    assert [row[1] for row in rows] == ["first", "second", "third", "short"]
    assert rows[-1][-1] == " ".join(board.incomplete[0].reason.split())
    assert len(kept.tables["pairs"]["data"]) == 3
    assert looks_sentence(1, 3) in kept.description
    assert "- short: " in kept.description
    assert "short" in kept.files["leaderboard.csv"].decode().splitlines()[-1]

    assert [store.snapshot(locator) for locator in locators] == before
    assert tracker.runs(experiment) == listed
    assert not store.comparisons(experiment)
    with pytest.raises(InputError, match="is a leaderboard that trackperm logged"):
        tracker.find(kept.locator)


@pytest.mark.parametrize(
    "store",
    [
        "mlflow-sqlite",
        "wandb-online",
        pytest.param("wandb-offline", marks=pytest.mark.extended),
        pytest.param("mlflow-http", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_the_same_again_adds_nothing_and_comparisons_count_on(
    store: TrackerStore, experiment: str, runs: dict[str, str]
):
    board = board_of(store, runs)
    first = trackperm.log(board)
    before = store.snapshot(first.run.reference.locator)
    again = trackperm.log(board_of(store, dict(reversed(runs.items()))))
    assert (again.created, again.run, again.look) == (False, first.run, 1)
    assert store.snapshot(first.run.reference.locator) == before

    comparison = trackperm.compare(runs["second"], runs["first"], tracking_uri=store.tracking_uri)
    assert comparison.pairing.test_set == board.test_set
    look = trackperm.log(comparison)
    assert (look.look, look.in_leaderboards) == (4, 3)
    (kept,) = store.comparisons(experiment)
    assert look_sentence(4, 3) in kept.description.replace("\\", "")
    found = ledger(store, experiment)
    assert [(look.number, look.n_pairs) for look in found.entries] == [(1, 3), (4, 1)]
    alone = {frozenset((pair.candidate, pair.baseline)): pair.log10_pvalue for pair in found.entries[0].pairs}
    assert alone[frozenset((runs["first"], runs["second"]))] == comparison.log10_pvalue
    assert found.adjusted("bonferroni")[1] == pytest.approx(min(alone.values()) + 0.60205999)


_LOGGING = """
import sys, trackperm
uri, statistic, *runs = sys.argv[1:]
board = trackperm.leaderboard(runs, statistic, tracking_uri=uri or None)
print("ready", flush=True)
sys.stdin.readline()
published = trackperm.log(board)
print("look", published.look, published.in_leaderboards)
"""


@pytest.mark.slow
def test_two_that_are_logged_at_once_keep_their_places(
    store: TrackerStore, experiment: str, runs: dict[str, str]
):
    in_mlflow = isinstance(store, MlflowExperiments)
    if in_mlflow:
        MlflowStore(store.tracking_uri).describe(experiment, "ours")
    statistics = ("accuracy", "error_rate")
    arguments = [(store.tracking_uri or "", statistic, *runs.values()) for statistic in statistics]
    places = [tuple(map(int, printed.split()[-2:])) for printed in at_once(_LOGGING, *arguments)]
    assert sorted(places) == [(1, 0), (4, 3)]
    numbers = {look.tag("statistic"): look.number for look in ledger(store, experiment).entries}
    assert numbers == {name: place[0] for name, place in zip(statistics, places, strict=True)}
    newest = sorted(store.comparisons(experiment, "leaderboard"), key=lambda kept: kept.locator)
    for kept in {kept.tags["trackperm.key"]: kept for kept in newest}.values():
        first = numbers[kept.tags["trackperm.statistic"]]
        assert looks_sentence(first, 3, first - 1) in kept.description.replace("\\", "")
    if in_mlflow:
        text = MlflowStore(store.tracking_uri).description(experiment)
        assert text.startswith("ours\n\n")
        assert all(
            f"\n{title}: 3 runs on 40" in text for title in ("accuracy", r"error\_rate (lower is better)")
        )


@pytest.mark.extended
@pytest.mark.parametrize("store", ["mlflow-sqlite", "wandb-online"], indirect=True)
def test_runs_are_tagged_with_the_adjusted_p_on_request(
    store: TrackerStore, experiment: str, runs: dict[str, str]
):
    with pytest.raises(InputError, match="needs a baseline"):
        trackperm.log(board_of(store, runs), tag_runs=True)
    board = board_of(store, runs, baseline=runs["second"])
    trackperm.log(board)
    tags = {name: store.candidate_tags(run.partition(":")[2]) for name, run in runs.items()}
    assert not any(tags.values())
    trackperm.log(board, tag_runs=True)
    tags = {name: store.candidate_tags(run.partition(":")[2]) for name, run in runs.items()}
    assert tags["second"] == {"sig.accuracy.score": 29 / 40}
    adjusted = board.pair("third", "second").adjusted
    assert tags["third"] == {
        "sig.accuracy": f"accuracy 0.2000 ▼ adj. p={adjusted:.2g}",
        "sig.accuracy.vs": "second",
        "sig.accuracy.score": 0.2,
    }
    assert str(tags["first"]["sig.accuracy"]).startswith("accuracy 0.7500 ≈ adj. p=")
    assert len(store.comparisons(experiment, "leaderboard")) == 1


@pytest.mark.parametrize("store", ["mlflow-sqlite"], indirect=True)
def test_where_it_is_logged(store: TrackerStore, experiment: str, runs: dict[str, str]):
    frames = {name: answers([i < right for i in range(40)]) for name, right in RIGHT.items()}
    board = trackperm.leaderboard(frames)
    with pytest.raises(InputError, match="is in a tracker"):
        trackperm.log(board)
    assert trackperm.log(board, store.tracker(), experiment).look == 1
    elsewhere = store.container(f"other-{uuid4().hex[:8]}")
    run = store.run(elsewhere, "fourth", {"predictions.json": frames["first"].to_dict(as_series=False)})
    spread = board_of(store, runs | {"fourth": f"mlflow:{run}"})
    with pytest.raises(InputError, match="several experiments"):
        trackperm.log(spread)
    results = store.container(f"results-{uuid4().hex[:8]}")
    assert trackperm.log(spread, container=results).created
    assert len(store.comparisons(results, "leaderboard")) == 1
    assert len(store.comparisons(experiment, "leaderboard")) == 1


@pytest.mark.parametrize("metric", [None, "loss"])
@pytest.mark.parametrize("store", ["mlflow-sqlite"], indirect=True)
def test_an_experiment_without_two_readable_runs(store: TrackerStore, experiment: str, metric: str | None):
    """Regression: the statistic was looked for in no table, which ended in an IndexError or a KeyError."""
    store.run(experiment, "empty")
    rows = answers([True] * 9).to_dict(as_series=False)
    store.run(experiment, "two", {"valid.json": rows, "test.json": rows})
    with pytest.raises(InputError, match=r"got 0 runs [\s\S]*\(empty\) has no artifact") as error:
        board_of(store, {}, experiment=f"mlflow:{experiment}", metric=metric)
    assert "(two) has 2 artifacts" in str(error.value)
    store.run(experiment, "whole", {"predictions.json": rows})
    with pytest.raises(InputError, match=r"got 1 run with all examples \(`whole`\); expected at least 2"):
        board_of(store, {}, experiment=f"mlflow:{experiment}", metric=metric)


@pytest.mark.extended
def test_runs_that_the_tracker_lists_are_taken_where_references_are(
    store: TrackerStore, experiment: str, runs: dict[str, str]
):
    """Without an address, for each of them knows its store."""
    listed = {run.name: run for run in store.tracker().runs(experiment) if run.name in runs}
    compared = trackperm.compare(listed["second"], listed["first"])
    named = trackperm.compare(runs["second"], runs["first"], tracking_uri=store.tracking_uri)
    assert (compared.key, compared.candidate_run) == (named.key, named.candidate_run)
    board = trackperm.leaderboard(list(listed.values()), baseline=listed["third"])
    assert board.baseline is not None
    assert board.rows[board.baseline].name == "third"
    assert board.key == board_of(store, runs, baseline=runs["third"]).key
    both = trackperm.compare(listed["second"], listed["first"], ["accuracy", "error_rate"])
    assert [published.look for published in trackperm.log(both)] == [1, 2]


@pytest.mark.extended
def test_two_references_to_one_run(store: TrackerStore, experiment: str, runs: dict[str, str]):
    """A baseline that another reference names is one of the runs; listed twice, it is refused."""
    if Path(experiment).is_absolute():
        return  # a folder of offline runs: they have no other names
    by_name = f"{store.address()[0]}:{experiment}/third"
    board = board_of(store, runs, baseline=by_name)
    assert (len(board.rows), len(board.pairs)) == (3, 2)
    assert board.key == board_of(store, runs, baseline=runs["third"]).key
    with pytest.raises(InputError, match="are the same run"):
        board_of(store, {**runs, "again": by_name})
