"""One contract for every tracker adapter, over the real thing."""

from __future__ import annotations

import dataclasses
import math
import os
import subprocess
import sys
from collections.abc import Callable
from uuid import uuid4

import polars as pl
import pytest
from tracker_stores import PREDICTIONS, Kept, TrackerStore, smallest_png

import trackperm
from trackperm.errors import InputError, SourceError
from trackperm.family import families
from trackperm.publish import look_sentence
from trackperm.trackers.base import Publication, Table, TrackedRun, Tracker
from trackperm.verification import verify

pytestmark = pytest.mark.tracker

POLARS = pl.DataFrame(dict(PREDICTIONS))
SERVERS = ["mlflow-sqlite", "mlflow-http", "wandb-online"]
"""Stores whose runs have names; those of W&B that are offline are folders."""
NO_CONTAINER = "no (experiment called|project)"


on_servers = pytest.mark.parametrize("store", SERVERS, indirect=True)


@pytest.fixture
def tracker(store: TrackerStore) -> Tracker:
    return store.tracker()


@pytest.fixture
def pair(store: TrackerStore, tracker: Tracker, experiment: str) -> tuple[TrackedRun, TrackedRun]:
    """Baseline and candidate, with predictions."""
    baseline, candidate = (
        tracker.find(store.run(experiment, name, {"predictions.json": PREDICTIONS}))
        for name in ("logistic", "forest")
    )
    return baseline, candidate


def publication(baseline: TrackedRun | None, candidate: TrackedRun | None, **changes: object) -> Publication:
    made = Publication(
        key="5eed" * 8,
        name="accuracy: forest vs logistic",
        metrics={"accuracy/p_value": 3.5e-12, "accuracy/difference": -0.25, "accuracy/n_examples": 4.0},
        tables={
            "results": Table(("statistic", "p_value", "bound"), [("accuracy", "3.5e-12", math.inf)]),
            "discordant": Table(("id", "better"), [("001", True), ("1", None)]),
        },
        files={"pmf.png": smallest_png(), "trackperm/statistic.yaml": b"name: accuracy\n"},
        tags={"trackperm.statistic": "accuracy", "trackperm.verdict": "▼ worse"},
        description="**worse**, p = 3.5e-12 ▼",
        baseline=baseline,
        candidate=candidate,
        candidate_tags={"sig.accuracy": "▼ p=3.5e-12", "sig.accuracy.vs": "logistic"},
        baseline_tags={"sig.accuracy.baseline_of": "forest ▼"},
    )
    return dataclasses.replace(made, **changes)


@on_servers
def test_a_run_is_found_by_id_and_by_name(store: TrackerStore, tracker: Tracker, experiment: str):
    locator = store.run(experiment, "forest", {"predictions.json": PREDICTIONS})
    found = tracker.find(locator)
    assert found == tracker.find(store.by_name(experiment, "forest"))
    assert (found.reference.locator, found.name) == (locator, "forest")


def test_a_run_is_found_by_its_locator(store: TrackerStore, tracker: Tracker, experiment: str):
    found = tracker.find(store.run(experiment, "forest"))
    assert tracker.find(found.reference.locator) == found
    assert found.name == "forest"


@pytest.mark.parametrize("artifact", ["predictions.json", "eval/predictions.parquet", "predictions.csv"])
def test_ids_are_read_as_they_were_logged(
    store: TrackerStore, tracker: Tracker, experiment: str, artifact: str
):
    run = tracker.find(store.run(experiment, "forest", {artifact: PREDICTIONS}))
    table = tracker.read(run)
    assert table.frame.to_dict(as_series=False) == PREDICTIONS
    assert table.origin == str(run.reference)
    named = store.chosen(run.reference.locator, artifact)
    assert tracker.read(run, named).frame.to_dict(as_series=False) == PREDICTIONS


