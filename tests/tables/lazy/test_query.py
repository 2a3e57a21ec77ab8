"""Frames of DuckDB and Spark and lazy frames of polars: only used columns are read."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import polars as pl
import pyarrow as pa
import pytest
from support.engines import SPARK, native

import trackperm
from trackperm.errors import InputTypeError, SourceError, StorageError, TrackpermError
from trackperm.tables.columns.types import typed_columns
from trackperm.tables.labels import with_labels
from trackperm.tables.lazy.query import Query
from trackperm.tables.lazy.table import COUNT
from trackperm.tables.table import ExampleTable

N = 600
ROWS = pa.table(
    {
        "id": pa.array([5, 6, 7, 2**53 + 1, None]),
        "score": pa.array([1.0, float("nan"), 2.0, None, 0.5]),
        "whole": pa.array([1.0, 2.0, None, 3.0, 1.0]),
        "price": pa.array(
            [Decimal("1.00"), Decimal("2.50"), Decimal("3.00"), None, None], pa.decimal128(9, 2)
        ),
        "passed": pa.array([True, False, None, True, True]),
        "text": pa.array(["b", "a", "", None, "b"]),
        "tags": pa.array([None, [], ["x"], ["y", "z"], []], pa.list_(pa.string())),
        "a.b": pa.array([1, 1, 2, 2, 3]),
        'a "c"': pa.array([1, 1, 1, 1, 1]),
    }
)
kinds = pytest.mark.parametrize(
    "kind", ["polars lazy", "duckdb", pytest.param(SPARK, marks=pytest.mark.spark)]
)


def query(kind: str, table: pa.Table = ROWS) -> Query:
    return Query(nw.from_native(native(kind, table)), "run")


@kinds
class TestColumns:
    def test_what_they_hold(self, kind: str) -> None:
        found = query(kind)
        assert found.schema.names() == ROWS.column_names
        assert found.n_rows == len(ROWS)
        read = found.read(["a.b", "text"]).to_polars()
        assert read.columns == ["a.b", "text"]
        assert sorted(read.rows(), key=str) == sorted(
            zip(*(ROWS[name].to_pylist() for name in read.columns), strict=True), key=str
        )
        assert found.dtypes(["price", "score"]) == {"price": pl.Decimal(9, 2), "score": pl.Float64}
        assert found.head(2).n_rows == len(found.head(2).read(["a.b"])) == 2

    @pytest.mark.sample(spark=3)
    @pytest.mark.parametrize("name", ROWS.column_names)
    def test_witnesses_tell_the_type_that_all_values_do(self, kind: str, name: str) -> None:
        found = query(kind)
        assert found.has_representatives([name])
        whole = ExampleTable(found.read([name]), "whole")
        few = ExampleTable(nw.from_native(found.type_representatives([name], ()), eager_only=True), "few")
        assert len(few) <= 3
        assert typed_columns(few, few, [name])[2] == typed_columns(whole, whole, [name])[2]

    def test_a_type_by_one_value_alone(self, kind: str) -> None:
        values = [0.0] * 50 + [0.5] + [1.0] * 50
        found = query(kind, pa.table({"x": values}))
        assert 0.5 in found.type_representatives(["x"], ())["x"].to_list()

    def test_values_and_repeats(self, kind: str) -> None:
        found = query(kind)
        assert found.value_counts("text", 10).sort(COUNT, "text").rows() == [
            (None, 1), ("", 1), ("a", 1), ("b", 2),
        ]  # fmt: skip
        assert found.value_counts("text", 1).rows()[0] == ("b", 2)
        assert len(found.value_counts("text", 1)) == 2
        assert [found.repeats(names) for names in (["id"], ["a.b"], ["a.b", "text"], ["text", "passed"])] == [
            *(False, True, False, True),
        ]

    def test_rows_with_a_value(self, kind: str) -> None:
        found = query(kind)
        assert found.among("a.b", pl.Series([2, 3])).schema == found.schema
        assert sorted(found.among("a.b", pl.Series([2, 3])).read(["a.b"])["a.b"].to_list()) == [2, 2, 3]
        assert found.among("text", pl.Series(["b"])).n_rows == 2

    def test_rows_with_the_same_value_in_two_columns(self, kind: str) -> None:
        large = pa.table(
            {"a": [2**53, 1, None], "b": [2**53 + 1, 2, None], "c": ["1", "1", "2"], "d": [True, True, None]}
        )
        found = query(kind, large)
        assert found.n_equal("a", "b") == (2, 0)
        assert found.n_equal("a", "c") == (2, 1)
        assert found.n_equal("a", "d") == (2, 1)

    def test_a_query_that_fails_says_so_in_a_line(self, kind: str) -> None:
        found = Query(nw.from_native(with_failure(kind, ROWS.select(["id"]), "bad")), "run")
        assert found.read(["id"]).shape == (5, 1)
        with pytest.raises(TrackpermError, match="must not be read") as caught:
            found.read(["bad"])
        assert "\n" not in caught.value.message


def with_failure(kind: str, table: pa.Table, name: str) -> Any:
    """Add a column that cannot be computed."""
    frame = native(kind, table)
    if kind == "polars lazy":

        def fail(_: pl.Series) -> pl.Series:
            raise ValueError("must not be read")

        return frame.with_columns(pl.col("id").map_batches(fail, return_dtype=pl.String).alias(name))
    if kind == "duckdb":
        return frame.project(
            f"*, CASE WHEN id IS NULL OR id > -1 THEN error('must not be read') END AS {name}"
        )
    frame = frame.repartition(1)  # what is in memory of the driver is computed whole to plan a query
    return frame.selectExpr("*", f"CAST(CAST(concat('must not be read ', id) AS INT) AS STRING) AS {name}")


def runs(n: int = N) -> tuple[pa.Table, pa.Table]:
    label = [i % 2 for i in range(n)]
    first, second = (
        pa.table(
            {
                "id": list(range(n)),
                "prediction": [label[i] if i % every else 1 - label[i] for i in range(n)],
                "label": label,
                "language": ["de" if i % 3 else "en" for i in range(n)],
                "epoch": [1] * n,
            }
        )
        for every in (3, 7)
    )
    return first, second


@kinds
class TestComparisons:
    @pytest.mark.sample(2, spark=1)
    @pytest.mark.parametrize("engine", ["auto", "duckdb"])
    def test_a_column_that_is_not_used_is_not_read(self, kind: str, engine: Any) -> None:
        """Nor is it where ids, the unit and the statistic are inferred, and slices are made."""
        frames = [with_failure(kind, table, "trace") for table in runs()]
        found = trackperm.compare(*frames, slices=["language"], engine=engine)
        expected = trackperm.compare(*(native("polars", table) for table in runs()), slices=["language"])
        assert [each.key for each in found] == [each.key for each in expected]
        assert [each.pvalue for each in found] == [each.pvalue for each in expected]

    def test_labels_of_another_table(self, kind: str) -> None:
        frames = [with_failure(kind, table.drop(["label"]), "trace") for table in runs()]
        gold = runs()[0].select(["id", "label"])
        found = trackperm.compare(*frames, labels=gold.to_pandas())
        assert found.key == trackperm.compare(*(native("polars", table) for table in runs())).key

    def test_labels_of_another_table_are_joined_to_the_used_columns(self, kind: str) -> None:
        own = ExampleTable.from_native(native(kind, runs()[0].drop(["label"])), "run")
        gold = pa.table({"id": [*range(N), N], "label": [0] * (N + 1)})
        table = with_labels(own, ExampleTable.from_native(native("polars", gold), "gold"))
        assert (len(table), table.columns) == (N + 1, ["id", "prediction", "language", "epoch", "label"])
        some = table.among("language", pl.Series(["en"]))
        assert len(some) == N / 3
        assert some.only(["epoch", "id"]).frame["epoch"].to_list() == [1] * (N // 3)
        assert table.head(7).only(["language"]).frame.shape == (7, 1)
        assert table.repeats(["label"])
        assert not table.repeats(["id"])
        assert table.value_counts("label", 5).rows() == [(0, N + 1)]  # type: ignore[union-attr]

    def test_predictions_that_no_label_equals(self, kind: str) -> None:
        frames = [native(kind, table.set_column(1, "prediction", pa.array([7] * N))) for table in runs()]
        with pytest.raises(TrackpermError, match=f"none of the {N} predictions of `baseline`"):
            trackperm.compare(*frames, "accuracy")

    def test_attempts_are_found(self, kind: str) -> None:
        tables = [
            pa.concat_tables([table, table.set_column(4, "epoch", pa.array([2] * N))]) for table in runs()
        ]
        found = trackperm.compare(*(native(kind, table) for table in tables))
        assert found.key == trackperm.compare(*(native("polars", table) for table in tables)).key
        assert found.n_examples == N

    def test_a_leaderboard(self, kind: str) -> None:
        found = trackperm.leaderboard({str(i): native(kind, table) for i, table in enumerate(runs())})
        expected = trackperm.leaderboard({str(i): native("polars", table) for i, table in enumerate(runs())})
        assert [pair.test.pvalue for pair in found.pairs] == [pair.test.pvalue for pair in expected.pairs]


class TestPolars:
    def test_rows_that_come_in_another_order_each_time(self) -> None:
        frames = [
            pl.from_arrow(table).lazy().group_by("id").agg(pl.exclude("id").first()) for table in runs(20_000)
        ]
        expected = trackperm.compare(*(pl.from_arrow(table) for table in runs(20_000)))
        for engine in ("polars", "duckdb"):
            found = trackperm.compare(*frames, engine=engine)
            assert (found.key, found.pvalue) == (expected.key, expected.pvalue)

    def test_predictions_are_read_together_to_be_logged(self) -> None:
        from trackperm.trackers.log_predictions import _checked

        n_read = []

        def read(frame: pl.DataFrame) -> pl.DataFrame:
            n_read.append(len(frame))
            return frame

        frame = pl.from_arrow(runs()[0]).lazy().map_batches(read)
        assert _checked(frame, {}).equals(pl.from_arrow(runs()[0]))
        assert n_read == [N]

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match=r"^`baseline` cannot be read: .*none\.parquet"):
            trackperm.compare(*[pl.scan_parquet(tmp_path / "none.parquet")] * 2, "accuracy")


class TestDuckDB:
    def test_nothing_is_left_in_the_database(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        connection = duckdb.connect()
        frames = [connection.from_arrow(table) for table in runs()]
        state = (
            "SELECT (SELECT list(table_name) FROM duckdb_tables()),"
            " (SELECT list(view_name) FROM duckdb_views() WHERE NOT internal),"
            " (SELECT list(name || value ORDER BY name) FROM duckdb_settings())"
        )
        before = connection.sql(state).fetchall()
        trackperm.compare(*frames, engine="duckdb")
        assert connection.sql(state).fetchall() == before
        assert not list(tmp_path.iterdir())

    def test_a_connection_that_may_write_no_files(self) -> None:
        connection = duckdb.connect(config={"enable_external_access": False})
        frames = []
        for i, table in enumerate(runs()):
            connection.execute(f"CREATE TABLE t{i} (id BIGINT, prediction BIGINT, label BIGINT)")
            connection.executemany(
                f"INSERT INTO t{i} VALUES (?, ?, ?)",
                [list(row.values()) for row in table.select(["id", "prediction", "label"]).to_pylist()],
            )
            frames.append(connection.table(f"t{i}"))
        assert trackperm.compare(*frames, engine="duckdb").key == trackperm.compare(*runs()).key

    def test_columns_that_differ_in_case_alone(self) -> None:
        columns = '1 AS id, i AS "ID", i % {} AS prediction, 0 AS "LABEL", i % 2 AS label'
        frames = [duckdb.sql(f"SELECT {columns.format(every)} FROM range({N}) t(i)") for every in (2, 3)]
        for engine in ("polars", "duckdb"):
            found = trackperm.compare(*frames, "accuracy", columns={"id": "ID"}, engine=engine)
            assert (found.baseline_score, found.n_examples) == (1.0, N)

    @pytest.mark.sample(4)
    @pytest.mark.parametrize("engine", ["polars", "duckdb"])
    @pytest.mark.parametrize(
        ("id_", "answer"),
        [
            ("i", "sum({})"),  # of 128 bits, which Parquet has no integers for
            ("i", "sum({})::DECIMAL(20, 3)"),
            ("i", "{}::UTINYINT"),
            ("i", "CASE WHEN {} = 1 THEN 'b' ELSE 'a' END::tag"),
            ("('00000000-0000-0000-0000-' || lpad(i::VARCHAR, 12, '0'))::UUID", "{}"),
            ("i::HUGEINT + 1152921504606846976", "{}"),
        ],
    )
    def test_types_that_parquet_lacks(self, id_: str, answer: str, engine: Any) -> None:
        connection = duckdb.connect()
        connection.sql("CREATE TYPE tag AS ENUM ('a', 'b')")
        frames = []
        for every in (3, 7):
            rows = f"SELECT i, i % 2 AS y, (CASE WHEN i % {every} = 0 THEN 1 - i % 2 ELSE i % 2 END) AS x"
            columns = f"{id_} AS id, {answer.format('x')} AS prediction, {answer.format('y')} AS label"
            frames.append(
                connection.sql(f"SELECT {columns} FROM ({rows} FROM range({N}) t(i)) GROUP BY i, x, y")
            )
        assert trackperm.compare(*frames, engine=engine).pvalue == trackperm.compare(*runs()).pvalue

    def test_integers_that_fit_nowhere(self) -> None:
        frame = duckdb.sql(
            "SELECT i AS id, 1000000000000000000000000000000 + i AS prediction, 1 AS label FROM range(9) t(i)"
        )
        for engine in ("polars", "duckdb"):
            with pytest.raises(InputTypeError, match="integers outside the range of int64"):
                trackperm.compare(frame, frame, "accuracy", engine=engine)

    def test_a_full_disk(self, tmp_path: Path) -> None:
        found = query("duckdb", runs()[0])
        with pytest.raises(StorageError, match="temporary files in"):
            found.stored(["id"], tmp_path / "none" / "rows.parquet")
        with pytest.raises(StorageError, match="temporary files in"):
            query("polars lazy", runs()[0]).stored(["id"], tmp_path / "none" / "rows.parquet")


PEAK = """
import re, sys, duckdb, polars, trackperm
def frame(path):
    return {{"file": str, "polars": polars.scan_parquet, "duckdb": duckdb.read_parquet}}[sys.argv[1]](path)
trackperm.compare
if sys.argv[2:]:
    assert trackperm.compare(*map(frame, sys.argv[2:])).n_examples == {n}
print(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.extended
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("engine", ["file", "polars", "duckdb"])
def test_memory_does_not_grow_with_columns_that_are_not_used(engine: str, tmp_path: Path) -> None:
    n = 60_000
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, table in zip(paths, runs(n), strict=True):
        trace = pl.format("{} {}", pl.col("id"), pl.lit("x" * 3072))
        pl.from_arrow(table).with_columns(trace=trace).write_parquet(path, row_group_size=5000)
    peaks = [
        int(subprocess.check_output([sys.executable, "-c", PEAK.format(n=n), engine, *arguments], text=True))
        for arguments in ([], map(str, paths))
    ]
    assert peaks[1] - peaks[0] < n * 3  # KiB, half of what the traces of both runs hold
