"""What tells one test set from another: its examples, and nothing of the runs that were evaluated on it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budget import cases

import trackperm

IDS = [f"q{i}" for i in range(12)]
LABELS = ["yes", "no", "no"] * 4


def run(correct: str = "110110110110", **columns: Any) -> pl.DataFrame:
    given = {"id": IDS, "label": LABELS, **columns}
    flipped = {"yes": "no", "no": "yes"}
    predictions = [
        label if right == "1" else flipped.get(str(label), "?")
        for right, label in zip(correct, given["label"], strict=True)
    ]
    return pl.DataFrame({"prediction": predictions, **given})


def digest_of(
    baseline: pl.DataFrame, candidate: pl.DataFrame, statistic: str = "accuracy", **options: Any
) -> str:
    return trackperm.compare(baseline, candidate, statistic, **options).pairing.test_set


ONE = digest_of(run(), run("111000111000"))


def test_predictions_statistic_and_direction_do_not_enter():
    baseline, candidate = run("000011110000"), run("101010101010")
    assert digest_of(baseline, candidate) == ONE
    assert digest_of(candidate, baseline) == ONE
    assert digest_of(baseline, candidate, "f1", parameters={"positive": "yes"}) == ONE
    scored = [frame.with_columns(score=pl.lit(1)) for frame in (baseline, candidate)]
    assert digest_of(*scored, "mean") == ONE


@given(st.permutations(range(12)), st.permutations(range(12)))
@settings(max_examples=cases(10), deadline=None)
def test_row_order_does_not_enter(first: list[int], second: list[int]):
    assert digest_of(run()[first], run("111000111000")[second]) == ONE


def test_column_names_do_not_enter():
    renamed = [run(correct).rename({"id": "qid", "label": "gold"}) for correct in ("1" * 12, "0" * 12)]
    assert digest_of(*renamed, columns={"id": "qid", "label": "gold"}) == ONE


@pytest.mark.parametrize("missing", ["drop", "wrong", "worst", "best", "bounds"])
def test_examples_that_one_run_lacks_or_did_not_answer_do_not_change_it(missing: str):
    assert digest_of(run(), run("111000111000")[3:], missing=missing) == ONE
    silent = run().with_columns(prediction=pl.when(pl.col("id") == "q4").then(None).otherwise("prediction"))
    assert digest_of(silent, run()[:9], missing=missing) == ONE


def test_clusters_do_not_enter():
    topics = [str(i // 3) for i in range(12)]
    assert digest_of(run(topic=topics), run("111000111000", topic=topics), cluster="topic") == ONE


def test_repeats_are_one_example():
    twice = [pl.concat([run(), run(correct)]) for correct in ("1" * 12, "0" * 12)]
    assert digest_of(*twice, repeats="sum") == ONE


@pytest.mark.parametrize(
    "ids",
    [list(range(12)), [str(i) for i in range(12)], [float(i) for i in range(12)]],
    ids=["integers", "text", "decimals"],
)
def test_how_numbers_are_written_does_not_enter(ids: list[Any]):
    labels = [i % 2 for i in range(12)]
    expected = digest_of(
        *(
            run(c, id=[str(i) for i in range(12)], label=[str(x) for x in labels])
            for c in ("1" * 12, "1" + "0" * 11)
        )
    )
    columns = {"id": ids if not isinstance(ids[0], float) else [int(i) for i in ids]}
    columns["label"] = [type(ids[0])(x) for x in labels]
    runs = [
        run(c, **columns).with_columns(prediction=pl.Series(columns["label"])) for c in ("1" * 12, "0" * 12)
    ]
    assert digest_of(*runs) == expected


def test_integers_and_their_texts_have_one_order():
    ids = [10**i for i in range(12)]
    assert digest_of(run(id=ids), run(id=ids)) == digest_of(
        run(id=[str(i) for i in ids]), run(id=[str(i) for i in ids])
    )


def test_other_examples_or_labels_are_another_test_set():
    fewer = [run(correct)[:11] for correct in ("1" * 12, "0" * 12)]
    renamed = [run(correct, id=[f"r{i}" for i in range(12)]) for correct in ("1" * 12, "0" * 12)]
    relabelled = [run(correct, label=["no", *LABELS[1:]]) for correct in ("1" * 12, "0" * 12)]
    padded = [run(correct, id=["0q0", *IDS[1:]]) for correct in ("1" * 12, "0" * 12)]
    unlabelled = [run(c).drop("label").with_columns(score=1) for c in ("1" * 12, "0" * 12)]
    found = {digest_of(*runs) for runs in (fewer, renamed, relabelled, padded)}
    found |= {ONE, digest_of(*unlabelled, "mean")}
    assert len(found) == 6


def test_by_position_the_order_of_labels_identifies_the_test_set():
    runs = [run(correct).drop("id") for correct in ("1" * 12, "0" * 12)]
    one = digest_of(*runs, by_position=True)
    assert one == digest_of(*reversed(runs), by_position=True) != ONE
    assert one != digest_of(*(frame[::-1] for frame in runs), by_position=True)
    bare = [frame.drop("label").with_columns(score=pl.lit(1)) for frame in runs]
    (by_length,) = {
        digest_of(*(b[order] for b in bare), "mean", by_position=True)
        for order in (slice(12), slice(None, None, -1))
    }
    assert by_length != one


def test_lists_can_be_labels():
    lists = [[["a", "b"], ["c"], []][i % 3] for i in range(12)]
    frames = [run(label=LABELS).with_columns(label=pl.Series(lists), score=pl.lit(i)) for i in range(2)]
    assert digest_of(*frames, "mean") == digest_of(frames[0][::-1], frames[1], "mean")


def test_it_is_logged_with_the_pairing():
    comparison = trackperm.compare(run(), run("111000111000"), "accuracy")
    assert comparison.to_dict()["pairing"]["test_set"] == ONE
