"""Counters in specs: what may stand where, which examples are refused, and what columns they read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.specs import load, refusal, underlined

import trackperm
from trackperm.choices import EngineName
from trackperm.errors import InputError, InputTypeError, SpecError, UncountableError
from trackperm.pairing.digests import _list_words
from trackperm.pairing.pair import pair
from trackperm.statistic import ColumnType, builtin_names, load_statistic
from trackperm.statistic.count_expressions import (
    count_expressions,
    missing_count_expressions,
    with_counters_of,
)
from trackperm.statistic.counters import COUNTERS
from trackperm.statistic.expressions.functions import POLARS
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.table import ExampleTable

TEXTS, INTEGERS, TEXT = ColumnType.TEXT_LIST, ColumnType.INTEGER_LIST, ColumnType.TEXT

SPECS = {
    "score: n_tokens(label) / n": ("`n_tokens` can only be used in `counts`", "n_tokens(label)"),
    "counts: {c: n_tokens(u.label)}\nscore: c": ("`u.label` cannot be used in a count", "u.label"),
    "counts: {c: n_tokens(label + 1)}\nscore: c": ("takes a column, not `label + 1`", "label + 1"),
    "counts: {c: n_tokens('label')}\nscore: c": ("takes a column, not text `'label'`", "'label'"),
    "counts: {c: 'n_tokens(label, label)'}\nscore: c": ("takes 1 arguments, not 2", "n_tokens(label, label)"),
    "counts: {c: span_actual(prediction) + n_token(label)}\nscore: c": (
        "unknown function `n_token`",
        "n_token",
    ),
    "counts:\n  c: span_actual(label, 'IOB1')\nscore: c": ("does not know text `'IOB1'`", "'IOB1'"),
    "counts:\n  c: span_actual(label, prediction)\nscore: c": (
        "does not know column `prediction`",
        "prediction",
    ),
    "parameters: {s: 2}\ncounts:\n  c: span_actual(label, s)\nscore: c": (
        "does not know integer parameter `s` (2)",
        "s",
    ),
    "counts:\n  c: n_ngrams(label, 2.0)\nscore: c": ("does not know decimal `2.0`", "2.0"),
    "counts:\n  c: n_ngrams(label, 5)\nscore: c": ("`n_ngrams` does not know integer `5`", "5"),
    "counts:\n  c: ngram_matches(prediction, label, 'two')\nscore: c": (
        "does not know text `'two'`",
        "'two'",
    ),
    "counts: {c: n_tokens(label) / 2}\nscore: c": ("`/` does not give integers", "n_tokens(label) / 2"),
    "counts: {c: n_tokens(label) & 1}\nscore: c": ("not integer `n_tokens(label)`", "n_tokens(label)"),
}


@pytest.mark.parametrize("spec", SPECS)
def test_refused_with_a_place(spec: str, tmp_path: Path) -> None:
    problem, place = SPECS[spec]
    text = spec if "counts" in spec else f"counts: {{n: 1}}\n{spec}"
    message = refusal(tmp_path, text + "\n")
    assert problem in message
    assert underlined(message) == place


def test_hint_of_an_unknown_function(tmp_path: Path) -> None:
    message = refusal(tmp_path, "counts: {c: token_match(label)}\nscore: c\n")
    assert "counters are" in message
    assert "Did you mean `token_matches`?" in message


TYPES = [
    (
        "token_matches(prediction, label)",
        INTEGERS,
        TEXTS,
        "list of integers column `prediction` is counted with",
    ),
    ("token_matches(prediction, label)", TEXT, INTEGERS, "text column `prediction` is counted with"),
    ("token_matches(prediction, label)", ColumnType.INTEGER, TEXT, "not integer column `prediction`"),
    ("span_tp(prediction, label)", TEXT, INTEGERS, "takes list of text or text, not list of integers"),
    (
        "character_edit_operations(prediction, label)",
        TEXT,
        TEXTS,
        "takes text, not list of text column `label`",
    ),
    ("prediction == label", TEXTS, TEXTS, "list of text column `prediction` can only be read by a counter"),
    (
        "(label == 'a') & prediction",
        INTEGERS,
        TEXT,
        "list of integers column `prediction` can only be read by",
    ),
]


@pytest.mark.parametrize(("count", "prediction", "label", "problem"), TYPES)
def test_types_that_do_not_fit(
    count: str, prediction: ColumnType, label: ColumnType, problem: str, tmp_path: Path
) -> None:
    statistic = load(tmp_path, f"counts:\n  c: {count}\nscore: c\n")
    with pytest.raises(SpecError) as caught:
        count_expressions(statistic, {"prediction": prediction, "label": label})
    assert problem in caught.value.message
    assert "spec.yaml:2:" in caught.value.message


@pytest.mark.parametrize("types", [(TEXT, TEXT), (TEXT, TEXTS), (TEXTS, TEXTS), (INTEGERS, INTEGERS)])
def test_types_that_fit(types: tuple[ColumnType, ColumnType], tmp_path: Path) -> None:
    statistic = load(tmp_path, "counts: {c: 'token_matches(prediction, label)'}\nscore: c\n")
    assert list(count_expressions(statistic, dict(zip(("prediction", "label"), types, strict=True)))) == ["c"]


def run(prediction: Any, label: Any, origin: str = "base") -> ExampleTable:
    ids = [f"e{i}" for i in range(len(label))]
    return ExampleTable.from_native(
        pl.DataFrame({"id": ids, "prediction": prediction, "label": label}, strict=False), origin
    )


REFUSED = {
    "other lengths": (
        "token_accuracy",
        ["a", "a b"],
        ["b", "b"],
        "`prediction` has 2 items and `label` has 1",
    ),
    "spans of other lengths": (
        "span_f1",
        ["O", ""],
        ["O", "O"],
        "`prediction` has 0 items and `label` has 1",
    ),
    "a null in a list": (
        "las",
        [["1:a"], ["1:a", None]],
        [["1:a"]] * 2,
        "the list in `prediction` contains a null",
    ),
    "no tag": ("span_f1", ["O", "PER"], ["O", "O"], "'PER' in `prediction` is not a tag"),
    "no tag of the label": ("span_recall", ["O", "O"], ["O", "B_PER"], "'B_PER' in `label` is not a tag"),
    "no head": ("uas", ["1", "x"], ["1", "2"], "'x' in `prediction` is not a head"),
    "no relation": ("las", ["1:a", "1:"], ["1:a", "2:b"], "'1:' in `prediction` is not a head and relation"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_examples_that_cannot_be_counted(case: tuple[str, Any, Any, str]) -> None:
    name, prediction, label, problem = case
    good = run(label, label) if "label" not in problem.split("is no")[0] else run(prediction, label)
    with pytest.raises(InputError) as caught:
        pair(good, run(prediction, label, "cand"), load_statistic(name))
    assert f"`{name}` cannot be counted on example 'e1' of " in caught.value.message
    assert problem in caught.value.message


WRITTEN = "a list that is written as text"
SEPARATED = "whose items are not separated by spaces"
BESIDE = "which has spaces, and `{}` is text, which is read as its words"
ALONE = "which has spaces, and no list of this column has more items"
MULTI_HOT = "holds lists of 0 and 1, one for each label"
DIFFERENT_TAGS = [f"B-{i}" for i in range(11)]
SENTENCES = [[f"cat {i}"] for i in range(11)]
OTHER_SHAPES: dict[str, tuple[str, Any, Any, str]] = {
    "a token in a row": ("span_f1", "B-X", [*DIFFERENT_TAGS, "I-X"], "'I-X', which continues a span"),
    "one list of 0 and 1": ("multilabel_f1", [[0, 1, 1]], [[1, 0, 0]], MULTI_HOT),
    "lists of 0 and 1 as text": ("multilabel_f1", "0 1 1", ["1 0 0", "1 1 1"], MULTI_HOT),
    "a list of Python": ("multilabel_f1", "a", ["['b', 'a']", "[]"], WRITTEN),
    "a set of Python": ("multilabel_f1", "a", ["{'b', 'a'}"], WRITTEN),
    "a list of JSON": ("mrr", '["b"]', ["a"], WRITTEN),
    "answers as a list": ("squad_em", "Paris", ["['Paris', 'Paris, France']"], WRITTEN),
    "tags as a list": ("span_f1", "['O']", ["['O']"], WRITTEN),
    "commas": ("multilabel_f1", "a,c", ["a", "a,b"], SEPARATED),
    "bars": ("ndcg", "d1|d2", ["d1"], SEPARATED),
    "tags between commas": ("token_accuracy", "O,B-X", ["O,B-X", "O,O"], SEPARATED),
    "a title beside titles": (
        "mrr",
        [["Paris", "New York"]] * 2,
        ["Paris", "New York"],
        BESIDE.format("label"),
    ),
    "a title to rank": ("ndcg", "New York", [["New York"]], BESIDE.format("prediction")),
    "a label beside labels": ("multilabel_f1", "New York", [["New York"]], BESIDE.format("prediction")),
    "tags of a sentence": ("span_f1", "O O", [["O O"]], BESIDE.format("prediction")),
    "tags in one item": ("token_accuracy", [["O O"]], ["O"], BESIDE.format("label")),
    "a reference in a list": ("bleu", "the cat", [["a"], ["the cat"]], BESIDE.format("prediction")),
    "references": ("word_error_rate", "the cat", [["the cat", "a cat"]], BESIDE.format("prediction")),
    "an output in a list": ("word_error_rate", [["the cat"]], ["the cat"], BESIDE.format("label")),
    "sentences in lists": ("word_error_rate", SENTENCES, SENTENCES, ALONE),
    "references of sentences": ("bleu", SENTENCES, [["the cat", "a cat"]] * 11, ALONE),
    **{
        f"lists as text, by {name}": (name, '["a"]', ['["a"]', '["b"]'], WRITTEN)
        for name in ("token_accuracy", "bleu", "word_error_rate", "chrf", "ter", "character_error_rate")
    },
    **{
        f"references as text, by {name}": (name, "a b", ['["a b", "a"]', "['b']"], WRITTEN)
        for name in ("bleu", "word_error_rate", "chrf", "ter", "character_error_rate")
    },
}


@pytest.mark.sample(16)
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("case", OTHER_SHAPES.values(), ids=OTHER_SHAPES)
def test_items_of_another_shape(case: tuple[str, Any, Any, str], engine: EngineName) -> None:
    """They would be counted as other items than were meant, without an error."""
    name, prediction, label, problem = case
    predictions = [prediction] * len(label) if isinstance(prediction, str) else prediction
    tables = run(predictions, label), run(predictions, label, "cand")
    with pytest.raises(InputError, match=problem):
        pair(*tables, load_statistic(name), engine=engine)


ITEMS: dict[str, tuple[str, Any, Any]] = {
    "tokens by the row": ("span_f1", "O", ["B-X", "S-X", "O"] * 4),
    "few sentences of a token": ("span_f1", "I-X", ["I-X", "O"]),
    "the labels 0 and 1": ("multilabel_f1", [[0, 1]] * 3, [[0], [1], [0, 1]]),
    "lists of commas": ("multilabel_f1", [["a,b"]], [["a,b", "c"]]),
    "words with commas": ("multilabel_f1", "New York,NY c", ["a"]),
    "a word with a comma": ("multilabel_f1", "Paris", ["Washington,DC", "Paris", "Rome"]),
    "an item with bars": ("mrr", "sp|P1|N sp|P2|N", ["sp|P1|N"]),
    "answers that are lists": ("squad_em", "[1]", ["[1]", "[2]"]),
    "an answer in brackets": ("squad_em", "[x]", ["[x]", "y"]),
    "text in brackets": ("token_accuracy", "[noise]", ["[noise]"]),
    "numbers in brackets": ("character_error_rate", "[1, 2]", ["[1, 3]"]),
    "one list as text": ("word_error_rate", "a", ["['a']", "a"]),
    "a tag with a comma": ("token_accuracy", ["a,b", "a", "b"], ["a,b", "a", "b"]),
    "titles": ("mrr", [["New York", "Paris"]], [["New York"]]),
    "items and words": ("ndcg", [["d1", "d2"]], ["d1 d3"]),
    "tokens beside words": ("word_error_rate", "a b", [["a", "c"]]),
    "steps of several words": ("word_error_rate", [["go on", "stop"], ["go on"]], [["go on"]] * 2),
    "few steps": ("word_error_rate", [["go on"]], [["go on"]]),
}


@pytest.mark.parametrize("case", ITEMS.values(), ids=ITEMS)
def test_items_of_the_expected_shape(case: tuple[str, Any, Any]) -> None:
    name, prediction, label = case
    predictions = [prediction] * len(label) if isinstance(prediction, str) else prediction
    pair(run(predictions, label), run(predictions, label, "cand"), load_statistic(name))


def test_tags_of_another_scheme() -> None:
    table = run(["O", "E-X"], ["O", "E-X"])
    pair(table, table, load_statistic("span_f1"))
    with pytest.raises(InputError, match="'E-X' in `prediction` is not a tag") as caught:
        pair(table, table, load_statistic("span_f1", parameters={"scheme": "BIO"}))
    assert caught.value.hint == "tags of the scheme BIO are `O`, and `B-` or `I-` followed by a type."


def test_empty_lists_count_0() -> None:
    table = run([[], ["B-X"]], [[], ["B-X"]])
    for name in ("span_f1", "token_accuracy", "multilabel_f1", "word_error_rate"):
        counts = pair(table, table, load_statistic(name)).counts.frame
        assert not any(counts.rows()[0][1:])


def test_a_missing_prediction_has_the_counts_of_its_label() -> None:
    baseline = run(["B-X O", "B-X O", "B-X I-X"], ["B-X O", "B-X O", "B-X O"])
    candidate = run(["B-X O", None, "B-X O"], ["B-X O", "B-X O", "B-X O"], "cand")
    counts = pair(baseline, candidate, load_statistic("span_f1"), missing="wrong").counts.frame
    assert counts.select("candidate.tp", "candidate.predicted", "candidate.actual").rows() == [
        (1, 1, 1),
        (0, 0, 1),
        (1, 1, 1),
    ]


BUILT_IN = [name for name in builtin_names() if load_statistic(name).counter_columns]


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_ins_declare_counts_of_a_missing_prediction(name: str) -> None:
    statistic = load_statistic(name)
    assert statistic.counter_columns == ("prediction", "label")
    assert missing_count_expressions(statistic, {"label": TEXT}).keys() == set(statistic.count_names)


@pytest.mark.parametrize(("name", "dtype"), [("token_accuracy", pl.Int64), ("token_f1", pl.Float64)])
def test_the_count_of_a_null_is_null(name: str, dtype: Any) -> None:
    statistic = load_statistic(name)
    table = run(["e b", None, "e c", "x y"], ["e b", "e b", "e b", None])
    counts = count_expressions(statistic, {"prediction": TEXT, "label": TEXT}, functions=POLARS)
    frame = with_counters_of(table.frame.to_polars(), statistic)
    found = frame.select(counts[statistic.count_names[0]].alias("c"))["c"]
    assert found.dtype == dtype
    assert found.to_list() == ([2, None, 1, None] if dtype == pl.Int64 else [1.0, None, 0.5, None])


def test_the_row_that_is_refused_is_that_of_the_frame() -> None:
    table = run(["a", None, "a", "a b"], ["a", "b", "c", "d"])
    with pytest.raises(UncountableError, match="has 2 items") as caught:
        with_counters_of(table.frame.to_polars(), load_statistic("token_accuracy"))
    assert caught.value.row == 3


def test_counters_within_expressions(tmp_path: Path) -> None:
    statistic = load(
        tmp_path,
        "counts:\n  close: edit_operations(prediction, label) <= max(1, n_tokens(label) // 2)\n"
        "  again: -n_tokens(label) + n_tokens(label)\nscore: close - again\n",
    )
    table = run(["a b c d", "x", "a x y d"], ["a b c d", "a b c d", "a b c d"])
    assert [row[1] for row in pair(table, table, statistic).counts.frame.rows()] == [1, 0, 1]


def test_texts_of_a_csv_stay_texts(tmp_path: Path) -> None:
    for name, words in (("a.csv", ("1", "10")), ("b.csv", ("1", "11"))):
        lines = [f"{i},{word},10" for i, word in enumerate(words)]
        (tmp_path / name).write_text("id,prediction,label\n" + "\n".join(lines) + "\n")
    found = trackperm.compare(tmp_path / "a.csv", tmp_path / "b.csv", "character_error_rate")
    assert (found.baseline_score, found.candidate_score) == (1 / 4, 2 / 4)


def test_lists_of_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"id": 1, "prediction": [2, 0], "label": [2, 0]}, {"id": 2, "prediction": [], "label": []}]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert trackperm.compare(path, path, "uas").candidate_score == 1.0


def test_lists_of_every_engine() -> None:
    data = {"id": [1, 2], "prediction": [["a", "b"], []], "label": [["a", "c"], []]}
    arrow = pa.table(data)
    expected = trackperm.compare(pl.DataFrame(data), pl.DataFrame(data), "token_accuracy")
    for frame in (arrow, pd.DataFrame(data), arrow.to_pandas(types_mapper=pd.ArrowDtype)):
        found = trackperm.compare(frame, frame, "token_accuracy")
        assert found.candidate_score == 1 / 2
        assert found.pairing.candidate_digest == expected.pairing.candidate_digest


def test_different_lists_have_different_digests() -> None:
    values: list[Any] = [
        [["a", "b"], ["c"]],
        [["a"], ["b", "c"]],
        [["ab"], ["c"]],
        [["a", "b", "c"], []],
        [["a", "b", "c"], None],
        [["a", "b", None], ["c"]],
        [["a", None, "b"], ["c"]],
    ]
    integers: list[Any] = [[[1, 2], [3]], [[1], [2, 3]], [[1, None], [2]], [[None, 1], [2]], [[1, 2], None]]
    digests = {
        tuple(_list_words(pl.DataFrame({"x": lists}), "x").to_series(1).to_list())
        for lists in (*values, *integers)
    }
    assert len(digests) == len(values) + len(integers)


def typed(*columns: Any) -> tuple[list[Any], ColumnType]:
    tables = [
        ExampleTable.from_native(pl.DataFrame({"x": x}), name) for x, name in zip(columns, "ab", strict=True)
    ]
    *found, types = typed_columns(tables[0], tables[1], ["x"])
    return [table.frame["x"].to_list() for table in found], types["x"]


def test_lists_that_are_empty_in_one_run_fit_those_of_the_other() -> None:
    assert typed([[1], [2]], [[], []]) == ([[[1], [2]], [[], []]], INTEGERS)
    assert typed([[], None], [["a"], ["b"]]) == ([[[], None], [["a"], ["b"]]], TEXTS)
    assert typed([[]], [[]]) == ([[[]], [[]]], TEXTS)


def test_lists_of_booleans_and_arrays_are_lists_of_integers() -> None:
    assert typed([[True, False]], pl.Series([[2, 3]], dtype=pl.Array(pl.UInt8, 2))) == (
        [[[1, 0]], [[2, 3]]],
        INTEGERS,
    )


def test_lists_beside_texts_are_refused() -> None:
    with pytest.raises(
        InputTypeError, match=r"`x` is list of text in `a` \(such as \['a'\]\) but text in `b`"
    ):
        typed([["a"]], ["a"])


def test_labels_that_are_lists_are_compared() -> None:
    with pytest.raises(trackperm.TrackpermError, match="`label` differs between the runs on 1 of 2 examples"):
        pair(run(["a"] * 2, [["a"], []]), run(["a"] * 2, [["a"], ["b"]], "cand"), load_statistic("token_f1"))


@pytest.mark.parametrize("name", COUNTERS)
def test_every_counter_is_described(name: str) -> None:
    assert COUNTERS[name].function.__doc__
