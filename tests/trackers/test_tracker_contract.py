"""Reading, by one contract for every tracker adapter, over the real thing."""

from __future__ import annotations

import json
import os

import polars as pl
import pytest
from support.tracker_stores import PREDICTIONS, TrackerStore, on_servers

import trackperm
from trackperm.errors import InputError, SourceError
from trackperm.trackers.base import Tracker

pytestmark = [pytest.mark.tracker, pytest.mark.contract]

POLARS = pl.DataFrame(dict(PREDICTIONS))
NO_CONTAINER = "no (experiment called|project)"


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


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "artifact",
    [
        "predictions.json",
        "eval/predictions.parquet",
        "predictions.csv",
        "predictions.csv.gz",
        "predictions/",
        "eval/dev/",
    ],
)
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
    with pytest.raises(InputError, match=r"3 runs .*are called") as caught:
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
    with pytest.raises(InputError, match=r"2 [\s\S]*dev[\s\S]*eval/test\.parquet[\s\S]*artifact="):
        tracker.read(run)
    assert tracker.read(run, test).frame["id"].to_list() == ["z"]
    assert tracker.read(run, f"{test}::id").frame["prediction"].to_list() == ["z"]


@pytest.mark.sample(4)
@pytest.mark.parametrize("artifact", ["dve.json", "eval", "eval/none.json", "../dev.json", "/etc/passwd", ""])
def test_missing_artifacts_are_refused(store: TrackerStore, tracker: Tracker, experiment: str, artifact: str):
    two = {"dev.json": PREDICTIONS, "eval/test.parquet": {"id": ["z"]}}
    with pytest.raises(InputError, match=artifact or "artifact|table"):
        tracker.read(tracker.find(store.run(experiment, "forest", two)), artifact)


def test_a_part_of_a_table_is_refused_with_its_folder(store: TrackerStore, tracker: Tracker, experiment: str):
    run = tracker.find(store.run(experiment, "forest", {"eval/dev/": PREDICTIONS}))
    folder = store.chosen(run.reference.locator, "eval/dev/").removesuffix("/")
    with pytest.raises(InputError, match=r"""is one of 2 parts of a table[\s\S]*eval/dev["'`]* """) as caught:
        tracker.read(run, f"{folder}/part-00000-0b1c-c000.snappy.parquet")
    assert f"{folder}`" in str(caught.value.hint)
    assert tracker.read(run, f"{folder}::id").frame["prediction"].to_list() == PREDICTIONS["id"]


def test_a_json_array_of_objects_is_read_in_a_run_without_a_table(
    store: TrackerStore, tracker: Tracker, experiment: str
):
    """As `mlflow.log_dict` and `json.dump` write it; it may be anything, such as a log of messages."""
    rows = [dict(zip(PREDICTIONS, row, strict=True)) for row in zip(*PREDICTIONS.values(), strict=True)]
    array = {"rows.json": json.dumps(rows, indent=2)}
    run = tracker.find(store.run(experiment, "forest", array))
    assert tracker.read(run).frame.to_dict(as_series=False) == PREDICTIONS
    messages = {"messages.json": json.dumps([{"role": "user"}]), "predictions.parquet": PREDICTIONS}
    run = tracker.find(store.run(experiment, "logistic", messages))
    assert tracker.read(run).frame.to_dict(as_series=False) == PREDICTIONS


def test_runs_without_predictions_are_refused(store: TrackerStore, tracker: Tracker, experiment: str):
    run = tracker.find(store.run(experiment, "forest", {"notes.txt": "hello"}))
    with pytest.raises(InputError, match=r"no [\s\S]*notes[\s\S]*(log_table|log_artifact|wandb\.Table)"):
        tracker.read(run)


def test_an_artifact_that_is_not_a_table_is_refused_with_the_run_named(
    store: TrackerStore, tracker: Tracker, experiment: str
):
    run = tracker.find(store.run(experiment, "forest", {"predictions.parquet": "no parquet"}))
    with pytest.raises(SourceError, match=str(run.reference)):
        tracker.read(run)


class TestPredictions:
    """What `trackperm.log_predictions` logs to a run is read back with no further options."""

    def test_is_logged_in_one_line_and_compared(self, store: TrackerStore, experiment: str):
        references = []
        wrong = POLARS.with_columns(prediction=pl.col("label").replace({"a": "b", "b": "a"}))
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
            with pytest.raises(InputError, match=r"holds other predictions as `predictions\.parquet`"):
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
                (twice, r"2 of 5 rows of `predictions` share their `id` with another row \(first: '001'\)"),
                (without, r"1 of 4 examples of `predictions` has no `id` \(rows counted from 0: 3\)"),
            ):
                with pytest.raises(InputError, match=message):
                    trackperm.log_predictions(run, frame)
            reference = trackperm.log_predictions(run, POLARS, name="right")
        table = tracker.read(tracker.find(reference.partition(":")[2]))
        assert table.frame.to_dict(as_series=False) == PREDICTIONS


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


@on_servers
def test_a_run_is_not_compared_with_itself(store: TrackerStore, tracker: Tracker, experiment: str):
    """Its verdict would replace that of another comparison; two artifacts of one run are two systems."""
    two = {"old.json": PREDICTIONS, "new.json": PREDICTIONS}
    locator = store.run(experiment, "forest", two)
    scheme, old = store.address()[0], store.chosen(locator, "old.json")
    names = f"{scheme}:{locator}", f"{scheme}:{store.by_name(experiment, 'forest')}", tracker.find(locator)
    options = {"tracking_uri": store.tracking_uri}
    for other in names:
        with pytest.raises(InputError, match=r"the same run, `[^`]+` \(`forest`\)"):
            trackperm.compare(names[0], other, artifact=old, **options)
    both = old, store.chosen(locator, "new.json")
    found = trackperm.compare(names[0], names[1], artifact=both, **options)
    assert found.pvalue == 1.0
    assert [found.baseline_name, found.candidate_name] == [f"forest ({path})" for path in both]
    own = {"baseline_columns": {"score": "x"}, "candidate_columns": {"score": "y"}}
    numbers = store.run(experiment, "trees", {"old.json": {"id": ["a", "b"], "x": [1, 0], "y": [1, 1]}})
    found = trackperm.compare(*[f"{scheme}:{numbers}"] * 2, metric="score", **own, **options)
    assert [found.baseline_name, found.candidate_name] == ["trees (x)", "trees (y)"]
