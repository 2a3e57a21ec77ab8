"""Ids of several columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.budget import cases
from support.example_tables import table
from support.specs import load

import trackperm
from trackperm.choices import EngineName
from trackperm.errors import InputError, PairingError
from trackperm.pairing.pair import pair_in_memory as pair
from trackperm.statistic import load_statistic
from trackperm.tables.table import ExampleTable

MEAN = load_statistic("mean", columns={"id": "doc,epoch"})


BASELINE = table(doc=[1, 1, 2], epoch=[1, 2, 1], score=[0, 1, 1])


def ids(baseline: ExampleTable, candidate: ExampleTable, **options: Any) -> list[Any]:
    return pair(baseline, candidate, MEAN, **options).counts.frame["id"].to_list()


def test_rows_are_matched_by_all_columns() -> None:
    candidate = table("cand", doc=[2, 1, 1], epoch=[1, 2, 1], score=[0, 1, 1])
    pairing = pair(BASELINE, candidate, MEAN)
    assert pairing.counts.frame.select("id", "baseline.total", "candidate.total").rows() == [
        ("1, 1", 0, 1),
        ("1, 2", 1, 1),
        ("2, 1", 1, 0),
    ]
    assert pairing.report.lines()[0] == "3 examples paired by id"


def test_one_of_the_columns_alone_is_refused_with_the_way_out() -> None:
    statistic = load_statistic("mean", columns={"id": "doc"})
    with pytest.raises(
        PairingError, match=r"2 of 3 rows of `base` share their `doc`(.|\n)*.NAME,NAME..` names"
    ) as caught:
        pair(BASELINE, BASELINE, statistic)
    assert "log it to a new file name, or take the mean of identical rows by `--repeats mean`" in str(
        caught.value.hint
    )


def test_a_table_that_was_logged_twice_is_compared_by_its_means() -> None:
    """Regression: the hint was to name more columns of ids, and "1 rows of each in the baseline"."""
    twice = table("cand", doc=["1", "2"] * 2, score=[1, 0] * 2)
    once = table(doc=["1", "2"], score=[0, 0])
    found = pair(once, twice, load_statistic("mean", columns={"id": "doc"}, repeats="mean"))
    assert "1 row of each in the baseline, 2 in the candidate" in str(found.report.notes)


def test_columns_have_types_of_their_own() -> None:
    """Leading zeros distinguish ids in a text column; a typed column of integers matches a CSV's text."""
    baseline = table(doc=["01", "1"], epoch=[1, 1], score=[0, 1])
    candidate = table("cand", untyped=True, doc=["1", "01"], epoch=["1", "1"], score=["0", "1"])
    assert ids(baseline, candidate) == ["01, 1", "1, 1"]
    assert pair(baseline, candidate, MEAN).report.notes[1] == (
        "`epoch` of `base` has integers, which were compared as text"
    )


def test_digest_depends_on_every_column_and_not_on_the_order() -> None:
    digests = [
        pair(run, run, MEAN).report.baseline_digest
        for run in (
            BASELINE,
            table(doc=[2, 1, 1], epoch=[1, 2, 1], score=[1, 1, 0]),
            table(doc=[1, 1, 2], epoch=[1, 3, 1], score=[0, 1, 1]),
        )
    ]
    assert digests[0] == digests[1] != digests[2]


PARTS = st.text(st.sampled_from(",\\ ab1"), max_size=4)


@settings(deadline=None, max_examples=cases(50))
@example([("a, b", "c"), ("a", "b, c")])
@example([("a\\", "b, c"), ("a, b\\", "c")])
@given(st.lists(st.tuples(PARTS, PARTS), min_size=1, max_size=8, unique=True))
def test_different_keys_have_different_texts(keys: list[tuple[str, str]]) -> None:
    run = table(doc=[a for a, _ in keys], epoch=[b for _, b in keys], score=[0] * len(keys))
    assert len(set(ids(run, run))) == len(keys)


def test_an_id_has_no_null_in_any_column() -> None:
    baseline = table(doc=[1, None, 2], epoch=[1, 2, None], score=[0, 1, 1])
    with pytest.raises(
        PairingError, match=r"2 of 3 examples of `base` have no `doc,epoch` \(rows counted from 0: 1, 2\)"
    ):
        pair(baseline, BASELINE, MEAN)
    assert ids(baseline, BASELINE, missing="drop") == ["1, 1"]


