"""``power`` in Python: plans from a discordance, a pilot, or logged comparisons."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support import eval_logs
from support.comparisons import answers
from support.mlflow_stores import MlflowStore
from typer.testing import CliRunner

import trackperm
from trackperm.cli import commands
from trackperm.comparison.planning.sample_size import Plan, plan_from_pilot, plan_paired
from trackperm.errors import InputError, InputTypeError
from trackperm.ledger.past_comparisons import PastPlan, plan_from_past
from trackperm.report.notes import cautions_of

OLD, NEW = [True] * 24 + [False] * 16, [True] * 30 + [False] * 10


def without_pilot(plan: Plan) -> Plan:
    return replace(plan, pilot=None)


def test_from_a_discordance() -> None:
    """The exact numbers of McNemar's test."""
    plan = trackperm.power(
        difference=0.03, discordance=0.1, n_examples=1319, power=0.9, alternative="greater"
    )
    assert plan == plan_paired(0.03, 0.1, n_examples=1319, power=0.9, alternative="greater")


def test_attempts_within_examples() -> None:
    """Regression: whole examples were exchanged, of which four never give p < 0.05."""
    runs = [
        pl.DataFrame({"id": [i // 50 for i in range(200)], "passed": [int(i % 50 < n) for i in range(200)]})
        for n in (25, 45)
    ]
    options: dict[str, Any] = {"statistic": "pass_at_1", "n_resamples": 200}
    whole, within = (
        trackperm.power(*runs, unit=unit, n_examples=4, **options) for unit in ("example", "attempt")
    )
    assert (whole.simulated.power, whole.about) == (0.0, 6)
    assert (within.simulated.power, within.about) == (1.0, 1)
    smaller = trackperm.power(*runs, unit="attempt", difference=0.1, **options)
    low, high = smaller.simulated.interval
    assert smaller.about < 40
    assert low <= 0.8 <= high


@pytest.mark.extended
def test_of_equivalence_from_a_discordance_or_a_pilot() -> None:
    """The difference is 0 unless it is given, whatever that of the pilot is."""
    plan = trackperm.power(margin=0.03, discordance=0.1, n_examples=500)
    assert plan.lines() == [
        "to find equivalence within 0.03 with 80 % power (alpha 0.05, true difference 0, discordance 0.1):"
        " about 1,026 examples",
        "with 500 examples the power is 0.26",
    ]
    assert trackperm.power(margin=0.03, difference=0.01, discordance=0.1).needed > plan.needed
    pilot = trackperm.power(answers(OLD), answers(NEW), margin=0.2)
    assert (pilot.difference, pilot.discordance) == (0.0, 6.5 / 41)
    of_f1 = trackperm.power(
        answers(OLD), answers(NEW), statistic="f1", parameters={"positive": "yes"}, margin=0.2
    )
    assert of_f1.discordance is None
    assert 10 < of_f1.needed < 100
    assert of_f1.to_dict()["needed"] == of_f1.needed


@pytest.mark.parametrize(
    "options",
    [
        {"metric": "verdict=CORRECT"},
        {"metric": "right", "by_position": True},
        {"metric": "right", "missing": "drop"},
        {"metric": "right", "cluster": "document"},
    ],
)
def test_a_pilot_is_paired_as_by_compare(options: dict[str, Any]) -> None:
    runs = [
        pl.DataFrame({"id": range(40), "right": right, "document": [i // 2 for i in range(40)]})
        for right in (OLD, NEW)
    ]
    verdict = pl.when("right").then(pl.lit("CORRECT")).otherwise(pl.lit("WRONG"))
    runs = [run.with_columns(verdict=verdict) for run in runs]
    runs[1] = runs[1][:39] if "missing" in options else runs[1]
    expected = plan_from_pilot(trackperm.compare(*runs, **options), difference=0.1)
    assert without_pilot(trackperm.power(*runs, difference=0.1, **options)) == expected


def test_a_pilot_of_several_metrics_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps({**row, "acc": 1.0}) + "\n" for row in eval_logs.LM_EVAL))
    with pytest.raises(InputError, match="the runs have 2 metrics; expected one"):
        trackperm.power(path, path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"discordance": 0.1, "margin": -1.0}, "`margin` is -1.0"),
        ({"discordance": 0.1, "margin": 0.03, "alternative": "less"}, "two one-sided tests"),
        ({"experiment": "mlflow:x", "margin": 0.03}, "`margin` and `experiment`"),
        ({"discordance": 0.1, "margin": 0.03, "difference": 0.05}, "within the margin"),
        ({"discordance": 0.1, "margin": 0.03, "n_examples": 0}, "`n_examples` is 0"),
    ],
)
def test_impossible_plans_of_equivalence_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        trackperm.power(**options)


def test_a_pilot_without_an_interval_plans_no_equivalence() -> None:
    runs = answers([True] * 30), answers([True] * 28 + [False] * 2)
    with pytest.raises(InputError, match="the pilot cannot show equivalence: only 2 examples differ"):
        trackperm.power(*runs, statistic="f1", parameters={"positive": "yes"}, margin=0.1)


def test_from_a_pilot_in_files_and_frames(tmp_path: Path) -> None:
    runs = {"old": answers(OLD), "new": answers(NEW)}
    for name, frame in runs.items():
        frame.write_csv(tmp_path / f"{name}.csv")
    wanted = plan_from_pilot(trackperm.compare(runs["old"], runs["new"]))
    assert without_pilot(trackperm.power(*runs.values())) == wanted
    assert without_pilot(trackperm.power(tmp_path / "old.csv", str(tmp_path / "new.csv"))) == wanted


def test_other_statistics_are_resampled_with_the_seed(tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_resamples": 40, "seed": 3, "difference": 0.1}
    runs = [answers(OLD), answers(NEW)]
    parameters = {"positive": runs[0]["label"][0]}
    plan = trackperm.power(*runs, statistic="f1", parameters=parameters, **options)
    pilot = trackperm.compare(*runs, "f1", parameters=parameters)
    assert without_pilot(plan) == plan_from_pilot(pilot, **options)


def test_past_comparisons_with_the_same_plan_show_it_once() -> None:
    """Regression: "discordance 0.1 to 0.1", and the plan twice, as the least and the greatest."""
    low, high = (trackperm.power(difference=0.03, discordance=share) for share in (0.1, 0.2))
    same = PastPlan("accuracy", "s12", 2, (0.1, 0.1), low, low, low)
    assert same.lines() == ["2 past comparisons by accuracy on test set s12: discordance 0.1", *low.lines()]
    wider = replace(same, discordances=(0.1, 0.2), greatest=high).lines()
    assert wider[0].endswith("discordance 0.1 to 0.2")
    assert [line.split(":")[0] for line in wider[1:]] == ["least", "greatest"]


@pytest.mark.extended
@pytest.mark.tracker
def test_from_runs_and_past_comparisons_of_a_tracker(tmp_path: Path) -> None:
    """From references, from listed runs, and from the experiment of their comparison."""
    store = MlflowStore.local(tmp_path)
    for name, right in (("old", OLD), ("new", NEW)):
        store.run_with_predictions("digits", name, answers(right).to_dict(as_series=False))
    uri = store.uri
    tracker = trackperm.open_tracker("mlflow", uri)
    found = {run.name: run for run in tracker.runs("digits")}
    wanted = trackperm.power(answers(OLD), answers(NEW), difference=0.1)
    assert trackperm.power(found["old"], found["new"], difference=0.1) == wanted
    named = trackperm.power("mlflow:digits/old", "mlflow:digits/new", difference=0.1, tracking_uri=uri)
    assert named == wanted
    compared = trackperm.compare("mlflow:digits/old", "mlflow:digits/new", tracking_uri=uri)
    trackperm.log(compared)
    past = trackperm.power(experiment="mlflow:digits", difference=0.1, tracking_uri=uri)
    assert past == [plan_from_past(tracker, "digits", difference=0.1)]
    assert past[0].greatest == without_pilot(wanted)
    for names in (["accuracy", "accuracy"], [trackperm.load_statistic("accuracy")]):
        several = trackperm.power(
            experiment="mlflow:digits", statistic=names, difference=0.1, tracking_uri=uri
        )
        assert several == past * len(names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expected one of: a pilot"),
        ({"baseline": "a.csv", "discordance": 0.1}, "expected one of: a pilot"),
        ({"discordance": 0.1}, "`discordance` needs a `difference`"),
        ({"baseline": "a.csv"}, "a pilot needs two runs"),
        ({"baseline": "a", "candidate": "b", "statistic": ["f1", "mean"]}, "a pilot takes one statistic"),
        ({"baseline": "a", "candidate": "b", "statistic": []}, "a pilot takes one statistic"),
        ({"experiment": "mlflow:e"}, "`experiment` needs a `difference`"),
        ({"experiment": "e", "difference": 0.1}, "`e` names no tracker"),
        (
            {"experiment": "mlflow:e", "difference": 0.1, "parameters": {"positive": 1}},
            "needs a pilot, which is two runs; logged comparisons have their own spec",
        ),
        (
            {"discordance": 0.1, "difference": 0.1, "by_position": True},
            "`by_position=True` needs a pilot, which is two runs; `discordance` is all that is known",
        ),
        ({"discordance": 0.1, "margin": 0.1, "alternative": "less"}, "combined[^\0]*omit `alternative"),
        ({"experiment": "mlflow:e", "margin": 0.1}, "combined[^\0]*`discordance` in place of `experiment`"),
        ({"discordance": 0.1, "difference": 0.1, "missing": "drop"}, "`missing.* needs a pilot"),
        ({"discordance": 0.1, "difference": 0.1, "test_set": "a"}, "needs an experiment"),
    ],
)
def test_contradictory_options_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        trackperm.power(**arguments)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("difference", "0.1"),
        ("discordance", True),
        ("power", "high"),
        ("alpha", "low"),
        ("n_examples", 2.5),
        ("seed", "x"),
        ("n_resamples", 1.5),
        ("n_resamples", 0),
    ],
)
def test_values_of_the_wrong_type_are_refused(option: str, value: object) -> None:
    arguments: dict[str, Any] = {"difference": 0.1, "discordance": 0.2, option: value}
    with pytest.raises((InputError, InputTypeError), match=f"`{option}` is {value!r}; expected a"):
        trackperm.power(**arguments)


