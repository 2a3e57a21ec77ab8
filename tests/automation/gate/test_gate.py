"""``trackperm.gate``: a value where the candidate is judged, an exception where it is not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest
from support.comparisons import answers
from support.hooked_runs import HookedStore
from support.wandb_projects import log_columns, logged_run

import trackperm
from trackperm.automation.gate import gate as gate_module
from trackperm.automation.judging.judge import judge
from trackperm.automation.policy.load import load_policies
from trackperm.automation.policy.wording import hint_for_policies
from trackperm.errors import InputError, TrackpermError
from trackperm.trackers.base import open_tracker


@pytest.mark.parametrize(
    ("name", "candidate", "outcome", "code"),
    [
        ("pull-request", "same.parquet", "pass", 0),
        ("pull-request", "worse.parquet", "fail", 1),
        ("tiny", "tiny.parquet", "undecided", 4),
        ("first", "same.parquet", "no baseline", 0),
    ],
)
def test_outcomes(folder: Path, name: str, candidate: str, outcome: str, code: int):
    report = trackperm.gate(candidate, folder / "trackperm.yaml", name=name)
    assert (report.outcome, report.exit_code, report.passed) == (outcome, code, code == 0)
    again = trackperm.gate(Path(candidate), load_policies("trackperm.yaml").find(name))
    assert report.to_json() == again.to_json()


def test_another_baseline(folder: Path):
    Path("own.parquet").write_bytes(Path("worse.parquet").read_bytes())
    report = trackperm.gate("worse.parquet", name="pull-request", baseline=folder / "own.parquet")
    assert (report.outcome, report.baseline.why) == ("pass", "named in place of the policy's")


@pytest.mark.parametrize(("n_wrong", "outcome"), [(0, "pass"), (12, "undecided")])
def test_a_test_set_that_grew_is_no_progress(tmp_path: Path, n_wrong: int, outcome: str) -> None:
    """Regression: examples that the baseline lacks counted as wrong: every candidate passed."""
    answers([True] * 40).write_csv(tmp_path / "base.csv")
    answers([False] * n_wrong + [True] * (100 - n_wrong)).write_csv(tmp_path / "grown.csv")
    policy = tmp_path / "trackperm.yaml"
    policy.write_text(
        "policies: [{name: p, baseline: {run: base.csv}, statistics: [accuracy], missing: wrong}]"
    )
    report = trackperm.gate(tmp_path / "grown.csv", policy)
    assert report.outcome == outcome
    (finding,) = report.findings
    reason = "on the examples that both runs have: the candidate is significantly worse"
    assert (reason in finding.reason) == (outcome == "undecided")
    look = "look: the baseline lacks 60 predictions and the candidate 0: counted as wrong, they may make"
    assert any(note.startswith(look) for note in finding.notes)
    assert trackperm.gate(tmp_path / "base.csv", policy, baseline=tmp_path / "grown.csv").outcome == "fail"


def test_runs_in_two_units_are_not_compared(tmp_path: Path) -> None:
    scores = np.arange(1, 31) / 32
    for name, factor in (("fractions", 1), ("percentages", 60)):
        pl.DataFrame({"id": range(30), "score": scores * factor}).write_csv(tmp_path / f"{name}.csv")
    policy = tmp_path / "trackperm.yaml"
    policy.write_text("policies: [{name: p, baseline: {run: fractions.csv}, metric: score}]")
    with pytest.raises(InputError, match="they seem to have two units"):
        trackperm.gate(tmp_path / "percentages.csv", policy)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (["same.parquet"], {}, "`trackperm.yaml` has 4 policies"),
        (["same.parquet", "nope.yaml"], {}, "there is no file `nope.yaml`"),
        (["same.parquet"], {"name": "strict"}, "`not-there-yet.parquet` does not exist"),
        (["smae.parquet"], {"name": "first"}, "`smae.parquet` does not exist"),
        ([b"same.parquet"], {"name": "first"}, "'bytes' is not a run; expected text"),
    ],
)
def test_what_cannot_be_judged_is_raised(
    folder: Path, arguments: list[Any], options: dict[str, Any], message: str
):
    with pytest.raises(TrackpermError, match=re.escape(message)):
        trackperm.gate(*arguments, **options)


def test_a_policy_that_is_called_otherwise(folder: Path):
    policy = load_policies("trackperm.yaml").find("tiny")
    with pytest.raises(InputError, match="the policy is called `tiny`; expected `first`"):
        trackperm.gate("tiny.parquet", policy, name="first")


def test_a_fault_is_raised_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gate_module, "compare_and_log", Mock(side_effect=ZeroDivisionError("oops")))
    with pytest.raises(ZeroDivisionError, match="oops"):
        trackperm.gate("tiny.parquet", name="tiny")


@pytest.mark.extended
@pytest.mark.tracker
def test_runs_that_a_tracker_found(runs: HookedStore):
    """Those are judged as by their references, and logged unless told not to."""
    base, candidate = runs.baseline(), runs.finished(seed=2, rate=0.5)
    found = {run.reference.locator: run for run in runs.store.tracker().runs(runs.experiment)}
    policy = runs.policy_file()
    unlogged = trackperm.gate(found[candidate], policy, log=False)
    assert (unlogged.outcome, unlogged.published, runs.compared()) == ("fail", (), [])
    report = trackperm.gate(found[candidate], policy, baseline=found[base])
    assert report.baseline.run == found[base]
    assert runs.compared() == [f"mlflow:{candidate}"]
    assert trackperm.gate(found[base], policy, baseline=found[candidate], log=False).outcome == "pass"


@pytest.mark.tracker
def test_a_hint_names_the_key_of_the_policy(runs: HookedStore):
    runs.baseline()
    candidate = runs.begun()
    few = {"id": ["a", "b"], "prediction": [1, 0], "label": [1, 1]}
    runs.store.log_columns(candidate, few, "predictions.parquet")
    with pytest.raises(InputError, match=r"Hint: .*`columns: \{id: NAME\}`"):
        trackperm.gate(f"mlflow:{candidate}", runs.policy_file())


@pytest.mark.tracker
def test_a_baseline_that_failed_is_noted(runs: HookedStore):
    failed, candidate = runs.begun("failed"), runs.finished("good")
    runs.log(failed)
    runs.store.client.set_terminated(failed, "FAILED")
    policy = runs.policy_file(baseline={"run": f"mlflow:{failed}"})
    report = trackperm.gate(f"mlflow:{candidate}", policy, log=False)
    assert "`failed`: the run failed" in report.notes


@pytest.mark.tracker
def test_a_name_with_both_quotes_is_refused(runs: HookedStore):
    """Regression: the search failed, and a watcher would have tried again for ever."""
    runs.finished('it\'s "q"')
    with pytest.raises(InputError, match="cannot search for a run called"):
        trackperm.gate(f'mlflow:{runs.experiment}/it\'s "q"', runs.policy_file(), log=False)


@pytest.mark.tracker
def test_a_run_that_a_tracker_listed_is_judged_where_it_is(
    runs: HookedStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The policy names no store, and another one is the default."""
    baseline, candidate = runs.baseline(), runs.finished("listed")
    policy = tmp_path / "storeless.yaml"
    policy.write_text(f"policies: [{{name: p, baseline: {{run: 'mlflow:{baseline}'}}}}]")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/other.db")
    listed = open_tracker("mlflow", runs.store.uri).runs(runs.experiment)
    named = {each.name: each for each in listed}
    run = named.pop("listed")
    report = trackperm.gate(run, policy, log=False)
    assert report.candidate is not None
    assert report.candidate.reference.locator == candidate
    assert report.outcome in ("pass", "fail", "undecided")
    (found,) = trackperm.family(trackperm.log(trackperm.compare(*named.values(), run)).run)
    assert found.n_comparisons == 1


