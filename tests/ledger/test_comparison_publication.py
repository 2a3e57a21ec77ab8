from __future__ import annotations

import io
import json
import math
import re
from dataclasses import replace

import polars as pl
import pytest
from support.comparisons import accuracy, answers

import trackperm
from trackperm.comparison import corrected
from trackperm.errors import CapacityError
from trackperm.ledger import comparison_publication
from trackperm.ledger.comparison_publication import publication
from trackperm.report.drawings.null_distribution import Bars
from trackperm.statistic.written_spec import written_spec


def parquet(content: bytes) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(content))


def test_metrics_have_the_documented_names():
    comparison = accuracy(20, 4, both=10)
    metrics = publication(comparison).metrics
    assert metrics == {
        "accuracy/p_value": comparison.pvalue,
        "accuracy/log10_p": pytest.approx(math.log10(comparison.pvalue)),
        "accuracy/difference": comparison.difference,
        "accuracy/baseline_score": 14 / 34,
        "accuracy/candidate_score": 30 / 34,
        "accuracy/ci_low": pytest.approx(0.16744881591212787),
        "accuracy/ci_high": pytest.approx(0.6931000248885829),
        "accuracy/n_examples": 34.0,
        "accuracy/n_discordant": 24.0,
        "accuracy/error_bound": comparison.error_bound,
    }


def test_metrics_are_finite_and_an_underflowed_pvalue_is_not_logged_as_zero():
    comparison = accuracy(4000, 0)
    comparison = replace(comparison, test=replace(comparison.test, error_bound=math.inf))
    metrics = publication(comparison).metrics
    assert "accuracy/p_value" not in metrics
    assert "accuracy/error_bound" not in metrics
    assert metrics["accuracy/log10_p"] == pytest.approx(math.log10(2) * -3999)


def test_results_table_has_p_as_text():
    table = publication(accuracy(4000, 0)).tables["results"]
    (row,) = table.rows
    result = dict(zip(table.columns, row, strict=True))
    assert result["p_value"] == "1.52e-1204"
    assert result["verdict"] == "▲ better"
    assert result["n_examples"] == 4000


def test_files():
    comparison = accuracy(20, 4, both=10)
    files = publication(comparison).files
    assert "discordant.parquet" not in publication(comparison).description.replace("\\", "")
    assert set(files) == {
        "trackperm_report.html",
        "verdict.png",
        "verdict.svg",
        "trackperm/statistic.yaml",
        "trackperm/comparison.json",
        "trackperm/discordant.parquet",
        "trackperm/count_table.parquet",
    }
    assert files["trackperm_report.html"].startswith(b"<!DOCTYPE html>")
    assert len(files["trackperm_report.html"]) < 100_000
    assert files["verdict.png"].startswith(b"\x89PNG")
    assert files["verdict.svg"].startswith(b"<svg xmlns")
    assert files["trackperm/statistic.yaml"].decode() == written_spec(comparison.statistic)
    assert json.loads(files["trackperm/comparison.json"]) == comparison.to_dict()


def test_viewable_table_is_cut_and_the_parquet_is_whole():
    text = "é" * 3000
    comparison = trackperm.compare(answers([False] * 1200, wrong=text), answers([True] * 1200), "accuracy")
    result = publication(comparison)
    table = result.tables["discordant"]
    assert len(table.rows) == 1000
    cells = [cell for row in table.rows for cell in row]
    assert max(len(cell) for cell in cells if isinstance(cell, str)) == 1000
    whole = parquet(result.files["trackperm/discordant.parquet"])
    assert whole.height == 1200
    assert whole["baseline.prediction"].to_list() == [text] * 1200
    assert "first 1,000 of 1,200; all are in trackperm/discordant.parquet" in result.description.replace(
        "\\", ""
    )


def test_a_count_table_that_is_too_large_is_left_out_with_a_note(monkeypatch):
    monkeypatch.setattr(comparison_publication, "MAX_COUNT_ROWS", 2)
    result = publication(accuracy(20, 4, both=10))
    assert "trackperm/count_table.parquet" not in result.files
    assert "Count table: not logged, because its 3 distinct rows exceed 2." in result.description.replace(
        "\\", ""
    )


def test_a_chart_that_is_too_large_is_left_out_with_a_note(monkeypatch):
    def refuse(null, most=0):
        raise CapacityError("needs 7 TiB")

    comparison = accuracy(20, 4)
    monkeypatch.setattr(Bars, "of", refuse)
    result = publication(comparison)
    assert not result.charts
    assert b"Null distribution not drawn: needs 7 TiB" in result.files["verdict.svg"]
    assert b"Not drawn: needs 7 TiB" in result.files["trackperm_report.html"]
    assert "Chart: not drawn; needs 7 TiB." in result.description


def test_tags():
    result = publication(accuracy(109, 69, both=935, neither=206))
    assert result.candidate_tags == {
        "sig.accuracy": "accuracy 0.7915 ▲ p=0.0033",
        "sig.accuracy.vs": "baseline",
        "sig.accuracy.score": 1044 / 1319,
    }
    assert result.baseline_tags == {
        "sig.accuracy.baseline_of": "candidate ▲",
        "sig.accuracy.score": 1004 / 1319,
    }
    assert result.tags["trackperm.verdict"] == "▲ better"
    assert result.name == "candidate beats baseline in accuracy, p 0.0033"
    assert re.fullmatch("[0-9a-f]{64}", result.key)


def test_equal_comparisons_give_equal_publications():
    assert publication(accuracy(20, 4, both=10)) == publication(accuracy(20, 4, both=10))


def test_the_title_of_a_monte_carlo_result_is_labelled():
    drawn = accuracy(20, 4, both=10, method="monte-carlo", n_samples=2000)
    page = publication(drawn).files["trackperm_report.html"].decode()
    title = re.search(r"<title>(.*?)</title>", page)
    assert "(p ≈ " in title[1]
    assert "Monte Carlo" in title[1]


def test_an_exact_p_that_is_adjusted_by_a_drawn_one_is_labelled():
    """A step of Holm's procedure can take the adjusted p-value of another test."""
    exact, drawn = accuracy(12, 4, both=10), accuracy(14, 4, both=10, method="monte-carlo", n_samples=200)
    assert exact.pvalue > drawn.test.interval[1] / 2
    found = corrected([exact, drawn], "holm")
    taken = [each.corrected for each in found]
    assert taken[1].relation == "≈"
    assert (taken[0].relation == "≈") == (taken[0].pvalue == taken[1].pvalue)
    assert [each.corrected.relation for each in corrected([exact, exact], "holm")] == ["=", "="]