@on_servers
def test_several_runs_of_one_name_are_listed_and_refused(
    store: TrackerStore, tracker: Tracker, experiment: str
):
    locators = [store.run(experiment, "forest") for _ in range(3)]
    with pytest.raises(InputError, match="3 runs of") as caught:
        tracker.find(store.by_name(experiment, "forest"))
    assert all(locator in caught.value.message for locator in locators)


@on_servers
def test_what_is_not_there_is_said_with_what_is(store: TrackerStore, tracker: Tracker, experiment: str):
    store.run(experiment, "forest")
    with pytest.raises(InputError, match=r"no run called `forrest`[\s\S]*[Dd]id you mean `forest`"):
        tracker.find(store.by_name(experiment, "forrest"))
    with pytest.raises(
        InputError, match=r"no (experiment called|project)[\s\S]*[Dd]id you mean `[^`]*digits-"
    ):
        tracker.find(store.by_name(f"{experiment}s", "forest"))


@pytest.mark.parametrize("locator", ["nobody", "/", "x/", "/x", "a b", "日本", "x" * 300])
def test_what_names_nothing_is_bad_input(tracker: Tracker, locator: str):
    with pytest.raises(InputError, match=r"[^\x00]*"):
        tracker.find(locator)


def test_several_tables_are_listed_and_one_is_chosen(store: TrackerStore, tracker: Tracker, experiment: str):
    two = {"dev.json": PREDICTIONS, "eval/test.parquet": {"id": ["z"], "prediction": ["b"]}}
    run = tracker.find(store.run(experiment, "forest", two))
    test = store.chosen(run.reference.locator, "eval/test.parquet")
    with pytest.raises(InputError, match=r"2 [\s\S]*dev[\s\S]*eval/test\.parquet[\s\S]*--artifact"):
        tracker.read(run)
    assert tracker.read(run, test).frame["id"].to_list() == ["z"]
    assert tracker.read(run, f"{test}::id").frame["prediction"].to_list() == ["z"]


@pytest.mark.parametrize("artifact", ["dve.json", "eval", "eval/none.json", "../dev.json", "/etc/passwd", ""])
def test_artifacts_that_are_none_are_refused(
    store: TrackerStore, tracker: Tracker, experiment: str, artifact: str
):
    two = {"dev.json": PREDICTIONS, "eval/test.parquet": {"id": ["z"]}}
    with pytest.raises(InputError, match=artifact or "artifact|table"):
        tracker.read(tracker.find(store.run(experiment, "forest", two)), artifact)


def test_runs_without_predictions_are_refused(store: TrackerStore, tracker: Tracker, experiment: str):
    run = tracker.find(store.run(experiment, "forest", {"notes.txt": "hello"}))
    with pytest.raises(InputError, match=r"no [\s\S]*notes[\s\S]*(log_table|log_artifact|wandb\.Table)"):
        tracker.read(run)


def test_an_artifact_that_is_no_table_is_refused_with_the_run_named(
    store: TrackerStore, tracker: Tracker, experiment: str
):
    run = tracker.find(store.run(experiment, "forest", {"predictions.parquet": "no parquet"}))
    with pytest.raises(SourceError, match=str(run.reference)):
        tracker.read(run)


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