def test_a_candidate_that_is_its_own_baseline_does_not_pass(folder: Path):
    """Regression: `if_no_baseline: pass` let it, and said that the baseline does not exist yet."""
    Path("own.yaml").write_text(
        "policies: [{name: own, baseline: {run: ./base.parquet}, if_no_baseline: pass}]"
    )
    with pytest.raises(InputError, match="is itself the file"):
        trackperm.gate("base.parquet", "own.yaml")


def test_a_metric_that_is_lost_is_no_pass(folder: Path):
    """Regression: what would have failed was not compared, and the gate passed."""
    own = {"id": range(40), "score.exact": [1.0] * 40, "score.f1": [1.0, 0.5] * 20}
    pl.DataFrame(own).write_csv("both.csv")
    pl.DataFrame(own).drop("score.exact").write_csv("one.csv")
    Path("metrics.yaml").write_text("policies: [{name: m, baseline: {run: both.csv}}]")
    with pytest.raises(InputError, match="the candidate has no metric `exact`, and the baseline has"):
        trackperm.gate("one.csv", "metrics.yaml")
    Path("metrics.yaml").write_text("policies: [{name: m, baseline: {run: both.csv}, metric: score.f1}]")
    assert trackperm.gate("one.csv", "metrics.yaml").outcome == "pass"
    Path("metrics.yaml").write_text("policies: [{name: m, baseline: {run: one.csv}}]")
    report = trackperm.gate("both.csv", "metrics.yaml")
    assert report.notes == ["look: not in all runs, and not compared: `exact`"]


