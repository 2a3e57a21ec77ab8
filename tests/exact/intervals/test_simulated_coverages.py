"""The simulation behind the table of coverages: many score tests at once equal intervals one by one."""

from __future__ import annotations

import numpy as np
import pytest
from exact.intervals.coverages import NAMES, Laws, score_tests
from exact.intervals.coverages_of_numbers import LAWS
from exact.intervals.coverages_of_numbers import score_tests as score_tests_of_numbers
from exact.intervals.populations import Simulation, n_classes_of, populations
from scipy.special import ndtri

from trackperm.exact.intervals import Interval, score_interval, why_not_scored


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_difference_is_in_the_interval_exactly_if_it_is_not_rejected(name: str) -> None:
    simulation = Simulation(name)
    laws, rng, compared = Laws(simulation), np.random.default_rng(0), 0
    for population in list(populations(n_classes_of(name)))[2::26]:
        differences = [simulation.truth(population) + shift for shift in (0.0, 0.04, -0.1)]
        drawn = rng.multinomial(population.n, population.law, 4)
        found, shown = score_tests(laws, drawn, differences)
        for z, has_interval, counts in zip(found, shown, drawn, strict=True):
            there = counts > 0
            observed, swapped = (side[there] for side in simulation.rows(counts))
            table = observed, swapped, simulation.statistic.h, counts[there]
            assert has_interval == (why_not_scored(*table) is None)
            if not has_interval:
                continue
            for alpha in (0.05, 0.1):
                interval, bound = score_interval(*table, alpha=alpha), -ndtri(alpha / 2.0)
                if isinstance(interval, Interval):
                    inside = [difference in interval for difference in differences]
                    np.testing.assert_array_equal(inside, ~(np.abs(z) > bound))
                    compared += 1
    assert compared >= 5


@pytest.mark.parametrize("name", ["RMSE", "pooled F1"])
def test_intervals_of_numbers_are_those_of_the_simulation(name: str) -> None:
    statistic, laws = LAWS[name]
    rng, n, n_shown = np.random.default_rng(0), 50, 0
    for draw in list(laws.values())[::3]:
        rows = np.rint(1000.0 * draw(rng, (2, n)))
        h, differences = statistic(n), [0.0, 0.05 if name == "pooled F1" else 5.0]
        found, shown, _ = score_tests_of_numbers(h, rows, differences)
        for z, has_interval, each in zip(found, shown, rows.astype(np.int64), strict=True):
            half = each.shape[1] // 2
            table = each, np.roll(each, half, axis=1), h, np.ones(n, dtype=np.int64)
            assert has_interval == (why_not_scored(*table) is None)
            interval = score_interval(*table)
            if has_interval and isinstance(interval, Interval):
                n_shown += 1
                inside = [difference in interval for difference in differences]
                np.testing.assert_array_equal(inside, ~(np.abs(z) > -ndtri(0.025)))
    assert n_shown >= 1