def test_another_key_is_another_comparison(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    published = [tracker.publish(publication(*pair, key=key * 16)) for key in ("ab", "cd")]
    assert all(each.created for each in published)
    assert {kept.locator for kept in store.comparisons(experiment)} == {
        each.run.reference.locator for each in published
    }


@on_servers
def test_both_runs_are_tagged_when_asked_and_the_newest_comparison_counts(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    before = [store.snapshot(run.reference.locator) for run in pair]
    first = publication(*pair)
    second = publication(
        *pair, key="ab" * 16, candidate_tags={"sig.accuracy": "≈ p=0.6", "sig.accuracy.vs": "svm"}
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
        running = tracker.find(trackperm.log_predictions(run, POLARS).partition(":")[2])
        with pytest.raises(InputError, match=r"is (running|RUNNING), so it gets no tags"):
            tracker.publish(publication(pair[0], running), tag_runs=True)
    with pytest.raises(InputError, match="the baseline is not in"):
        tracker.publish(publication(None, pair[1]), tag_runs=True)
    assert not store.comparisons(experiment)
    assert not store.candidate_tags(pair[1].reference.locator)


def test_an_option_that_a_tracker_lacks_is_refused_and_nothing_is_written(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    for option in {"alert", "tag_runs"} - tracker.options:
        with pytest.raises(InputError, match=f"`{tracker.scheme}` has no `--{option.replace('_', '-')}`"):
            tracker.publish(publication(*pair), **{option: True})
        assert not store.comparisons(experiment)


class TestPredictions:
    """What `trackperm.log_predictions` logs to a run is read back with no further options."""

    def test_is_logged_in_one_line_and_compared(self, store: TrackerStore, experiment: str):
        references = []
        wrong = POLARS.with_columns(prediction=pl.lit("c"))
        for name, frame in (("logistic", wrong), ("forest", POLARS)):
            with store.open_run(experiment, name) as run:
                references.append(trackperm.log_predictions(run, frame))
        found = trackperm.compare(*references, tracking_uri=store.tracking_uri)
        assert found.pvalue == trackperm.compare(wrong, POLARS).pvalue == 0.25
        assert found.candidate_name == "forest"
        assert found.candidate_data.table.frame.to_dict(as_series=False) == PREDICTIONS
        assert not found.candidate_data.table.notes

    def test_again_adds_nothing_and_something_else_is_refused(self, store: TrackerStore, experiment: str):
        with store.open_run(experiment, "forest") as run:
            first = trackperm.log_predictions(run, POLARS)
            assert trackperm.log_predictions(run, POLARS.to_pandas()) == first
            with pytest.raises(InputError, match=r"has logged something else as `predictions\.parquet`"):
                trackperm.log_predictions(run, POLARS.reverse())
            assert trackperm.log_predictions(run, POLARS.reverse(), name="reversed") == first
        tracker = store.tracker()
        found = tracker.find(first.partition(":")[2])
        chosen = {}
        for name in ("predictions", "reversed"):
            chosen[name] = tracker.read(found, store.chosen(found.reference.locator, f"{name}.parquet"))
            assert not chosen[name].notes
        assert chosen["predictions"].frame.to_dict(as_series=False) == PREDICTIONS
        assert chosen["reversed"].frame.to_dict(as_series=False) == POLARS.reverse().to_dict(as_series=False)

    def test_what_cannot_be_paired_is_refused_before_anything_is_written(
        self, store: TrackerStore, tracker: Tracker, experiment: str
    ):
        twice = pl.concat([POLARS, POLARS.head(1)])
        without = POLARS.with_columns(id=pl.when(pl.col("id") != "x").then("id"))
        with store.open_run(experiment, "forest") as run:
            for frame, message in (
                (POLARS.drop("id"), "no column `id`, only `prediction`, `label`"),
                (twice, r"2 of 5 rows of `predictions` share their `id` with another \(first: '001'\)"),
                (without, r"1 of 4 examples of `predictions` have no `id` \(rows counted from 0: 3\)"),
            ):
                with pytest.raises(InputError, match=message):
                    trackperm.log_predictions(run, frame)
            reference = trackperm.log_predictions(run, POLARS, name="right")
        table = tracker.read(tracker.find(reference.partition(":")[2]))
        assert table.frame.to_dict(as_series=False) == PREDICTIONS


def test_comparisons_are_no_runs_to_compare(tracker: Tracker, pair: tuple[TrackedRun, TrackedRun]):
    published = tracker.publish(publication(*pair, name="forest"))
    with pytest.raises(InputError, match="is a comparison"):
        tracker.find(published.run.reference.locator)


@on_servers
def test_comparisons_do_not_answer_to_names(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    tracker.publish(publication(*pair, name="forest"))
    assert tracker.find(store.by_name(experiment, "forest")) == pair[1]


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


def test_files_can_be_compared_into_a_named_experiment(
    store: TrackerStore, tracker: Tracker, experiment: str
):
    tracker.publish(publication(None, None), experiment)
    assert len(store.comparisons(experiment)) == 1


def test_nowhere_to_write_is_refused(tracker: Tracker):
    with pytest.raises(InputError, match=r"--log-to (mlflow|wandb):"):
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


@pytest.mark.parametrize("case", _TOO_MUCH)
def test_what_the_tracker_would_cut_or_change_is_refused_before_anything_is_written(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun], case: str
):
    with pytest.raises(InputError):
        tracker.publish(publication(*pair, **_TOO_MUCH[case]()))
    assert not store.comparisons(experiment)


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


@pytest.mark.parametrize("locator", ["nobody", "x/y/z", "", "日本"])
def test_what_is_no_comparison_is_bad_input(
    tracker: Tracker, pair: tuple[TrackedRun, TrackedRun], locator: str
):
    for each in (locator, pair[1].reference.locator):
        with pytest.raises(InputError):
            tracker.comparison(each)


_LOGGING = """
import sys, polars as pl, trackperm
scheme, uri, container, statistic = sys.argv[1:]
runs = [pl.DataFrame({"id": range(6), "prediction": p, "label": [1] * 6}) for p in ([0] * 6, [1] * 6)]
comparison = trackperm.compare(*runs, statistic)
tracker = trackperm.open_tracker(scheme, uri or None)
print("ready", flush=True)
sys.stdin.readline()
print("look", comparison.log(tracker, container).look)
"""


@pytest.mark.parametrize(
    "store",
    [
        "mlflow-http",
        "wandb-offline",
        pytest.param("mlflow-sqlite", marks=pytest.mark.slow),
        pytest.param("wandb-online", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_two_processes_that_log_at_once_get_numbers_that_stay(
    store: TrackerStore, tracker: Tracker, experiment: str
):
    scheme, uri = store.address()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _LOGGING, scheme, uri, experiment, statistic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for statistic in ("accuracy", "error_rate")
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    looks = [int(process.communicate(timeout=120)[0].split()[-1]) for process in processes]
    assert sorted(looks) == [1, 2]
    (family,) = families(tracker.comparisons(experiment))
    numbers = {look.tag("statistic"): look.number for look in family.looks}
    assert numbers == dict(zip(("accuracy", "error_rate"), looks, strict=True))
    for look in family.looks:
        found = verify(tracker.files(look.run), tracker.comparison(look.run.reference.locator))
        assert found.matches, found
        assert len(found.checks) > 30
    newest = {
        kept.tags["trackperm.key"]: kept for kept in sorted(store.comparisons(experiment), key=_locator)
    }
    for kept in newest.values():  # an offline run that was brought up to date is another folder
        assert look_sentence(numbers[kept.tags["trackperm.statistic"]]) in kept.description.replace("\\", "")


def _locator(kept: Kept) -> str:
    return kept.locator


def test_finished_runs_are_listed_and_comparisons_are_not(
    store: TrackerStore, tracker: Tracker, experiment: str, pair: tuple[TrackedRun, TrackedRun]
):
    before = tracker.runs(experiment)
    assert {run.reference for run in pair} <= {run.reference for run in before}
    published = tracker.publish(publication(*pair))
    assert not published.run.reference.locator.endswith(tuple(run.reference.locator for run in before))
    assert tracker.runs(experiment) == before


def test_many_runs_are_read_in_their_order(store: TrackerStore, tracker: Tracker, experiment: str):
    tables = [{"id": ["a"], "prediction": [name]} for name in ("x", "y", "z")]
    runs = [
        tracker.find(store.run(experiment, f"forest {i}", {"predictions.csv": table}))
        for i, table in enumerate(tables)
    ]
    runs.insert(1, tracker.find(store.run(experiment, "bare")))
    before = dict(os.environ)
    first, bare, *others = tracker.read_all(runs)
    assert dict(os.environ) == before
    assert isinstance(bare, InputError)
    assert [read.frame.to_dict(as_series=False) for read in (first, *others)] == tables
