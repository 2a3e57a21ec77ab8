"""One p-value, wherever the predictions are: files, MLflow, and W&B on a server and offline."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import wandb
from support.command_line import call_trackperm
from support.mlflow_stores import MlflowExperiments, MlflowStore
from support.tracker_stores import Columns, TrackerStore
from support.wandb_projects import WandbFolders, WandbProjects
from support.wandb_standin import Standin, environment

import trackperm

pytestmark = [pytest.mark.tracker, pytest.mark.contract, pytest.mark.extended]

N_EXAMPLES = 10_000


@pytest.fixture(scope="module")
def predictions() -> dict[str, Columns]:
    rng = np.random.default_rng(20250705)
    labels = rng.integers(0, 10, N_EXAMPLES)
    made = {}
    for name, accuracy in (("logistic", 0.86), ("forest", 0.87)):
        right = rng.random(N_EXAMPLES) < accuracy
        predicted = np.where(right, labels, (labels + 1) % 10)
        made[name] = {
            "id": [f"{i:05d}" for i in range(N_EXAMPLES)],
            "prediction": predicted.tolist(),
            "label": labels.tolist(),
        }
    return made


@pytest.mark.parametrize("artifact", ["predictions.json", "eval/predictions.parquet", "log_predictions"])
def test_the_same_predictions_give_the_same_number(
    predictions: dict[str, Columns], standin: Standin, tmp_path: Path, artifact: str
):
    for name, columns in predictions.items():
        pl.DataFrame(dict(columns)).write_csv(f"{name}.csv")
    found = {"files": trackperm.compare("logistic.csv", "forest.csv")}
    stores: dict[str, tuple[TrackerStore, str | None]] = {
        "mlflow": (MlflowExperiments(store := MlflowStore.local(tmp_path)), store.uri),
        "wandb online": (WandbProjects(standin), standin.url),
        "wandb offline": (WandbFolders(tmp_path), None),
    }
    for place, (tracked, uri) in stores.items():
        scheme = place.split()[0]
        container = tracked.container("digits")
        runs = []
        for name, columns in predictions.items():
            if artifact == "log_predictions":
                with tracked.open_run(container, name) as run:
                    runs.append(trackperm.log_predictions(run, pl.DataFrame(dict(columns))))
            else:
                runs.append(f"{scheme}:{tracked.run(container, name, {artifact: columns})}")
        found[place] = trackperm.compare(*runs, tracking_uri=uri)
    assert {comparison.n_examples for comparison in found.values()} == {N_EXAMPLES}
    assert len({(comparison.pvalue, comparison.log10_pvalue) for comparison in found.values()}) == 1
    assert 0 < found["files"].pvalue < 1
    assert len({comparison.pairing.candidate_digest for comparison in found.values()}) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "is_offline",
    [pytest.param(False, id="online"), pytest.param(True, id="offline", marks=pytest.mark.nightly)],
)
def test_tables_that_wandb_cuts_are_refused_and_predictions_are_whole(
    standin: Standin, tmp_path: Path, is_offline: bool
):
    """250,000 rows, with differences among those that W&B cuts, logged with the real SDK in both ways."""
    n_examples = 250_000
    labels = np.arange(n_examples) % 10
    frames = {}
    for name, n_wrong in (("logistic", 800), ("forest", 700)):
        wrong = np.random.default_rng(n_wrong).permutation(n_examples)[:n_wrong]
        predicted = labels.copy()
        predicted[wrong] += 1
        frames[name] = pl.DataFrame({"id": np.arange(n_examples), "prediction": predicted, "label": labels})
        frames[name].write_parquet(tmp_path / f"{name}.parquet")
    expected = trackperm.compare("logistic.parquet", "forest.parquet")
    assert expected.n_examples == n_examples

    store: TrackerStore = WandbFolders(tmp_path) if is_offline else WandbProjects(standin)
    cut, whole = [], []
    for name, frame in frames.items():
        table = wandb.Table(columns=frame.columns, data=[list(row) for row in frame.iter_rows()])
        with store.open_run(container := store.container("cut"), name) as run:
            run.log({"preds": table})
        cut.append(_reference(run))
        with store.open_run(container, f"{name} in one line") as run:
            whole.append(trackperm.log_predictions(run, frame))
    refused = call_trackperm(tmp_path, "compare", *cut, env=environment(tmp_path, standin))
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert "W&B stored 200,000 of the 250,000 rows of table `preds`" in refused.stderr
    assert "it stores files completely: `trackperm.log_predictions(run, frame)`" in refused.stderr
    found = trackperm.compare(*whole, tracking_uri=store.tracking_uri)
    assert (found.n_examples, found.pvalue) == (n_examples, expected.pvalue)
    assert found.pairing.candidate_digest == expected.pairing.candidate_digest


def _reference(run: wandb.Run) -> str:
    return f"wandb:{Path(run.dir).parent if run.offline else run.path}"


@pytest.mark.slow
def test_a_comparison_from_the_command_line(standin: Standin, tmp_path: Path):
    """From two names to a run with the verdict; the second time nothing is added."""
    columns = {"id": list(range(40)), "label": ["a"] * 40}
    projects = WandbProjects(standin)
    container = projects.container("from-the-command-line")
    right = {**columns, "prediction": ["a"] * 40}
    wrong = {**columns, "prediction": ["b"] * 20 + ["a"] * 20}
    baseline = projects.run(container, "logistic", {"predictions.json": wrong})
    candidate = projects.run(container, "forest", {"predictions.json": right})
    arguments = [f"wandb:{container}/logistic", f"{standin.url}/{container}/runs/{candidate.split('/')[-1]}"]
    command = ["compare", *arguments, "--format", "json"]
    env = environment(tmp_path, standin)
    first = call_trackperm(tmp_path, *command, "--alert", "--tag-runs", env=env)
    again = call_trackperm(tmp_path, *command, env=env)
    assert first.returncode == 0, first.stderr
    (result,) = json.loads(first.stdout)
    assert result["verdict"] == "better"
    assert "logged: http" in first.stderr
    assert "already logged" in again.stderr
    (kept,) = projects.comparisons(container)
    assert kept.is_finished
    assert kept.metrics["accuracy/p_value"] == result["pvalue"] == 2 * 0.5**20
    assert kept.files.keys() == {
        "verdict.png",
        "verdict.svg",
        "trackperm_report.html",
        "trackperm/statistic.yaml",
        "trackperm/comparison.json",
        "trackperm/discordant.parquet",
        "trackperm/count_table.parquet",
    }
    assert "better" in kept.description
    assert len(standin.run(kept.locator).used) == 2
    assert "null_distribution" in json.loads(standin.run(kept.locator).config)["_wandb"]["value"]["visualize"]

    assert projects.candidate_tags(candidate) == {
        "sig.accuracy": "accuracy 1.0000 ▲ p=1.9e-06",
        "sig.accuracy.vs": "logistic",
        "sig.accuracy.score": 1.0,
    }
    assert projects.candidate_tags(baseline) == {
        "sig.accuracy.baseline_of": "forest ▲",
        "sig.accuracy.score": 0.5,
    }
    before = len(standin.state.alerts)
    worse = ["compare", *reversed(arguments), "--alert"]
    assert call_trackperm(tmp_path, *worse, env=env).returncode == 0
    assert [alert["title"] for alert in standin.state.alerts[before:]] == [
        "▼ logistic loses to forest in accuracy, p 1.9e-06"
    ]
