"""Each engine pairs runs with the same result, whatever their flaws and the names of their columns."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from pairing.engines_agree import assert_same
from support.engines import every_engine
from support.specs import load

from trackperm.choices import EngineName
from trackperm.errors import CapacityError, PairingError, TrackpermError
from trackperm.pairing import Pairing, discordant
from trackperm.pairing import pair as pair_module
from trackperm.pairing.engines import spark as spark_engine
from trackperm.pairing.engines.base import Engine
from trackperm.pairing.joined import JoinedRows
from trackperm.pairing.pair import pair
from trackperm.pairing.pair import pair as pair_by
from trackperm.statistic import Statistic, load_statistic
from trackperm.tables import read_examples
from trackperm.tables.formats import delimited, json_lines
from trackperm.tables.table import ExampleTable

N = 240
OVER = "counts: {k: score > 0.5, n: 1}\nscore: k / n"

Change = Callable[[pl.DataFrame], pl.DataFrame]


class Case(NamedTuple):
    """How two runs that agree mostly are changed, and compared."""

    first: Change
    second: Change
    statistic: str = "accuracy"
    missing: str = "error"
    id: str = "id"


def same(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def put(value: Any, name: str, *rows: int) -> Change:
    """Put a value in a column of some rows, counted from 0 in the order of ids."""
    return lambda frame: frame.sort("id").with_columns(
        pl.when(pl.int_range(pl.len()).is_in(rows)).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
    )


def leave(start: int, stop: int) -> Change:
    """Leave rows from `start` to `stop` in the order of ids."""
    return lambda frame: frame.sort("id")[start:stop]


def chain(*changes: Change) -> Change:
    def changed(frame: pl.DataFrame) -> pl.DataFrame:
        for change in changes:
            frame = change(frame)
        return frame

    return changed


def columns(*expressions: pl.Expr, **named: pl.Expr) -> Change:
    return lambda frame: frame.with_columns(*expressions, **named)


def scores(offset: float) -> Change:
    return lambda frame: frame.select("id", score=pl.col("id") % 7 / 8 + offset)


def counts(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select("id", tp="label", incorrect="prediction")


def one_score(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.rename({"prediction": "score"})


TEXT = columns(*(pl.format("{}-ß{}", pl.lit(name), name).alias(name) for name in ("prediction", "label")))
IN_TEXT = columns(pl.format("q-{}", "id").alias("id"))
DECOMPOSED = pl.format("e\u0301{}", "id")
LISTS = columns(pl.col("prediction", "label").cast(pl.String).repeat_by(pl.col("id").abs() % 3))
ONE_LONGER = columns(prediction=pl.when(pl.col("id") == -10).then(pl.lit(["x"] * 3)).otherwise("prediction"))
DECIMALS = columns(
    prediction=pl.when(pl.col("id") == -10).then(0.5).otherwise("prediction").cast(pl.Decimal(20, 2))
)
TWO_IDS = columns(a=pl.col("id") // 10, b=pl.format("x,{}\\", "id"))
PERFECT = columns(prediction=pl.col("label"))
WEIGHED = chain(PERFECT, columns(weight=pl.when(pl.col("id") < 0).then(0.25).otherwise(2.5)))
LISTED = (
    "classes: [0, 1, 2]\n"
    "counts: {hit: weight * (prediction == class) * (label == class), n: label == class}\n"
    "score: hit / n"
)
SOME = chain(put(None, "prediction", 0, 1, 90), leave(0, 180))

SAME_RESULT = {
    "integers": Case(same, same),
    "texts": Case(chain(TEXT, IN_TEXT), chain(TEXT, IN_TEXT)),
    "decimals that are integers": Case(columns(pl.col("prediction").cast(pl.Float64)), same),
    "decimals in the last row alone": Case(
        put(0.5, "prediction", N - 1), columns(pl.col("label").cast(pl.Float32))
    ),
    "not a number": Case(put(float("nan"), "prediction", 5, 200), same, missing="drop"),
    "decimals of databases": Case(DECIMALS, columns(pl.col("prediction").cast(pl.Decimal(9, 1)))),
    "decimals of databases that are integers": Case(columns(pl.col("label").cast(pl.Decimal(38, 0))), same),
    "unsigned integers": Case(columns(pl.col("prediction", "label").cast(pl.UInt64)), same),
    "categories": Case(
        columns(pl.col("prediction", "label").cast(pl.String).cast(pl.Categorical)),
        columns(pl.col("prediction", "label").cast(pl.String).cast(pl.Enum(["0", "1", "2"]))),
    ),
    "booleans": Case(*(columns(pl.col("prediction") > 0, pl.col("label") > 0),) * 2),
    "a column without values": Case(columns(prediction=pl.lit(None, pl.Int64)), same, missing="wrong"),
    "examples left out": Case(put(None, "prediction", 3, 100), leave(20, 230), missing="drop"),
    "ends left out": Case(leave(150, N), leave(20, 200), missing="drop"),
    "examples without an id": Case(put(None, "id", 0, 1, 150), put(None, "id", 239), missing="drop"),
    "missing counted as wrong": Case(SOME, leave(7, N), missing="wrong"),
    "missing at their worst": Case(SOME, leave(7, N), missing="worst"),
    "missing at their best": Case(SOME, leave(7, N), missing="best"),
    "several counts": Case(counts, counts, "pooled_f1"),
    "labels that nothing reads": Case(one_score, one_score, "mean"),
    "labels of one run alone": Case(one_score, lambda frame: one_score(frame).drop("label"), "mean"),
    "labels that nothing can read": Case(*(chain(one_score, columns(label=1 / pl.lit(0.0))),) * 2, "mean"),
    "lists": Case(LISTS, LISTS, "token_accuracy"),
    "several id columns": Case(TWO_IDS, TWO_IDS, id="a, b"),
    "ids called folds": Case(*(lambda frame: frame.rename({"id": "fold"}),) * 2, id="fold"),
    "decimals that are counted as integers": Case(scores(0.0), scores(0.3), OVER),
    # one of these should raise suspicion
    "copies": Case(PERFECT, PERFECT),
    "copies but for one": Case(PERFECT, chain(PERFECT, put(9, "prediction", N - 1))),
    "copies but for the first": Case(PERFECT, chain(PERFECT, put(9, "prediction", 0))),
    "labels as predictions": Case(same, PERFECT),
    "shifted": Case(scores(0.0), scores(0.25), OVER),
    "shifted but for one": Case(chain(scores(0.0), put(9.0, "score", 130)), scores(0.25), OVER),
}

RARE = {
    "booleans",
    "copies but for the first",
    "decimals in the last row alone",
    "ends left out",
    "labels that nothing can read",
    "missing at their best",
    "shifted but for one",
}

SUSPICIONS = {
    "ids called folds": "folds: the training sets",
    "copies": "is the same in both runs",
    "copies but for one": "equals `label` on every example of `base`",
    "labels as predictions": "equals `label` on every example of `cand`",
    "shifted": "differs by +0.25 on every example",
}

REFUSED = {
    "ids twice": Case(
        lambda frame: pl.concat([frame, frame[:9]]), lambda frame: pl.concat([frame, frame[-3:]])
    ),
    "no partner": Case(leave(9, 200), leave(0, 190)),
    "no partner at all": Case(leave(0, 100), leave(100, N), missing="drop"),
    "no id": Case(put(None, "id", *range(8), 200), put(None, "id", 239)),
    "no values": Case(put(None, "prediction", 5, 200), put(None, "label", *range(50, 90))),
    "labels that differ": Case(same, put(7, "label", 0, *range(100, 140), 239)),
    "labels missing": Case(one_score, chain(one_score, put(None, "label", 0, 239)), "mean"),
    "all at once": Case(
        chain(put(None, "id", 1), leave(9, 200)), chain(put(7, "label", 50), put(None, "label", 150))
    ),
    "ids that differ in zeros": Case(IN_TEXT, chain(IN_TEXT, columns(pl.col("id").str.replace("q-", "Q-")))),
    "integers and texts": Case(same, TEXT),
    "ids that are decimals": Case(put(0.5, "id", 200), put(0.5, "id", 200)),
    "infinite values": Case(put(float("inf"), "prediction", 200), same),
    "counts that are too large": Case(one_score, chain(one_score, put(2**62, "score", 3)), "mean"),
    "labels that differ before counts": Case(
        one_score, chain(one_score, put(2**62, "score", 3), put(7, "label", 200)), "mean"
    ),
    "lists that cannot be counted": Case(LISTS, chain(LISTS, ONE_LONGER), "token_accuracy"),
    # each is put at the beginning and sorted to the end
    "one text in two normal forms": Case(
        chain(IN_TEXT, put("\u00e9", "id", 0), put("e\u0301", "id", 0)), IN_TEXT, missing="drop"
    ),
    "no missing predictions": Case(one_score, one_score, "mean", missing="wrong"),
}

MORE = {
    "decimal counts": Case(one_score, chain(one_score, put(0.5, "score", 3)), "mean"),
    "classes": Case(same, same, "macro_f1"),
    "classes of equal runs": Case(PERFECT, PERFECT, "macro_f1"),
    "classes that are the label of no discordant example": Case(
        *(chain(PERFECT, put(0, "label", 5), put(answer, "prediction", 5)) for answer in (1, 2)), "macro_f1"
    ),
    "listed classes, decimals in larger units where runs differ": Case(
        WEIGHED, chain(WEIGHED, put(5, "prediction", N - 1)), LISTED
    ),
    "wide integers": Case(columns(pl.col("prediction").cast(pl.UInt64)), same),
}

AT_NIGHT = {
    "a column without values",
    "categories",
    "copies",
    "counts that are too large",
    "decimals of databases",
    "decimals of databases that are integers",
    "examples without an id",
    "ids called folds",
    "ids that are decimals",
    "ids that differ in zeros",
    "integers and texts",
    "labels as predictions",
    "labels missing",
    "labels of one run alone",
    "labels that differ before counts",
    "labels that nothing reads",
    "missing counted as wrong",
    "no id",
    "no missing predictions",
    "no partner at all",
    "no values",
    "one text in two normal forms",
    "shifted",
    "unsigned integers",
}
"""Cases that Spark takes at night: another case has the same kind of query."""


def runs(first: Change = same, second: Change = same) -> tuple[ExampleTable, ExampleTable]:
    """Two runs with most answers right, in orders of their own."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 3, N)
    tables = []
    for origin, change in (("base", first), ("cand", second)):
        prediction = np.where(rng.random(N) < 0.8, label, rng.integers(0, 3, N))
        frame = pl.DataFrame({"id": np.arange(N) * 7 - 500, "prediction": prediction, "label": label})
        frame = change(frame).sample(fraction=1, shuffle=True, seed=len(tables))
        tables.append(ExampleTable.from_native(frame, origin))
    return tables[0], tables[1]