def test_the_command_line_calls_resamples_samples() -> None:
    """Regression: `n_resamples` was named, and checked only for plans that resample."""
    arguments = ["power", "--difference", "0.1", "--discordance", "0.2", "--samples", "-1"]
    result = CliRunner().invoke(commands.app, arguments)
    assert isinstance(result.exception, InputError)
    assert result.exception.message == "`--samples` is -1; expected an integer of at least 1"


def documents(n_documents: int, size: int) -> list[pl.DataFrame]:
    """Return two runs on documents whose examples are right or wrong together, mostly."""
    rng = np.random.default_rng(2)
    n = n_documents * size
    document = np.repeat(np.arange(n_documents), size)
    label = np.array([f"y{i % 2}" for i in range(n)])
    runs = []
    for _ in range(2):
        is_wrong = (rng.random(n_documents) < 0.4)[document] ^ (rng.random(n) < 0.1)
        prediction = np.where(is_wrong, "no", label)
        runs.append(
            pl.DataFrame({"id": range(n), "document_id": document, "prediction": prediction, "label": label})
        )
    return runs


def test_sizes_of_clusters_are_clusters_with_their_examples() -> None:
    """Regression: 149 documents of 20 examples each were "149 examples", and `--examples` were documents."""
    runs = documents(15, 20)
    options: dict[str, Any] = {"cluster": "document_id", "n_resamples": 100}
    plan = trackperm.power(*runs, **options, difference=0.05, n_examples=300)
    asked = "15 clusters (`document_id`), about 300 examples"
    assert plan.pilot.size == asked
    assert plan.simulated.n_examples == 15
    said = "\n".join(plan.lines())
    assert f"with {asked}" in said
    assert f"{plan.about:,} clusters (`document_id`), about {20 * plan.about:,} examples (" in said
    found = json.loads(json.dumps(plan.to_dict()))
    assert found["unit"] == {"noun": "cluster", "column": "document_id", "mean_examples": 20.0}
    assert (found["needed_examples"], found["n_units"]) == (20 * plan.about, 15)


