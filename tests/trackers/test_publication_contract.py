"""Writing comparisons, by one contract for every tracker adapter, over the real thing."""

from __future__ import annotations

import math
from collections.abc import Callable
from uuid import uuid4

import polars as pl
import pytest
from support.tracker_stores import PREDICTIONS, TrackerStore, on_servers, publication

import trackperm
from trackperm.errors import InputError
from trackperm.trackers.base import Tracker
from trackperm.trackers.publication import Table
from trackperm.trackers.references import TrackedRun

pytestmark = [pytest.mark.tracker, pytest.mark.contract]

NO_CONTAINER = "no (experiment called|project)"


def test_a_publication_is_kept_to_the_letter(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    before = [store.snapshot(run.reference.locator) for run in pair]
    wanted = publication(*pair)
    published = tracker.publish(wanted)

    assert published.created
    (kept,) = store.comparisons(experiment)
    assert published.run.reference.locator == kept.locator
    assert (kept.is_finished, kept.name) == (True, wanted.name)
    assert kept.metrics == wanted.metrics
    assert wanted.tags.items() <= kept.tags.items()
    assert kept.tags["trackperm.key"] == wanted.key
    assert kept.description == wanted.description
    assert kept.files == wanted.files
    assert kept.tables["discordant"]["columns"] == ["id", "better"]
    assert kept.tables["discordant"]["data"] == [["001", True], ["1", None]]
    assert kept.tables["results"]["data"] == [["accuracy", "3.5e-12", "inf"]]

    assert [store.snapshot(run.reference.locator) for run in pair] == before
    tags = wanted.candidate_tags if store.tags_candidates else {}
    assert [store.candidate_tags(run.reference.locator) for run in pair] == [{}, tags]


def test_the_same_comparison_is_not_added_again(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    first = tracker.publish(publication(*pair))
    before = store.snapshot(first.run.reference.locator)
    again = tracker.publish(publication(*pair))
    assert not again.created
    assert again.run == first.run
    assert store.snapshot(first.run.reference.locator) == before
    assert len(store.comparisons(experiment)) == 1


def test_a_changed_comparison_replaces_what_was_there(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    first = tracker.publish(publication(*pair))
    changed = publication(
        *pair,
        metrics={"accuracy/p_value": 1e-13, "accuracy/difference": -0.25, "accuracy/n_examples": 4.0},
        tables={"results": Table(("p",), [("1e-13",)]), "discordant": Table(("id",), [("x",)])},
        description="another",
    )
    published = tracker.publish(changed)
    (kept,) = [
        kept for kept in store.comparisons(experiment) if kept.locator == published.run.reference.locator
    ]
    assert kept.metrics == changed.metrics
    assert (kept.description, kept.is_finished) == ("another", True)
    assert kept.tables["discordant"]["data"] == [["x"]]
    assert published.run.name == first.run.name


@on_servers
def test_a_changed_comparison_is_the_same_run(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    first = tracker.publish(publication(*pair))
    assert not tracker.publish(publication(*pair, description="another")).created
    (kept,) = store.comparisons(experiment)
    assert (kept.locator, kept.description) == (first.run.reference.locator, "another")


@pytest.mark.extended
def test_another_key_is_another_comparison(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    published = [tracker.publish(publication(*pair, key=key * 16)) for key in ("ab", "cd")]
    assert all(each.created for each in published)
    assert {kept.locator for kept in store.comparisons(experiment)} == {
        each.run.reference.locator for each in published
    }


@pytest.mark.extended
@on_servers
def test_both_runs_are_tagged_on_request_and_the_newest_comparison_counts(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    before = [store.snapshot(run.reference.locator) for run in pair]
    first = publication(*pair)
    second = publication(
        *pair,
        key="ab" * 16,
        candidate_tags={"sig.accuracy": "≈ p=0.6", "sig.accuracy.vs": "svm", "sig.accuracy.score": 0.25},
    )
    for wanted in (first, second, first):
        tracker.publish(wanted, tag_runs=True)
        assert store.candidate_tags(pair[1].reference.locator) == wanted.candidate_tags
        assert store.candidate_tags(pair[0].reference.locator) == wanted.baseline_tags
    assert len(store.comparisons(experiment)) == 2
    assert [store.snapshot(run.reference.locator) for run in pair] == before


@on_servers
def test_only_finished_runs_are_tagged_and_nothing_is_written_else(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    with store.open_run(experiment, "svm") as run:
        running = tracker.find(
            trackperm.log_predictions(run, pl.DataFrame(dict(PREDICTIONS))).partition(":")[2]
        )
        with pytest.raises(InputError, match=r"is (running|RUNNING), so it cannot get tags"):
            tracker.publish(publication(pair[0], running), tag_runs=True)
    with pytest.raises(InputError, match="the baseline is not in"):
        tracker.publish(publication(None, pair[1]), tag_runs=True)
    assert not store.comparisons(experiment)
    assert not store.candidate_tags(pair[1].reference.locator)


def test_an_option_that_a_tracker_lacks_is_refused_and_nothing_is_written(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    for option in {"alert", "tag_runs"} - tracker.options:
        with pytest.raises(InputError, match=f"`{tracker.scheme}` does not support `{option}=True`"):
            tracker.publish(publication(*pair), **{option: True})
        assert not store.comparisons(experiment)


def test_a_named_experiment_takes_the_comparison_and_nothing_else_is_touched(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    before = store.snapshot(pair[1].reference.locator)
    results = store.container(f"results-{uuid4().hex[:8]}")
    published = tracker.publish(publication(*pair), results)
    (kept,) = store.comparisons(results)
    assert kept.locator == published.run.reference.locator
    assert not store.comparisons(experiment)
    assert store.snapshot(pair[1].reference.locator) == before
    assert not store.candidate_tags(pair[1].reference.locator)


def test_nowhere_to_write_is_refused(tracker: Tracker):
    with pytest.raises(InputError, match=r"open_tracker\(.(mlflow|wandb).\)"):
        tracker.publish(publication(None, None))


@on_servers
def test_what_is_not_there_is_not_made_by_accident(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    with pytest.raises(
        InputError, match=r"no (experiment called|project) [\s\S]*[Dd]id you mean `[^`]*digits-"
    ):
        tracker.publish(publication(*pair), f"{experiment}s")
    with pytest.raises(InputError, match=r"mlflow experiments create|create_project"):
        tracker.publish(publication(*pair), "something quite different")
    assert not store.comparisons(experiment)


_TOO_MUCH: dict[str, Callable[[], dict[str, object]]] = {
    "metric path": lambda: {"metrics": {"a//p_value": 0.5}},
    "long name": lambda: {"metrics": {"a" * 251: 0.5}},
    "infinite metric": lambda: {"metrics": {"accuracy/error_bound": math.inf}},
    "undefined metric": lambda: {"metrics": {"accuracy/difference": math.nan}},
    "path": lambda: {"files": {"../pmf.png": b""}},
    "long table": lambda: {"tables": {"results": Table(("id",), [(i,) for i in range(1001)])}},
    "key": lambda: {"key": "x' or 1=1"},
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", _TOO_MUCH)
def test_what_the_tracker_would_cut_or_change_is_refused_before_anything_is_written(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun], case: str
):
    with pytest.raises(InputError):
        tracker.publish(publication(*pair, **_TOO_MUCH[case]()))
    assert not store.comparisons(experiment)
