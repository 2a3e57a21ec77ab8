"""Directions of metrics that the results file of a run declares."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from support.eval_logs import LM_EVAL, lm_eval_sample, write_json, write_lines

from trackperm.errors import SourceError
from trackperm.tables import read_examples

RUN = "2026-01-21T03-44-18.458309"
OTHER_RUN = "2026-01-22T03-44-18.458309"


def write_samples(folder: Path, *tasks: str) -> Path:
    folder.mkdir(exist_ok=True)
    for task in tasks:
        write_lines(folder / f"samples_{task}_{RUN}.jsonl", LM_EVAL)
    return folder / f"samples_{tasks[0]}_{RUN}.jsonl"


def write_results(folder: Path, directions: Any, run: str = RUN, **more: Any) -> None:
    document = {"results": {}, "configs": {}, "higher_is_better": directions, **more}
    write_json(folder / f"results_{run}.json", document)


@pytest.mark.parametrize("declared", [True, False])
def test_the_folder_of_a_run_and_one_file_of_it(tmp_path: Path, declared: bool) -> None:
    file = write_samples(tmp_path, "sums")
    write_results(tmp_path, {"sums": {"exact_match": declared}, "other": {"exact_match": not declared}})
    expected = {"exact_match": declared, "score": declared}
    assert read_examples(tmp_path).greater_is_better == expected
    assert read_examples(file).greater_is_better == expected


def test_the_configuration_of_a_task_where_older_versions_say_it(tmp_path: Path) -> None:
    write_samples(tmp_path, "sums")
    metrics = [{"metric": "exact_match", "higher_is_better": False}, {"metric": "acc"}]
    write_results(tmp_path, None, configs={"sums": {"metric_list": metrics}})
    assert read_examples(tmp_path).greater_is_better["exact_match"] is False


def test_the_results_of_another_run_are_not_those_of_a_file(tmp_path: Path) -> None:
    file = write_samples(tmp_path, "sums")
    write_results(tmp_path, {"sums": {"exact_match": False}}, OTHER_RUN)
    assert read_examples(file).greater_is_better == {}
    write_results(tmp_path, {"sums": {"exact_match": True}})
    assert read_examples(tmp_path).greater_is_better["exact_match"] is True


def test_a_compressed_file_has_its_results_beside_it(tmp_path: Path) -> None:
    file = write_samples(tmp_path, "sums")
    write_results(tmp_path, {"sums": {"exact_match": False}})
    compressed = file.with_name(f"{file.name}.gz")
    compressed.write_bytes(gzip.compress(file.read_bytes()))
    assert read_examples(compressed).greater_is_better["exact_match"] is False


def test_no_direction_is_declared(tmp_path: Path) -> None:
    write_samples(tmp_path, "sums")
    write_results(tmp_path, {"sums": {"exact_match": None}})
    assert read_examples(tmp_path).greater_is_better == {}


def test_tasks_that_disagree_are_refused(tmp_path: Path) -> None:
    write_samples(tmp_path, "sums", "products")
    write_results(tmp_path, {"sums": {"exact_match": True}, "products": {"exact_match": False}})
    with pytest.raises(
        SourceError,
        match=r"greater values of `exact_match` are better in `sums` and lower ones in `products`",
    ):
        read_examples(tmp_path)


def test_a_broken_results_file_beside_samples_is_refused(tmp_path: Path) -> None:
    file = write_samples(tmp_path, "sums")
    (tmp_path / f"results_{RUN}.json").write_text("{", encoding="utf-8")
    with pytest.raises(SourceError, match="is not a results file of lm-evaluation-harness; expected"):
        read_examples(file)


def test_perplexities_of_samples_are_log_likelihoods(tmp_path: Path) -> None:
    """The harness logs log-likelihoods of targets as `perplexity`, and declares that lower is better."""
    write_samples(tmp_path, "sums")
    write_results(tmp_path, {"sums": {"perplexity": False, "exact_match": True}})
    file = tmp_path / f"samples_sums_{RUN}.jsonl"
    write_lines(file, [lm_eval_sample(i, 1.0, perplexity=-1.5 - i) for i in range(3)])
    table = read_examples(file)
    assert table.greater_is_better == {"perplexity": True, "exact_match": True}
    assert table.notes == (
        "`perplexity` is the log-likelihood of each target in this log, so greater is better",
    )
    write_lines(file, [lm_eval_sample(i, 1.0, perplexity=1.5 + i) for i in range(3)])
    assert read_examples(file).greater_is_better["perplexity"] is False