def statistic_of(case: Case, tmp_path: Path) -> Statistic:
    names = {"id": case.id}
    if ":" in case.statistic:
        return load(tmp_path, case.statistic, columns=names)
    return load_statistic(case.statistic, columns=names)


@pytest.mark.sample(5, spark=3)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.extended if name in RARE else []) for name in SAME_RESULT],
)
def test_the_result_is_the_same(name: str, tmp_path: Path) -> None:
    case = SAME_RESULT[name]
    found = pair(*runs(case.first, case.second), statistic_of(case, tmp_path), missing=case.missing)
    if name in SUSPICIONS:
        assert any(SUSPICIONS[name] in note for note in found.report.notes)


@pytest.mark.parametrize("name", MORE)
def test_duplicates_decimals_and_classes_have_the_same_result(name: str, tmp_path: Path) -> None:
    case = MORE[name]
    with contextlib.suppress(PairingError):
        pair(*runs(case.first, case.second), statistic_of(case, tmp_path), missing=case.missing)


@pytest.mark.sample(3, spark=2)
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_the_same(name: str, tmp_path: Path) -> None:
    case = REFUSED[name]
    statistic = statistic_of(case, tmp_path)
    with pytest.raises(TrackpermError):
        pair(*runs(case.first, case.second), statistic, missing=case.missing)


