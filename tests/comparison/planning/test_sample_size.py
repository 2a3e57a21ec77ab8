"""Sample sizes: exact for 0/1 scores, labelled estimates for others, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.command_line import invoke
from support.comparisons import accuracy

import trackperm
from trackperm.comparison.planning.sample_size import plan_from_pilot, plan_paired
from trackperm.errors import InputError


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """Two runs of 400 examples, with a positive label in three."""
    rng = np.random.default_rng(1)
    label = np.where(rng.random(400) < 1 / 3, "yes", "no")
    paths = []
    for name, error in (("base.csv", 0.25), ("cand.csv", 0.15)):
        wrong = rng.random(400) < error
        prediction = np.where(wrong, np.where(label == "yes", "no", "yes"), label)
        frame = pl.DataFrame({"id": np.arange(400), "label": label, "prediction": prediction})
        frame.write_csv(tmp_path / name)
        paths.append(tmp_path / name)
    return paths[0], paths[1]


def test_the_statement_to_check() -> None:
    """+3 points at 80 % and two-sided alpha 0.05, by discordance."""
    found = [plan_paired(0.03, discordance).needed for discordance in (0.05, 0.10, 0.15, 0.25)]
    assert [needed.first for needed in found if needed] == [463, 920, 1362, 2238]


def test_a_pilot_of_0_and_1_plans_exactly() -> None:
    pilot = accuracy(30, 10, 160)
    plan = plan_from_pilot(pilot, difference=0.05, n_examples=500)
    assert plan == plan_paired(0.05, 0.2, n_examples=500)
    assert plan.needed is not None
    assert not plan.from_pilot
    said = "\n".join(plan.lines())
    assert f"{plan.needed.first:,} examples" in said
    assert "(exact)" in said
    assert "Monte Carlo" not in said


def test_the_difference_of_a_pilot_tends_to_be_too_large() -> None:
    plan = plan_from_pilot(accuracy(30, 10, 160))
    assert plan.difference == pytest.approx(0.1)
    assert "tends to be too large" in plan.lines()[-1]


def test_recall_is_planned_in_positives(runs: tuple[Path, Path]) -> None:
    pilot = trackperm.compare(*runs, "recall", parameters={"positive": "yes"})
    positives = [pl.read_csv(path).filter(pl.col("label") == "yes") for path in runs]
    alone = plan_from_pilot(trackperm.compare(*positives, "accuracy"), difference=0.05)
    plan = plan_from_pilot(pilot, difference=0.05)
    assert (plan.needed, plan.discordance) == (alone.needed, alone.discordance)
    assert f"counts: {len(positives[0])} of 400 in the pilot" in plan.lines()[-1]


def test_plans_for_other_statistics_are_estimates(runs: tuple[Path, Path]) -> None:
    pilot = trackperm.compare(*runs, "f1", parameters={"positive": "yes"})
    plan = plan_from_pilot(pilot, difference=0.05, n_resamples=100)
    first, second = plan.lines()
    assert "(normal approximation)" in first
    assert "Monte Carlo: 100 resamples of the pilot" in second
    assert plan.simulated.n_examples == plan.about
    assert abs(plan.simulated.power - 0.8) < 0.15, "about as many examples as it takes"


@pytest.mark.parametrize(("alternative", "difference"), [("greater", -0.05), ("less", 0.05)])
@pytest.mark.parametrize("statistic", ["accuracy", "f1"])
def test_a_difference_that_the_test_does_not_look_for(
    runs: tuple[Path, Path], statistic: str, alternative: Any, difference: float
) -> None:
    parameters = {"positive": "yes"} if statistic == "f1" else None
    pilot = trackperm.compare(*runs, statistic, parameters=parameters, alternative=alternative)
    with pytest.raises(InputError, match=f"which is not in the alternative '{alternative}'"):
        plan_from_pilot(pilot, difference=difference)


def test_a_pilot_without_differences_is_refused() -> None:
    with pytest.raises(InputError, match="`difference` is 0"):
        plan_from_pilot(accuracy(5, 5, 10))
    with pytest.raises(InputError, match="`discordance` is 0"):
        plan_from_pilot(accuracy(0, 0, 10), difference=0.1)


def test_the_command(runs: tuple[Path, Path]) -> None:
    assert "920 examples (exact)" in invoke("power", "--difference", "0.03", "--discordance", "0.1")
    asked = invoke("power", "--difference", "0.03", "--discordance", "0.1", "--examples", "1319")
    assert "with 1,319 examples the power is 0.9249 (exact)" in asked
    assert "minimum detectable effect 0.025 at 80 % power" in asked
    found = json.loads(
        invoke(
            "power",
            *(*runs, "-s", "f1", "--set", "positive=yes", "--difference", "0.05"),
            *("--samples", "50", "--format", "json"),
        )
    )
    assert found["needed"] is None
    assert found["simulated"]["n_resamples"] == 50


def test_power_of_means_over_pairs_is_that_of_their_test() -> None:
    """100 examples, 30 % positive, areas of .8 and .9: 61 % of 500 simulated comparisons have p < .05."""
    rng = np.random.default_rng(3)
    label = np.arange(2000) < 600
    both = rng.normal(size=2000) + rng.normal(size=(2, 2000))
    both += 2.0 * np.array([[0.8416], [1.2816]]) * label
    runs = [pl.DataFrame({"id": range(2000), "label": label.astype(int), "score": own}) for own in both]
    pilot = trackperm.compare(*runs, "roc_auc")
    plan = plan_from_pilot(pilot, difference=min(0.1, pilot.difference), n_examples=100, n_resamples=100)
    assert plan.simulated.power == pytest.approx(0.61, abs=0.15)


def scored(scores: Any) -> pl.DataFrame:
    return pl.DataFrame({"id": range(len(scores)), "score": scores})


def test_no_sample_size_is_below_that_of_any_verdict() -> None:
    """Regression: 5 examples for 80 % power, where no p of five examples is below 0.0625: the power was 0."""
    old = np.random.default_rng(5).integers(300, 900, 60)
    plan = plan_from_pilot(trackperm.compare(scored(old), scored(old + 50), "mean"), n_resamples=200)
    assert plan.about == 6
    assert plan.simulated.power == 1.0
    assert "about 6 examples (with fewer, p < 0.05 is too rarely possible)" in plan.lines()[0]


@pytest.mark.extended
def test_a_sample_size_does_not_contradict_its_simulated_power() -> None:
    """Regression: of 6 such examples, 55 % contain one of the other sign, so that p < 0.05 is impossible."""
    difference = np.array([20] * 54 + [19, 21] * 3 + [-1] * 8)
    pilot = trackperm.compare(scored(0 * difference), scored(difference), "mean")
    plan = plan_from_pilot(pilot, n_resamples=400)
    assert "(normal approximation, raised by resampling)" in plan.lines()[0]
    assert plan.simulated.n_examples == plan.about > 6
    assert plan.simulated.interval[1] >= 0.8
    there = plan_from_pilot(pilot, n_examples=50, n_resamples=400)
    assert (there.about, there.simulated.n_examples) == (plan.about, 50)