def test_equivalence_of_clusters_takes_clusters() -> None:
    plan = trackperm.power(*documents(60, 5), cluster="document_id", margin=0.2, n_examples=500)
    first, needed, there = plan.lines()
    assert first == "pilot: accuracy, by default; 60 clusters (`document_id`), about 300 examples"
    assert needed.endswith(f"{plan.needed:,} clusters (`document_id`), about {5 * plan.needed:,} examples")
    assert there.startswith("with 100 clusters (`document_id`), about 500 examples the power is ")
    assert plan.to_dict()["n_units"] == 100


def test_sizes_of_rows_are_rows() -> None:
    runs = [run.with_columns(id=pl.col("id") // 2, seed=pl.col("id") % 2) for run in documents(20, 4)]
    plan = trackperm.power(*runs, unit="row", difference=0.1, n_examples=50)
    said = "\n".join(plan.lines())
    assert f": {plan.needed.first:,} rows" in said
    assert "with 50 rows the power is" in said


def test_a_pilot_says_what_its_comparison_says() -> None:
    """Regression: that the statistic was inferred, that examples depend on each other, or were dropped."""
    runs = documents(40, 10)
    runs[1] = runs[1].head(390)
    plan = trackperm.power(*runs, missing="drop", difference=0.05)
    compared = trackperm.compare(*runs, missing="drop")
    said = plan.lines()
    assert said[0] == "pilot: accuracy, by default; 390 examples"
    assert list(plan.pilot.notes) == said[1 : 1 + len(plan.pilot.notes)] == cautions_of(compared)
    assert any(note.startswith("dropped: 10 examples") for note in said)
    assert any("correlated within each `document_id`" in note for note in said)
    assert plan.to_dict()["pilot"]["statistic"] == "accuracy, by default"


def test_a_pilot_with_bounds_says_from_which_case_it_plans() -> None:
    runs = documents(40, 10)
    runs[1] = runs[1].head(360)
    plan = trackperm.power(*runs, missing="bounds", difference=0.05)
    compared = trackperm.compare(*runs, missing="bounds")
    assert plan.pilot.missing_case == compared.pairing.missing
    said = f"the plan is from the {compared.pairing.missing} case of the missing predictions"
    assert any(line.startswith(said) for line in plan.lines())
    assert any(line.startswith("missing predictions: worst case") for line in plan.lines())


def test_numbers_of_numpy_become_numbers_of_python() -> None:
    plan = trackperm.power(
        difference=np.float32(0.03),
        discordance=np.float64(0.1),
        power=np.float64(0.8),
        alpha=np.float32(0.05),
        n_examples=np.int64(100),
        seed=np.int32(0),
        n_resamples=np.int64(1000),
    )
    assert plan == trackperm.power(difference=0.03, discordance=0.1, n_examples=100)
    json.dumps(plan.to_dict())
    json.dumps(trackperm.power(margin=np.float32(0.03), discordance=0.1).to_dict())