def test_names_that_sql_takes_for_the_same_or_for_expressions() -> None:
    names = {"id": "Id", "prediction": "my.answer", "label": 'a "gold" label'}
    others = columns(id=pl.lit("none"), **{"MY.ANSWER": pl.lit("none")})
    tables = [
        ExampleTable.from_native(others(table.frame.to_polars().rename(names)), table.origin)
        for table in runs()
    ]
    found = pair(*tables, load_statistic("accuracy", columns=names))
    assert found.report.n_paired == N
    assert found.discordant.columns[2] == "baseline.my.answer"


def test_names_that_differ_in_case_alone(tmp_path: Path) -> None:
    tables = []
    for table in runs():
        frame = table.frame.to_polars().rename({"id": "ID", "label": "Label"})
        frame = frame.select(pl.lit(1).alias("id"), "ID", pl.lit(0).alias("LABEL"), "Label", "prediction")
        frame.write_parquet(tmp_path / f"{table.origin}.parquet")
        tables.append(read_examples(tmp_path / f"{table.origin}.parquet", table.origin))
    found = pair_by(
        *tables, load_statistic("accuracy", columns={"id": "ID", "label": "Label"}), engine="duckdb"
    )
    expected = pair_by(*runs(), load_statistic("accuracy"))
    assert found.count_table.multiplicities.tolist() == expected.count_table.multiplicities.tolist()


