from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from support.example_tables import rows, table

from trackperm.errors import InputError, InputTypeError, PairingError, TrackpermError
from trackperm.pairing import PairingReport
from trackperm.pairing.pair import pair_in_memory as pair
from trackperm.statistic import load_statistic
from trackperm.tables.table import ExampleTable

ACCURACY, MEAN, POOLED_F1 = (load_statistic(name) for name in ("accuracy", "mean", "pooled_f1"))


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
        assert report.lines() == [
            "3 examples paired by id",
            "labels of both runs agree",
            "2 of 3 predictions changed",
        ]
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

    def test_a_count_replaces_the_column_of_its_name(self) -> None:
        baseline = table(id=[1, 2], tp=[1, 0], incorrect=[0, 0])
        candidate = table(id=[1, 2], tp=[1, 0], incorrect=[2, 0])
        assert rows(pair(baseline, candidate, POOLED_F1).discordant) == [
            {"id": 1, "baseline.tp": 1, "candidate.tp": 1, "baseline.incorrect": 0, "candidate.incorrect": 2}
        ]

    def test_a_column_that_has_the_name_of_a_count_is_shown(self, tmp_path: Any) -> None:
        """Regression: predictions that a log calls `correct` were missing beside this count."""
        runs = [table(id=[1, 2], label=["a", "b"], correct=said) for said in (["b", "b"], ["a", "b"])]
        (row,) = rows(pair(*runs, load_statistic("accuracy", columns={"prediction": "correct"})).discordant)
        assert (row["baseline.prediction"], row["candidate.prediction"]) == ("b", "a")
        assert (row["baseline.correct"], row["candidate.correct"]) == (0, 1)
        spec = tmp_path / "long.yaml"
        spec.write_text("name: long\ncounts: {n: n > 3}\nscore: n\n")
        (row,) = rows(pair(table(id=[1], n=[2]), table(id=[1], n=[5]), load_statistic(spec)).discordant)
        assert (row["candidate.n (column)"], row["candidate.n"]) == (5, 1)

    def test_a_label_that_no_count_reads_is_shown(self) -> None:
        baseline, candidate = (table(id=[1], score=[score], label=["x"]) for score in (0, 1))
        assert rows(pair(baseline, candidate, MEAN).discordant)[0]["label"] == "x"

    def test_identical_runs_have_no_discordant_example(self) -> None:
        found = pair(BASELINE, BASELINE, ACCURACY)
        assert rows(found.discordant) == []
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
    "Hint: `--missing drop` tests the 2 paired examples only, and the result says so; "
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
        "2 of them differ only in upper and lower case.\n\n"
        "Hint: `--missing drop` tests the 1 paired example only, and the result says so; "
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
        "1 of 3 examples of `cand` has no `id` (rows counted from 0: 1)\n\n" + NO_PARTNER.split(";")[0] + ".",
    ),
    "no value": (
        candidate(prediction=["x", None, "y"]),
        "1 of 3 examples of `cand` has no value in `prediction` (first: 'b')\n\n"
        "Hint: `--missing drop` tests the 2 paired examples only, and the result says so; "
    "`--missing wrong` counts the others as wrong.",
    ),
    "no label that is used": (
        candidate(label=["y", None, "x"]), "1 of 3 examples of `cand` has no value in `label` (first: 'b')",
    ),
    "no prediction at all": (
        candidate(prediction=[None, None, None]),
        "3 of 3 examples of `cand` have no value in `prediction` (first: 'a', 'b', 'c')\n\n"
        "Hint: No example is left to test.",
    ),
    "ids twice": (
        candidate(id=["a", "b", "b"]),
        "2 of 3 rows of `cand` share their `id` with another row (first: 'b')\n\n"
        "Hint: each example has one row.",
    ),
    "labels disagree": (
        candidate(label=["y", "x", "x"]),
        "`label` differs between the runs on 1 of 3 examples\n\n"
        "    example   `base`   `cand`\n"
        "    'b'       'y'      'x'\n\n"
        "Hint: Both runs need the same reference answers: `--labels FILE` with `--label gold_label` reads",
    ),
    "several at once": (
        candidate(id=["a", "b", "d"], label=["y", "x", "x"]),
        "    only in `base`   only in `cand`\n    'c'              'd'\n\n"
        "`label` differs between the runs on 1 of 2 examples\n\n",
    ),
    "decimal ids": (table("cand", id=[0.5], prediction=["x"], label=["x"]), "decimal in `cand` (such as"),
    "integer ids": (
        table("cand", id=[1], prediction=["x"], label=["x"]),
        "column `id` is text in `base` (such as 'a') but integer in `cand` (such as 1)",
    ),
    "no examples": (table("cand", id=[], prediction=[], label=[]), "`cand` has no examples"),
    "no prediction column": (
        table("cand", id=["a"], predictions=["x"], label=["x"]),
        "the statistic `accuracy` needs columns `id`, `prediction`, `label`\n\n"
        "    `base` has `id`, `prediction`, `label`\n"
        "    `cand` lacks `prediction` and has `id`, `predictions`, `label`\n\n"
        "Hint: `--candidate-column prediction=predictions` names the column.",
    ),
    "no column that it names": (
        table("cand", qid=["a"], pred=["x"], gold=["x"]),
        "Hint: `--candidate-column id=qid`, `--candidate-column prediction=pred`,"
        " `--candidate-column label=gold` name the columns; `--by-position` pairs rows",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refusals(case: Any) -> None:
    with pytest.raises(TrackpermError) as caught:
        pair(BASELINE, case[0], ACCURACY)
    assert case[1] in caught.value.on_command_line()
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


def test_boolean_ids_are_refused() -> None:
    run = table(id=[True, False], score=[1, 1])
    with pytest.raises(PairingError, match="column `id` is boolean; ids must be"):
        pair(run, run, MEAN)


def test_nested_ids() -> None:
    run = table(id=[[1], [2]], score=[1, 1])
    with pytest.raises(PairingError, match="column `id` is list of integers; ids must be integers or text"):
        pair(run, run, MEAN)


def test_columns_of_a_spec_are_named_in_it() -> None:
    run = table(id=[1], tps=[1], wrong=[1])
    with pytest.raises(InputError) as caught:
        pair(run, run, POOLED_F1)
    assert caught.value.hint == "`--column tp=tps`, `--column incorrect=NAME` name the columns."


def test_text_where_numbers_are_counted() -> None:
    run = table(untyped=True, id=["1"], score=["good"])
    with pytest.raises(InputTypeError, match="`score` of `base` holds text, such as 'good'"):
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
def test_invalid_counts_are_refused(case: Any, tmp_path: Any) -> None:
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


class TestMissingDrop:
    def test_dropped_examples(self) -> None:
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

    def test_no_example_left_is_refused(self) -> None:
        with pytest.raises(PairingError, match=r"have no partner[^$]*Hint: No example is left to test"):
            pair(BASELINE, candidate(id=["1", "2", "3"]), ACCURACY, missing="drop")

    @pytest.mark.parametrize("case", ["ids twice", "labels disagree", "several at once"])
    def test_dropping_does_not_accept_duplicates_or_other_labels(self, case: str) -> None:
        with pytest.raises(PairingError, match=r"share their `id`|`label` differs"):
            pair(BASELINE, REFUSED[case][0], ACCURACY, missing="drop")

    def test_other_values_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"`missing` is 'guess'; expected one of `error`"):
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
        assert found.report.notes == ("column `id` was not used, because rows are paired by position",)

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
        with pytest.raises(PairingError, match=r"`columns=..id.: .NAME..` instead of `by_position=True`"):
            pair(BASELINE, CANDIDATE, ACCURACY, by_position=True)

    def test_missing_values(self) -> None:
        baseline, given = table(score=[1, None]), table(score=[1, 2])
        with pytest.raises(PairingError, match=r"has no value in `score` \(first: 1\)"):
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
            with pytest.raises(PairingError, match="`label` differs between the runs on 1 of 1 example"):
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
    def test_columns_that_cannot_be_compared_are_noted(self, labels: Any, reason: str) -> None:
        runs = [
            table(origin, id=[1], score=[1], **({} if label is None else {"label": label}))
            for origin, label in zip(("base", "cand"), labels, strict=True)
        ]
        report = pair(runs[0], runs[1], MEAN).report
        assert not report.labels_checked
        assert report.notes == (f"labels were not compared: {reason}",)
        assert "labels of both runs agree" not in report.lines()
