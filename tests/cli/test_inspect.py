"""`trackperm inspect`; the commands that it prints run."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support import eval_logs
from support.command_line import invoke
from support.mlflow_stores import MlflowStore
from support.served_objects import served_objects

from trackperm.cli.testable import OTHER
from trackperm.errors import InputError, SourceError

QUESTIONS = pl.DataFrame(
    {
        "question_id": ["q1", "q2", "q3"],
        "output": ["yes", "no", None],
        "target": ["yes", "yes", "no"],
        "seconds": [0.5, 0.25, 0.5],
    }
)

PRINTED = """\
questions.parquet: Parquet, 3 examples

column       type     distinct  null  example
question_id  text            3     0  'q1'
output       text            2     1  'yes'
target       text            2     0  'yes'
seconds      decimal         2     0  0.5

could be id: question_id
could be prediction: output
could be label: target
could be score: seconds

"""


@pytest.mark.parametrize("beside", [{}, {"uuid": [f"row {i}" for i in range(40)]}])
def test_attempts_that_no_column_numbers(tmp_path: Path, beside: dict[str, list[str]]) -> None:
    path = tmp_path / "attempts.parquet"
    scores = [int(i % 10 < 6) for i in range(40)]
    pl.DataFrame({"task_id": [i % 10 for i in range(40)], "reward": scores, **beside}).write_parquet(path)
    printed = invoke("inspect", str(path))
    assert printed.splitlines()[-1].endswith(" --id task_id --repeats sum")
    assert "10 examples" in run_command(printed)


@pytest.mark.extended
def test_forecasts_beside_decimals(tmp_path: Path) -> None:
    path = tmp_path / "forecasts.parquet"
    pl.DataFrame({"y": [1.5, 2.5, 4.5], "AutoARIMA": [1.25, 2.5, 4.0]}).write_parquet(path)
    printed = invoke("inspect", str(path))
    assert "could be prediction: AutoARIMA\ncould be label: y\ncould be score: no column\n" in printed
    assert "rmse" in run_command(printed)


def run_command(printed: str, other: str | None = None) -> str:
    """Run the command that an inspection ends with, with a run in the place of `OTHER`, or the same again."""
    program, *arguments = shlex.split(printed.splitlines()[-1])
    arguments = [(other or arguments[1]) if each == OTHER else each for each in arguments]
    assert program == "trackperm"
    return invoke(*arguments)


@pytest.mark.extended
def test_credentials_of_an_address_are_not_printed() -> None:
    with served_objects() as (address, served):
        written = io.BytesIO()
        QUESTIONS.write_parquet(written)
        served["/questions.parquet"] = written.getvalue()
        with_user = address.replace("//", "//ann:hunter2@")
        printed = invoke("inspect", f"{with_user}/questions.parquet?sig=hunter2")
    assert "hunter2" not in printed
    assert printed.startswith(f"{address}/questions.parquet?sig=…: table at a URL, 3 examples\n")
    assert f"trackperm compare '{address}/questions.parquet?sig=…" in printed


@pytest.mark.extended
def test_a_column_of_ids_by_another_name_is_in_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    label = ["yes", "no"] * 10
    for name, wrong in (("old.csv", 8), ("new.csv", 2)):
        given = ["no"] * wrong + label[wrong:]
        pl.DataFrame({"item": range(20), "pred": given, "gold": label}).write_csv(name)
    printed = invoke("inspect", "old.csv")
    assert printed.splitlines()[-1].endswith(" --id item")
    assert "20 examples" in run_command(printed)
    columns = ("--id", "item", "--prediction", "pred", "--label", "gold")
    assert "discordance 0.15" in invoke("power", "old.csv", "new.csv", *columns)


def test_prints_columns_and_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    QUESTIONS.write_parquet("questions.parquet")
    printed = invoke("inspect", "questions.parquet")
    assert printed.startswith(PRINTED)
    assert "\nby default: accuracy\n" in printed
    command = "  trackperm compare questions.parquet OTHER --missing drop"
    assert printed.splitlines()[-1] == command
    assert "p = 1 " in run_command(printed)


FILES: dict[str, tuple[str, str, str]] = {
    "own names": ("id,prediction,label\n1,a,a\n2,b,a\n", "accuracy", "CSV or TSV"),
    "a score": ('{"doc_id": 1, "acc": 0.5}\n{"doc_id": 2, "acc": 1}\n', "mean", "JSON Lines"),
    "no ids": ("prediction,label\n1,1\n0,1\n0,1\n", "accuracy", "CSV or TSV"),
    "a column of numbers": ("1\n0\n1\n", "mean", "numbers without a header"),
    "tests": (
        '<testsuite>\n<testcase name="a"/><testcase name="b"><skipped/></testcase></testsuite>\n',
        "pass_at_1",
        "JUnit XML",
    ),
    "tags": (
        json.dumps([{"id": 1, "prediction": ["O", "B-a"], "label": ["O", "B-a"]}]),
        "span_f1",
        "JSON array of objects",
    ),
    "tags by other names": (
        json.dumps([{"id": 1, "tokens": ["of", "a"], "ner_tags": ["O", "B-a"], "pred_tags": ["O", "B-a"]}]),
        "span_f1",
        "JSON array of objects",
    ),
    "a name with blanks": ("id,prediction,label\n1,a,a\n2,b,a\n3,b,b\n", "cohen_kappa", "CSV or TSV"),
}
USUAL = {"tags by other names", "no ids", "a column of numbers"}


@pytest.mark.parametrize(
    "name",
    [name if name in USUAL else pytest.param(name, marks=pytest.mark.extended) for name in FILES],
)
def test_the_printed_command_runs(name: str, tmp_path: Path) -> None:
    content, statistic, title = FILES[name]
    (tmp_path / name).write_text(content)
    printed = invoke("inspect", str(tmp_path / name))
    assert printed.startswith(f"{tmp_path / name}: {title}, ")
    (line,) = (line for line in printed.splitlines() if line.startswith("can be tested: "))
    assert statistic in line.removeprefix("can be tested: ").split(", ")
    run_command(printed)


def test_every_statistic_that_is_named_runs(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,prediction,label\n1,spam,spam\n2,ham,spam\n3,ham,ham\n4,ham,ham\n")
    printed = invoke("inspect", str(path))
    (line,) = (line for line in printed.splitlines() if line.startswith("can be tested: "))
    names = line.removeprefix("can be tested: ").split(", ")
    assert {"accuracy", "f1", "mcc", "word_error_rate"} <= set(names)
    assert not {"mean", "pooled_f1", "las", "span_f1"} & set(names)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("low", "high"), [("1", "2"), ("cat", "dog")])
@pytest.mark.parametrize("label", ["label", "y_true"])
def test_the_class_of_scores_is_left_to_the_user(low: str, high: str, label: str, tmp_path: Path) -> None:
    """Regression: the rarer of two labels was offered as the positive class, which reverses many verdicts."""
    path = tmp_path / "a.csv"
    rows = [f"{i},0.{i},{high if i > 3 else low}" for i in range(1, 10)]
    path.write_text("\n".join([f"id,score,{label}", *rows, ""]))
    *_, first, second, command = invoke("inspect", str(path)).splitlines()
    said = "for example, with the other run for OTHER, and for CLASS the label that greater scores stand for"
    assert f"{first} {second}" == f"{said} ({low} or {high}):"
    assert command.endswith("--set positive=CLASS")
    assert "p = 1 " in run_command(command.replace("CLASS", high))


@pytest.mark.parametrize("first", [{"a": 1}, {"a": "x"}])
def test_columns_that_every_comparison_refuses_have_no_default(first: dict[str, Any], tmp_path: Path) -> None:
    """Regression: it said `by default: accuracy` for objects."""
    rows = [{"id": i, "prediction": first if i else {"a": 2}, "label": first} for i in range(4)]
    (tmp_path / "a").write_text(json.dumps(rows))
    printed = invoke("inspect", str(tmp_path / "a"))
    assert "by default: column `" in printed
    assert "objects" in printed.partition("by default: ")[2].partition("\n")[0]


def test_unusable_columns_have_a_reason(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "x": 1, "s": {"score": 1}},
        {"id": 2, "x": "a", "s": {"score": 0}},
    ]
    (tmp_path / "a").write_text(json.dumps(rows))
    printed = invoke("inspect", str(tmp_path / "a"))
    assert "x cannot be used: it mixes integers (item 0) and text (item 1)\n" in printed
    assert f"could be one system each: s; as in `trackperm inspect {tmp_path / 'a'}::s`\n" in printed
    assert "no built-in statistic reads these columns" in printed
    run_command(invoke("inspect", f"{tmp_path / 'a'}::s"))


@pytest.mark.extended
def test_parts_are_named_and_the_commands_run(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    rows = [{**row, "filter": name} for name in ("strict", "flexible") for row in eval_logs.LM_EVAL]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = invoke("inspect", str(path))
    assert printed.splitlines()[0] == f"{path}: lm-evaluation-harness samples, with 2 filters"
    assert "lm-evaluation-harness samples, part `flexible`" in run_command(printed)


@pytest.mark.extended
@pytest.mark.tracker
def test_runs_of_a_tracker_are_left_as_they_are(tmp_path: Path) -> None:
    store = MlflowStore.local(tmp_path)
    run_id = store.run_with_predictions("digits", "forest")
    printed = invoke("inspect", f"mlflow:{run_id}", "--tracking-uri", store.uri)
    assert printed.startswith(f"mlflow:{run_id}: mlflow run `forest`, 4 examples\n")
    assert "--no-log" in printed.splitlines()[-1]
    other = store.run_with_predictions("digits", "tree")
    run_command(printed, other=f"mlflow:{other}")
    assert not store.comparisons("digits")


def asked_by_default(path: Path) -> str:
    printed = invoke("inspect", str(path))
    assert "p = 1 " in run_command(printed)
    assert printed.splitlines()[-1] == f"  trackperm compare {path} OTHER"
    (line,) = (line for line in printed.splitlines() if line.startswith("by default: "))
    return line.removeprefix("by default: ")


@pytest.mark.extended
def test_metrics_of_the_format_are_the_default(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(json.dumps(row) + "\n" for row in eval_logs.LM_EVAL))
    assert asked_by_default(path) == "mean_exact_match (the metric of the log)"
    path.write_text(json.dumps(eval_logs.INSPECT))
    assert asked_by_default(path) == "match (the metric of the log)"
    samples = [{**row, "epoch": epoch} for epoch in (1, 2) for row in eval_logs.INSPECT["samples"]]
    path.write_text(json.dumps({**eval_logs.INSPECT, "samples": samples}))
    assert asked_by_default(path) == "match (the metric of the log)"


@pytest.mark.extended
def test_two_columns_of_counts_are_two_systems(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_text("8,6\n3,5\n7,7\n")
    command = invoke("inspect", str(path)).splitlines()[-1]
    assert command == f"  trackperm compare {path}::1 {path}::2 -s mean --by-position"
    run_command(command)
    path.write_text("8,2,6,1\n3,3,5,2\n7,1,7,1\n")
    command = invoke("inspect", str(path)).splitlines()[-1]
    assert command == f"  trackperm compare {path}::A {path}::B -s pooled_f1 --by-position"
    run_command(command)


@pytest.mark.extended
def test_truth_values_as_text_are_a_score(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("id,correct\n1,True\n2,False\n")
    assert asked_by_default(tmp_path / "a") == "correct (the only score, `correct`)"
    printed = invoke("inspect", str(tmp_path / "a"))
    assert "could be score: correct\n" in printed
    assert "can be tested: mean, pass_at_1, " in printed


def test_words_of_which_none_says_that_it_is_good(tmp_path: Path) -> None:
    pl.DataFrame({"id": range(8), "winner": ["model", "baseline"] * 4}).write_ndjson(tmp_path / "a")
    said = "`trackperm compare` with `--metric winner=VALUE` compares the shares of a good value"
    assert invoke("inspect", str(tmp_path / "a")).splitlines()[-1] == said


def test_one_column_is_not_proposed_as_prediction_and_label(tmp_path: Path) -> None:
    columns = {"id": range(8), "answer": ["a", "b"] * 4, "grade": ["PASS", "FAIL"] * 4}
    pl.DataFrame(columns).write_ndjson(tmp_path / "a")
    printed = invoke("inspect", str(tmp_path / "a"))
    assert printed.splitlines()[-1].endswith(" --metric grade=PASS")
    assert "can be tested" not in printed


def test_examples_with_several_attempts_are_found_as_by_compare(tmp_path: Path) -> None:
    attempts = {
        "task_id": [f"t{i // 2}" for i in range(8)],
        "sample": [0, 1] * 4,
        "passed": [True, False] * 4,
    }
    pl.DataFrame(attempts).write_ndjson(tmp_path / "a")
    printed = invoke("inspect", str(tmp_path / "a")).splitlines()
    assert "by default: pass_at_1 (the only score, `passed`)" in printed
    assert printed[-1] == f"  trackperm compare {tmp_path / 'a'} OTHER"
    run_command(printed[-1])


@pytest.mark.extended
@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"latency_ms": [0.5, 0.25] * 4}, "--metric latency_ms"),
        ({"verdict": ["WRONG", "WRONG", "WRONG", "CORRECT"] * 2}, "--metric verdict=CORRECT"),
        ({"my verdict": ["pass it", "B"] * 4}, "--metric 'my verdict=pass it'"),
        ({"grade": [*["PASS", "FAIL"] * 3, "PASS", None]}, "--metric grade=PASS --missing drop"),
        (
            {"grade": ["A", "B"] * 4, "jailbroken": ["yes", "no"] * 4, "outcome": ["inaccurate", "meh"] * 4},
            None,
        ),
        ({"prediction": ["Yes"] * 8, "label": ["yes"] * 8}, "-s squad_em"),
        ({"prediction": [["a"], ["b"]] * 4, "label": [["a"], ["a", "b"]] * 4}, "-s multilabel_f1"),
        ({"verdict": ["CORRECT", "WRONG"] * 4, "n_words": [0, 5] * 4}, "--metric verdict=CORRECT"),
        ({"y_true": [i / 2 for i in range(1, 9)], "y_pred": [0.25, 1.5] * 4}, "-s rmse"),
        ({"y_pred": [0.5, 1.5] * 4}, None),
        ({"prediction": ["A", "B"] * 4, "label": [0, 1] * 4}, None),
        ({"logits": [[0.5, 1.5]] * 8, "label": [0, 1] * 4}, None),
    ],
)
def test_examples_are_not_means_of_labels(
    columns: dict[str, Any], options: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"id": range(8), **columns}).write_ndjson("a")
    printed = invoke("inspect", "a")
    command = printed.splitlines()[-1]
    if options is None:
        assert "for example" not in printed
    else:
        assert command == f"  trackperm compare a OTHER {options}"
        run_command(command)


def test_numbers_of_rows_and_constants_are_no_scores(tmp_path: Path) -> None:
    columns = {"family_index": [1, 2] * 4, "threads": [2] * 8, "jaccard_index": [0.5, 0.25] * 4}
    pl.DataFrame({"id": range(8), **columns}).write_ndjson(tmp_path / "a")
    printed = invoke("inspect", str(tmp_path / "a")).splitlines()
    assert "could be score: threads, jaccard_index" in printed
    assert printed[-1].endswith("OTHER --metric jaccard_index")
    with pytest.raises(InputError) as raised:
        invoke("compare", str(tmp_path / "a"), str(tmp_path / "a"))
    assert "`family_index`" not in str(raised.value.hint)


@pytest.mark.parametrize(
    ("scores", "options"),
    [
        ({"score_match": ["C", "I"] * 4}, "--metric score_match=C"),
        ({"topic": ["a", "b"] * 4, "score_judge": ["B", "A"] * 4}, None),
        ({"scores": [{"exact": True}] * 8, "judge_rating": [1, 2] * 4}, "--metric judge_rating"),
        ({"scores": [{"exact": True}] * 8}, None),
    ],
)
def test_durations_and_metadata_are_no_scores(
    scores: dict[str, Any], options: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In data frames of Inspect, and cases of Pydantic's evaluations, scores are words or objects."""
    monkeypatch.chdir(tmp_path)
    measured = {"total_time": [0.5, 0.25] * 4, "retries": [0, 1] * 4, "metadata_difficulty": [1, 2] * 4}
    pl.DataFrame({"id": range(8), **measured, **scores}).write_ndjson("a")
    printed = invoke("inspect", "a")
    if options is None:
        assert "trackperm compare a OTHER" not in printed
    else:
        assert printed.splitlines()[-1] == f"  trackperm compare a OTHER {options}"
        run_command(printed.splitlines()[-1])