def test_one_system_of_a_file(tmp_path: Path) -> None:
    """The column of a system is its predictions, whatever column is called so."""
    tables = []
    for table in runs():
        frame = table.frame.to_polars().with_columns(system="prediction", prediction=pl.lit(0))
        frame.write_parquet(tmp_path / f"{table.origin}.parquet")
        tables.append(read_examples(tmp_path / f"{table.origin}.parquet", part="system"))
    found = pair_by(*tables, load_statistic("accuracy"), engine="duckdb")
    expected = pair_by(*runs(), load_statistic("accuracy"))
    assert found.count_table.multiplicities.tolist() == expected.count_table.multiplicities.tolist()


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv"])
def test_files(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (delimited, json_lines):
        monkeypatch.setattr(module, "LARGE", 1000)
    text = chain(TEXT, IN_TEXT)
    tables = []
    for table in runs(text, text):
        path, frame = tmp_path / f"{table.origin}.{kind}", table.frame.to_polars()
        if kind == "parquet":
            frame.write_parquet(path, row_group_size=50)
        elif kind == "jsonl":
            frame.write_ndjson(path)
        else:
            frame.write_csv(path)
        tables.append(read_examples(path, table.origin))
    assert all(table.has_representatives(table.columns) for table in tables)
    found = pair(tables[0], tables[1], load_statistic("accuracy"))
    assert_same(found, pair_by(*runs(text, text), load_statistic("accuracy")))


@pytest.mark.parametrize("second", [same, put(7, "label", 3)], ids=["paired", "refused"])
def test_temporary_files_are_gone(
    second: Change, other_engine: EngineName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(spark_engine, "_SLICE", 100)
    with contextlib.suppress(PairingError):
        pair_by(*runs(same, second), load_statistic("accuracy"), engine=other_engine)
    assert not list(tmp_path.iterdir())


def test_temporary_files_that_cannot_be_written(
    other_engine: EngineName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(CapacityError, match=r"cannot be written: .*No such file"):
        pair_by(*runs(), load_statistic("accuracy"), engine=other_engine)


def test_small_runs_are_paired_in_memory_and_large_ones_by_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(pair_by(*runs(), load_statistic("accuracy")), Pairing)
    monkeypatch.setattr(pair_module, "MANY_ROWS", N)
    assert not isinstance(pair_by(*runs(), load_statistic("accuracy")), Pairing)


def test_of_many_changed_examples_the_first_are_shown(
    other_engine: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discordant, "MOST", 20)
    whole = pair_by(*runs(), load_statistic("accuracy"), engine="polars")
    found = pair_by(*runs(), load_statistic("accuracy"), engine=other_engine)
    n = len(found.discordant)
    assert found.report.n_shown == n <= 20 < len(whole.discordant)
    assert found.discordant.rows() == whole.discordant.head(n).rows()
    assert found.count_table.n_discordant == len(whole.discordant)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_ids_that_repeat_many_times_are_refused_before_they_are_joined(
    share: float, other_engine: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 50_000
    same = int(n * share)
    frame = pl.DataFrame({"id": [-1] * same + list(range(n - same)), "prediction": 1, "label": 1})
    tables = [ExampleTable.from_native(frame, origin) for origin in ("base", "cand")]
    monkeypatch.delattr(JoinedRows, "of")
    with pytest.raises(
        PairingError, match=rf"{same:,} of {n:,} rows of `base` share their `id`.*\(first: -1\)"
    ):
        pair_by(*tables, load_statistic("accuracy"), engine=other_engine)


@every_engine
def test_samples_and_distinct_values(engine: Callable[[], Engine]) -> None:
    with engine() as chosen:
        frame = chosen.local(pl.DataFrame({"k": list(range(10_000)) * 2}))
        assert 8_000 < chosen.n_distinct(frame, "k") < 12_000
        assert 800 < len(chosen.collected(chosen.sampled(frame, 1000))) < 1200
        assert len(chosen.collected(chosen.sampled(frame, 30_000))) == 20_000


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_run_without_examples(
    lacking: int, other_engine: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice may be in one run only; the search for discordant rows samples the keys of the other run."""
    tables = list(runs())
    tables[lacking] = tables[lacking].head(0)
    found = [
        pair_by(*tables, load_statistic("accuracy"), missing="wrong", may_be_empty=True, engine=engine)
        for engine in ("polars", other_engine)
    ]
    assert_same(found[1], found[0])
    monkeypatch.setattr(discordant, "MOST", 8)
    few = pair_by(
        *tables, load_statistic("accuracy"), missing="wrong", may_be_empty=True, engine=other_engine
    )
    assert few.discordant.equals(found[0].discordant.head(len(few.discordant)))
    assert 0 < len(few.discordant) <= 8
