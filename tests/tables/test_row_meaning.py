"""Rows that are not examples: errors and `inspect` say what they are, and name no column of ids."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.command_line import invoke

import trackperm
from trackperm.errors import InputError
from trackperm.report.notes import cautions_of
from trackperm.tables import read_examples
from trackperm.tables.row_meaning import why_no_examples
from trackperm.tables.table import ExampleTable

TENTHS = [i / 10 for i in range(10)]
PAIRS = [f"q{i // 2}" for i in range(10)]
IN_TURN = [i % 2 for i in range(10)]
METRICS = [("em", "ter")[i] for i in IN_TURN]

NO_EXAMPLES: dict[str, tuple[dict[str, list[Any]], str]] = {
    "cross_validate": (
        {"": [*range(10)], "fit_time": TENTHS, "score_time": TENTHS, "test_accuracy": TENTHS},
        "rows with `fit_time` and `score_time` are folds of a cross-validation",
    ),
    "keras": (
        {"epoch": [*range(10)], "accuracy": TENTHS, "loss": TENTHS},
        "`epoch` numbers the rows of a training",
    ),
    "history": (
        {"_step": [*range(10)], "score": TENTHS},
        "`_step` numbers the rows of a training",
    ),
    "long": (
        {"example_id": PAIRS, "metric": METRICS, "score": TENTHS},
        "rows have values of several metrics, which `metric` names (`em`, `ter`)",
    ),
    "a row for each metric": (
        {"metric": ["BLEU", "chrF2", "TER"], "value": TENTHS[:3]},
        "each row is the value of a metric of the whole run, which `metric` names (`BLEU`, `TER`, `chrF2`)",
    ),
    "sacrebleu": (
        {
            "name": ["BLEU", "TER"],
            "score": TENTHS[:2],
            "signature": ["tok:13a", "tok:tercom"],
        },
        "each row is sacrebleu's score of a whole test set, by the metric in `name`",
    ),
    "ir_measures": (
        {"query_id": PAIRS, "measure": METRICS, "value": TENTHS},
        "rows have values of several metrics, which `measure` names (`em`, `ter`)",
    ),
    "pyterrier": (
        {"qid": PAIRS, "docno": [f"d{i}" for i in range(10)], "rank": IN_TURN, "score": TENTHS},
        "rows are documents, `docno`, that were retrieved for a `qid`",
    ),
    "one document of each query": (
        {"query_id": [*range(10)], "doc_id": PAIRS, "rank": [1] * 10, "score": TENTHS},
        "rows are documents, `doc_id`, that were retrieved for a `query_id`",
    ),
    "recommender": (
        {"user_id": PAIRS, "item_id": [f"d{i}" for i in range(10)], "score": TENTHS},
        "rows are items, `item_id`, that were recommended to a `user_id`",
    ),
    "one item of each user": (
        {"userID": [*range(10)], "itemID": PAIRS, "score": TENTHS, "rank": [1] * 10},
        "rows are items, `itemID`, that were recommended to a `userID`",
    ),
    "verification": (
        {"enroll": PAIRS, "test": [f"t{i}" for i in range(10)], "score": TENTHS},
        "rows are trials of a verification, by `enroll`",
    ),
    "topics": (
        {"topic": PAIRS, "docno": [f"d{i}" for i in range(10)], "score": TENTHS[::-1]},
        "rows are documents, `docno`, that were retrieved for a `topic`",
    ),
    "coco": (
        {"image_id": PAIRS, "bbox": ["[1, 2, 3, 4]"] * 10, "score": TENTHS},
        "rows are boxes, by `bbox`, and their scores are the confidence of a detector",
    ),
    "link prediction": (
        {"head_id": PAIRS, "relation_id": IN_TURN, "tail_id": [*range(10)], "score": TENTHS},
        "rows link `head_id` to `tail_id`",
    ),
    "entity linking": (
        {"mention": PAIRS, "entity": [f"Q{i}" for i in range(10)], "score": TENTHS},
        "rows link `mention` to `entity`",
    ),
    "aggregates of a benchmark": (
        {"name": PAIRS, "run_type": ["iteration", "aggregate"] * 5, "real_time": TENTHS},
        "rows whose `run_type` is `aggregate` are means and deviations of other rows",
    ),
    "summary": (
        {"model": ["old"], "accuracy": [0.81], "f1": [0.7]},
        "the only row of each run is a summary, as `accuracy` is",
    ),
}


@pytest.mark.parametrize(
    "columns",
    [
        {"src": "We went home at noon.", "dst": "Wir gingen mittags nach Hause."},
        {"src": "We went home.", "src_lang": "en", "dst_lang": "de"},
        {"head_yaw": 0.5, "tail_length": 3},
        {"start_time": 1, "end_time": 2, "entity_type": "city"},
        {"image": [f"{i}.png" for i in range(10)], "subject": "cat", "object": "mat", "relation": "on"},
    ],
    ids=["translation", "languages", "head", "times", "image"],
)
def test_columns_that_link_nothing(columns: dict[str, Any]) -> None:
    """Regression: translations in `dst` were told to be links of a graph."""
    run = pl.DataFrame({"id": range(10), "score": TENTHS}).with_columns(
        pl.Series(name, each) if isinstance(each, list) else pl.lit(each).alias(name)
        for name, each in columns.items()
    )
    assert trackperm.compare(run, run).statistic.name == "score"


@pytest.mark.parametrize("kind", NO_EXAMPLES)
def test_rows_that_are_not_examples(kind: str, tmp_path: Path) -> None:
    columns, reason = NO_EXAMPLES[kind]
    path = tmp_path / "run.csv"
    pl.DataFrame(columns).write_csv(path)
    with pytest.raises(InputError) as caught:
        trackperm.compare(path, path)
    hint = str(caught.value.hint)
    assert hint.startswith(reason)
    assert not {"--id", "--by-position", "--repeats"} & {*re.findall("--[a-z-]+", hint)}
    found = invoke("inspect", str(path))
    assert f"cannot be compared as it is: {reason}" in found
    assert "trackperm compare" not in found


@pytest.mark.parametrize("options", [{}, {"metric": "f1"}])
def test_summaries_are_not_compared_as_one_example(options: dict[str, Any]) -> None:
    """Regression: by position, two summaries of one row were a comparison of one example."""
    run = pl.DataFrame(NO_EXAMPLES["summary"][0])
    with pytest.raises(InputError, match="each run has only one row") as caught:
        trackperm.compare(run, run.with_columns(f1=0.9), by_position=True, **options)
    assert "compare files with a row for each example" in str(caught.value.hint)
    example = run.with_columns(prediction=pl.lit("a"), label=pl.lit("a"))
    assert trackperm.compare(example, example, by_position=True, **options).n_examples == 1


CURVE = "look: `{}` numbers the rows of a training, which are not examples"


@pytest.mark.parametrize("name", ["epoch", "  step"])
@pytest.mark.parametrize("by_position", [True, False])
def test_curves_of_a_training_have_a_caution(name: str, by_position: bool) -> None:
    """Each epoch of a better training is better: 40 of them were a difference with p = 1e-12."""
    options: dict[str, Any] = {"by_position": True} if by_position else {"columns": {"id": name}}
    run = pl.DataFrame({name: [*range(10)], "accuracy": TENTHS})
    found = trackperm.compare(run, run.with_columns(pl.col("accuracy") + 0.01), metric="accuracy", **options)
    assert any(said.startswith(CURVE.format(name.strip())) for said in cautions_of(found))
    examples = run.with_columns(id=pl.Series([f"q{i}" for i in range(10)]))
    assert not cautions_of(trackperm.compare(examples, examples, metric="accuracy"))


def test_the_line_keeps_the_rows_of_one_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(NO_EXAMPLES["long"][0]).with_columns(code=pl.lit("007")).write_csv("run.csv")
    reason = why_no_examples([read_examples(Path("run.csv"))])
    code = re.search("`(pl[.].*)` of polars", str(reason))
    assert code is not None
    eval(code[1], {"pl": pl})
    kept = read_examples(Path("one_metric.csv"))
    assert len(kept) == 5
    assert kept.polars_column("code")[0] == "007"
    assert why_no_examples([kept]) is None


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"id": PAIRS, "epoch": IN_TURN, "score": TENTHS}, "epochs of an example"),
        ({"step": [*range(10)], "prediction": PAIRS, "label": PAIRS}, "predictions, which examples have"),
        ({"step": [*range(10)]}, "no measurement"),
        ({"doc": [i // 2 for i in range(10)], "epoch": IN_TURN, "score": TENTHS}, "epochs that repeat"),
        ({"step": [*range(10)], "comment": PAIRS}, "text"),
        ({"id": PAIRS, "metric": ["em"] * 10, "score": TENTHS}, "one metric"),
        ({"id": PAIRS, "scorer": [f"m{i}" for i in range(10)], "score": TENTHS}, "one row of each"),
        ({"id": [*range(10)], "scorer": METRICS, "correct": IN_TURN}, "passes by a scorer of its own"),
        ({"id": [*range(10)], "scorer": METRICS, "correct": ["True", "no"] * 5}, "the same as text"),
        ({"qid": TENTHS, "doc_id": PAIRS, "score": TENTHS}, "one document of each query"),
        ({"qid": PAIRS, "doc_id": TENTHS, "answer": PAIRS, "score": TENTHS}, "an answer"),
        ({"topic": PAIRS, "doc_id": TENTHS, "score": TENTHS}, "scores that rise within a topic"),
        ({"user_id": PAIRS, "message": PAIRS, "score": TENTHS}, "messages of users"),
        ({"user_id": PAIRS, "product_id": TENTHS, "question": PAIRS, "score": TENTHS}, "questions of users"),
        ({"id": TENTHS, "user": PAIRS, "item": TENTHS, "score": TENTHS}, "an id of the rows"),
        ({"user_id": PAIRS, "item_id": TENTHS, "label": IN_TURN, "score": TENTHS}, "labels of classes"),
        ({"user_id": PAIRS, "item_id": TENTHS, "review": [*"abcdefghij"], "score": TENTHS}, "reviews"),
        ({"user": PAIRS, "item": TENTHS, "score": [1, 2, 3, 4, 5] * 2}, "ratings by users"),
        ({"enroll": PAIRS, "label": IN_TURN, "score": TENTHS}, "labels of trials"),
        ({"head": PAIRS, "tail": TENTHS, "label": IN_TURN, "score": TENTHS}, "labels of links"),
        ({"subject": PAIRS, "object": TENTHS, "score": TENTHS}, "a subject without a relation"),
        ({"mention": PAIRS, "entity": TENTHS, "judge": PAIRS, "score": TENTHS}, "judged links"),
        ({"user_id": TENTHS, "item_id": PAIRS, "score": TENTHS}, "one item of each user"),
        ({"id": PAIRS, "metric": IN_TURN, "score": TENTHS}, "numbers"),
        ({"id": PAIRS, "metric": [[name] for name in METRICS], "score": TENTHS}, "lists"),
        ({"doc_id": [*range(10)], "score": TENTHS}, "no query"),
        ({"id": PAIRS, "bbox": PAIRS, "iou": TENTHS}, "no confidence"),
        ({"id": TENTHS, "run_type": ["iteration"] * 10, "score": TENTHS}, "no aggregates"),
    ],
)
def test_rows_that_may_be_examples(columns: Any, why: str) -> None:
    table = ExampleTable.from_native(pl.DataFrame(columns), "run")
    assert why_no_examples([table, table]) is None, why


@pytest.mark.parametrize("score", [["good", "bad"] * 5, [["1"]] * 10, TENTHS])
def test_scores_of_several_metrics(score: list[Any]) -> None:
    run = pl.DataFrame({"id": [*range(10)], "scorer": METRICS, "correct": score})
    table = ExampleTable.from_native(run, "run")
    assert str(why_no_examples([table, table])).startswith("rows have values of several metrics")


@pytest.mark.parametrize("names", [("user_id", "item_id"), ("query_id", "doc_id")])
def test_relevance_beside_retrieved_documents(names: tuple[str, str]) -> None:
    query, document = names
    columns = {query: PAIRS, document: [*range(10)], "score": TENTHS[::-1], "is_relevant": IN_TURN}
    run = pl.DataFrame(columns)
    with pytest.raises(InputError) as caught:
        trackperm.compare(run, run)
    assert f"`--metric is_relevant` with `--id {query}` and `--repeats mean`" in str(caught.value.hint)
    found = trackperm.compare(run, run, metric="is_relevant", columns={"id": query}, repeats="mean")
    assert found.n_examples == 5


def test_comments_of_links() -> None:
    """A judge writes other comments on other answers; those of data are the same in both runs."""
    tables = [
        ExampleTable.from_native(
            pl.DataFrame({"head": PAIRS, "tail": TENTHS, "comment": comments, "score": TENTHS}), "run"
        )
        for comments in ([*"abcdefghij"], [*"jihgfedcba"], [*"klmnopqrst"])
    ]
    assert "rows link `head` to `tail`" in str(why_no_examples(tables[:2]))
    assert why_no_examples(tables[1:]) is None
