"""Metrics are shown by their own names; names in keys of trackers have fewer characters."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import trackperm
from trackperm.ledger.comparison_publication import evidence, publication
from trackperm.report import text
from trackperm.report.leaderboard import cells

NAMES = {"pass@1": "pass_1", "coût": "co_t", "judge score (1-5)": "judge_score__1-5_", "a*b|c": "a_b_c"}


def runs(name: str) -> list[pl.DataFrame]:
    baseline = pl.DataFrame({"id": range(12), name: [0.5, 1.0, 0.25, 0.0] * 3})
    return [baseline, baseline.with_columns(pl.col(name) + 1.0)]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("name", "key"), NAMES.items(), ids=NAMES.values())
def test_results_show_the_own_name(name: str, key: str, tmp_path: Path) -> None:
    found = trackperm.compare(*runs(name), metric=name)
    assert (found.title, found.statistic.name) == (name, key)
    assert text.lines(found)[0].startswith(name)
    logged = publication(found)
    assert f" in {name}, p " in logged.name
    assert all(re.fullmatch(r"[A-Za-z0-9_./-]+", each) for each in (*logged.metrics, *logged.candidate_tags))
    for path, content in evidence(found).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    assert trackperm.verify(tmp_path).matches


def test_leaderboards_show_the_own_name() -> None:
    board = trackperm.leaderboard(dict(zip("ab", runs("pass@1"), strict=True)), metric="pass@1")
    assert "pass@1" in cells.cells(board).header
    assert cells.summary(board).startswith("pass@1: 2 runs")


def test_shares_show_the_own_name() -> None:
    frames = [pl.DataFrame({"id": range(6), "qualité": ["good"] * n + ["bad"] * (6 - n)}) for n in (2, 5)]
    found = trackperm.compare(*frames, metric="qualité=good")
    assert (found.title, found.statistic.name) == ("qualité_is_good", "qualit_is_good")


def test_a_spec_names_what_is_shown(tmp_path: Path) -> None:
    spec = tmp_path / "ok.yaml"
    spec.write_text("title: ' pass@1\n  strict '\ncounts: {total: score, n: 1}\nscore: total / n\n")
    found = trackperm.compare(*runs("score"), spec)
    assert (found.title, found.statistic.name) == ("pass@1 strict", "ok")
    assert trackperm.compare(*runs("score"), found.statistic, repeats="mean").title == "pass@1 strict"
