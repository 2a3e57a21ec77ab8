"""Examples inside the only row of a file of results: errors have the code that writes a row for each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.command_line import invoke

import trackperm
from trackperm.errors import InputError
from trackperm.tables import read_examples
from trackperm.tables.row_meaning import why_no_examples

ROWS = [{"question": f"Why {i}?", "references": "A", "correct": i % 3 == 0} for i in range(9)]
CASES = [{"metrics": {"1": {"Dice": i / 9}}, "reference_file": f"case_{i}.nii.gz"} for i in range(9)]
SAMPLES = {f"HumanEval/{i}": [{"status": "pass", "score": i % 2}] for i in range(9)}
SCORES = {f"q{i}": i / 30 for i in range(30)}
PARTS = {part: {f"{part}-{i}": [0, i / 9][i % 2] for i in range(9)} for part in ("chrome", "gimp", "os")}
TESTS = {f"{i}": [[True, i % 3 > 0, -1 + i % 3 > 0], [False, -1]] for i in range(30)}
DICE: dict[str, Any] = {"metric": "metrics.1.Dice", "columns": {"id": "reference_file"}}

INSIDE: dict[str, tuple[Any, str, int, dict[str, Any]]] = {
    "details by number and their type": (
        {"accuracy": 33.3, "details": {**{str(i): row for i, row in enumerate(ROWS)}, "type": "GEN"}},
        "`details` of the only row holds a value for each of 9 examples, such as `0`",
        9,
        {},
    ),
    "deeper": (
        {"score": 0.3, "htmls": ["<p>"] * 9, "metadata": {"examples": ROWS, "n": 9}},
        "`metadata.examples` of the only row holds a list of 9 objects, which may be the examples",
        9,
        {},
    ),
    "aggregates": (
        {
            "context": {"date": "x"},
            "rows": [*({**row, "run_type": "iteration"} for row in ROWS), {"run_type": "aggregate"}],
        },
        "`rows` of the only row holds a list of 9 objects, which may be the examples",
        9,
        {},
    ),
    "list of one": (
        {"task": "x", "queries": [{"queries": None, "samples": ROWS}], "few": [{"a": 1}, {"a": 2}]},
        "`queries[0].samples` of the only row holds a list of 9 objects, which may be the examples",
        9,
        {},
    ),
    "objects in objects": (
        {"mean": {"Dice": 0.5}, "metric_per_case": CASES},
        "`metric_per_case` of the only row holds a list of 9 objects, which may be the examples",
        9,
        DICE,
    ),
    "rows without one schema": (
        {"results": [{**row, "usage": {"n": [1, "a"][i % 2]}} for i, row in enumerate(ROWS)]},
        "`results` of the only row holds a list of 9 objects, which may be the examples",
        9,
        {},
    ),
    "lists of attempts": (
        {"hash": "x", "eval": SAMPLES},
        "`eval` of the only row holds a value for each of 9 examples, such as `HumanEval/0`",
        9,
        {},
    ),
    "the only row": (
        SAMPLES,
        "the only row holds a value for each of 9 examples, such as `HumanEval/0`",
        9,
        {},
    ),
    "scores by id": (SCORES, "the only row holds a value for each of 30 examples, such as `q0`", 30, {}),
    "parts": (
        {**PARTS, "total": 0.4},
        "`chrome`, `gimp`, `os` of the only row hold a value for each of 27 examples, such as `chrome-0`",
        27,
        {},
    ),
    "parts whose ids restart": (
        {
            "results": {
                part: {str(i): {"score": i / 9} for i in range(n)} for part, n in (("x", 9), ("y", 11))
            }
        },
        "`x`, `y` of `results` of the only row hold a value for each of 20 examples, such as `0`",
        20,
        {},
    ),
    "tests of attempts": (TESTS, "the only row holds a value for each of 30 examples, such as `0`", 30, {}),
    "attempts beside their outputs": (
        {
            "raw_generations": {f"sample_{i}": ["x", "y"] for i in range(30)},
            "raw_scored_generations": {f"sample_{i}": [True, i % 2 > 0] for i in range(30)},
        },
        "`raw_scored_generations` of the only row holds a value for each of 30 examples, such as `sample_0`",
        30,
        {},
    ),
    "verdicts in lists": (
        {f"q{i}": ["pass" if i % 2 else "fail"] for i in range(30)},
        "the only row holds a value for each of 30 examples, such as `q0`",
        30,
        {"metric": "result=pass"},
    ),
    "lists": (
        {"model": "x", "y_true": [1, 0, 1], "y_pred": [1, 1, 1], "classes": ["no", "yes"]},
        "`y_true`, `y_pred` hold 3 values each",
        3,
        {"by_position": True},
    ),
}


@pytest.mark.parametrize("case", INSIDE.values(), ids=INSIDE)
@pytest.mark.parametrize("suffix", ["", ".json"])
def test_the_code_writes_a_row_for_each(
    case: tuple[Any, str, int, dict[str, Any]], suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, found, n, options = case
    monkeypatch.chdir(tmp_path)
    Path(f"run{suffix}").write_text(json.dumps(document))
    with pytest.raises(InputError) as caught:
        trackperm.compare(f"run{suffix}", f"run{suffix}")
    hint = str(caught.value.hint)
    assert hint.startswith(f"{found}: write a row for each of them, as `d = ")
    assert "by-position" not in hint
    exec(hint.split("`")[-2], {"pl": pl, "json": json, "Path": Path})
    (rows,) = Path().glob("run_rows.*")
    assert trackperm.compare(rows, rows, **options).n_examples == n


def test_a_table_of_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"model": ["x"], "results": [ROWS]}).write_parquet("run.parquet")
    with pytest.raises(InputError, match="is unclear") as caught:
        trackperm.compare("run.parquet", "run.parquet")
    exec(str(caught.value.hint).split("`")[-2], {"pl": pl, "json": json, "Path": Path})
    assert trackperm.compare("run_rows.json", "run_rows.json").n_examples == 9


REPORT = {"precision": 0.5, "recall": 0.5, "f1-score": 0.5, "support": 9}


@pytest.mark.parametrize(
    "document",
    [
        {"id": 1, "results": ROWS},
        {"model": "x", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
        {**{str(i): REPORT for i in range(9)}, "accuracy": 0.5, "macro avg": REPORT},
        {"task": "x", "scores": {"test": [{"runs": [{"accuracy": i / 9} for i in range(9)]}]}},
        {f"epoch_{i}": {"accuracy": 0.5} for i in range(9)},
        {"best": 0.5, "log_history": [{"epoch": i, "loss": 1 / (1 + i)} for i in range(9)]},
        {"loss": [0.5, 0.25], "accuracy": [0.5, 0.75]},
        {"loss": [1 / (1 + i) for i in range(30)], "accuracy": [i / 30 for i in range(30)]},
        {"val_f1": [i / 30 for i in range(30)], "f1": [i / 30 for i in range(30)]},
        {"precision": [0.5, 0.25, 0.75], "recall": [0.5, 0.75, 1.0]},
        {"bleu1": 0.4, "bleu2": 0.3, "bleu3": 0.2},
        {"model": "x", "score": 0.5},
        {f"q{i}": [0.25, 0.25, 0.5] for i in range(30)},
        {f"q{i}": [101, 2054, 102] for i in range(30)},
        {f"q{i}": [] for i in range(30)},
        {name: [i / 30 for i in range(30)] for name in ("fpr", "tpr", "thresholds")},
        {"mean_reward": [i / 30 for i in range(30)], "ep_len": [5] * 30},
    ],
)
def test_other_rows(document: dict[str, Any], tmp_path: Path) -> None:
    """Rows of measurements are summaries, in which there are no examples."""
    (path := tmp_path / "run.json").write_text(json.dumps(document))
    reason = why_no_examples([read_examples(path)])
    assert reason is None or reason.startswith("the only row of each run is a summary")


@pytest.mark.parametrize("others", [{}, {"hashcode": "roberta-large"}])
@pytest.mark.parametrize("indent", [None, 1])
def test_lists_of_scores(
    others: dict[str, str], indent: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What BERTScore returns: precision, recall and F1 of each text."""
    monkeypatch.chdir(tmp_path)
    scores = {name: [i / 30 for i in range(30)] for name in ("precision", "recall", "f1")}
    Path("run.json").write_text(json.dumps(scores | others, indent=indent))
    with pytest.raises(InputError) as caught:
        trackperm.compare("run.json", "run.json")
    assert "`precision`, `recall`, `f1` hold 30 numbers, which may be those of the examples" in str(
        caught.value.hint
    )
    exec(str(caught.value.hint).split("`")[-2], {"json": json, "Path": Path})
    found = trackperm.compare("run_rows.json", "run_rows.json", metric="f1", by_position=True)
    assert found.n_examples == 30


def test_inspect(tmp_path: Path) -> None:
    (path := tmp_path / "run.json").write_text(json.dumps({"passed": 3, "eval": SAMPLES}))
    printed = invoke("inspect", str(path))
    assert "cannot be compared as it is: `eval` of the only row holds a value for each of 9" in printed
    assert not re.search("one system each|--metric|can be tested", printed)
