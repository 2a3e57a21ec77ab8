"""Columns that may be clusters of examples, and those that may not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from trackperm.pairing.cluster_columns import ClusterColumn, cluster_columns
from trackperm.statistic import load_statistic
from trackperm.tables.table import ExampleTable

N = 200
ROW = np.arange(N)
ORDER = np.random.default_rng(0).permutation(N)


def texts(numbers: Any, word: str = "x") -> list[str]:
    return [f"{word} {i}" for i in numbers]


def table(
    order: Any = ROW, *, identity: tuple[str, ...] = (), csv: bool = False, **columns: Any
) -> ExampleTable:
    own = {"id": ROW, "prediction": ROW % 2, "label": ROW % 3, **columns}
    frame = pl.DataFrame({name: pl.Series(list(values)) for name, values in own.items()})[order.tolist()]
    if csv:
        frame = frame.with_columns(pl.all().cast(pl.String))
    return ExampleTable(nw.from_native(frame, eager_only=True), "run", untyped=csv, identity=identity)


def found(
    baseline: ExampleTable, candidate: ExampleTable, ids: Sequence[Any] | None = None, id_: str = "id"
) -> list[ClusterColumn]:
    keys = pl.Series(ROW if ids is None else ids)
    statistic = load_statistic("accuracy", columns={"id": id_})
    return cluster_columns(baseline, candidate, statistic, keys)


def names(**columns: Any) -> list[str]:
    return [each.name for each in found(table(**columns), table(ORDER, **columns))]


def test_clusters_are_in_the_order_of_the_ids() -> None:
    document = texts(ROW // 5)
    (column,) = found(table(document=document), table(ORDER, document=document))
    assert (column.name, column.is_called, column.is_input) == ("document", True, False)
    assert column.sizes.tolist() == [5] * 40
    same = column.clusters[:, None] == column.clusters
    assert (same == (ROW[:, None] // 5 == ROW // 5)).all()
    assert column.n_shared == N


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("document", ROW // 5),
        ("doc_id", ROW // 5),
        ("metadata.userName", texts(ROW // 5)),
        ("conversation", texts(ROW // 20)),
        ("passage_idx", ROW // 2),
        ("remark", texts(ROW // 5)),
        ("context", texts(ROW // 10 * 3)),
        ("task_id", ROW // 20),
        ("taskId", texts(ROW // 5)),
        ("sample_id", ROW % 50),
        ("question_idx", ROW // 40),
        ("qid", texts(ROW // 20)),
    ],
)
def test_columns_that_may_be_clusters(name: str, values: Any) -> None:
    assert names(**{name: values}) == [name]


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("document", ROW, "all are different"),
        ("document", np.where(ROW < 190, ROW, 190), "nearly all are different, and one is not"),
        ("document", ROW // 50, "there are four"),
        ("document", ROW / 7 // 1 + 0.5, "decimals"),
        ("n_words", ROW // 5, "numbers that are not called so"),
        ("remark", texts(ROW // 20), "ten, by a name that says nothing"),
        ("language", texts(ROW // 5), "kinds"),
        ("question_type", texts(ROW // 5), "kinds"),
        ("epoch", ROW // 5, "attempts"),
        ("task_id", ROW // 50, "there are four"),
        ("task", texts(ROW // 5), "kinds"),
        ("sample", ROW // 5, "attempts"),
        ("run_id", ROW // 5, "an id of another thing"),
        ("target", texts(ROW // 5), "answers"),
        ("output", texts(ROW // 5), "predictions"),
        ("score.first", texts(ROW // 5), "scores"),
    ],
)
def test_columns_that_are_not_clusters(name: str, values: Any, why: str) -> None:
    assert names(**{name: values}) == [], why


def test_rows_that_are_paired_by_position() -> None:
    """Their numbers are their ids, and any column may hold clusters, also the id that was not used."""
    part: dict[str, Any] = {"id": ROW // 5, "document": ROW // 20}
    statistic = load_statistic("accuracy")
    run = table(**part)
    columns = cluster_columns(run, run, statistic, pl.Series(ROW), by_position=True)
    assert [(column.name, column.sizes.size) for column in columns] == [("id", 40), ("document", 10)]
    other = table(ORDER, **part)
    assert cluster_columns(run, other, statistic, pl.Series(ROW), by_position=True) == []


def test_an_id_beside_the_id_of_the_statistic() -> None:
    """`--cluster id` would mean `row_id`, so the column `id` is left out."""
    part: dict[str, Any] = {"row_id": ROW, "id": ROW // 5, "task_id": ROW // 5}
    assert [each.name for each in found(table(**part), table(ORDER, **part), id_="row_id")] == ["task_id"]


def test_columns_of_the_statistic_are_not_clusters() -> None:
    runs = [table(document=ROW // 5), table(ORDER, document=ROW // 5)]
    statistic = load_statistic("accuracy", columns={"label": "document"})
    assert cluster_columns(runs[0], runs[1], statistic, pl.Series(ROW)) == []


def test_columns_that_differ_between_the_runs_are_not_clusters() -> None:
    """Such as an explanation that each run gives of its own."""
    own = texts(ROW // 5)
    assert found(table(document=own), table(document=[*own[:-1], "other"])) == []


def test_a_null_belongs_to_no_cluster() -> None:
    own = [*texts(ROW // 5)[:-1], None]
    assert names(document=own) == []


def test_examples_that_one_run_has_alone() -> None:
    """As where a missing prediction counts as wrong."""
    document = texts(ROW // 5)
    first, second = table(ROW[:190], document=document), table(ORDER, document=document)
    (column,) = found(first, second)
    assert column.sizes.tolist() == [5] * 40


def test_numbers_that_a_format_holds_as_text() -> None:
    """A CSV file has no types: a column of lengths does not hold texts."""
    columns: dict[str, Any] = {"n_words": ROW // 5, "document": ROW // 5}
    runs = [table(order, csv=True, **columns) for order in (ROW, ORDER)]
    assert [each.name for each in found(runs[0], runs[1], ids=sorted(map(str, ROW)))] == ["document"]


@pytest.mark.parametrize("engine", ["pandas", "pyarrow"])
def test_other_engines(engine: str) -> None:
    frame = table(document=texts(ROW // 5)).frame
    native: Any = frame.to_pandas() if engine == "pandas" else frame.to_arrow()
    run = ExampleTable.from_native(native, "run")
    assert [each.sizes.size for each in found(run, run)] == [40]


def test_the_first_part_of_an_id_of_several_columns() -> None:
    part: dict[str, Any] = {"part": ROW // 5, "number": ROW % 5}
    ids = [f"{i // 5}, {i % 5}" for i in ROW]
    (column,) = found(table(**part), table(ORDER, **part), ids=ids, id_="part,number")
    assert (column.name, column.is_called) == ("part", True)


@pytest.mark.parametrize(
    ("name", "expected"), [("question_id", ["step", "question_id"]), ("number", ["step"])]
)
def test_an_id_of_questions_in_any_place(name: str, expected: list[str]) -> None:
    part: dict[str, Any] = {"step": ROW // 20, name: ROW % 20}
    ids = [f"{i // 20}, {i % 20}" for i in ROW]
    columns = found(table(**part), table(ORDER, **part), ids=ids, id_=f"step,{name}")
    assert [column.name for column in columns] == expected


def test_rows_of_one_example() -> None:
    """What is the same in all rows of an example is of the example; what is not is of the row."""
    example = ROW // 2
    columns: dict[str, Any] = {"id": example, "document": example // 4, "remark": texts(ROW % 40)}
    (column,) = found(table(**columns), table(ORDER, **columns), ids=range(100))
    assert column.name == "document"
    assert column.sizes.tolist() == [4] * 25


class TestInputs:
    def inputs(self, *, identity: tuple[str, ...] = (), **columns: Any) -> list[str]:
        runs = [table(order, identity=identity, **columns) for order in (ROW, ORDER)]
        return [each.name for each in found(runs[0], runs[1]) if each.is_input]

    def test_questions_that_repeat(self) -> None:
        assert self.inputs(question=texts(ROW // 2)) == ["question"]

    def test_a_few_that_repeat(self) -> None:
        assert self.inputs(question=texts(np.minimum(ROW, 180))) == [], "one of them, twenty times"
        assert self.inputs(question=texts(ROW % 190)) == ["question"]

    def test_hashes_of_inputs(self) -> None:
        assert self.inputs(identity=("doc_sha",), doc_sha=texts(ROW // 2)) == ["doc_sha"]

    def test_hashes_of_answers(self) -> None:
        """Examples with the same answer may have different inputs."""
        assert self.inputs(identity=("target_hash",), target_hash=texts(ROW // 2)) == []

    def test_another_part_of_the_input_distinguishes_examples(self) -> None:
        assert self.inputs(question=texts(ROW // 2), passage=texts(ROW % 2)) == []
        assert self.inputs(question=texts(ROW // 2), passage=texts(ROW // 10)) == ["question"]

    def test_templates(self) -> None:
        assert self.inputs(prompt=texts(ROW % 8)) == []


def test_a_column_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trackperm.pairing.cluster_columns.MOST_BYTES", 20_000)
    monkeypatch.setattr("trackperm.pairing.cluster_columns.MOST_BYTES_PER_ROW", 100)
    long = [text * 50 for text in texts(ROW // 5)]
    assert names(document=ROW // 5, passage=long) == ["document"]