def test_a_slice_that_cannot_be_tested_is_refused(folder: Path):
    """A slice that a policy names must not vanish."""
    own = pl.DataFrame({"id": range(4), "label": [*"xyyy"], "prediction": [*"xyyy"], "lang": [*"aabb"]})
    own.write_csv("own.csv")
    own.write_csv("other.csv")
    spec = "{name: f1, parameters: {positive: x}}"
    policy = f"name: s, baseline: {{run: own.csv}}, statistics: [{spec}], slices: lang"
    Path("slices.yaml").write_text(f"policies: [{{{policy}}}]")
    with pytest.raises(InputError, match="slice lang = b: `f1` is 0/0 in both runs") as caught:
        trackperm.gate("other.csv", "slices.yaml")
    assert "compare without `slices: lang`" in str(hint_for_policies(caught.value))


def test_notes_of_slices_name_their_slice_or_are_left_out(folder: Path):
    """Regression: three lines said that `split` has 'test' (30), (15) and (15), and named no slice."""
    own = pl.DataFrame(
        {
            "id": range(40),
            "prediction": ["a"] * 40,
            "label": ["a", "b"] * 20,
            "split": ["train", "test", "test", "test"] * 10,
            "lang": ["en"] * 20 + ["de"] * 20,
        }
    )
    own.write_csv("own.csv")
    few = pl.when(pl.col("id") < 5).then(None).otherwise("prediction")
    own.with_columns(prediction=few).write_csv("few.csv")
    policy = "name: s, baseline: {run: own.csv}, statistics: [accuracy], slices: lang, missing: wrong"
    Path("slices.yaml").write_text(f"policies: [{{{policy}}}]")
    report = trackperm.gate("few.csv", "slices.yaml")
    assert [note for note in report.notes if "split" in note] == [
        "look: `split` of `own.csv` has 'test' (30), 'train' (10), and all of these rows are counted;"
        " `slices: split` compares each part"
    ]
    assert "missing predictions counted as wrong: 0 of the baseline, 5 of the candidate" in report.notes
    slices = [each for each in report.comparisons if each.slice is not None]
    alone = judge(load_policies("slices.yaml").find("s"), slices).notes
    assert {note.partition(": ")[0] for note in alone} == {"accuracy [lang = en]", "accuracy [lang = de]"}


def test_notes_that_carry_the_result_are_in_every_form(folder: Path):
    """Regression: a gate passed on the easy half of the examples, and only its JSON said so."""
    n, rng = 100, np.random.default_rng(0)
    own = pl.DataFrame({"id": range(n), "prediction": rng.integers(0, 2, n), "label": [1] * n})
    own.write_csv("all.csv")
    other = pl.Series("prediction", 1 - own["prediction"].to_numpy())
    own.with_columns(other).head(50).write_csv("half.csv")
    Path("drop.yaml").write_text(
        "policies: [{name: d, baseline: {run: all.csv}, statistics: [accuracy], missing: drop}]"
    )
    report = trackperm.gate("half.csv", "drop.yaml")
    [note] = report.notes
    assert note.startswith("dropped: 50 examples without a complete row in both runs")
    assert f"  {note}" in report.lines()
    assert any(note in line and line.startswith("::warning ") for line in report.annotations())


@pytest.mark.extended
@pytest.mark.tracker
def test_a_run_of_wandb_that_failed_offline_is_refused(tmp_path: Path):
    columns = answers([True] * 40).to_dict(as_series=False)
    candidates = []
    for exit_code in (1, 0):
        with logged_run("digits", f"ended with {exit_code}", folder=tmp_path) as run:
            log_columns(run, columns)
            run.finish(exit_code=exit_code)
        candidates.append(f"wandb:{Path(run.dir).parent}")
    answers([True] * 40).write_csv("base.csv")
    Path("p.yaml").write_text("policies: [{name: p, baseline: {run: base.csv}, statistics: [accuracy]}]")
    with pytest.raises(InputError, match="has failed"):
        trackperm.gate(candidates[0], "p.yaml")
    assert trackperm.gate(candidates[1], "p.yaml", log=False).outcome == "pass"


@pytest.mark.parametrize(("asked", "outcome"), [("metric: reward", "pass"), ("statistics: [mean]", None)])
def test_a_direction_that_the_rows_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, outcome: str | None
):
    """Gates follow the stated direction: fewer errors pass, and `mean` contradicts it and is refused."""
    monkeypatch.chdir(tmp_path)
    for name, start in (("old", 0.5), ("new", 0.1)):
        rewards = [start + i % 7 / 100 for i in range(40)]
        pl.DataFrame({"id": range(40), "reward": rewards, "metric": "wer"}).write_csv(f"{name}.csv")
    policy = f"{{name: p, baseline: {{run: old.csv}}, {asked}, fail_on: regression}}"
    Path("trackperm.yaml").write_text(f"policies: [{policy}]")
    if outcome is not None:
        assert trackperm.gate("new.csv").outcome == outcome
    else:
        with pytest.raises(InputError, match="greater values of `mean` are better, but `metric` is `wer`"):
            trackperm.gate("new.csv")
