from __future__ import annotations

import itertools
import json
import time
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trackperm.errors import InputError, InputTypeError, PairingError, SpecError, TrackpermError
from trackperm.exact import CountTable, RationalStatistic, structured_test
from trackperm.pairing import Pairing, PairingReport, pair
from trackperm.statistic import load_statistic
from trackperm.tables import ExampleTable

ACCURACY, MEAN, MICRO_F1 = (load_statistic(name) for name in ("accuracy", "mean", "micro_f1"))


def table(origin: str = "base", untyped: bool = False, **columns: list[Any]) -> ExampleTable:
    frame = pl.DataFrame(columns)
    return ExampleTable(ExampleTable.from_native(frame, origin).frame, origin, untyped=untyped)


def rows(frame: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = frame.rows(named=True)
    return found


BASELINE = table(id=["c", "a", "b"], prediction=["x", "x", "y"], label=["x", "y", "y"])
CANDIDATE = table("cand", label=["y", "x", "y"], id=["b", "c", "a"], prediction=["y", "y", "y"])


class TestResult:
    def test_counts_are_ordered_by_id(self) -> None:
        counts = pair(BASELINE, CANDIDATE, ACCURACY).counts
        assert counts.names == ("correct", "n")
        assert counts.frame.columns == [
            "id",
            "candidate.correct",
            "candidate.n",
            "baseline.correct",
            "baseline.n",
        ]
        assert counts.frame.rows() == [("a", 1, 1, 0, 1), ("b", 1, 1, 1, 1), ("c", 0, 1, 1, 1)]

    def test_report(self) -> None:
        report = pair(BASELINE, CANDIDATE, ACCURACY).report
        assert (report.by, report.n_baseline, report.n_candidate, report.n_paired) == ("id", 3, 3, 3)
        assert (report.n_dropped, report.labels_checked, report.missing, report.notes) == (
            0,
            True,
            "error",
            (),
        )
        assert report.lines() == ["3 examples paired by id", "labels of both runs agree"]
        assert json.loads(json.dumps(report.to_dict())) == report.to_dict()
        assert PairingReport(**{**report.to_dict(), "notes": (), "inputs_checked": ()}) == report

    def test_discordant_examples(self) -> None:
        assert rows(pair(BASELINE, CANDIDATE, ACCURACY).discordant) == [
            {
                "id": id_, "label": label, "baseline.prediction": "x", "candidate.prediction": "y",
                "baseline.correct": 1 - correct, "candidate.correct": correct,
                "baseline.n": 1, "candidate.n": 1,
            }
            for id_, label, correct in (("a", "y", 1), ("c", "x", 0))
        ]  # fmt: skip

    def test_a_count_stands_for_the_column_of_its_name(self) -> None:
        baseline = table(id=[1, 2], tp=[1, 0], incorrect=[0, 0])
        candidate = table(id=[1, 2], tp=[1, 0], incorrect=[2, 0])
        assert rows(pair(baseline, candidate, MICRO_F1).discordant) == [
            {"id": 1, "baseline.tp": 1, "candidate.tp": 1, "baseline.incorrect": 0, "candidate.incorrect": 2}
        ]

    def test_a_label_that_no_count_reads_is_shown(self) -> None:
        baseline, candidate = (table(id=[1], score=[score], label=["x"]) for score in (0, 1))
        assert rows(pair(baseline, candidate, MEAN).discordant)[0]["label"] == "x"

    def test_identical_runs_have_no_discordant_example(self) -> None:
        found = pair(BASELINE, BASELINE, ACCURACY)
        assert rows(found.discordant) == []
        assert found.counts.discordant().shape == (0, 5)
        assert found.report.baseline_digest == found.report.candidate_digest

    def test_columns_by_other_names(self) -> None:
        renamed = {"id": "key", "prediction": "said", "label": "gold"}
        statistic = load_statistic("accuracy", columns=renamed)
        runs = [
            ExampleTable.from_native(run.frame.rename(renamed), run.origin) for run in (BASELINE, CANDIDATE)
        ]
        found = pair(runs[0], runs[1], statistic)
        assert found.counts.frame.rows() == pair(BASELINE, CANDIDATE, ACCURACY).counts.frame.rows()
        assert found.discordant.columns[:4] == ["id", "label", "baseline.said", "candidate.said"]

    def test_integer_ids_are_ordered_as_numbers(self) -> None:
        run = table(id=[10, 9, 2], score=[1, 2, 3])
        assert pair(run, run, MEAN).counts.frame["id"].to_list() == [2, 9, 10]

    def test_text_ids_are_ordered_as_text(self) -> None:
        run = table(untyped=True, id=["10", "9", "02", "2"], score=["1", "2", "3", "4"])
        assert pair(run, run, MEAN).counts.frame["id"].to_list() == ["02", "10", "2", "9"]

    def test_integer_ids_beside_ids_of_a_csv(self) -> None:
        found = pair(
            table("a.csv", untyped=True, id=["2", "1"], score=["1", "0"]),
            table("b", id=[1, 2], score=[0, 0]),
            MEAN,
        )
        assert found.counts.frame["id"].to_list() == ["1", "2"]
        assert "`id` of `b` has integers, which were compared as text" in found.report.notes

    def test_a_count_without_a_column(self) -> None:
        run = table(id=[1, 2], score=[5, 6])
        assert pair(run, run, MEAN).counts.frame["baseline.n"].to_list() == [1, 1]

    def test_the_id_may_be_counted(self, tmp_path: Any) -> None:
        spec = tmp_path / "even.yaml"
        spec.write_text("name: even\ncounts: {even: (id % 2 == 0) & (score > 0), n: 1}\nscore: even / n\n")
        baseline, candidate = table(id=[1, 2], score=[1, 0]), table(id=[2, 1], score=[1, 1])
        found = pair(baseline, candidate, load_statistic(spec))
        assert rows(found.discordant) == [
            {"id": 2, "baseline.score": 0, "candidate.score": 1, "baseline.even": 0, "candidate.even": 1,
             "baseline.n": 1, "candidate.n": 1}
        ]  # fmt: skip


def candidate(**columns: list[Any]) -> ExampleTable:
    given = {"id": ["a", "b", "c"], "prediction": ["x", "x", "y"], "label": ["y", "y", "x"]}
    return table("cand", **{**given, **columns})


NO_PARTNER = (
    "1 of 3 examples of `base` and 0 of 2 examples of `cand` have no partner (first: 'b')\n\n"
    "Hint: `--missing drop` tests the 2 that are paired and says so in the result; "
    "`--missing wrong` counts the others as wrong."
)
REFUSED = {
    "no partner in the candidate": (
        candidate(id=["a", "c"], prediction=["x", "y"], label=["y", "x"]), NO_PARTNER,
    ),
    "no partner on both sides": (
        candidate(id=["a", "B", "C"], label=["y", "y", "x"]),
        "2 of 3 examples of `base` and 2 of 3 examples of `cand` have no partner\n\n"
        "    only in `base`   only in `cand`\n"
        "    'b'              'B'\n"
        "    'c'              'C'\n\n"
        "2 of them differ in upper and lower case alone.\n\n"
        "Hint: `--missing drop` tests the 1 that are paired and says so in the result; "
    "`--missing wrong` counts the others as wrong.",
    ),
    "nothing in common": (
        candidate(id=["1", "2", "3"]),
        "Hint: No example is left to test. `--id NAME` names another column than `id`.",
    ),
    "ids that are one longer": (
        candidate(id=["a ", "b", "c"]), "    only in `base`   only in `cand`\n    'a'              'a '",
    ),
    "no id": (
        candidate(id=["a", None, "c"]),
        "1 of 3 examples of `cand` have no `id` (rows counted from 0: 1)\n\n" + NO_PARTNER,
    ),
    "no value": (
        candidate(prediction=["x", None, "y"]),
        "1 of 3 examples of `cand` have no value in `prediction` (first: 'b')\n\n"
        "Hint: `--missing drop` tests the 2 that are paired and says so in the result; "
    "`--missing wrong` counts the others as wrong.",
    ),
    "no label that is used": (
        candidate(label=["y", None, "x"]), "1 of 3 examples of `cand` have no value in `label` (first: 'b')",
    ),
    "no prediction at all": (
        candidate(prediction=[None, None, None]),
        "3 of 3 examples of `cand` have no value in `prediction` (first: 'a', 'b', 'c')\n\n"
        "Hint: No example is left to test.",
    ),
    "ids twice": (
        candidate(id=["a", "b", "b"]),
        "2 of 3 rows of `cand` share their `id` with another (first: 'b')\n\nHint: each example has one row.",
    ),
    "labels disagree": (
        candidate(label=["y", "x", "x"]),
        "`label` differs between the runs on 1 of 3 examples\n\n"
        "    example   `base`   `cand`\n"
        "    'b'       'y'      'x'\n\n"
        "Hint: Runs can be compared on the same reference answers only: `--label NAME` names another",
    ),
    "several at once": (
        candidate(id=["a", "b", "d"], label=["y", "x", "x"]),
        "    only in `base`   only in `cand`\n    'c'              'd'\n\n"
        "`label` differs between the runs on 1 of 2 examples\n\n",
    ),
    "decimal ids": (table("cand", id=[0.5], prediction=["x"], label=["x"]), "decimal in `cand` (first: 0.5)"),
    "integer ids": (
        table("cand", id=[1], prediction=["x"], label=["x"]),
        "column `id` is text in `base` (first: 'c') but integer in `cand` (first: 1)",
    ),
    "no examples": (table("cand", id=[], prediction=[], label=[]), "`cand` has no examples"),
    "no prediction column": (
        table("cand", id=["a"], predictions=["x"], label=["x"]),
        "the statistic `accuracy` needs columns `id`, `prediction`, `label`\n\n"
        "    `base` has `id`, `prediction`, `label`\n"
        "    `cand` lacks `prediction` and has `id`, `predictions`, `label`\n\n"
        "Hint: `--prediction predictions` names the column.",
    ),
    "no column that it names": (
        table("cand", qid=["a"], pred=["x"], gold=["x"]),
        "Hint: `--id qid`, `--prediction pred`, `--label NAME` name the columns; `--by-position` pairs rows",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refusals(case: Any) -> None:
    with pytest.raises(TrackpermError) as caught:
        pair(BASELINE, case[0], ACCURACY)
    assert case[1] in str(caught.value)
    assert str(caught.value).count("Hint:") == (0 if "no examples" in case[1] else 1)


def test_kinds_of_refusals() -> None:
    for case, error in {
        "no partner on both sides": PairingError, "ids twice": PairingError, "labels disagree": PairingError,
        "no examples": PairingError, "integer ids": InputTypeError, "no prediction column": InputError,
    }.items():  # fmt: skip
        with pytest.raises(error):
            pair(BASELINE, REFUSED[case][0], ACCURACY)


def test_five_of_many_differences_are_shown_and_long_values_cut() -> None:
    run = table(id=[f"{i}" * 100 for i in range(9)], score=[1] * 9)
    with pytest.raises(PairingError) as caught:
        pair(run, table("cand", id=["x", run.frame["id"][0]], score=[1, 1]), MEAN)
    assert len(str(caught.value).splitlines()) == 10
    assert all(len(line) < 110 for line in str(caught.value).splitlines())


def test_ids_that_are_no_ids() -> None:
    run = table(id=[True, False], score=[1, 1])
    with pytest.raises(PairingError, match="column `id` is boolean, which identifies no examples"):
        pair(run, run, MEAN)


def test_nested_ids() -> None:
    run = table(id=[[1], [2]], score=[1, 1])
    with pytest.raises(PairingError, match="column `id` is list of integers, which identifies no examples"):
        pair(run, run, MEAN)


def test_columns_of_a_spec_are_named_in_it() -> None:
    run = table(id=[1], tps=[1], wrong=[1])
    with pytest.raises(InputError) as caught:
        pair(run, run, MICRO_F1)
    assert (
        caught.value.hint == "`columns: {tp: tps, incorrect: NAME}` in the statistic's file name the columns."
    )


def test_text_where_numbers_are_counted() -> None:
    run = table(untyped=True, id=["1"], score=["good"])
    with pytest.raises(SpecError):
        pair(run, run, MEAN)


COUNTS = {
    "above the limit": ("n: score", [1, 2**62 + 1], f"the count `n` of `s` is {2**62 + 1} on example 2 of"),
    "below the limit": ("n: score", [1, -(2**62)], f"the count `n` of `s` is {-(2**62)} on example 2 of"),
    "beyond 64 bits": (
        "n: score * score",
        [1, 2**40],
        "is undefined or beyond 64 bits on example 2 of `base`",
    ),
    "undefined": ("n: 1 // score", [1, 0], "is undefined or beyond 64 bits on example 2 of `base`"),
    "an infinite decimal": (
        "n: score * score * 0.5", [0.5, 1e200], "`n` of `s` is undefined or infinite on example 2 of `base`",
    ),
    "an undefined decimal": (
        "n: score ** 2 - score ** 2", [1e200, 0.5],
        "`n` of `s` is undefined or infinite on example 1 of `base`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", COUNTS.values(), ids=COUNTS)
def test_counts_that_are_no_counts(case: Any, tmp_path: Any) -> None:
    count, scores, message = case
    (tmp_path / "s.yaml").write_text(f"name: s\ncounts: {{{count}}}\nscore: n\n")
    run = table(id=[1, 2], score=scores)
    with pytest.raises(InputError) as caught:
        pair(run, run, load_statistic(tmp_path / "s.yaml"))
    assert message in str(caught.value)


def test_the_largest_counts(tmp_path: Any) -> None:
    (tmp_path / "s.yaml").write_text("name: s\ncounts: {n: score}\nscore: n\n")
    scores = [2**62 - 1, 1 - 2**62]
    run = table(id=[1, 2], score=scores)
    assert pair(run, run, load_statistic(tmp_path / "s.yaml")).counts.frame["baseline.n"].to_list() == scores


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
        assert found.counts.frame.rows() == [(0, 30, 1, 50, 1), (1, 25, 1, 25, 1), (2, 200, 1, 100, 1)]
        assert set(found.counts.frame.schema.values()) == {nw.Int64()}
        assert found.statistic.resolution == {"total": Fraction(1, 100)}
        assert found.report.notes[-1] == "`total`: 2 decimals, taken exactly"

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
            ([1 / 3, 0.5], [1 / 6, 0.5], Fraction(1, 6), "fractions, taken exactly as multiples of 1/6"),
            ([2**-1.5, 0.5], [0.25, 0.5], Fraction(1, 2**54),
             "binary numbers, taken exactly as multiples of 2**-54"),
            ([1 / q for q in range(1, 101)], [1 / q for q in range(1, 101)], Fraction(1, 2**59),
             "binary numbers, taken exactly as multiples of 2**-59"),
        ],
    )  # fmt: skip
    def test_other_units(self, baseline: Any, candidate: Any, unit: Fraction, note: str) -> None:
        found = means(baseline, candidate)
        assert found.statistic.resolution == {"total": unit}
        assert f"`total`: {note}" in found.report.notes

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
        assert found.report.notes[-1] == "`total`: rounded to multiples of 0.01 (largest change 0.005)"
        assert means([1, 0], [2, 0], statistic).statistic.resolution == {}

    def test_resolution_by_name(self) -> None:
        statistic = load_statistic("mean", resolution={"total": "1/2", "n": "0.1"})
        found = means([1, 3], [2, 3], statistic, dtype=pl.Int64)
        assert found.counts.frame.rows() == [(0, 4, 10, 2, 10), (1, 6, 10, 6, 10)]
        assert found.statistic.resolution == statistic.resolution
        assert found.report.notes[-2:] == (
            "`total`: numbers, taken exactly as multiples of 0.5",
            "`n`: numbers, taken exactly as multiples of 0.1",
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

    def test_missing_scores_are_named(self) -> None:
        with pytest.raises(
            PairingError, match=r"1 of 2 examples of `cand` have no value in `score` \(first: 1\)"
        ):
            means([0.5, 0.5], [0.5, float("nan")])

    def test_what_was_used_gives_the_same_counts_again(self, tmp_path: Any) -> None:
        scores = [0.5, 1 / 3, 0.25], [0.1 + 0.2, 2 / 3, 0.2]
        found = means(*scores)
        (tmp_path / "used.yaml").write_text(found.statistic.document())
        again = means(*scores, load_statistic(tmp_path / "used.yaml"))
        assert again.counts.frame.rows() == found.counts.frame.rows()
        assert again.statistic.document() == found.statistic.document()

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
        counts = CountTable.from_counts(found.counts.names, *found.counts.grouped())
        statistic = found.statistic
        stay, swap = statistic.pairs(counts.candidate, counts.baseline)
        assert isinstance(statistic.h, RationalStatistic)
        test = structured_test(stay, swap, statistic.h, multiplicities=counts.multiplicities)
        differences = [c - b for c, b in zip(given_, baseline, strict=True)]
        flips = itertools.product((1, -1), repeat=len(pairs))
        sums = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in flips]
        assert test.observed == pytest.approx(float(sums[0] / len(pairs)), rel=1e-14)
        wanted = Fraction(sum(abs(x) >= abs(sums[0]) for x in sums), len(sums))
        assert test.pvalue == pytest.approx(float(wanted), rel=1e-12)
        assert callable(statistic.score)
        assert statistic.score(counts.totals()[0]) == sum(given_) / len(pairs)


class TestMissingDrop:
    def test_what_is_dropped(self) -> None:
        baseline = table(
            id=["a", "b", "c", "d", None],
            prediction=["x", "x", None, "x", "x"],
            label=["x", "y", "x", None, "x"],
        )
        given = table(
            "cand", id=["a", "b", "c", "d", "e"], prediction=["y"] * 5, label=["x", "y", "x", None, "x"]
        )
        found = pair(baseline, given, ACCURACY, missing="drop")
        assert found.counts.frame["id"].to_list() == ["a", "b"]
        report = found.report
        assert (report.n_baseline, report.n_candidate, report.n_paired, report.n_dropped) == (5, 5, 2, 4)
        assert report.missing == "drop"
        assert report.lines()[1] == (
            "4 examples without a partner or a value dropped (5 in the baseline, 5 in the candidate)"
        )

    def test_nothing_is_left(self) -> None:
        with pytest.raises(PairingError, match=r"have no partner[^$]*Hint: No example is left to test"):
            pair(BASELINE, candidate(id=["1", "2", "3"]), ACCURACY, missing="drop")

    @pytest.mark.parametrize("case", ["ids twice", "labels disagree", "several at once"])
    def test_what_no_drop_accepts(self, case: str) -> None:
        with pytest.raises(PairingError, match=r"share their `id`|`label` differs"):
            pair(BASELINE, REFUSED[case][0], ACCURACY, missing="drop")

    def test_other_words_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"`missing` is one of `error`, .*, not 'guess'"):
            pair(BASELINE, CANDIDATE, ACCURACY, missing="guess")


class TestByPosition:
    def test_rows_are_numbered_from_0(self) -> None:
        found = pair(table(score=[1, 1]), table(score=[1, 0]), MEAN, by_position=True)
        assert found.counts.frame["id"].to_list() == [0, 1]
        assert found.report.by == "position"
        assert found.report.lines()[0] == (
            "2 examples paired by position: nothing proves that the rows belong together"
        )

    def test_an_id_column_is_not_used(self) -> None:
        found = pair(BASELINE, BASELINE, ACCURACY, by_position=True)
        assert found.counts.frame["id"].to_list() == [0, 1, 2]
        assert found.report.notes == ("column `id` was not used, as rows were to be paired by position",)

    def test_order_counts(self) -> None:
        runs = [table(score=scores) for scores in ([1, 0], [0, 1])]
        reports = [pair(run, run, MEAN, by_position=True).report for run in runs]
        assert reports[0].baseline_digest != reports[1].baseline_digest

    def test_lengths_differ(self) -> None:
        with pytest.raises(
            PairingError, match=r"`base` has 2 examples and `cand` has 1: they cannot be paired by"
        ):
            pair(table(score=[1, 1]), table("cand", score=[1]), MEAN, by_position=True)

    def test_labels_disagree(self) -> None:
        with pytest.raises(PairingError, match=r"Rows in different orders need `--id NAME` instead of"):
            pair(BASELINE, CANDIDATE, ACCURACY, by_position=True)

    def test_missing_values(self) -> None:
        baseline, given = table(score=[1, None]), table(score=[1, 2])
        with pytest.raises(PairingError, match=r"have no value in `score` \(first: 1\)"):
            pair(baseline, given, MEAN, by_position=True)
        found = pair(baseline, given, MEAN, by_position=True, missing="drop")
        assert (found.counts.frame["id"].to_list(), found.report.n_dropped) == ([0], 1)


class TestLabelsThatNoCountReads:
    def test_agree(self) -> None:
        run = table(id=[1, 2], score=[1, 1], label=["x", None])
        assert pair(run, run, MEAN).report.labels_checked

    @pytest.mark.parametrize("other", ["y", None])
    def test_disagree(self, other: str | None) -> None:
        baseline, given = (
            table(id=[1], score=[1], label=pl.Series([x], dtype=pl.String)) for x in ("x", other)
        )
        for pair_ in ((baseline, given), (given, baseline)):
            with pytest.raises(PairingError, match="`label` differs between the runs on 1 of 1 examples"):
                pair(*pair_, MEAN)

    def test_as_numbers(self) -> None:
        baseline = table(id=[1], score=[1], label=[True])
        assert pair(baseline, table(id=[1], score=[1], label=[1.0]), MEAN).report.labels_checked

    def test_types_that_do_not_go_together(self) -> None:
        with pytest.raises(InputTypeError, match="column `label` is integer in `base`"):
            pair(table(id=[1], score=[1], label=[1]), table(id=[1], score=[1], label=["x"]), MEAN)

    @pytest.mark.parametrize(
        ("labels", "reason"),
        [
            ((None, None), "neither run has a column `label`"),
            (([1], None), "`cand` has no column `label`"),
            ((None, [1]), "`base` has no column `label`"),
            (([1], [{"a": 1}]), "column `label` of `cand` holds lists or objects"),
        ],
    )
    def test_what_cannot_be_compared_is_noted(self, labels: Any, reason: str) -> None:
        runs = [
            table(origin, id=[1], score=[1], **({} if label is None else {"label": label}))
            for origin, label in zip(("base", "cand"), labels, strict=True)
        ]
        report = pair(runs[0], runs[1], MEAN).report
        assert not report.labels_checked
        assert report.notes == (f"labels were not compared: {reason}",)
        assert "labels of both runs agree" not in report.lines()


def result(pairing: Pairing) -> Any:
    grouped = [array.tolist() for array in pairing.counts.grouped()]
    return pairing.counts.frame.rows(), grouped, rows(pairing.discordant), pairing.report


@st.composite
def examples(draw: st.DrawFn) -> pl.DataFrame:
    n = draw(st.integers(1, 12))
    ids: st.SearchStrategy[Any] = draw(st.sampled_from([st.integers(-5, 50), st.text(max_size=3)]))
    values = draw(
        st.sampled_from(
            [st.integers(0, 2), st.sampled_from(["x", "yé", ""]), st.sampled_from([0.0, -0.0, 0.5])]
        )
    )
    return pl.DataFrame(
        {
            "id": draw(st.lists(ids, min_size=n, max_size=n, unique=True)),
            "label": draw(st.lists(values, min_size=n, max_size=n)),
            "baseline": draw(st.lists(values | st.none(), min_size=n, max_size=n)),
            "candidate": draw(st.lists(values, min_size=n, max_size=n)),
        },
        strict=False,
    )


def runs(frame: pl.DataFrame) -> list[pl.DataFrame]:
    return [frame.select("id", pl.col(run).alias("prediction"), "label") for run in ("baseline", "candidate")]


def paired(frames: list[Any]) -> Any:
    tables = [ExampleTable.from_native(frame, origin) for frame, origin in zip(frames, "bc", strict=True)]
    try:
        return result(pair(tables[0], tables[1], ACCURACY, missing="drop"))
    except PairingError as error:
        return str(error)


@settings(deadline=None)
@given(examples(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(frame: pl.DataFrame, random: Any) -> None:
    shuffled = [run[random.sample(range(len(run)), len(run))] for run in runs(frame)]
    assert paired(shuffled) == paired(runs(frame))


@settings(deadline=None)
@given(examples())
def test_engines_agree(frame: pl.DataFrame) -> None:
    expected = paired(runs(frame))
    for frames in (
        [run.to_arrow() for run in runs(frame)],
        [run.to_pandas() for run in runs(frame)],
        [run.to_pandas(use_pyarrow_extension_array=True) for run in runs(frame)],
        [run.lazy() for run in runs(frame)],
        [runs(frame)[0].to_arrow(), runs(frame)[1].to_pandas()],
    ):
        assert paired(frames) == expected


@settings(deadline=None)
@given(examples())
def test_counts_against_plain_python(frame: pl.DataFrame) -> None:
    expected = sorted(
        (id_, int(c == label), 1, int(b == label), 1) for id_, label, b, c in frame.rows() if b is not None
    )
    found = paired(runs(frame))
    assert (found[0] if expected else expected) == expected


def test_digests_tell_values_types_and_columns_apart() -> None:
    def digest(**columns: list[Any]) -> str:
        run = table(id=[1, 2], **columns)
        return pair(run, run, MEAN).report.baseline_digest

    different: list[dict[str, list[Any]]] = [
        {"score": [1, 2]}, {"score": [2, 1]}, {"score": [True, True]}, {"score": [1, 1]},
        {"score": [1, 2], "label": ["a", "bc"]}, {"score": [1, 2], "label": ["ab", "c"]},
        {"score": [1, 2], "label": [None, "c"]}, {"score": [1, 2], "label": ["", "c"]},
        {"score": [1, 2], "label": [1, None]}, {"score": [1, 2], "label": [None, 1]},
    ]  # fmt: skip
    assert len({digest(**columns) for columns in different}) == len(different)
    assert digest(score=[1, 2], label=[0.0, 0.5]) == digest(score=[1, 2], label=[-0.0, 0.5])
    assert digest(score=[1, 2], other=[3, 4]) == digest(score=[1.0, 2.0])


@pytest.mark.parametrize("engine", ["polars", "pandas"])
def test_many_examples_take_little_time(engine: str) -> None:
    n = 200_000
    rng = np.random.default_rng(1)
    label = rng.integers(0, 10, n)
    tables = []
    for origin in ("base", "cand"):
        order = rng.permutation(n)
        prediction = np.where(rng.random(n) < 0.8, label, rng.integers(0, 10, n))
        ids = [f"example-{i}" for i in order]
        columns = {"id": ids, "prediction": prediction[order], "label": label[order]}
        frame = pl.DataFrame(columns) if engine == "polars" else pd.DataFrame(columns)
        tables.append(ExampleTable.from_native(frame, origin))
    start = time.process_time()
    counts = pair(tables[0], tables[1], ACCURACY).counts
    multiplicities = counts.grouped()[2]
    assert time.process_time() - start < 5  # 0.4 s
    assert multiplicities.sum() == n
