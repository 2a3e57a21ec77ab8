from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.cli_comparison import compared
from support.eval_logs import terminal_bench, write_json

from trackperm.errors import SourceError
from trackperm.tables import read_examples


def written(path: Path, document: Any) -> Path:
    write_json(path, document)
    return path


def test_attempts_are_added_up_and_not_merged(tmp_path: Path) -> None:
    """`resolved_ids` and `unresolved_ids` name a task once for each attempt, so a task may be in both."""
    weak = terminal_bench({f"task-{i}": [True, False, False] for i in range(6)})
    strong = terminal_bench({f"task-{i}": [True, True, False] for i in range(6)})
    paths = written(tmp_path / "weak.json", weak), written(tmp_path / "strong.json", strong)
    assert read_examples(paths[0]).frame["trial"].to_list() == [1, 2, 3] * 6
    found = compared(*paths)
    assert (found["n_examples"], found["n_discordant"], found["pvalue"]) == (6, 6, 2 / 2**6)
    assert (found["baseline_score"], found["candidate_score"]) == pytest.approx((1 / 3, 2 / 3))


def test_a_trial_without_verdict_is_not_resolved(tmp_path: Path) -> None:
    read = read_examples(written(tmp_path / "a.json", terminal_bench({"x": [True], "y": [None]})))
    assert read.columns == ["id", "passed", "failure_mode"]
    assert read.frame["passed"].to_list() == [True, False]
    assert read.notes == ("1 of 2 trials have no verdict and count as not resolved",)


@pytest.mark.parametrize("wrong", [{"task_id": None}, {"is_resolved": "yes"}])
def test_invalid_trials(tmp_path: Path, wrong: dict[str, Any]) -> None:
    document = terminal_bench({"x": [True], "y": [False]})
    document["results"][1].update(wrong)
    with pytest.raises(
        SourceError, match=r"result 1 is not a trial; expected an object with a text `task_id`"
    ):
        read_examples(written(tmp_path / "a.json", document))
