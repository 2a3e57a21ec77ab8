from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from support.comparisons import accuracy

import trackperm
from trackperm.errors import MissingDependencyError
from trackperm.exact import NullDistribution
from trackperm.report import charts


def bars(comparison):
    spec = charts.pmf_chart(comparison).to_dict()
    return spec["datasets"][spec["layer"][1]["data"]["name"]]


def with_null(comparison, values, mass):
    test = replace(comparison.test)
    test.__dict__["null_distribution"] = NullDistribution(np.asarray(values), np.asarray(mass), 0.0)
    return replace(comparison, test=test)


def f1(alternative, n_examples=285):
    rng = np.random.default_rng(0)
    labels = rng.random(n_examples) < 0.4
    runs = [np.where(rng.random(n_examples) < wrong, ~labels, labels) for wrong in (0.09, 0.03)]
    ids = np.arange(n_examples)
    tables = [pl.DataFrame({"id": ids, "prediction": run, "label": labels}).cast(pl.Int64) for run in runs]
    return trackperm.compare(*tables, "f1", alternative=alternative)


def assert_adds_up(comparison):
    rows, error = bars(comparison), comparison.null_distribution.mass_error_bound
    assert error < 1e-11
    coloured = math.fsum(row["mass"] for row in rows if row["region"].startswith("at least"))
    assert abs(coloured - comparison.pvalue) <= error + comparison.error_bound * comparison.pvalue
    assert abs(math.fsum(row["mass"] for row in rows) - 1) <= error
    for row in rows:
        assert row["top"] - row["base"] == pytest.approx(row["mass"], abs=1e-15)
    parts = [(row["from"], row["region"]) for row in rows]
    assert len(set(parts)) == len(parts)
    return rows


@pytest.mark.parametrize(
    ("counts", "alternative"),
    [
        ((30, 20), "less"),
        ((30, 20), "greater"),
        *((counts, "two-sided") for counts in ((30, 20), (1_430, 1_300), (4, 4), (9, 0), (90, 2))),
    ],
)
def test_orange_parts_of_accuracy_add_up_to_the_pvalue(counts, alternative):
    assert_adds_up(accuracy(*counts, both=50, alternative=alternative))


@pytest.mark.parametrize(
    ("n_examples", "alternative"),
    [(120, "two-sided"), (285, "less"), (1_000, "greater"), (1_000, "two-sided")],
)
def test_orange_parts_of_f1_add_up_to_the_pvalue(n_examples, alternative):
    assert_adds_up(f1(alternative, n_examples))


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_a_bar_around_the_observed_value_has_a_part_on_either_side(alternative):
    comparison = f1(alternative)
    rows = assert_adds_up(comparison)
    tops = {row["from"]: row["top"] for row in rows if row["base"] == 0}
    stacked = [row for row in rows if row["base"] > 0]
    assert any(row["from"] < comparison.difference < row["to"] for row in stacked)
    for row in stacked:
        assert row["base"] == tops[row["from"]]
        assert row["region"].startswith("at least")


def test_values_that_tie_but_for_rounding_are_extreme():
    comparison = accuracy(30, 20)
    tie = comparison.difference * (1 - 1e-13)
    rows = bars(with_null(comparison, [-3.0, -tie, 0.1, tie, 3.0], [0.2] * 5))
    assert [row["region"].startswith("at least") for row in rows] == [True, True, False, True, True]


def test_a_large_regular_support_is_grouped_without_ripples():
    rows = bars(accuracy(30_000, 29_900))
    assert len(rows) <= 640
    heights = list({row["from"]: row["top"] for row in rows}.values())
    peak = int(np.argmax(heights))
    assert heights[:peak] == sorted(heights[:peak])
    assert heights[peak:] == sorted(heights[peak:], reverse=True)


def test_a_large_irregular_support_is_binned():
    values = np.unique(np.random.default_rng(0).normal(size=50_000))
    rows = bars(with_null(accuracy(30, 20), values, np.full(values.size, 1 / values.size)))
    assert 50 < len(rows) <= 320
    assert sum(row["mass"] for row in rows) == pytest.approx(1.0, abs=1e-12)


def test_a_small_irregular_support_shows_each_value():
    rows = bars(with_null(accuracy(30, 20), [-3.0, 0.5, 1.0, 7.0], [0.25] * 4))
    assert [row["value"] for row in rows] == ["-3", "0.5", "1", "7"]


def test_identical_runs_have_a_chart():
    (row,) = bars(accuracy(0, 0, both=3))
    assert row["value"] == "0"
    assert row["mass"] == 1.0


def test_png():
    image = charts.png(charts.pmf_chart(accuracy(12, 3, both=10)))
    assert image.startswith(b"\x89PNG\r\n")
    width, height = (int.from_bytes(image[at : at + 4], "big") for at in (16, 20))
    assert width >= 1200
    assert height >= 500


def test_the_program_cannot_end_its_script_element():
    program = charts.program().lower()
    assert "</script" not in program
    assert "<!--" not in program


@pytest.mark.parametrize(("module", "library"), [("altair", "altair"), ("vl_convert", "vl-convert-python")])
def test_missing_library(monkeypatch, module, library):
    comparison = accuracy(12, 3, both=10)
    monkeypatch.setitem(sys.modules, module, None)
    charts.program.cache_clear()
    with pytest.raises(MissingDependencyError, match=f"need `{library}`") as caught:
        charts.embedded(charts.pmf_chart(comparison))
    assert caught.value.hint == "pip install 'trackperm[plots]'"


def test_only_charts_load_altair():
    code = (
        "import sys, trackperm, trackperm.report, trackperm.report.text;"
        "import trackperm.ledger.comparison_publication;"
        "sys.exit(' '.join(m for m in ('altair', 'vl_convert', 'mlflow', 'wandb') if m in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
