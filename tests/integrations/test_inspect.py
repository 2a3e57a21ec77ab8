"""From logs of Inspect to a verdict: every command of the README but Inspect's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.eval_logs import inspect_log, inspect_sample, write_eval, write_json
from support.mlflow_stores import MlflowStore
from support.recipes import Recipe

pytestmark = pytest.mark.tracker

N = 60
FAIL, BAD_INPUT = 1, 2


def log(n_right: int, epochs: int = 1) -> dict[str, object]:
    return inspect_log(
        [
            inspect_sample(i, epoch, match="C" if i < n_right else "I")
            for i in range(N)
            for epoch in range(1, epochs + 1)
        ]
    )


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    recipe = Recipe("inspect", tmp_path)
    logs = recipe.folder / "logs"
    logs.mkdir()
    for name, n_right in (("baseline", 40), ("candidate", 20)):
        write_eval(logs / f"{name}.eval", log(n_right))
        write_eval(logs / f"{name}-epochs.eval", log(n_right, 3))
    return recipe


@pytest.mark.slow
def test_its_commands(recipe: Recipe):
    """The candidate has lost a third of the samples: the gates fail, and all else succeeds."""
    codes, said = {}, ""
    for command in recipe.commands():
        if not command.startswith(("inspect", "export")):
            result = recipe.run(command)
            codes[command] = result.returncode
            said += result.stdout
            assert "Traceback" not in result.stderr, result.stderr
    assert list(codes.values()) == [0, 0, FAIL, 0, 0, FAIL, FAIL], codes
    assert said.count("match: the candidate is significantly worse (difference -0.3333, p = 1.91e-06") == 3
    assert "<testsuite" in (recipe.folder / "verdict.xml").read_text()
    store = MlflowStore(f"sqlite:///{recipe.folder / 'mlflow.db'}")
    candidate = (recipe.folder / "candidate.txt").read_text().strip()
    assert list(store.artifacts(candidate.removeprefix("mlflow:"))) == ["log.eval"]
    [comparison] = store.comparisons("inspect")
    assert comparison.data.tags["trackperm.candidate"] == candidate


@pytest.mark.extended
def test_other_inputs_are_refused(recipe: Recipe):
    samples = [{**inspect_sample(i, 1, match="C"), "input": "another question"} for i in range(N)]
    write_json(recipe.folder / "logs/other.json", inspect_log(samples))
    result = recipe.run("trackperm gate --candidate logs/other.json --name files")
    assert result.returncode == BAD_INPUT
    assert "`input_hash` differs between the runs" in result.stdout + result.stderr


@pytest.mark.extended
def test_other_files_than_logs_are_not_logged(recipe: Recipe):
    result = recipe.run("python log_eval.py logs")
    assert result.returncode == BAD_INPUT
    assert "is no .eval or .json file" in result.stderr
    assert not (recipe.folder / "mlflow.db").exists()
