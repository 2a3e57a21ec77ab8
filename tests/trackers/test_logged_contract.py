"""Comparisons that are logged, by one contract for every tracker adapter, over the real thing."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from support.comparisons import accuracy
from support.processes import at_once
from support.tracker_stores import Kept, TrackerStore, on_servers, publication, smallest_png

import trackperm
from trackperm.errors import InputError
from trackperm.ledger import families
from trackperm.ledger.comparison_publication import look_sentence
from trackperm.ledger.verification import verify_files
from trackperm.trackers import publication as of_publication
from trackperm.trackers.base import Tracker
from trackperm.trackers.references import TrackedRun

pytestmark = [pytest.mark.tracker, pytest.mark.contract]


def test_comparisons_are_not_runs_to_compare(tracker: Tracker, pair: tuple[TrackedRun, TrackedRun]):
    published = tracker.publish(publication(*pair, name="forest"))
    with pytest.raises(InputError, match="is a comparison"):
        tracker.find(published.run.reference.locator)


@on_servers
def test_comparisons_do_not_answer_to_names(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    tracker.publish(publication(*pair, name="forest"))
    assert tracker.find(store.by_name(experiment, "forest")) == pair[1]


def test_finished_runs_are_listed_and_comparisons_are_not(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    before = tracker.runs(experiment)
    assert {run.reference for run in pair} <= {run.reference for run in before}
    published = tracker.publish(publication(*pair))
    assert not published.run.reference.locator.endswith(tuple(run.reference.locator for run in before))
    assert tracker.runs(experiment) == before


def test_comparisons_are_listed_by_test_set(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    assert tracker.comparisons(pair[1]) == []
    wanted = {"aa" * 16: "a" * 64, "bb" * 16: "b" * 64, "cc" * 16: "a" * 64}
    published = {
        key: tracker.publish(publication(*pair, key=key, tags={"trackperm.test_set": test_set}))
        for key, test_set in wanted.items()
    }
    for near in (pair[1], experiment, next(iter(published.values())).run):
        found = {each.tags["trackperm.key"]: each for each in tracker.comparisons(near, "a" * 64)}
        assert {key: each.run for key, each in found.items()} == {
            key: published[key].run for key, test_set in wanted.items() if test_set == "a" * 64
        }
        assert all(each.is_finished for each in found.values())
        assert len(tracker.comparisons(near)) == 3
    moments = {each.tags["trackperm.key"]: each.created for each in tracker.comparisons(experiment)}
    assert sorted(wanted, key=lambda key: moments[key]) == list(wanted)


def test_a_comparison_brought_up_to_date_keeps_the_time_of_its_beginning(
    tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    created = set()
    for description in ("first", "second"):
        tracker.publish(publication(*pair, description=description))
        created |= {each.created for each in tracker.comparisons(experiment)}
    assert len(created) == 1


def test_a_comparison_is_found_and_its_files_are_read(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    files = {"trackperm/statistic.yaml": b"name: accuracy\n", "trackperm/counts.parquet": b"\x00\xff"}
    tags = {"trackperm.statistic": "accuracy", "trackperm.test_set": "a" * 64}
    published = tracker.publish(publication(*pair, files={"pmf.png": smallest_png(), **files}, tags=tags))
    found = tracker.comparison(published.run.reference.locator)
    assert (found.run, found.is_finished) == (published.run, True)
    assert tags.items() <= found.tags.items()
    assert found.metrics in ({}, publication(*pair).metrics)
    assert tracker.files(found.run) == files


@on_servers
def test_a_comparison_that_is_not_there_is_bad_input(store: TrackerStore, tracker: Tracker):
    with pytest.raises(InputError):
        tracker.comparison("x/y/z")


@pytest.mark.sample(2)
@pytest.mark.parametrize("locator", ["nobody", "", "日本"])
def test_runs_that_are_not_comparisons_are_bad_input(
    tracker: Tracker, pair: tuple[TrackedRun, TrackedRun], locator: str
):
    for each in (locator, pair[1].reference.locator):
        with pytest.raises(InputError):
            tracker.comparison(each)


def test_all_that_a_comparison_shows_is_verified(store: TrackerStore, tracker: Tracker, experiment: str):
    comparison = accuracy(9, 2, both=20).with_second_opinions()
    run = trackperm.log(comparison, tracker, experiment).run
    files, logged = tracker.files(run), tracker.comparison(run.reference.locator)
    found = verify_files(files, logged, tracker.shown_tables(run))
    assert found.matches, found
    assert {
        "metric accuracy/p_value",
        "name of the run",
        "table results",
        "table discordant",
        "table second_opinions",
        "tag trackperm.second_opinions",
    } <= {check.what for check in found.checks}
    assert not [note for note in found.notes if "the metrics" in note or note.endswith("tables of the run")]
    if logged.labels is not None:
        other = replace(logged, labels=("trackperm", "accuracy", "▼ worse"))
        assert not verify_files(files, other).matches


@pytest.mark.parametrize(
    "store",
    ["mlflow-sqlite", pytest.param("wandb-offline", marks=pytest.mark.extended), "wandb-online"],
    indirect=True,
)
def test_a_slow_clock_gives_no_earlier_place(
    tracker: Tracker, experiment: str, monkeypatch: pytest.MonkeyPatch
):
    """Regression: a comparison of a machine whose clock is late became the first look at the test set."""
    first = trackperm.log(accuracy(9, 2, both=20), tracker, experiment).look
    late = datetime.now(timezone.utc) - timedelta(days=1)
    monkeypatch.setattr(of_publication, "now", lambda: late.isoformat(timespec="microseconds"))
    others = [
        trackperm.log(accuracy(9, 2, both=20, alpha=alpha), tracker, experiment).look
        for alpha in (0.01, 0.02)
    ]
    assert [first, *others] == [1, 2, 3]
    (family,) = families(tracker.comparisons(experiment))
    alphas = [
        json.loads(tracker.files(entry.run)["trackperm/comparison.json"])["alpha"] for entry in family.entries
    ]
    assert alphas == [0.05, 0.01, 0.02]


_LOGGING = """
import sys, polars as pl, trackperm
scheme, uri, container, statistic = sys.argv[1:]
runs = [pl.DataFrame({"id": range(6), "prediction": p, "label": [1] * 6}) for p in ([0] * 6, [1] * 6)]
comparison = trackperm.compare(*runs, statistic)
tracker = trackperm.open_tracker(scheme, uri or None)
print("ready", flush=True)
sys.stdin.readline()
print("look", trackperm.log(comparison, tracker, container).look)
"""


@pytest.mark.parametrize(
    "store",
    [
        pytest.param("mlflow-sqlite", marks=pytest.mark.extended),
        pytest.param("wandb-offline", marks=pytest.mark.slow),
        pytest.param("mlflow-http", marks=pytest.mark.slow),
        pytest.param("wandb-online", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_two_processes_that_log_at_once_get_numbers_that_stay(
    store: TrackerStore, tracker: Tracker, experiment: str
):
    arguments = [(*store.address(), experiment, statistic) for statistic in ("accuracy", "error_rate")]
    looks = [int(printed.split()[-1]) for printed in at_once(_LOGGING, *arguments)]
    assert sorted(looks) == [1, 2]
    (family,) = families(tracker.comparisons(experiment))
    numbers = {look.tag("statistic"): look.number for look in family.entries}
    assert numbers == dict(zip(("accuracy", "error_rate"), looks, strict=True))
    for look in family.entries:
        found = verify_files(tracker.files(look.run), tracker.comparison(look.run.reference.locator))
        assert found.matches, found
        assert len(found.checks) > 30
    newest = {
        kept.tags["trackperm.key"]: kept for kept in sorted(store.comparisons(experiment), key=_locator)
    }
    for kept in newest.values():  # an offline run that was brought up to date is another folder
        assert look_sentence(numbers[kept.tags["trackperm.statistic"]]) in kept.description.replace("\\", "")


def _locator(kept: Kept) -> str:
    return kept.locator
