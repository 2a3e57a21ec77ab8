"""Of the layout that trec_eval documents; the measures are by their definitions."""

from __future__ import annotations

import sys
from math import log2
from pathlib import Path
from typing import Any

import pytest
from support.cli_comparison import compared

from trackperm.comparison import Question
from trackperm.errors import MissingDependencyError, SourceError
from trackperm.tables import References, read_examples

QRELS = "1 0 d1 1\n1 0 d2 0\n1 0 d3 2\n2 0 d1 1\n3 0 d1 0\n4\t0\td1\t1\n"
RUN = """\
1 Q0 d2 1 9.5 a
1 Q0 d3 2 8.5 a
1 Q0 d4 3 7.5 a
1 Q0 d1 4 6.5 a
2 Q0 d1 1 3 a
9 Q0 d1 1 3 a
4\tQ0\td2\t1\t1e-3\ta
"""


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "qrels.dat"
    path.write_text(QRELS)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "x.dat"
    path.write_text(RUN)
    return path


@pytest.mark.parametrize(
    ("measure", "first"),
    [
        ("AP", (1 / 2 + 2 / 4) / 2),
        ("P@2", 1 / 2),
        ("P(rel=2)@10", 1 / 10),
        ("RR", 1 / 2),
        ("nDCG", (2 / log2(3) + 1 / log2(5)) / (2 + 1 / log2(3))),
    ],
)
def test_scores(run: Path, gold: Path, measure: str, first: float) -> None:
    table = read_examples(run, part=measure, references=References(gold))
    columns = table.frame.to_dict(as_series=False)
    assert columns["id"] == ["1", "2", "3", "4"]
    assert columns["score"][0] == pytest.approx(first)
    assert columns["score"][2:] == [0, 0]
    assert set(columns["measure"]) == {measure}
    assert table.notes == (
        "1 of 4 queries have no ranking and score 0: `3`",
        "1 queries have no judgements and are left out: `9`",
    )


def test_every_query_of_the_qrels_counts(run: Path, gold: Path, tmp_path: Path) -> None:
    """A run without a ranking for a query has 0 there, as by `trec_eval -c`, and pairs with one that has."""
    other = tmp_path / "other"
    other.write_text("".join(line for line in RUN.splitlines(keepends=True) if line[0] != "1"))
    found = compared(f"{other}::P@2", f"{run}::P@2", "--labels", gold, "-s", "mean")
    assert (found["n_examples"], found["n_discordant"]) == (4, 1)
    assert (found["baseline_score"], found["candidate_score"]) == (pytest.approx(1 / 8), pytest.approx(2 / 8))
    assert found["pairing"]["inputs_checked"] == ["measure"]


def test_expected_reciprocal_rank_is_no_error(run: Path, gold: Path) -> None:
    table = read_examples(run, part="ERR@20", references=References(gold))
    for said in ({}, {"metrics": ("ERR@20",)}, {"metrics": ("score",)}, {"statistics": ("mean",)}):
        (found,) = Question(**said).statistics_of([table, table])
        assert found.greater_is_better


def test_two_measures_are_not_compared(run: Path, gold: Path) -> None:
    with pytest.raises(Exception, match="`measure`"):
        compared(f"{run}::AP", f"{run}::P@2", "--labels", gold, "-s", "mean")


def test_a_measure_is_chosen(run: Path, gold: Path) -> None:
    with pytest.raises(SourceError, match="is a ranking, which needs a measure") as caught:
        read_examples(run, references=References(gold))
    assert f"`{run}::AP`" in str(caught.value.hint)
    for measure in ("MAP@", "foo", "P"):
        with pytest.raises(SourceError, match=f"ir_measures does not compute `{measure}`"):
            read_examples(run, part=measure, references=References(gold))


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("run", "1 Q0 d9 1 9.5", "line 8: 5 fields; expected 6"),
        ("run", "1 Q0 d9 1 nan a", "line 8: 'nan' is not a score"),
        ("run", "1 Q0 d9 1 x a", "line 8: 'x' is not a score"),
        ("run", "1 Q0 d1 9 1 a", "line 8: document `d1` is ranked twice for query `1`"),
        ("gold", "1 0 d9", "line 7: 3 fields; expected 4"),
        ("gold", "1 0 d9 --1", "line 7: '--1' is not a degree of relevance"),
        ("gold", "1 0 d9 yes", "line 7: 'yes' is not a degree of relevance"),
        ("gold", "1 0 d1 0", "line 7: document `d1` is judged twice for query `1`"),
    ],
)
def test_broken_lines_are_named(run: Path, gold: Path, file: str, line: str, message: str) -> None:
    path = {"run": run, "gold": gold}[file]
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(SourceError, match=message):
        read_examples(run, part="AP", references=References(gold))


def test_blank_qrels(run: Path, gold: Path) -> None:
    gold.write_text("\n\n")
    with pytest.raises(SourceError, match="contains no judgement"):
        read_examples(run, part="AP", references=References(gold))


def test_without_the_library(run: Path, gold: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(MissingDependencyError, match="ir_measures") as caught:
        read_examples(run, part="AP", references=References(gold))
    assert "trackperm[trec]" in str(caught.value.hint)


def test_judgements_of_beir(run: Path, gold: Path, tmp_path: Path) -> None:
    rows = [line.split() for line in QRELS.splitlines()]
    beir = tmp_path / "test.tsv"
    beir.write_text(
        "query-id\tcorpus-id\tscore\n" + "".join("\t".join((q, d, r)) + "\n" for q, _, d, r in rows)
    )
    tables = [read_examples(run, part="AP", references=References(path)) for path in (gold, beir)]
    assert tables[0].frame.to_dict(as_series=False) == tables[1].frame.to_dict(as_series=False)
