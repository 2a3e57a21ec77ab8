"""One p-value, wherever the predictions are: files, MLflow, and W&B on a server and offline."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from mlflow_stores import MlflowExperiments, MlflowStore
from processes import run, script
from tracker_stores import Columns, TrackerStore
from wandb_projects import WandbFolders, WandbProjects
from wandb_standin import Standin, environment

import trackperm

pytestmark = pytest.mark.tracker

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


@pytest.mark.parametrize("artifact", ["predictions.json", "eval/predictions.parquet"])
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
        runs = [
            f"{scheme}:{tracked.run(container, name, {artifact: columns})}"
            for name, columns in predictions.items()
        ]
        found[place] = trackperm.compare(*runs, tracking_uri=uri)
    assert {comparison.n_examples for comparison in found.values()} == {N_EXAMPLES}
    assert len({(comparison.pvalue, comparison.log10_pvalue) for comparison in found.values()}) == 1
    assert 0 < found["files"].pvalue < 1
    assert len({comparison.pairing.candidate_digest for comparison in found.values()}) == 1


def test_a_comparison_from_the_command_line(standin: Standin, tmp_path: Path):
    """From two names to a run with the verdict; the second time nothing is added."""
    columns = {"id": list(range(40)), "label": ["a"] * 40}
    projects = WandbProjects(standin)
    container = projects.container("from-the-command-line")
    right = {**columns, "prediction": ["a"] * 40}
    wrong = {**columns, "prediction": ["b"] * 20 + ["a"] * 20}
    projects.run(container, "logistic", {"predictions.json": wrong})
    candidate = projects.run(container, "forest", {"predictions.json": right})
    arguments = [f"wandb:{container}/logistic", f"{standin.url}/{container}/runs/{candidate.split('/')[-1]}"]
    command = [script("trackperm"), "compare", *arguments, "--json"]
    first, again = (run(command, cwd=tmp_path, env=environment(tmp_path, standin)) for _ in range(2))
    assert first.returncode == 0, first.stderr
    (result,) = json.loads(first.stdout)
    assert result["verdict"] == "better"
    assert "logged: http" in first.stderr
    assert "already logged" in again.stderr
    (kept,) = projects.comparisons(container)
    assert kept.is_finished
    assert kept.metrics["accuracy/p_value"] == result["pvalue"] == 2 * 0.5**20
    assert kept.files.keys() == {
        "pmf.png",
        "trackperm_report.html",
        "trackperm/statistic.yaml",
        "trackperm/comparison.json",
        "trackperm/discordant.parquet",
        "trackperm/count_table.parquet",
    }
    assert "better" in kept.description
    assert len(standin.run(kept.locator).used) == 2
