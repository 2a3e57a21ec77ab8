"""Second opinions that are logged on request, and plans from all logged comparisons."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.command_line import invoke
from support.comparisons import accuracy, answers
from support.mlflow_stores import MlflowExperiments, MlflowStore
from support.tracker_stores import TrackerStore

import trackperm
from trackperm.comparison import Comparison, Slice
from trackperm.comparison.planning.sample_size import plan_from_pilot, plan_paired
from trackperm.comparison.second_opinions import STUDENTIZED
from trackperm.errors import InputError
from trackperm.ledger import families
from trackperm.ledger.comparison_publication import evidence
from trackperm.ledger.past_comparisons import PastPlan, plan_from_past
from trackperm.ledger.verification import verify_files
from trackperm.trackers.base import Tracker
from trackperm.trackers.publication import Publication
from trackperm.trackers.references import TrackedRun

pytestmark = [pytest.mark.tracker, pytest.mark.contract, pytest.mark.extended]


def power(store: TrackerStore, experiment: str, *arguments: str) -> str:
    scheme, _ = store.address()
    where = ["--experiment", f"{scheme}:{experiment}"]
    where += [] if store.tracking_uri is None else ["--tracking-uri", store.tracking_uri]
    return invoke("power", *where, *arguments)


@pytest.mark.parametrize(
    "store",
    ["mlflow-sqlite", "wandb-offline", pytest.param("wandb-online", marks=pytest.mark.slow)],
    indirect=True,
)
def test_second_opinions_are_added_once_and_stay(store: TrackerStore, experiment: str):
    tracker, comparison = store.tracker(), accuracy(9, 2, both=20)
    asked = comparison.with_second_opinions()
    assert asked.key == comparison.key
    first = trackperm.log(comparison, tracker, experiment)
    assert "second_opinions" not in store.comparisons(experiment)[0].tables
    added = trackperm.log(asked, tracker, experiment)
    (look,) = families(tracker.comparisons(experiment))[0].entries
    assert (first.look, added.look, look.run.reference) == (1, 1, added.run.reference)
    before = store.snapshot(added.run.reference.locator)
    again = trackperm.log(comparison, tracker, experiment)
    assert (again.created, again.run) == (False, added.run)
    assert store.snapshot(added.run.reference.locator) == before

    (kept,) = (each for each in store.comparisons(experiment) if each.locator == added.run.reference.locator)
    table = kept.tables["second_opinions"]
    assert table["columns"] == ["test", "p_value", "differs", "overturns", "sentence"]
    assert [row[0] for row in table["data"]] == [each.name for each in asked.second_opinions]
    assert kept.tags["trackperm.second_opinions"] == "7, 4 of them on the other side of 0.05"
    files = tracker.files(added.run)
    logged = json.loads(files["trackperm/comparison.json"])["second_opinions"]
    assert [each["pvalue"] for each in logged] == [each.pvalue for each in asked.second_opinions]
    found = verify_files(files, tracker.comparison(added.run.reference.locator))
    assert found.matches, found
    assert "second opinion, sign test" in [check.what for check in found.checks]


@pytest.mark.parametrize("store", ["mlflow-sqlite", "wandb-offline"], indirect=True)
def test_a_studentized_opinion_is_added_by_itself_and_stays(store: TrackerStore, experiment: str):
    tracker, comparison = store.tracker(), accuracy(9, 2, both=20)
    added = trackperm.log(comparison.with_studentized(), tracker, experiment)
    before = store.snapshot(added.run.reference.locator)
    again = trackperm.log(comparison, tracker, experiment)
    assert (again.created, again.run) == (False, added.run)
    assert store.snapshot(added.run.reference.locator) == before
    (kept,) = (each for each in store.comparisons(experiment) if each.locator == added.run.reference.locator)
    assert kept.tags["trackperm.studentized"] == "p=0.0654, on the same side of 0.05"
    assert "trackperm.second_opinions" not in kept.tags
    assert [row[0] for row in kept.tables["second_opinions"]["data"]] == [STUDENTIZED]
    assert verify_files(tracker.files(added.run)).matches


def keep(tracker: Tracker, experiment: str, *comparisons: Comparison) -> list[TrackedRun]:
    """Log of comparisons what is read of them, without drawing anything."""
    kept = []
    for each in comparisons:
        tags = {"trackperm.statistic": each.statistic.name, "trackperm.test_set": each.pairing.test_set}
        tags |= {} if each.slice is None else {"trackperm.slice": str(each.slice)}
        made = Publication(each.key, each.title, {}, {}, evidence(each), tags, "")
        kept.append(tracker.publish(made, experiment).run)
    return kept


def test_past_comparisons_plan_the_next(store: TrackerStore, experiment: str):
    numbers = ((1, 0), (3, 1), (12, 8))
    keep(store.tracker(), experiment, *(accuracy(up, down, both=40 - up - down) for up, down in numbers))
    (found,) = json.loads(power(store, experiment, "--difference", "0.04", "--format", "json"))
    plans = {name: plan_paired(0.04, share) for name, share in (("median", 0.1), ("greatest", 0.5))}
    assert found == {
        "statistic": "accuracy",
        "test_set": accuracy(1, 0, both=39).pairing.test_set,
        "n_comparisons": 3,
        "discordances": [0.025, 0.1, 0.5],
        "least": None,
        **{name: json.loads(json.dumps(plan.to_dict())) for name, plan in plans.items()},
        "notes": [],
    }


def scores(seed: int) -> Comparison:
    """A mean of scores from 0 to 4, and slices of it."""
    generator = np.random.default_rng(seed)
    baseline = generator.integers(0, 4, 60)
    sides = [baseline, baseline + (generator.random(60) < 0.3)]
    return trackperm.compare(*(pl.DataFrame({"id": range(60), "score": side}) for side in sides), "mean")


@pytest.fixture(scope="module")
def mlflow(sqlite_store: MlflowStore, tmp_path_factory: pytest.TempPathFactory) -> MlflowExperiments:
    """A store with comparisons by two statistics and on two test sets; some do not count."""
    store = sqlite_store
    experiments, tracker = MlflowExperiments(store), store.tracker()
    for name in ("digits", "empty"):
        experiments.container(name)
    columns = {"prediction": "answer"}
    renamed = [answers([right] * 40).rename(columns) for right in (False, True)]
    twelve = accuracy(12, 8, both=20)
    whole = [
        trackperm.compare(*renamed, columns=columns),
        accuracy(5, 1, both=34),
        accuracy(2, 2, both=36),
        twelve,
        accuracy(12, 8, both=20, alternative="greater"),
        trackperm.compare(twelve.candidate_data.table.frame, twelve.baseline_data.table.frame),
        accuracy(3, 1, both=36),
    ]
    of_slice = replace(accuracy(5, 1), slice=Slice("language", "de", declared=True))
    kept = keep(tracker, "digits", *whole, of_slice, scores(1), scores(2), scores(3))
    (board,) = keep(tracker, "digits", accuracy(1, 0, both=39))
    store.client.set_tag(board.reference.locator, "trackperm.kind", "leaderboard")
    store.client.set_tag(kept[1].reference.locator, "trackperm.state", "writing")
    gone = tmp_path_factory.mktemp("gone") / "count_table.parquet"
    gone.write_bytes(b"no counts")
    store.client.log_artifact(kept[2].reference.locator, str(gone), "trackperm")
    return experiments


class TestInMlflow:
    """What does not depend on the tracker."""

    def plan(self, store: MlflowExperiments, **options: Any) -> PastPlan:
        return plan_from_past(store.tracker(), "digits", **{"difference": 0.04, "n_resamples": 50, **options})

    def test_a_pair_of_runs_counts_once_and_what_does_not_count_is_said(self, mlflow: MlflowExperiments):
        plan = self.plan(mlflow)
        assert (plan.n_comparisons, plan.discordances) == (2, (0.1, 0.5))
        assert plan.least == plan_paired(0.04, 0.1)
        assert plan.median == plan.greatest == plan_paired(0.04, 0.5)
        assert sorted(plan.notes) == [
            "left out: 1 by an older spec of that name",
            "left out: 1 unfinished",
            "left out: 1 without readable counts",
        ]
        first, least, *_ = plan.lines()
        assert first.startswith("2 past comparisons by accuracy on test set ")
        assert first.endswith(": discordance 0.1 to 0.5")
        assert least == f"least: {plan_paired(0.04, 0.1).lines()[0]}"

    def test_options_are_those_of_the_next_comparison(self, mlflow: MlflowExperiments):
        options: dict[str, Any] = {"power": 0.9, "alpha": 0.01, "alternative": "greater", "n_examples": 500}
        assert self.plan(mlflow, **options).least == plan_paired(0.04, 0.1, **options)

    def test_a_slice_is_planned_for_when_its_test_set_is_named(self, mlflow: MlflowExperiments):
        plan = self.plan(mlflow, test_set=accuracy(5, 1).pairing.test_set[:8])
        assert (plan.n_comparisons, plan.discordances) == (1, (1.0,))
        assert plan.lines()[1:] == plan_paired(0.04, 1.0).lines()

    def test_other_statistics_are_planned_by_their_counts(self, mlflow: MlflowExperiments):
        plan = self.plan(mlflow, statistic="mean", difference=0.1)
        pilots = [scores(seed) for seed in (1, 2, 3)]
        pilots.sort(key=lambda pilot: pilot.n_discordant)
        assert plan.discordances is None
        for each, pilot in zip((plan.least, plan.median, plan.greatest), pilots, strict=True):
            alone = plan_from_pilot(pilot, difference=0.1, n_resamples=50)
            assert alone.simulated is not None
            assert each.simulated.n_examples == each.about == alone.about
            assert each.simulated.effect == alone.simulated.effect  # the rows are drawn in another order
            assert replace(each, simulated=None) == replace(alone, simulated=None)

    def test_several_statistics_are_several_plans(self, mlflow: MlflowExperiments):
        text = power(
            mlflow, "digits", "--difference", "0.1", "-s", "accuracy", "-s", "mean", "--samples", "20"
        )
        assert [block.split(" on test set ")[0] for block in text.split("\n\n")] == [
            "2 past comparisons by accuracy",
            "3 past comparisons by mean",
        ]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["empty"], "no comparison is logged in `empty`[^\0]*discordance=0.1"),
            (["digits", "-s", "f1"], "no comparison by `f1`[^\0]*of `accuracy`, `mean`"),
            (["digits", "--test-set", "00"], "on other test sets[^\0]*[(]7[)]"),
            (["digits", "--difference", "0.6"], "expected at most 0.5"),
            (["digits", "--set", "a=b"], "`parameters` needs a pilot"),
            (["nowhere"], "no experiment called `nowhere`"),
        ],
    )
    def test_what_cannot_be_planned_is_said(
        self, mlflow: MlflowExperiments, arguments: list[str], message: str
    ):
        with pytest.raises(InputError, match=message):
            power(mlflow, arguments[0], "--difference", "0.04", *arguments[1:])

    def test_several_test_sets_are_listed(self, mlflow: MlflowExperiments):
        tracker = mlflow.tracker()
        mlflow.container("two")
        keep(tracker, "two", accuracy(3, 1), accuracy(3, 1, both=4))
        sets = [each.pairing.test_set[:12] for each in (accuracy(3, 1), accuracy(3, 1, both=4))]
        with pytest.raises(InputError, match=r"are on 2 test sets") as caught:
            plan_from_past(tracker, "two", difference=0.1)
        assert all(f"{each} (1)" in (caught.value.hint or "") for each in sets)
        mlflow.container("slices")
        keep(tracker, "slices", replace(accuracy(5, 1), slice=Slice("language", "de", declared=True)))
        with pytest.raises(InputError, match="are comparisons of slices only"):
            plan_from_past(tracker, "slices", difference=0.1)