@pytest.mark.extended
def test_free_text_beside_scores_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the command asked for accuracy of answers that seldom equal their reference."""
    monkeypatch.chdir(tmp_path)
    answers = ["Oslo", *("The answer is Oslo.",) * 7]
    columns = {"response": answers, "reference": ["Oslo"] * 8, "faithfulness": [i / 8 for i in range(8)]}
    pl.DataFrame({"id": range(8), **columns}).write_ndjson("a")
    printed = invoke("inspect", "a")
    assert "by default: `response` and `reference` of `a` are free text" in printed
    assert printed.splitlines()[-1].endswith("--metric faithfulness")


def test_a_summary_of_the_other_rows(tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    path.write_text("class,recall\ncat,0.5\ndog,0.75\nmacro avg,0.625\n")
    last = invoke("inspect", str(path)).splitlines()[-1]
    assert last.startswith(f"cannot be compared as it is: row 3 of `{path}` has the `class` 'macro avg'")


def test_a_constant_is_no_score(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("id,no_answer_probability\n1,0\n2,0\n")
    assert "--metric no_answer_probability" not in invoke("inspect", str(path))


@pytest.mark.parametrize(
    ("columns", "metric"),
    [
        ({"safe": [1] * 8}, "safe"),
        ({"safety_score": [1.0] * 8, "warmth": [0.5, 0.25] * 4}, "warmth"),
        ({"walkability_index": [8, 70] * 4}, "walkability_index"),
    ],
)
def test_the_only_numbers_are_the_score(columns: dict[str, Any], metric: str, tmp_path: Path) -> None:
    """All examples of a run that does well may have one score; an index may be one as well."""
    pl.DataFrame({"id": range(8), **columns}).write_ndjson(tmp_path / "a")
    assert invoke("inspect", str(tmp_path / "a")).splitlines()[-1].endswith(f"OTHER --metric {metric}")


def test_refuses_as_compare_does(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        invoke("inspect", str(tmp_path / "a"))


@pytest.mark.extended
def test_json_agrees_with_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    QUESTIONS.write_parquet("questions.parquet")
    text = invoke("inspect", "questions.parquet", "-o", "found.json", "-o", "found.txt")
    assert Path("found.txt").read_text() == text
    printed = invoke("inspect", "questions.parquet", "--format", "json")
    assert Path("found.json").read_text() == printed
    found = json.loads(printed)
    assert (found["format"], found["n_examples"]) == ("Parquet", 3)
    assert [(each["name"], each["type"], each["n_null"]) for each in found["columns"]] == [
        ("question_id", "text", 0),
        ("output", "text", 1),
        ("target", "text", 0),
        ("seconds", "decimal", 0),
    ]
    assert found["could_be"]["label"] == ["target"]
    assert f"can be tested: {', '.join(found['statistics'])}\n" in text
    assert shlex.join(found["command"]) == text.splitlines()[-1].strip()


@pytest.mark.extended
def test_examples_with_several_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspection counts examples and not rows, lists their id, and takes no epoch for a score."""
    monkeypatch.chdir(tmp_path)
    samples = [
        eval_logs.inspect_sample(id_, epoch, match="C" if id_ < epoch else "I")
        for id_ in range(4)
        for epoch in (1, 2, 3)
    ]
    eval_logs.write_json(Path("a.json"), eval_logs.inspect_log(samples))
    printed = invoke("inspect", "a.json")
    assert printed.startswith("a.json: Inspect log, 4 examples in 12 rows\n")
    assert "could be id: id\n" in printed
    assert "could be score: score\n" in printed
    found = json.loads(invoke("inspect", "a.json", "--format", "json"))
    assert (found["n_examples"], found["n_rows"]) == (4, 12)
    assert found["could_be"]["id"] == ["id"]
    assert "4 examples" in run_command(printed)


