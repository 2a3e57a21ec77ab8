"""Column of ids beside numbers of rows: the same examples are paired in whatever order the rows are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support.engines import each_engine, native

import trackperm
from trackperm.comparison.question.example_columns import identifying_column
from trackperm.errors import PairingError
from trackperm.tables.table import ExampleTable

N = 40
RNG = np.random.default_rng(5)
ORDERS = [RNG.permutation(N) for _ in range(2)]
SCORES = RNG.integers(0, 2, N), RNG.integers(0, 2, N)


def runs(rows: str, examples: str, first: str = "rows", values: Any = None) -> list[pl.DataFrame]:
    """Return two runs with rows in other orders, which `rows` numbers, and with the ids of the examples."""
    values = [f"q{i}" for i in range(N)] if values is None else values
    found = []
    for scores, order in zip(SCORES, ORDERS, strict=True):
        columns = {rows: range(N), examples: [values[i] for i in order]}
        columns = columns if first == "rows" else dict(reversed(columns.items()))
        found.append(pl.DataFrame({**columns, "correct": scores[order]}))
    return found


def id_of(*frames: Any) -> str:
    return identifying_column([ExampleTable.from_native(frame, "run") for frame in frames])[0]


TRUTH = trackperm.compare(*(frame.drop("row_id") for frame in runs("row_id", "question_id"))).pvalue

NAMES = [
    (rows, examples)
    for rows in ("index", "idx", "id", "sample_id", "row_id", "record_id", "request_id")
    for examples in ("problem_id", "case_id", "prompt_hash")
]


@pytest.mark.sample(14)
@pytest.mark.parametrize("first", ["rows", "examples"])
@pytest.mark.parametrize(
    ("rows", "examples"),
    [pytest.param(*names, marks=() if i % 5 == 0 else pytest.mark.sample) for i, names in enumerate(NAMES)],
)
def test_numbers_of_rows_are_no_ids(rows: str, examples: str, first: str):
    found = trackperm.compare(*runs(rows, examples, first))
    assert found.pvalue == TRUTH
    assert any(note.startswith(f"id: column `{examples}`") for note in found.pairing.notes)


def test_the_note_says_what_numbers_rows():
    found = trackperm.compare(*runs("id", "problem_id"))
    assert "id: column `problem_id`; `id` numbers the rows of each run" in found.pairing.notes


@pytest.mark.parametrize(("rows", "expected"), [("id", "question_id"), ("question_id", "question_id")])
def test_numbers_of_examples(rows: str, expected: str):
    """Numbers of questions are rather ids than those called `id` in the order of rows; not those of cases."""
    other = "question_id" if rows == "id" else "case_id"
    assert id_of(*runs(rows, other, values=range(N))) == expected


@pytest.mark.sample(3)
@pytest.mark.parametrize("labels", ["xyz", "x", range(N)], ids=["classes", "one class", "numbers"])
@pytest.mark.parametrize("examples", ["problem_id", "session_id"])
def test_labels_tell_which_ids_are_of_examples(examples: str, labels: Any):
    """Labels that agree by numbers alone show that these pair the same examples, and none where all agree."""
    targets = [labels[i % len(labels)] for i in range(N)]
    frames = [frame.with_columns(target=pl.Series(targets)) for frame in runs("id", examples)]
    other = [
        frame.with_columns(target=pl.Series([targets[i] for i in order]))
        for frame, order in zip(runs("id", examples), ORDERS, strict=True)
    ]
    assert id_of(*frames) == (examples if labels == "x" else "id")
    assert id_of(*other) == examples
    assert trackperm.compare(*other).pvalue == TRUTH
    assert trackperm.compare(*frames).statistic.columns["id"] == id_of(*frames)


def test_few_moved_ids():
    """Calls that come back nearly in order move few ids; where they may be those of outputs, it is open."""
    for examples in ("problem_id", "case_id"):
        first = pl.DataFrame({"id": range(N), examples: [f"q{i}" for i in range(N)], "correct": SCORES[0]})
        order = [1, 0, 3, 2, *range(4, N)]
        second = first.with_columns(pl.Series(examples, [f"q{i}" for i in order]), correct=SCORES[1][order])
        if examples == "problem_id":
            assert trackperm.compare(first, second).pvalue == TRUTH
        else:
            with pytest.raises(PairingError, match="`case_id` differs between the runs on 4 of 40 examples"):
                trackperm.compare(first, second)


def test_questions_are_ids_rather_than_what_was_retrieved():
    frames = [
        pl.DataFrame(
            {
                "question": [f"Which is the year of case {i}?" for i in range(N)],
                "retrieved_id": [f"d{i}" for i in order],
                "correct": scores,
            }
        )
        for scores, order in zip(SCORES, ORDERS, strict=True)
    ]
    assert trackperm.compare(*frames).statistic.columns["id"] == "question"


@pytest.mark.sample(4)
@pytest.mark.parametrize("calls", ["request_id", "trace_id", "run_id", "session_id", "response_id"])
@pytest.mark.parametrize("has_index", [False, True])
def test_ids_of_calls_that_no_run_shares(calls: str, has_index: bool):
    """Each run has its own, so that no example had a partner, beside the questions of both."""
    frames = [
        frame.with_columns(pl.Series(calls, [f"{run}{i}" for i in range(N)]))
        for run, frame in zip("ab", runs("index", "question"), strict=True)
    ]
    frames = frames if has_index else [frame.drop("index") for frame in frames]
    assert id_of(*frames) == "question"
    assert trackperm.compare(*frames).pvalue == TRUTH
    reworded = [frame.with_columns(pl.col("question") + f" {i}") for i, frame in enumerate(frames)]
    assert id_of(*reworded) == ("index" if has_index else calls)


@pytest.mark.parametrize("name", ["answer_id", "best_match_id", "winner_id"])
@pytest.mark.parametrize("rows", ["id", "idx"])
def test_ids_that_may_be_those_of_outputs(rows: str, name: str):
    """Regression: outputs that were exchanged between examples paired the rows, and it is open what they are.

    They are never ids before the input.
    """
    frames = [
        pl.DataFrame({rows: range(N), name: [f"d{i}" for i in order], "correct": scores})
        for scores, order in zip(SCORES, ORDERS, strict=True)
    ]
    with pytest.raises(PairingError, match=f"`{name}` differs between the runs"):
        trackperm.compare(*frames)
    frames = [
        frame.with_columns(question=pl.Series([f"Which is case {i}?" for i in range(N)])) for frame in frames
    ]
    assert id_of(*frames) == rows
    assert id_of(*(frame.drop(rows) for frame in frames)) == "question"
    assert id_of(*(frame.select(name, "correct") for frame in frames)) == name


def test_documents_that_systems_retrieve_are_no_ids():
    """Regression: `doc_id` paired the examples, as one of four other documents was that of another query."""
    frames = [pl.DataFrame({"id": range(N), "doc_id": range(N), "correct": scores}) for scores in SCORES]
    others = frames[1].with_columns(pl.col("doc_id").cast(pl.String).replace({"3": "9", "7": "x", "9": "y"}))
    found = trackperm.compare(frames[0].with_columns(pl.col("doc_id").cast(pl.String)), others)
    assert (found.statistic.columns["id"], found.n_examples) == ("id", N)


def test_an_id_that_was_named_is_kept():
    found = trackperm.compare(*runs("id", "problem_id"), columns={"id": "id"})
    assert found.statistic.columns["id"] == "id"
    assert any(note.startswith("look: `problem_id` differs between the runs") for note in found.pairing.notes)


@pytest.mark.parametrize(
    "others",
    [
        lambda run: {"problem_id": [f"q{i}" for i in range(N)]},  # agrees with the numbers
        lambda run: {"trace_id": [f"{run}-{i}" for i in range(N)]},
        lambda run: {"prompt_id": [f"{run}-{i}" for i in range(N)]},  # that no run shares
        lambda run: {"document_id": [f"d{i // 2}" for i in RNG.permutation(N)]},  # of several rows
        lambda run: {"request_id": RNG.permutation(N)},
        lambda run: {"retrieved_id": [f"d{i}" for i in RNG.permutation(N)]},
        lambda run: {"top_doc_id": [f"d{i}" for i in RNG.permutation(N)]},
        lambda run: {"output_hash": [f"{i:08x}" for i in RNG.permutation(N)]},
        lambda run: {"predicted_id": [f"d{i}" for i in RNG.permutation(N)]},
        lambda run: {"guessed_title": [f"Case {i}" for i in RNG.permutation(N)]},
        lambda run: {"answer_id": RNG.permutation(N), "question": [f"Which is case {i}?" for i in range(N)]},
        lambda run: {
            "entity_id": [*(("e2", "x", "y") if run else ("e0", "e1", "e2")), *map(str, range(3, N))]
        },
        lambda run: {
            "question": [f"Which is the year of case {i}?" for i in range(N)],
            "case_id": [f"c{i}" for i in RNG.permutation(N)],
        },
    ],
    ids=[
        *("agreeing", "of calls", "of one run", "clusters", "numbers of calls", "retrieved", "of a document"),
        *("of outputs", "predicted", "guessed", "answers beside questions", "of one other example"),
        "beside equal questions",
    ],
)
def test_other_ids_that_contradict_nothing(others: Callable[[int], dict[str, Any]]):
    frames = [pl.DataFrame({"id": range(N), "correct": SCORES[i], **others(i)}) for i in range(2)]
    found = trackperm.compare(*frames)
    assert found.statistic.columns["id"] == "id"
    assert not any("differs" in note for note in found.pairing.notes)


def test_examples_that_a_run_lacks():
    first, second = runs("index", "instance_id")
    second = second.filter(pl.col("correct") == 1).with_columns(index=pl.int_range(pl.len()))
    found = trackperm.compare(first, second, missing="drop")
    assert found.pairing.n_paired == len(second)
    kept = first.join(second, on="instance_id", how="semi")
    assert found.baseline_score == kept["correct"].mean()


@pytest.mark.parametrize(
    ("rows", "name", "expected"),
    [
        (range(N), "problem_id", "problem_id"),
        (range(N), "question", "question"),
        ([i // 4 for i in range(N)], "question", "index"),
    ],
)
def test_attempts_beside_numbers_of_rows(rows: Any, name: str, expected: str):
    tasks, attempts = [f"t{i // 4}" for i in range(N)], [i % 4 for i in range(N)]
    frames = [
        pl.DataFrame({"index": rows, name: tasks, "attempt": attempts, "correct": scores})
        for scores in SCORES
    ]
    found = trackperm.compare(*frames)
    assert (found.statistic.columns["id"], found.n_examples) == (expected, N // 4)


def test_inputs_beside_numbers_of_rows():
    assert id_of(*runs("index", "question")) == "question"
    assert id_of(*[pl.DataFrame({"index": range(N), "question": [f"q{i}" for i in range(N)]})] * 2) == "index"
    reworded = [
        frame.with_columns(pl.col("question") + f" {i}") for i, frame in enumerate(runs("index", "question"))
    ]
    assert id_of(*reworded) == "index"
    numbered = [
        frame.with_columns(idx=pl.lit(order))
        for frame, order in zip(runs("index", "question"), ORDERS, strict=True)
    ]
    assert id_of(*numbered) == "idx"


def runs_of_pairs(rows: str, *names: str, **others: Any) -> list[pl.DataFrame]:
    """Return two runs in which `rows` numbers the rows and two columns identify them together."""
    found = []
    for i, (scores, order) in enumerate(zip(SCORES, ORDERS, strict=True)):
        parts = [f"c{j // 4}" for j in order], [int(j) % 4 for j in order]
        columns = {rows: range(N), **dict(zip(names, parts, strict=True)), "correct": scores[order]}
        found.append(pl.DataFrame({**columns, **{name: of(i, order) for name, of in others.items()}}))
    return found


PAIRS = [
    ("conversation_id", "turn"),
    ("document_id", "sentence_id"),
    ("task", "sample"),
    ("user_id", "session"),
    ("doc", "line"),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("names", PAIRS)
@pytest.mark.parametrize("rows", ["idx", "index", "id"])
def test_two_columns_that_identify_the_examples_together(rows: str, names: tuple[str, str]):
    """Regression: rows in another order were paired by their numbers beside a conversation and a turn."""
    frames, id_ = runs_of_pairs(rows, *names), ",".join(names)
    with pytest.raises(PairingError, match=f"`{id_}` differs between the runs on") as raised:
        trackperm.compare(*frames)
    assert raised.value.hint is not None
    assert f"`--id {id_}` pairs the same" in raised.value.hint
    assert f"`--id {rows}` compares these pairs nevertheless" in raised.value.hint
    if "sample" not in names:  # else each row is an attempt
        assert trackperm.compare(*frames, columns={"id": id_}).pvalue == TRUTH
    named = trackperm.compare(*frames, columns={"id": rows})
    assert any(note.startswith(f"look: `{id_}` differs") for note in named.pairing.notes)
    fewer = frames[1].filter(pl.col("correct") == 1).with_columns(pl.int_range(pl.len()).alias(rows))
    for pair in ((frames[0], fewer), (fewer, frames[0])):
        with pytest.raises(PairingError, match="` differs between the runs on"):
            trackperm.compare(*pair, missing="drop")


def test_attempts_at_questions_in_another_order(tmp_path: Path):
    frames = runs_of_pairs("id", "question", "sample")
    paths = [tmp_path / f"{i}.parquet" for i in range(2)]
    for path, frame in zip(paths, frames, strict=True):
        frame.write_parquet(path)
    for pair in (frames, paths):
        with pytest.raises(PairingError, match="`question,sample` differs between the runs on"):
            trackperm.compare(*pair)
    assert trackperm.compare(*frames, columns={"id": "question,sample"}).n_examples == N // 4
    assert id_of(*(frame.rename({"id": "idx"}) for frame in frames)) == "question"


@pytest.mark.parametrize("name", ["file", "url", "title", "code"])
def test_one_column_of_other_names_that_identifies_the_examples(name: str):
    frames = runs("idx", name)
    with pytest.raises(PairingError, match=f"`{name}` differs between the runs on"):
        trackperm.compare(*frames)
    assert trackperm.compare(*frames, columns={"id": name}).pvalue == TRUTH


@pytest.mark.parametrize(
    "others",
    [
        {"label": lambda i, order: [f"l{j}" for j in range(N)]},  # agree by numbers alone
        {"conversation_id": lambda i, order: [f"c{j // 4}" for j in range(N)]},
        {"turn": lambda i, order: [0] * N},
        {"turn": lambda i, order: RNG.integers(0, 4, N)},
        {"conversation_id": lambda i, order: [f"{i} {j // 4}" for j in order]},  # each run has its own
    ],
    ids=["labels", "other", "constant", "repeated", "of one run"],
)
def test_two_columns_that_contradict_nothing(others: dict[str, Any]):
    frames = runs_of_pairs("idx", "conversation_id", "turn", **others)
    assert trackperm.compare(*frames).statistic.columns["id"] == "idx"


@pytest.mark.parametrize(
    "names",
    [("prediction", "n"), ("language", "rank"), ("topic", "score"), ("output_id", "turn"), ("n", "k")],
)
def test_outputs_are_no_part_of_an_id(names: tuple[str, str]):
    frames = [
        frame.with_columns(pl.Series(names[0], ints)) if names == ("n", "k") else frame
        for frame, ints in zip(runs_of_pairs("idx", *names), [order // 4 for order in ORDERS], strict=True)
    ]
    assert trackperm.compare(*frames, metric="correct").statistic.columns["id"] == "idx"


@pytest.mark.sample(4)
@each_engine
def test_each_data_frame_library(engine: str):
    frames = [native(engine, frame.to_dict(as_series=False)) for frame in runs("id", "instance_id")]
    assert trackperm.compare(*frames).pvalue == TRUTH


@pytest.mark.parametrize("orient", ["index", "columns"])
@pytest.mark.parametrize("name", ["question_id", "problem_id", "text"])
def test_names_of_rows_that_pandas_writes(name: str, orient: Any, tmp_path: Path):
    paths = [tmp_path / f"{i}.json" for i in range(2)]
    for path, frame in zip(paths, runs("row_id", name), strict=True):
        path.write_text(frame.drop("row_id").to_pandas().to_json(orient=orient))
    assert trackperm.compare(*paths).pvalue == TRUTH


def test_attempts_that_pandas_writes(tmp_path: Path):
    for i in range(2):
        tasks = {"task_id": [f"t{j // 4}" for j in range(N)], "attempt": [j % 4 for j in range(N)]}
        pd.DataFrame({**tasks, "correct": SCORES[i]}).to_json(tmp_path / f"{i}.json")
    assert trackperm.compare(tmp_path / "0.json", tmp_path / "1.json").n_examples == N // 4


def test_numbers_of_which_none_is_clearly_the_id():
    """Rows that were sorted after numbering: a log does not say which of two ids each run gave anew."""
    frames = [frame.sort("question_id") for frame in runs("id", "question_id", values=range(N))]
    with pytest.raises(PairingError, match="`question_id` differs between the runs") as raised:
        trackperm.compare(*frames)
    assert raised.value.hint == (
        "The ids were given anew: `--id question_id` pairs the same ids. `--id id` compares these pairs"
        " nevertheless."
    )
    named = trackperm.compare(*frames, columns={"id": "question_id"})
    assert named.pvalue == TRUTH
    assert not any("differs" in note for note in named.pairing.notes)
