"""Pairing by Spark: what is read, joined and brought to this process, and what becomes of failures."""

from __future__ import annotations

import random
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pairing.engines_agree import assert_same
from support.engines import COMPILED, spark_settings

from trackperm.errors import EngineError, MissingDependencyError, PairingError, StorageError
from trackperm.pairing import Pairing
from trackperm.pairing.engines import spark as spark_engine
from trackperm.pairing.pair import pair as pair_by
from trackperm.statistic import Statistic, load_statistic
from trackperm.tables import read_examples
from trackperm.tables.table import ExampleTable

pytestmark = pytest.mark.spark

N = 3000
N_CHANGED = 30
CHANGED = "id % 10 > 0 AND id < 34"
JOIN = re.compile(r"^\(\d+\) (\w*Join|CartesianProduct)\b", re.MULTILINE)
READ = re.compile(r"^ReadSchema: struct<(.*)>$", re.MULTILINE)


@pytest.fixture
def spark() -> Iterator[Any]:
    """The session of the tests, with adaptive queries, as by default."""
    with spark_settings({"spark.sql.adaptive.enabled": "true"}) as session:
        yield session


def run(session: Any, right: str = "id % 10 > 0", n: int = N) -> Any:
    """A frame of Spark: `right` says which of its predictions are the label."""
    return session.range(n).selectExpr(
        "id", "id % 3 AS label", f"IF({right}, id % 3, (id + 1) % 3) AS prediction"
    )


def tables(*frames: Any) -> tuple[ExampleTable, ExampleTable]:
    first, second = (
        ExampleTable.from_native(frame, origin)
        for frame, origin in zip(frames, ("base", "cand"), strict=True)
    )
    return first, second


def runs(session: Any, n: int = N) -> tuple[ExampleTable, ExampleTable]:
    """Two runs on n examples; N_CHANGED of the predictions differ."""
    return tables(run(session, n=n), run(session, f"id % 10 > 0 AND NOT ({CHANGED})", n=n))


def in_memory(
    pair_of_tables: tuple[ExampleTable, ExampleTable], statistic: Statistic | None = None
) -> Pairing:
    found = pair_by(*pair_of_tables, statistic or load_statistic("accuracy"), engine="polars")
    assert isinstance(found, Pairing)
    return found


def plans(session: Any) -> list[str]:
    """Physical plans of the queries that Spark has executed."""
    executed = session._jsparkSession.sharedState().statusStore().executionsList()
    return [executed.apply(i).physicalPlanDescription() for i in range(executed.size())]


def test_plans_read_used_columns_and_join_once(tmp_path: Path) -> None:
    with spark_settings({"spark.sql.ui.explainMode": "formatted"}) as spark:
        _read_used_columns_and_join_once(spark, tmp_path)


def _read_used_columns_and_join_once(spark: Any, tmp_path: Path) -> None:
    frames = []
    for name, right in (("a", "id % 10 > 0"), ("b", "id % 7 > 0")):
        written = run(spark, right).selectExpr(
            "*", "repeat('x', 100) AS reasoning", "struct(id, label) AS more"
        )
        written.write.parquet(str(tmp_path / name))
        frames.append(spark.read.parquet(str(tmp_path / name)))
    n_before = len(plans(spark))
    assert pair_by(*tables(*frames), load_statistic("accuracy")).count_table.n_examples == N
    executed = plans(spark)[n_before:]
    read = [set(re.findall(r"(\w+):", schema)) for plan in executed for schema in READ.findall(plan)]
    assert {frozenset(columns) for columns in read} >= {frozenset({"id", "prediction", "label"})}
    assert set.union(*read) == {"id", "prediction", "label"}
    joins = {tuple(JOIN.findall(plan)) for plan in executed}
    assert joins <= {(), ("SortMergeJoin",), ("BroadcastHashJoin",)}
    assert any("FullOuter" in plan and "HashAggregate" in plan for plan in executed)