def test_an_id_that_is_not_a_number_is_missing() -> None:
    """Regression: the message named no row."""
    run = table(id=[1.0, 2.0, float("nan")], score=[0, 1, 1])
    with pytest.raises(
        PairingError, match=r"1 of 3 examples of `\w+` has no `id` \(rows counted from 0: 2\)"
    ):
        pair(run, run, load_statistic("mean"))


def test_a_column_whose_name_has_a_comma_comes_first() -> None:
    run = table(**{"doc,epoch": ["x", "y", "z"]}, doc=[1, 1, 1], epoch=[1, 1, 1], score=[0, 1, 1])
    assert ids(run, run) == ["x", "y", "z"]


def test_spaces_around_names_are_ignored() -> None:
    statistic = load_statistic("mean", columns={"id": " doc, epoch "})
    assert pair(BASELINE, BASELINE, statistic).report.n_paired == 3


def test_a_column_that_lacks_is_named() -> None:
    statistic = load_statistic("mean", columns={"id": "doc,epoc"})
    with pytest.raises(InputError, match=r"`base` lacks `epoc` and (.|\n)*Hint: .*: .doc,epoch..` names"):
        pair(BASELINE, BASELINE, statistic)


def test_a_column_of_decimals_is_refused() -> None:
    run = table(doc=[1, 2], epoch=[0.5, 1.5], score=[0, 1])
    with pytest.raises(PairingError, match="`epoch` is decimal; ids must be integers or text"):
        pair(run, run, MEAN)


def test_missing_predictions_count_as_wrong() -> None:
    accuracy = load_statistic("accuracy", columns={"id": "doc,epoch"})
    baseline = table(doc=[1, 1], epoch=[1, 2], prediction=["a", "b"], label=["a", "b"])
    candidate = table("cand", doc=[1], epoch=[2], prediction=["b"], label=["b"])
    pairing = pair(baseline, candidate, accuracy, missing="wrong")
    assert pairing.counts.frame.select("id", "baseline.correct", "candidate.correct").rows() == [
        ("1, 1", 1, 0),
        ("1, 2", 1, 1),
    ]


def test_attempts_of_one_id_are_added_up() -> None:
    statistic = load_statistic("pass_at_1", columns={"id": "doc,epoch"})
    run = table(doc=[1, 1, 2, 2], epoch=[1, 1, 1, 1], passed=[1, 0, 1, 1])
    assert pair(run, run, statistic).counts.frame["id"].to_list() == ["1, 1", "2, 1"]


def test_pairing_by_position_uses_no_id() -> None:
    pairing = pair(BASELINE, BASELINE, MEAN, by_position=True)
    assert pairing.report.notes[0].startswith("column `doc,epoch` was not used")


def test_a_column_of_the_id_may_be_the_cluster(tmp_path: Path) -> None:
    spec = "counts: {total: score, n: 1}\nscore: total / n\ncluster: doc\ncolumns: {id: 'doc,epoch'}\n"
    statistic = load(tmp_path, spec)
    pairing = pair(BASELINE, table("cand", doc=[1, 1, 2], epoch=[1, 2, 1], score=[1, 1, 0]), statistic)
    assert pairing.counts.frame.select("id", "baseline.total", "candidate.total").rows() == [
        (1, 1, 2),
        (2, 1, 0),
    ]


@pytest.mark.sample(2)
@pytest.mark.parametrize("columns", ["id,label", "label,id"])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_the_label_may_be_part_of_the_id(columns: str, engine: EngineName) -> None:
    """Regression: a fault, for the digest of the test set read the label once more."""
    label = ["a", "b", "c"] * 4
    runs = [
        pl.DataFrame({"id": range(12), "label": label, "prediction": ["a"] * n + label[n:]}) for n in (4, 9)
    ]
    plain, found = (trackperm.compare(*runs, columns={"id": each}, engine=engine) for each in ("id", columns))
    assert (found.pvalue, found.n_examples) == (plain.pvalue, 12)
