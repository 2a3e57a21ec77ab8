"""From samples of lm-evaluation-harness to a verdict: every command of the README but the harness' own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.eval_logs import lm_eval_sample, write_lines
from support.mlflow_stores import MlflowStore
from support.recipes import Recipe

pytestmark = pytest.mark.tracker

N = 60
FAIL, BAD_INPUT = 1, 2


def choice_sample(number: int, is_right: bool) -> dict[str, Any]:
    """A sample of a task of multiple choice, which has no `exact_match`."""
    score = float(is_right)
    sample = lm_eval_sample(number, score, metrics=["acc", "acc_norm"], acc=score, acc_norm=score)
    del sample["exact_match"]
    return sample


def write_samples(folder: Path, n_right: int) -> None:
    """Write the samples of two tasks; those of the second are the same in every run."""
    folder.mkdir(parents=True)
    for task, right in (("arc_easy", n_right), ("hellaswag", 40)):
        samples = [choice_sample(i, i < right) for i in range(N)]
        write_lines(folder / f"samples_{task}_2026-01-{n_right // 2}T00-00-00.123.jsonl", samples)


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    recipe = Recipe("lm-evaluation-harness", tmp_path)
    write_samples(recipe.folder / "out/baseline/model", 40)
    write_samples(recipe.folder / "out/candidate/model", 20)
    return recipe


@pytest.mark.slow
def test_its_commands(recipe: Recipe):
    """The candidate has lost a third of one task: the gates fail, and all else succeeds."""
    codes = {}
    for command in recipe.commands():
        if not command.startswith(("lm_eval", "export")):
            result = recipe.run(command)
            codes[command] = result.returncode
            if "--name files" in command:
                assert (
                    "fail      acc [task = arc_easy]: the candidate is significantly worse" in result.stdout
                )
                assert "acc [task = hellaswag]: both runs count the same" in result.stdout
            assert "Traceback" not in result.stderr, result.stderr
    assert list(codes.values()) == [0, 0, FAIL, 0, 0, FAIL], codes
    assert "arc_easy" in (recipe.folder / "verdict.md").read_text()
    assert "<testsuite" in (recipe.folder / "verdict.xml").read_text()
    store = MlflowStore(f"sqlite:///{recipe.folder / 'mlflow.db'}")
    candidate = (recipe.folder / "candidate.txt").read_text().strip()
    assert sorted(store.artifacts(candidate.removeprefix("mlflow:"))) == [
        "samples_arc_easy.jsonl",
        "samples_hellaswag.jsonl",
    ]
    [comparison] = store.comparisons("lm-eval")
    assert comparison.data.tags["trackperm.candidate"] == candidate
    assert comparison.data.metrics["acc/difference"] == pytest.approx(-20 / N)


@pytest.mark.nightly
def test_one_of_several_filters_is_chosen(tmp_path: Path):
    recipe = Recipe("lm-evaluation-harness", tmp_path)
    for name, n_right in (("baseline", 40), ("candidate", 20)):
        folder = recipe.folder / f"out/{name}/model"
        folder.mkdir(parents=True)
        filters = ("strict-match", "flexible-extract")
        samples = [lm_eval_sample(i, float(i < n_right), filter_) for filter_ in filters for i in range(N)]
        write_lines(folder / "samples_gsm8k_2026-01-20T00-00-00.123.jsonl", samples)
    models = "out/baseline/model{0} out/candidate/model{0}"
    compare = f"trackperm compare {models} --metric exact_match"
    assert recipe.run(compare.format("")).returncode == BAD_INPUT
    recipe.succeeds(compare.format("::strict-match"))
    policy = recipe.folder / "trackperm.yaml"
    written = policy.read_text().replace("metric: acc", "metric: exact_match")
    written = written.replace("samples_arc_easy.jsonl", "samples_gsm8k.jsonl::strict-match")
    policy.write_text(written.replace("run: out/baseline/model", "run: out/baseline/model::strict-match"))
    filtered = "trackperm gate --candidate out/candidate/model::strict-match --name files"
    assert recipe.run(filtered).returncode == FAIL
    for command in recipe.commands():
        if command.startswith("python"):
            recipe.succeeds(command)
    assert recipe.run('trackperm gate --candidate "$(cat candidate.txt)" --name arc-easy').returncode == FAIL


def test_other_documents_are_refused(recipe: Recipe):
    path = next((recipe.folder / "out/candidate/model").glob("samples_arc_easy_*"))
    write_lines(path, [{**choice_sample(i, True), "doc_hash": f"other{i}"} for i in range(N)])
    result = recipe.run("trackperm gate --candidate out/candidate/model --name files")
    assert result.returncode == BAD_INPUT
    assert "`doc_hash` differs between the runs" in result.stdout + result.stderr


@pytest.mark.extended
@pytest.mark.parametrize("folder", ["no-such-folder", "out/both"])
def test_a_folder_of_no_single_run_is_not_logged(recipe: Recipe, folder: str):
    write_samples(recipe.folder / "out/both", 40)
    write_lines(
        recipe.folder / "out/both/samples_arc_easy_2026-02-01T00-00-00.1.jsonl", [choice_sample(1, True)]
    )
    result = recipe.run(f"python log_samples.py {folder}")
    assert result.returncode == BAD_INPUT
    assert "one of each task is expected" in result.stderr
    assert not (recipe.folder / "mlflow.db").exists()
