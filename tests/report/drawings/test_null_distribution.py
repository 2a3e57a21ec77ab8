from __future__ import annotations

import math
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest
from support.comparisons import accuracy

import trackperm
from trackperm.exact import NullDistribution
from trackperm.report.drawings.null_distribution import Bars, null_drawing, pmf_curves
from trackperm.trackers.wandb.charts import CURVES


def bars(comparison):
    return Bars.of(comparison.null_distribution).rows(comparison.test)


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


@pytest.mark.parametrize("first", [-14, -10.5], ids=["a bunch at 0", "no bunch at 0"])
def test_bunches_of_an_irregular_support_are_no_peaks(first: float):
    """The values lie in bunches, as those of F1 and MCC do: other widths give some bars two bunches.

    Regression: without a bunch at 0, the bar there held two, and was a spike.
    """
    rng = np.random.default_rng(0)
    bunch = np.repeat(np.arange(first, 0.25 - first), 40)
    values = bunch + rng.uniform(-0.1, 0.1, bunch.size)
    values = np.unique(np.concatenate([values, -values]))
    mass = np.exp(-((np.round(values - first) + first) ** 2) / 24)
    rows = bars(with_null(accuracy(30, 20), values, mass / mass.sum()))
    heights = list({row["from"]: row["top"] for row in rows}.values())
    peak = int(np.argmax(heights))
    assert heights == pytest.approx(sorted(heights[:peak]) + sorted(heights[peak:], reverse=True), rel=1e-9)
    assert heights[peak] < 1.1 * heights[peak - 1]


def test_a_small_irregular_support_shows_each_value():
    rows = bars(with_null(accuracy(30, 20), [-3.0, 0.5, 1.0, 7.0], [0.25] * 4))
    assert [row["value"] for row in rows] == ["-3", "0.5", "1", "7"]


def test_identical_runs_have_a_chart():
    (row,) = bars(accuracy(0, 0, both=3))
    assert row["value"] == "0"
    assert row["mass"] == 1.0


@pytest.mark.sample(3)
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_the_drawing_is_bounded_and_inside(narrow, alternative):
    large = null_drawing(accuracy(30_000, 29_900, alternative=alternative), narrow=narrow)
    assert len(large.encode()) < 12_000
    drawing = ET.fromstring(large)
    width, height = map(float, drawing.attrib["viewBox"].split()[2:])
    for path in drawing.iterfind("{*}path"):
        numbers = [
            (axis, float(value)) for axis, value in re.findall(r"([MVH ])(-?[\d.]+)", path.attrib["d"])
        ]
        assert all(0 <= value <= (width if axis in "MH" else height) for axis, value in numbers)
    for each in drawing.iterfind("{*}rect"):
        assert 0 <= float(each.attrib["x"]) <= float(each.attrib["x"]) + float(each.attrib["width"]) <= width


def test_the_areas_of_the_outlines_are_the_masses():
    comparison = accuracy(30, 20, both=50)
    drawing = ET.fromstring(null_drawing(comparison))
    areas = [area(path.attrib["d"]) for path in drawing.iterfind("{*}path")]
    assert areas[1] / sum(areas) == pytest.approx(comparison.pvalue, abs=0.005)


def area(path):
    total, x, base, top = 0.0, 0.0, 0.0, 0.0
    for command, values in re.findall(r"([MVH])([^MVHz]+)", path):
        if command == "M":
            x, base = map(float, values.split())
        elif command == "V":
            top = float(values)
        else:
            total += (float(values) - x) * (base - top)
            x = float(values)
    return total


def test_observed_value_and_ticks_are_said():
    drawing = null_drawing(accuracy(30, 20, both=50))
    texts = [each.text for each in ET.fromstring(drawing).iterfind("{*}text")]
    assert "observed +0.1000" in texts
    assert "0" in texts
    assert texts[-1] == "difference in accuracy (candidate minus baseline)"
    assert (
        ET.fromstring(drawing).attrib["aria-label"].startswith("Null distribution of the statistic accuracy")
    )


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("counts", [(20, 4), (30, 20, 50)])
def test_curves_have_the_same_bars(counts, alternative):
    comparison = accuracy(*counts, alternative=alternative)
    points = pmf_curves(comparison)
    observed = [point for point in points if point["curve"] == "observed"]
    drawn = [point for point in points if point["curve"] != "observed"]
    extreme = math.fsum(
        point["probability"] for point in drawn if point["curve"].startswith("at least as extreme, ")
    )
    assert comparison.pvalue - 2e-5 < extreme < comparison.pvalue * (1 + 1e-9)  # ends of tails are not drawn
    assert {point["curve"] for point in drawn} <= {*CURVES}
    assert {point["value"] for point in observed} == {comparison.difference}
    assert all(point["top"] - point["base"] == pytest.approx(point["probability"]) for point in drawn)