def test_few_rows_are_collected_in_this_process(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.classic.dataframe import DataFrame

    sizes = []
    collect = DataFrame.toArrow

    def counted(self: Any) -> pa.Table:
        found = collect(self)
        sizes.append(found.num_rows)
        return found

    monkeypatch.setattr(DataFrame, "toArrow", counted)
    for way in ("collect", "toPandas", "toLocalIterator", "take", "head", "first", "tail", "foreach"):
        monkeypatch.delattr(DataFrame, way)
    found = pair_by(*runs(spark), load_statistic("accuracy"))
    assert len(found.discordant) == found.count_table.n_discordant == N_CHANGED
    assert max(sizes) == N_CHANGED
    assert sum(sizes) < N_CHANGED + 100


@pytest.mark.parametrize("is_refused", [False, True])
def test_executors_keep_no_tables_in_memory(spark: Any, is_refused: bool) -> None:
    first, second = runs(spark)
    if is_refused:
        second = tables(run(spark), run(spark).selectExpr("id", "label + 1 AS label", "prediction"))[1]
        with pytest.raises(PairingError, match="`label` differs"):
            pair_by(first, second, load_statistic("accuracy"))
    else:
        pair_by(first, second, load_statistic("accuracy"))
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()


def test_a_key_in_half_of_many_rows_is_refused_before_it_is_joined(spark: Any) -> None:
    n = 1_000_000
    skewed = run(spark, n=n).selectExpr("IF(id % 2 = 0, -1, id) AS id", "prediction", "label")
    said = f"{n // 2:,} of {n:,} rows of `base` share their `id`"
    with spark_settings(COMPILED), pytest.raises(PairingError, match=said):
        pair_by(*tables(skewed, skewed), load_statistic("accuracy"))


def test_a_frame_with_other_rows_at_each_reading_is_refused(spark: Any) -> None:
    def some(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chance = random.SystemRandom()
        for batch in batches:
            yield batch.slice(0, chance.randrange(len(batch) // 2))

    frame = run(spark)
    with pytest.warns(FutureWarning, match="pandas"):
        sampled = frame.mapInArrow(some, frame.schema)
    with pytest.raises(PairingError, match="`cand` does not have the same rows each time"):
        pair_by(*tables(frame, sampled), load_statistic("accuracy"), missing="drop")


@pytest.mark.parametrize(
    "settings",
    [
        COMPILED,
        pytest.param({"spark.sql.ansi.enabled": "false"}, marks=pytest.mark.nightly),
        pytest.param({"spark.sql.caseSensitive": "true"}, marks=pytest.mark.nightly),
        pytest.param(
            {"spark.sql.shuffle.partitions": "7", "spark.sql.adaptive.enabled": "false"},
            marks=pytest.mark.nightly,
        ),
    ],
    ids=str,
)
def test_settings_of_the_session_change_nothing(spark: Any, settings: dict[str, str]) -> None:
    with spark_settings(settings):
        pair_of_tables = runs(spark)
        assert_same(pair_by(*pair_of_tables, load_statistic("accuracy")), in_memory(pair_of_tables))


OTHERS: dict[str, Callable[[pl.DataFrame, Path], ExampleTable]] = {
    "csv": lambda frame, folder: _of_file(frame.write_csv, folder / "run.csv"),
    "polars": lambda frame, _: ExampleTable.from_native(frame, "cand"),
    "pandas": lambda frame, _: ExampleTable.from_native(frame.to_pandas(), "cand"),
    "duckdb": lambda frame, _: ExampleTable.from_native(duckdb.from_arrow(frame.to_arrow()), "cand"),
    "polars lazy": lambda frame, _: ExampleTable.from_native(frame.lazy(), "cand"),
    "parquet": lambda frame, folder: _of_file(frame.write_parquet, folder / "run.parquet"),
}


def _of_file(write: Callable[[Path], None], file: Path) -> ExampleTable:
    write(file)
    return read_examples(file, "cand")


@pytest.mark.sample(spark=2)
@pytest.mark.parametrize("other", OTHERS)
def test_a_frame_of_spark_beside_those_of_others(spark: Any, tmp_path: Path, other: str) -> None:
    ours, theirs = runs(spark)
    table = OTHERS[other](pl.DataFrame(theirs.frame.to_native()), tmp_path)
    found = pair_by(ours, table, load_statistic("accuracy"))
    assert not isinstance(found, Pairing)
    assert_same(found, in_memory((ours, table)))


def test_types_that_other_engines_lack_or_have_alone(spark: Any) -> None:
    """Decimals of SQL, bytes and shorts of Spark; unsigned integers and categories of polars."""
    score, label = "CAST(id % 7 / 8 AS DECIMAL(20, 5)) AS score", "CAST(id % 5 AS TINYINT) AS label"
    ours = spark.range(N).selectExpr("id", score, label)
    theirs = pl.DataFrame(ours.selectExpr("id", "score + 0.125 AS score", "label").toArrow())
    theirs = theirs.with_columns(pl.col("id").cast(pl.UInt64), pl.col("label").cast(pl.UInt8))
    pair_of_tables = tables(ours, theirs)
    found = pair_by(*pair_of_tables, load_statistic("mean"))
    assert not isinstance(found, Pairing)
    assert_same(found, in_memory(pair_of_tables, load_statistic("mean")))
    texts = ours.selectExpr("id", "CAST(label AS STRING) AS label", "CAST(label AS STRING) AS prediction")
    categories = pl.DataFrame(texts.toArrow()).with_columns(
        pl.col("label").cast(pl.Categorical), pl.col("prediction").cast(pl.Enum(list("01234")))
    )
    pair_of_tables = tables(texts, categories)
    assert_same(pair_by(*pair_of_tables, load_statistic("accuracy")), in_memory(pair_of_tables))


def test_names_of_columns_that_spark_takes_for_others(spark: Any) -> None:
    names = {"id": "ID", "prediction": "my.answer", "label": "`label`"}
    first, second = (
        frame.toDF("ID", "`label`", "my.answer").selectExpr("*", "'none' AS `Id`", "'none' AS `MY.ANSWER`")
        for frame in (run(spark), run(spark, "id % 7 > 0"))
    )
    statistic = load_statistic("accuracy", columns=names)
    pair_of_tables = tables(first, second)
    assert_same(pair_by(*pair_of_tables, statistic), in_memory(pair_of_tables, statistic))


@pytest.mark.parametrize("name", ["_a.parquet", "a[0-9]*{b}?.parquet", "a b%20:c.parquet", "Id,id.parquet"])
def test_names_of_files_and_columns_that_spark_reads_otherwise(spark: Any, name: str, tmp_path: Path) -> None:
    frame = pl.DataFrame(run(spark).toArrow())
    if name.startswith("Id"):
        frame = frame.with_columns(Id=pl.lit("none"))
    frame.write_parquet(tmp_path / name)
    table = read_examples(tmp_path / name, "base")
    found = pair_by(table, table, load_statistic("accuracy"), engine="spark")
    assert_same(found, in_memory((table, table)))


def test_tables_of_several_slices_are_handed_over_by_files(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_engine, "_SLICE", N // 4 + 1)
    wide = pl.DataFrame(run(spark).toArrow()).with_columns(pl.col("label").cast(pl.UInt32))
    table = ExampleTable.from_native(wide, "base")
    n_before = len(plans(spark))
    assert_same(pair_by(table, table, load_statistic("accuracy"), engine="spark"), in_memory((table, table)))
    assert any("Scan parquet" in plan for plan in plans(spark)[n_before:])


def failing(session: Any, way: str, tmp_path: Path) -> Any:
    """A frame whose rows cannot be computed."""
    frame = run(session)
    if way == "a module that executors lack":

        def lacking(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import no_such_module

            yield from no_such_module.mapped(batches)

        with pytest.warns(FutureWarning, match="pandas"):
            return frame.mapInArrow(lacking, frame.schema)
    if way == "files that are gone":
        path = str(tmp_path / "gone")
        frame.write.parquet(path)
        found = session.read.parquet(path)
        shutil.rmtree(path)
        return found
    said = {"a full disk": "No space left on device", "an error": "first line\\nsecond line"}[way]
    return frame.selectExpr("id", "prediction", f"IF(id = 7, raise_error('{said}'), label) AS label")


FAILURES: dict[str, tuple[type[Exception], str]] = {
    "a full disk": (StorageError, "could not write its temporary files"),
    "a module that executors lack": (MissingDependencyError, "no_such_module"),
    "an error": (EngineError, "first line"),
    "files that are gone": (EngineError, "gone"),
}


@pytest.mark.parametrize("way", FAILURES)
def test_failures_are_errors_of_one_line(
    spark: Any, way: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kind, said = FAILURES[way]
    with pytest.raises(kind, match=said) as raised:
        pair_by(*tables(run(spark), failing(spark, way, tmp_path)), load_statistic("accuracy"))
    assert "\n" not in raised.value.message
    assert raised.value.__suppress_context__
    printed = "".join(capfd.readouterr())
    assert "\tat " not in printed
    assert "Traceback" not in printed


def test_pyspark_is_not_installed(monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
    table = ExampleTable.from_native(pl.DataFrame({"id": [1], "prediction": [1], "label": [1]}), "base")
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingDependencyError, match="PySpark") as raised:
        pair_by(table, table, load_statistic("accuracy"), engine="spark")
    assert raised.value.hint == "pip install 'trackperm[spark]'"