@pytest.mark.extended
def test_metrics_over_all_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said to be the default is what `compare` does: it refuses such a log."""
    monkeypatch.chdir(tmp_path)
    pairs = [["the red fox", "the red cat"], ["a dog", "a dog"]]
    samples = [eval_logs.lm_eval_sample(i, 0.0, metrics=["ter"], ter=pair) for i, pair in enumerate(pairs)]
    for sample in samples:
        del sample["exact_match"]
    eval_logs.write_lines(Path("a.jsonl"), samples)
    printed = invoke("inspect", "a.jsonl")
    assert "metrics over all samples, with no number for each: ter\n" in printed
    assert "by default: no metric of `a.jsonl` has a number for each sample: `ter` is computed" in printed
    assert printed.splitlines()[-1] == "  trackperm compare a.jsonl OTHER -s ter"
    assert "p = 1 " in run_command(printed)


@pytest.mark.extended
def test_declared_directions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = "2026-01-21T03-44-18.458309"
    eval_logs.write_lines(Path(f"samples_sums_{run}.jsonl"), eval_logs.LM_EVAL)
    directions = {"sums": {"exact_match": False}}
    document = {"results": {}, "configs": {}, "higher_is_better": directions}
    eval_logs.write_json(Path(f"results_{run}.json"), document)
    assert "metrics of the log: exact_match (lower is better)\n" in invoke("inspect", ".")
