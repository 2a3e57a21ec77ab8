"""Scores in decimals: taken exactly, in one unit for both runs."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.example_tables import rows, table

from trackperm.errors import InputError, PairingError
from trackperm.exact import RationalStatistic, structured_test
from trackperm.pairing import Pairing
from trackperm.pairing.pair import pair_in_memory as pair
from trackperm.statistic import load_statistic
from trackperm.statistic.written_spec import written_spec

MEAN = load_statistic("mean")


def means(baseline: Any, candidate: Any, statistic: Any = MEAN, dtype: Any = pl.Float64) -> Pairing:
    """Pair two runs with these scores."""
    tables = [
        table(origin, id=list(range(len(scores))), score=pl.Series(scores, dtype=dtype))
        for origin, scores in (("base", baseline), ("cand", candidate))
    ]
    return pair(tables[0], tables[1], statistic)


class TestDecimals:
    def test_both_runs_have_one_unit(self) -> None:
        found = means([0.5, 0.25, 1.0], [0.1 + 0.2, 0.25, 2.0])
        *counts, real = found.counts.frame.get_columns()
        assert pl.DataFrame(counts).rows() == [(0, 30, 1, 50, 1), (1, 25, 1, 25, 1), (2, 200, 1, 100, 1)]
        assert {each.dtype for each in counts} == {pl.Int64()}
        assert (real.name, real.to_list()) == ("real.total", [0.1 + 0.2, 0.25, 2.0])
        assert found.statistic.resolution == {"total": Fraction(1, 100)}
        assert found.report.notes[-1] == "`score`: 2 decimals, without rounding"

    def test_discordant_examples_have_the_scores_of_the_spec(self) -> None:
        found = rows(means([0.5, 0.25], [0.1 + 0.2, 0.25]).discordant)
        assert found == [
            {"id": 0, "baseline.score": 0.5, "candidate.score": 0.1 + 0.2, "baseline.total": 0.5,
             "candidate.total": 0.3, "baseline.n": 1, "candidate.n": 1}
        ]  # fmt: skip

    def test_integers_have_none(self) -> None:
        found = means([1.0, 2.0], [2.0, 2.0])
        assert found.statistic is MEAN
        assert found.report.notes == means([1, 2], [2, 2], dtype=pl.Int64).report.notes
        assert not any("total" in note for note in found.report.notes)

    @pytest.mark.parametrize(
        ("baseline", "candidate", "unit", "note"),
        [
            ([1 / 3, 0.5], [1 / 6, 0.5], Fraction(1, 6), "fractions, without rounding: multiples of 1/6"),
            ([2**-1.5, 0.5], [0.25, 0.5], Fraction(1, 2**54),
             "binary numbers, without rounding: multiples of 2**-54"),
            ([1 / q for q in range(1, 101)], [1 / q for q in range(1, 101)], Fraction(1, 2**59),
             "binary numbers, without rounding: multiples of 2**-59"),
        ],
    )  # fmt: skip
    def test_other_units(self, baseline: Any, candidate: Any, unit: Fraction, note: str) -> None:
        found = means(baseline, candidate)
        assert found.statistic.resolution == {"total": unit}
        assert f"`score`: {note}" in found.report.notes

    def test_single_precision(self) -> None:
        assert means([0.1, 0.7], [0.3, 0.25], dtype=pl.Float32).statistic.resolution == {
            "total": Fraction(1, 100)
        }

    def test_text_of_a_csv(self) -> None:
        base, cand = (
            table(origin, untyped=True, id=["1", "2"], score=scores)
            for origin, scores in (("base", ["0.1", "1"]), ("cand", ["0.35", "0"]))
        )
        found = pair(base, cand, MEAN)
        assert found.counts.frame["candidate.total"].to_list() == [35, 0]

    def test_resolution_of_all_decimals(self) -> None:
        statistic = load_statistic("mean", resolution="0.01")
        found = means([0.125, 0.5], [0.314, 0.5], statistic)
        assert found.counts.frame.select("baseline.total", "candidate.total").rows() == [(12, 31), (50, 50)]
        assert found.statistic.resolution == {"total": Fraction(1, 100)}
        assert found.report.notes[-1] == "`score`: rounded to multiples of 0.01 (largest change 0.005)"
        assert means([1, 0], [2, 0], statistic).statistic.resolution == {}

    def test_resolution_by_name(self) -> None:
        statistic = load_statistic("mean", resolution={"total": "1/2", "n": "0.1"})
        found = means([1, 3], [2, 3], statistic, dtype=pl.Int64)
        assert found.counts.frame.rows() == [(0, 4, 10, 2, 10), (1, 6, 10, 6, 10)]
        assert found.statistic.resolution == statistic.resolution
        assert found.report.notes[-2:] == (
            "`score`: numbers, without rounding: multiples of 0.5",
            "`n`: numbers, without rounding: multiples of 0.1",
        )

    def test_a_resolution_of_1_is_kept(self) -> None:
        found = means([0.2, 2.9], [1.2, 2.9], load_statistic("mean", resolution={"total": 1}))
        assert found.statistic.resolution == {"total": 1}
        assert found.counts.frame["baseline.total"].to_list() == [0, 3]

    def test_resolutions_that_do_not_fit(self) -> None:
        for resolution, message in (
            ("1", "the count `total` of `mean`: the resolution 1 makes both runs equal on every example"),
            (
                "1e-40",
                "the count `total` of `mean`: the resolution 0.0000000000000000000000000000000000000001 is",
            ),
        ):
            with pytest.raises(InputError, match=message):
                means([0.125, 0.5], [0.314, 0.5], load_statistic("mean", resolution=resolution))

    @pytest.mark.parametrize("statistic", ["mean", "rmse"])
    def test_a_score_beside_which_differences_are_lost_is_named(self, statistic: str) -> None:
        """Regression: 3.4e38 in both runs made all others equal: the runs were identical, p = 1."""
        runs = [
            table(origin, id=[7, 8, 9], label=[0, 0, 0], prediction=scores, score=scores)
            for origin, scores in (("base", [0.5, 1e30, 0.75]), ("cand", [0.625, 1e30, 0.5]))
        ]
        with pytest.raises(InputError, match=r"which both runs have, is too large .* are lost \(example 8\)"):
            pair(runs[0], runs[1], load_statistic(statistic))

    def test_missing_scores_are_named(self) -> None:
        with pytest.raises(
            PairingError, match=r"1 of 2 examples of `cand` has no value in `score` \(first: 1\)"
        ):
            means([0.5, 0.5], [0.5, float("nan")])

    def test_the_logged_statistic_gives_the_same_counts(self, tmp_path: Any) -> None:
        scores = [0.5, 1 / 3, 0.25], [0.1 + 0.2, 2 / 3, 0.2]
        found = means(*scores)
        (tmp_path / "used.yaml").write_text(written_spec(found.statistic))
        again = means(*scores, load_statistic(tmp_path / "used.yaml"))
        assert again.counts.frame.rows() == found.counts.frame.rows()
        assert written_spec(again.statistic) == written_spec(found.statistic)

    @settings(deadline=None)
    @given(
        st.sampled_from([1, 2, 10, 12, 1000]),
        st.lists(st.tuples(*[st.integers(-30, 30)] * 2), min_size=1, max_size=8),
    )
    def test_p_value_and_scores_against_enumeration_in_fractions(
        self, q: int, pairs: list[tuple[int, int]]
    ) -> None:
        baseline, given_ = ([Fraction(pair[i], q) for pair in pairs] for i in range(2))
        found = means([float(x) for x in baseline], [float(x) for x in given_])
        counts = found.count_table
        statistic = found.statistic
        observed, swapped = statistic.pairs(counts.candidate, counts.baseline)
        assert isinstance(statistic.h, RationalStatistic)
        test = structured_test(observed, swapped, statistic.h, multiplicities=counts.multiplicities)
        differences = [c - b for c, b in zip(given_, baseline, strict=True)]
        flips = itertools.product((1, -1), repeat=len(pairs))
        sums = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in flips]
        assert test.observed == pytest.approx(float(sums[0] / len(pairs)), rel=1e-14)
        wanted = Fraction(sum(abs(x) >= abs(sums[0]) for x in sums), len(sums))
        assert test.pvalue == pytest.approx(float(wanted), rel=1e-12)
        assert callable(statistic.score)
        assert statistic.score(counts.totals()[0]) == sum(given_) / len(pairs)
