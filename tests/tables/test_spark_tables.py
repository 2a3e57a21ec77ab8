"""Tables of Spark's catalog as runs, named ``spark:TABLE``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.engines import SPARK, native, spark_session
from typer.testing import CliRunner

import trackperm
from trackperm.cli import commands
from trackperm.errors import InputError, MissingDependencyError, SourceError
from trackperm.tables import split_part
from trackperm.trackers.references import RunReference

N = 400


@pytest.fixture
def views() -> Iterator[list[pa.Table]]:
    """Two runs, and their labels, in views of Spark."""
    label = [i % 2 for i in range(N)]
    tables = [
        pa.table(
            {
                "id": range(N),
                "prediction": [label[i] if i % every else 1 - label[i] for i in range(N)],
                "label": label,
            }
        )
        for every in (3, 7)
    ]
    named = {"base": tables[0], "cand": tables[1], "gold": tables[0].select(["id", "label"])}
    named["blind"] = tables[1].select(["id", "prediction"])
    for name, table in named.items():
        native(SPARK, table).createOrReplaceTempView(name)
    yield tables
    for name in named:
        spark_session().catalog.dropTempView(name)


def test_references() -> None:
    reference = RunReference.parse("spark:prod.eval.run_a")
    assert (reference.scheme, str(reference)) == ("file", "spark:prod.eval.run_a")
    assert split_part("spark:prod.eval.run_a") == ("spark:prod.eval.run_a", None)
    with pytest.raises(InputError, match="`spark:` names no table"):
        RunReference.parse("spark:")
    assert RunReference.parse("./spark:run") == RunReference("file", "./spark:run")


def test_spark_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingDependencyError, match="PySpark cannot be imported") as caught:
        trackperm.compare("spark:run_a", "spark:run_b")
    assert caught.value.hint is not None
    assert "pip install 'trackperm[spark]'" in caught.value.hint


@pytest.mark.spark
class TestTables:
    def test_they_are_compared(self, views: list[pa.Table]) -> None:
        found = trackperm.compare("spark:base", "spark:cand")
        assert found.key == trackperm.compare(*views).key
        assert (found.baseline, found.candidate) == ("spark:base", "spark:cand")
        assert trackperm.compare("spark:base", views[1]).pvalue == found.pvalue
        assert trackperm.compare("spark:blind", "spark:cand", labels="spark:gold").pvalue == 1

    def test_they_are_judged_and_ranked(
        self, views: list[pa.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        policy = "{name: tables, baseline: {run: 'spark:cand'}, statistics: [accuracy], engine: spark}"
        Path("trackperm.yaml").write_text(f"policies: [{policy}]")
        assert trackperm.gate("spark:base").outcome == "fail"
        assert len(trackperm.leaderboard(["spark:base", "spark:cand"]).rows) == 2

    @pytest.mark.parametrize("format_", ["text", "json"])
    def test_they_are_described(self, views: list[pa.Table], format_: str) -> None:
        result = CliRunner().invoke(commands.app, ["inspect", "spark:base", "--format", format_])
        assert result.exit_code == 0, result.output
        assert "table of Spark" in result.output
        assert "trackperm compare spark:base OTHER" in result.output or format_ == "json"

    @pytest.mark.parametrize("name", ["none", "no.such.table", "two words"])
    def test_a_missing_table(self, name: str) -> None:
        spark_session()
        with pytest.raises(SourceError, match=f"`spark:{name}` cannot be read: ") as caught:
            trackperm.compare(f"spark:{name}", f"spark:{name}")
        assert "\n" not in caught.value.message
        assert "`spark:CATALOG.SCHEMA.TABLE`" in str(caught.value.hint)
