"""Logs whose owners meant another question than the default one: they are refused, or a note says so."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from support.questions import LABELS, PLAIN, asked, the_one

import trackperm
from trackperm.errors import InputError, PairingError


@pytest.mark.parametrize(
    ("name", "values", "scores", "is_refused"),
    [
        ("relevance", [0] * 10 + [1] * 10, [i / 7 for i in range(20)], True),
        ("is_anomaly", [False] * 10 + [True] * 10, [i / 20 for i in range(20)], True),
        ("truth", ["no", "yes"] * 10, [i / 20 for i in range(20)], True),
        ("turn", [0, 1] * 10, [i / 20 for i in range(20)], False),
        ("relevance", [0] * 10 + [1] * 10, [1, 2, 3, 4] * 5, False),
        ("relevance", [0] * 6 + [1] * 7 + [2] * 7, [i / 20 for i in range(20)], False),
        ("document", [0] * 10 + [1] * 10, [i / 20 for i in range(20)], False),
        ("difficulty", [0] * 10 + [1] * 10, [i / 20 for i in range(20)], False),
    ],
)
def test_a_score_beside_labels_of_another_name(
    name: str, values: list[Any], scores: list[Any], is_refused: bool
) -> None:
    """It is refused if it ranks them, as the output of a classifier does."""
    frame = pl.DataFrame({"id": range(20), name: values, "score": scores})
    if is_refused:
        with pytest.raises(InputError, match=f"what a model computed for the label in `{name}`") as caught:
            asked(frame, frame.reverse())
        assert f"`--statistic roc_auc` with `--label {name}`" in str(caught.value.hint)
    else:
        statistic = the_one(frame, frame.reverse())
        which = "the score called" if name == "relevance" else "the only score,"
        assert (statistic.chosen, statistic.columns["score"]) == (f"{which} `score`", "score")
    if name == "relevance":
        other = frame.with_columns(pl.Series(name, values[:1] * 20))  # labels do not differ between runs
        assert the_one(frame, other).name == "score"


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (({}, {"label": "target"}), "`--candidate-column label=target`"),
        (
            ({"label": "gold"}, {"label": "target"}),
            "`--baseline-column label=gold` and `--candidate-column",
        ),
        (
            ({"label": "gold", "prediction": "pred"}, {}),
            "`--baseline-column prediction=pred` and `--base",
        ),
        (
            ({"label": "x"}, {}),
            "`--baseline-column label=x`, or give the labels of both runs by `--labels FILE`, name",
        ),
        (({}, {"prediction": "answer"}), "by `--candidate-column prediction=answer`, name"),
        (({"label": "x"}, {"label": "z"}), "`--label COLUMN`"),
    ],
)
def test_columns_with_another_name_in_one_run(names: Any, options: str) -> None:
    frames = [PLAIN.rename(own) for own in names]
    with pytest.raises(InputError, match="is unclear") as caught:
        asked(*frames)
    assert options in str(caught.value.hint)


def test_labels_of_one_run_only() -> None:
    """Regression: `--label COLUMN` was offered, although the other run has no such column."""
    with pytest.raises(InputError, match="is unclear") as caught:
        asked(PLAIN, PLAIN.drop("label"))
    assert str(caught.value.hint).startswith("give the labels of both runs by `--labels FILE`, name a")
    several = PLAIN.drop("label").with_columns(a=pl.lit("x"), b=pl.lit("y"))
    with pytest.raises(InputError, match="is unclear") as caught:
        asked(PLAIN, several)
    assert "`--candidate-column label=COLUMN`, or give the labels" in str(caught.value.hint)


def test_columns_of_each_run_are_named_where_they_differ() -> None:
    """Regression: the columns that both runs have were called the columns of each."""
    ids, plain = PLAIN[["id"]], PLAIN.drop("label")
    cases = {
        "is unclear: their columns are `id`": (ids, ids),
        "has `id`, `prediction`, `label` and `.*` has `id`, `prediction`": (PLAIN, plain),
        "has `id` and `.*` has `x`": (ids, PLAIN.select(x="label")),
        "the columns that all runs have are `id`": (ids, ids, plain, plain),
        "the runs share no column": (ids, *[PLAIN.select(pl.col("label").alias(name)) for name in "xy"]),
    }
    for message, frames in cases.items():
        with pytest.raises(InputError, match=message):
            asked(*frames)


@pytest.mark.parametrize("column", ["prediction", "label"])
def test_a_column_that_the_runs_lack(column: str) -> None:
    with pytest.raises(InputError, match="`nosuch`"):
        trackperm.compare(PLAIN, PLAIN, columns={column: "nosuch"})


def test_lists_that_are_written_as_text_have_no_accuracy() -> None:
    frame = pl.DataFrame({"id": [1, 2], "prediction": ["['a', 'b']"] * 2, "label": ["['b', 'a']"] * 2})
    with pytest.raises(InputError, match="holds lists that are written as text"):
        asked(frame, frame)


def test_predictions_in_another_case() -> None:
    upper = PLAIN.with_columns(pl.col("prediction").str.to_uppercase())
    mixed = pl.concat([PLAIN.head(15), upper.tail(5).with_columns(prediction=pl.lit(" DOG"))])
    statistic = the_one(PLAIN, mixed)
    n = LABELS[15:].count("dog")
    assert statistic.found == (
        f"look: only case or spaces differ from the label in {n} predictions of `run 1`, such as ' DOG'"
        " for 'dog'; they count as wrong",
    )
    both = PLAIN.with_columns(label=pl.when(pl.col("id") == 0).then(pl.lit(" DOG")).otherwise("label"))
    assert the_one(both, both.with_columns(prediction=mixed["prediction"])).found == ()
    assert the_one(PLAIN, PLAIN).found == ()
    assert the_one(PLAIN, mixed, statistics=("exact_match",)).name == "exact_match"


@pytest.mark.parametrize(
    ("parts", "is_noted"),
    [(["train", "test"], True), (["TRAIN ", None], False), (["val", "test"], False)],
)
def test_training_rows_beside_others(parts: list[Any], is_noted: bool) -> None:
    frame = PLAIN.with_columns(split=pl.Series(parts * 10))
    said = "look: `split` of `candidate` has 'train' (10), 'test' (10), and all of these rows are counted;"
    found = trackperm.compare(PLAIN.with_columns(split=pl.lit("test")), frame)
    assert [note.startswith(said) for note in found.pairing.notes if "split" in note] == [True] * is_noted
    if is_noted:
        whole, *slices = trackperm.compare(frame, frame, slices=["split"])
        assert [any("look: `split`" in note for note in each.pairing.notes) for each in (whole, *slices)] == [
            *(True, False, False)
        ]


@pytest.mark.parametrize("text", ["28%", "0,5", "1,234.5"])
def test_a_score_that_is_text(text: str) -> None:
    frame = pl.DataFrame({"id": [1, 2], "score": [text, "1"]})
    with pytest.raises(InputError, match=rf"`score` of `run 0` holds text, such as '{text}', and no numbers"):
        asked(frame, frame)


def test_a_metric_of_runs_without_scores() -> None:
    frame = pl.DataFrame({"id": [1, 2], "name": ["a", "b"]})
    with pytest.raises(InputError, match="`run 0` has no metric `f2`") as caught:
        asked(frame, frame, metrics=("f2",))
    assert "its columns are `id`, `name`, and none of them holds scores" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("ids", "row"),
    [
        (["0", "1", "2", "mean"], 4),
        (["ex1", "ex2", "ex3", " Macro avg"], 4),
        (["25%", "1", "2", "3"], 1),
        (["51", "52", "53", "amean"], 4),
        (["q1", "q2", "q3", "GMEAN"], 4),
        (["q1", "q2", "q3", "global"], 4),
        (["q1", "q2", "macro_avg", "q3"], 3),
        (["q1", "Weighted-Avg", "q2", "q3"], 2),
        (["Q1", "Q2", "Q3", "COMBINED"], 4),
        (["cat", "dog", "cow", "macro avg"], 4),
        (["cat", "dog", "*** OVERALL ***", "cow"], 3),
        (["cat", "dog", "cow", "mean"], None),
        (["mean", "std", "all", "min"], None),
        (["all", "1", "all", "2"], None),
        (["q1", "q2", None, "q3"], None),
    ],
)
def test_a_row_that_summarises_others(ids: list[Any], row: int | None) -> None:
    frame = pl.DataFrame({"id": ids, "correct": [1, 0, 1, 1]})
    if row is None:
        assert the_one(frame, frame).name == "correct"
        return
    for by_position in (False, True):
        with pytest.raises(PairingError, match=f"row {row} of `run 0` has the `id` .* name of a summary"):
            asked(frame, frame, by_position=by_position)


@pytest.mark.parametrize(
    ("scores", "name", "is_refused"),
    [
        ([0.25, 0.5, 0.9, 0.55], "mean", True),
        ([0.25, 0.5, 0.92, 0.56], "All", True),
        ([1, 2, 6, 9], "total", True),
        ([0.25, 0.5, 0.9, 0.57], "all", False),
        ([1, 1, 0, 1], "all", False),
        ([1, 1, 1, 1], "all", False),
        ([1, 0, 0, 1], "sum", False),
        ([0.0, 0.0, 2.0, 0.67], "mean", True),
    ],
)
def test_a_row_of_means_under_words(scores: list[float], name: str, is_refused: bool) -> None:
    """Classes without digits: the word alone may be that of a class."""
    frame = pl.DataFrame({"class": ["cat", "dog", "cow", name], "score": scores})
    ways: list[dict[str, Any]] = [{"by_position": True}, {"columns": {"id": "class"}}]
    for way in ways:
        if is_refused:
            with pytest.raises(PairingError, match=f"row 4 of `run 0` has the `class` '{name}'"):
                asked(frame, frame, **way)
        else:
            assert the_one(frame, frame, **way).columns["score"] == "score"


def test_rows_of_a_classification_report() -> None:
    report = pl.DataFrame(
        {
            "column_1": ["cat", "dog", "accuracy", "macro avg", "weighted avg"],
            "precision": [0.5, 0.75, 0.625, 0.625, 0.65],
            "recall": [0.75, 0.5, 0.625, 0.625, 0.6],
            "f1-score": [0.6, 0.6, 0.625, 0.6, 0.6],
        }
    )
    question: dict[str, Any] = {"metrics": ("recall",), "columns": {"id": "column_1"}}
    with pytest.raises(PairingError, match=r"row 4 .* 'macro avg'") as caught:
        asked(report, report, **question)
    assert "(`accuracy`, `macro avg`, `weighted avg`)" in str(caught.value.hint)
    with pytest.raises(PairingError, match=r"row 3 .* 'accuracy'"):
        asked(report[:3], report[:3], **question)
    assert the_one(report[:2], report[:2], **question).columns["score"] == "recall"


@pytest.mark.parametrize("values", [(1, 1, 1), (None, None, None)])
def test_the_example_accuracy_of_concepts(values: tuple[int | None, ...]) -> None:
    names = ("score", "fluency", "coherence")
    rows = [(1, 0, 1), (0, 1, 1), values]
    frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        id=pl.Series(["bias", "f1", "accuracy"])
    )
    assert the_one(frame, frame, metrics=("score",)).columns["score"] == "score"


def test_words_in_answers_that_are_paired_by_position() -> None:
    frame = pl.DataFrame({"prediction": ["12", "all", "7"], "label": ["12", "all", "8"]})
    assert the_one(frame, frame, by_position=True).name == "accuracy"
    for name in ("completion_text", "inputs.question"):
        frame = pl.DataFrame({name: ["it is 1", "all", "it is 2"], "score": [1, 0, 1]})
        assert the_one(frame, frame, by_position=True).columns["score"] == "score"


@pytest.mark.parametrize(
    ("name", "scores", "absent"),
    [
        ("score", [5, -1, 3, -1], -1),
        ("score", [0.5, -1.0, 0.25, 1.0], -1),
        ("score", [0.5, -999.0, None, 1.0], -999),
        ("score", [0, -9, 1, 1], -9),
        ("correct", [0, -1, 1, 1], -1),
        ("score", [0, -1, 1, 1], None),
        ("score", [1, -1, 1, 1], None),
        ("score", [5, -1, 3, -2], None),
        ("score", [0.5, -0.5, 0.25, 1.0], None),
        ("score", [-3, -3, -3, -3], None),
        ("reward", [10, -1, 10, -1], None),
    ],
)
def test_a_negative_number_among_others(name: str, scores: list[Any], absent: int | None) -> None:
    """A judge that gave no score; or a loss, beside ties and wins."""
    plain = pl.DataFrame({"id": range(4), name: [1, 1, 0, 0]})
    frame = pl.DataFrame({"id": range(4), name: scores})
    for frames in ([plain, frame], [frame, plain]):
        if absent is None:
            assert the_one(*frames).name == name
            continue
        n = scores.count(absent)
        with pytest.raises(InputError, match=f"is {absent} in {n} rows and not negative") as caught:
            asked(*frames)
        assert f"`--metric {name}` compares means" in str(caught.value.hint)
        assert the_one(*frames, metrics=(name,)).name == name


def test_a_score_beside_probabilities() -> None:
    frame = pl.DataFrame(
        {
            "id": [1, 2, 3, 4],
            "prediction": [0.0, 1.0, 0.2, 0.7],
            "label": [0, 1, 0, 1],
            "correct": [1] * 4,
        }
    )
    assert the_one(frame, frame).name == "correct"
    assert the_one(frame, frame, allow_unseen=True).name == "accuracy"
    plain = frame.drop("correct")
    with pytest.raises(InputError, match="holds decimals, and `label` does not"):
        asked(plain, plain)
