from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import polars as pl
import pytest
from support import permuted_attempts
from support.unit_swaps import Row, accuracy, example_pvalue, f1, pvalue

import trackperm
from trackperm.errors import InputError, PairingError
from trackperm.report import text

Passes = list[list[int]]  # of every example, of every attempt


def attempts(passes: Passes) -> list[Row]:
    """Rows of a run; attempt j at example i passes if `passes` has 1 there."""
    return [
        {"id": f"e{i}", "epoch": j, "label": i % 3, "prediction": i % 3 if passed else 3}
        for i, of_one in enumerate(passes)
        for j, passed in enumerate(of_one)
    ]


def drawn(seed: int, sizes: list[int], rate: float) -> Passes:
    rng = np.random.default_rng(seed)
    return [[int(rng.random() < rate) for _ in range(size)] for size in sizes]


def compared(baseline: Passes, candidate: Passes, statistic: str = "accuracy", **options: Any) -> Any:
    sides = [pl.DataFrame(attempts(passes)) for passes in (baseline, candidate)]
    return trackperm.compare(*sides, statistic, **options)


def of_scores(baseline: list[Fraction], candidate: list[Fraction]) -> Fraction:
    """Two-sided p-value of the swaps of the scores of examples."""
    return example_pvalue(baseline, candidate, lambda u, v: sum(u) - sum(v))


def mean(passes: list[int]) -> Fraction:
    return Fraction(sum(passes), len(passes))


FIVE = [5] * 8


class TestEpochs:
    """The rows of one example are one unit, whatever the statistic."""

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize(
        ("statistic", "score"), [("accuracy", accuracy), ("f1", f1)], ids=["accuracy", "f1"]
    )
    def test_against_enumeration(self, statistic: str, score: Callable[..., Any], seed: int) -> None:
        baseline, candidate = (attempts(drawn(seed + k, FIVE, rate)) for k, rate in ((0, 0.4), (9, 0.7)))
        sides = [pl.DataFrame(side) for side in (baseline, candidate)]
        options = {"parameters": {"positive": 1}} if statistic == "f1" else {}
        found = trackperm.compare(*sides, statistic, **options)
        wanted = pvalue(baseline, candidate, "id", lambda u, v: score(u) - score(v))
        assert found.pvalue == pytest.approx(float(wanted), rel=1e-9)
        assert (found.n_examples, found.pairing.n_paired) == (8, 8)
        assert "unit: the example, by `id`; 5 rows of each; their counts are added up" in found.pairing.notes

    @pytest.mark.parametrize("column", ["epoch", "sample", "trial", "repeat", "seed", "attempt", "Seed_Id"])
    def test_columns_that_number_rows(self, column: str) -> None:
        frame = pl.DataFrame(attempts(drawn(0, FIVE, 0.5))).rename({"epoch": column})
        assert trackperm.compare(frame, frame).n_examples == 8

    @pytest.mark.sample(3)
    @pytest.mark.parametrize("column", ["run", "run_idx", "iteration", "iter", "generation", "Run-Id"])
    def test_columns_that_may_number_rows(self, column: str) -> None:
        frame = pl.DataFrame(attempts(drawn(0, FIVE, 0.5))).rename({"epoch": column})
        assert trackperm.compare(frame, frame).n_examples == 8
        assert trackperm.compare(frame, frame, columns={"id": f"id,{column}"}).n_examples == 8
        single = frame.filter(pl.col(column) == pl.col(column).min().over("id"))
        assert trackperm.compare(single, single).pairing.notes == ()
        with pytest.raises(PairingError, match="share their `id` with another"):
            trackperm.compare(*(frame.with_columns(pl.lit(1).alias(column)) for _ in range(2)))

    def test_texts_number_no_rows(self) -> None:
        frame = pl.DataFrame(attempts(drawn(0, FIVE, 0.5))).rename({"epoch": "generation"})
        frame = frame.with_columns(pl.col("generation").map_elements("answer {}".format, pl.String))
        with pytest.raises(PairingError, match="share their `id` with another"):
            trackperm.compare(frame, frame)

    def test_named_beside_the_id(self) -> None:
        baseline, candidate = drawn(1, FIVE, 0.3), drawn(2, FIVE, 0.6)
        named, plain = (
            compared(baseline, candidate, columns={"id": "id,epoch"}),
            compared(baseline, candidate),
        )
        assert (named.n_examples, named.pvalue) == (8, plain.pvalue)
        added = set(named.pairing.notes) - set(plain.pairing.notes)
        assert added == {
            "unit: the example is `id`; `epoch`, which is named by `--id id,epoch`, tells its rows apart;"
            " `--unit row` takes each row as an example"
        }
        for way in ({"unit": "row"}, {"repeats": "mean"}):
            found = compared(baseline, candidate, columns={"id": "id,epoch"}, **way)
            assert not any("tells its rows apart" in note for note in found.pairing.notes)

    def test_rows_without_a_column_of_repeats_are_duplicates(self) -> None:
        frame = pl.DataFrame(attempts(drawn(0, FIVE, 0.5)))
        with pytest.raises(PairingError, match="share their `id` with another"):
            trackperm.compare(frame.drop("epoch"), frame.drop("epoch"))
        with pytest.raises(PairingError, match="share their `id` with another"):
            trackperm.compare(pl.concat([frame, frame]), frame)
        assert trackperm.compare(frame.drop("epoch"), frame.drop("epoch"), unit="example").n_examples == 8

    def test_seeds_need_not_be_the_same(self) -> None:
        frame = pl.DataFrame(attempts(drawn(0, FIVE, 0.5)))
        other = frame.with_columns(pl.col("epoch") + 100)
        assert trackperm.compare(frame, other).n_discordant == 0


class TestRowsAsUnits:
    def test_note_in_the_verdict(self) -> None:
        baseline, candidate = drawn(1, FIVE, 0.3), drawn(2, FIVE, 0.6)
        found = compared(baseline, candidate, unit="row")
        assert found.n_examples == 40
        rows = [
            [{**row, "id": (row["id"], row["epoch"])} for row in attempts(side)]
            for side in (baseline, candidate)
        ]
        flat = [[row for row in side if row["prediction"] == row["label"]] for side in rows]
        only = [{row["id"] for row in side} for side in flat]
        better, worse = len(only[1] - only[0]), len(only[0] - only[1])
        assert (found.n_better, found.n_worse) == (better, worse)
        assert "40 rows (" in "\n".join(text.lines(found))
        assert any(note.startswith("look: unit: each row of `id,epoch`") for note in found.pairing.notes)

    def test_needs_a_column_that_distinguishes_rows(self) -> None:
        frame = pl.DataFrame(attempts(drawn(0, FIVE, 0.5))).drop("epoch")
        with pytest.raises(PairingError, match="share their `id` with another"):
            trackperm.compare(frame, frame, unit="row")


class TestRules:
    """Attempts that pass or fail, as many in both runs."""

    BASELINE, CANDIDATE = drawn(3, FIVE, 0.3), drawn(4, FIVE, 0.6)

    @pytest.mark.parametrize(
        ("repeats", "rule"),
        [("mean", mean), ("any", lambda p: Fraction(max(p))), ("all", lambda p: Fraction(min(p)))],
    )
    def test_against_enumeration(self, repeats: Any, rule: Callable[[list[int]], Fraction]) -> None:
        found = compared(self.BASELINE, self.CANDIDATE, repeats=repeats)
        sides = [[rule(passes) for passes in side] for side in (self.BASELINE, self.CANDIDATE)]
        assert found.baseline_score == pytest.approx(fmean(sides[0]))
        assert found.candidate_score == pytest.approx(fmean(sides[1]))
        assert found.pvalue == pytest.approx(float(of_scores(*sides)), rel=1e-9)
        assert found.pairing.asymptotic is None

    @pytest.mark.parametrize("k", [1, 2, 5])
    @pytest.mark.parametrize(("statistic", "of_any"), [("pass_at_k", True), ("pass_hat_k", False)])
    def test_pass_at_k_counts_the_choices_of_k_attempts(self, statistic: str, of_any: bool, k: int) -> None:
        sides = [
            pl.DataFrame(attempts(side)).with_columns(passed=pl.col("prediction") == pl.col("label"))
            for side in (self.BASELINE, self.CANDIDATE)
        ]
        found = trackperm.compare(*sides, statistic, parameters={"k": k})
        wanted = [
            [
                mean([int((any if of_any else all)(chosen)) for chosen in combinations(passes, k)])
                for passes in side
            ]
            for side in (self.BASELINE, self.CANDIDATE)
        ]
        assert found.baseline_score == pytest.approx(fmean(wanted[0]))
        assert found.candidate_score == pytest.approx(fmean(wanted[1]))
        assert found.pvalue == pytest.approx(float(of_scores(*wanted)), rel=1e-9)

    def test_pass_at_k_of_an_unequal_number(self) -> None:
        """The unbiased estimator of Chen et al. (2021), by their product formula."""
        passes = drawn(5, [3, 4, 5, 9], 0.5)
        frame = pl.DataFrame(attempts(passes)).with_columns(passed=pl.col("prediction") == pl.col("label"))
        found = trackperm.compare(frame, frame, "pass_at_k", parameters={"k": 3})
        wanted = []
        for each in passes:
            n, c = len(each), sum(each)
            wanted.append(1.0 if n - c < 3 else 1.0 - float(np.prod(1.0 - 3.0 / np.arange(n - c + 1, n + 1))))
        assert found.baseline_score == pytest.approx(fmean(wanted))

    def test_more_attempts_than_there_are(self) -> None:
        frame = pl.DataFrame(attempts(self.BASELINE)).with_columns(passed=pl.lit(1))
        with pytest.raises(
            InputError, match="needs 6 attempts of each example, but some examples have 5"
        ) as caught:
            trackperm.compare(frame, frame, "pass_at_k", parameters={"k": 6})
        assert caught.value.hint == "`--set k=5` needs no more."
        with pytest.raises(InputError, match="`k` of `pass_hat_k` is 0"):
            trackperm.compare(frame, frame, "pass_hat_k", parameters={"k": 0})

    @pytest.mark.parametrize("statistic", ["error_rate", "f1"])
    def test_any_needs_passes(self, statistic: str) -> None:
        options = {"parameters": {"positive": 1}} if statistic == "f1" else {}
        with pytest.raises(InputError, match=f"`{statistic}` is not a share of rows that pass"):
            compared(self.BASELINE, self.CANDIDATE, statistic, repeats="any", **options)

    def test_numbers_of_passed_tests_are_no_attempts(self) -> None:
        frame = pl.DataFrame({"id": [1, 1, 2, 2], "passed": [0, 3, 1, 1]})
        with pytest.raises(InputError, match="the count `passed` of `pass_at_k` has other values"):
            trackperm.compare(frame, frame, "pass_at_k")

    def test_rules_of_classes(self) -> None:
        with pytest.raises(InputError, match="`macro_f1` has classes"):
            compared(self.BASELINE, self.CANDIDATE, "macro_f1", repeats="mean")

    def test_scores_of_any_size_are_averaged(self) -> None:
        rng = np.random.default_rng(0)
        frames = [
            pl.DataFrame(
                {"id": np.repeat(np.arange(6), 3), "seed": [0, 1, 2] * 6, "score": rng.integers(9, size=18)}
            )
            for _ in range(2)
        ]
        found = trackperm.compare(*frames, repeats="mean")
        wanted = [
            [
                Fraction(int(total), 3)
                for total in frame.group_by("id").agg(pl.col("score").sum()).sort("id")["score"]
            ]
            for frame in frames
        ]
        assert found.pvalue == pytest.approx(float(of_scores(*wanted)), rel=1e-9)
        assert found.statistic.name == "score"


class TestUnequalNumbers:
    THREE, FIVE = drawn(6, [3] * 7, 0.3), drawn(7, [5] * 7, 0.6)

    def test_refused_with_the_choices(self) -> None:
        with pytest.raises(PairingError, match="7 of 7 examples have more rows in one run") as caught:
            compared(self.THREE, self.FIVE)
        assert "    'e0'      3            5" in str(caught.value)
        for words in ("`--unit attempt`", "`--repeats bundle`", "`--repeats mean`"):
            assert words in str(caught.value.hint)

    def test_means_are_labelled_asymptotic(self) -> None:
        found = compared(self.THREE, self.FIVE, repeats="mean")
        sides = [[mean(passes) for passes in side] for side in (self.THREE, self.FIVE)]
        assert found.pvalue == pytest.approx(float(of_scores(*sides)), rel=1e-9)
        assert found.difference == pytest.approx(fmean(sides[1]) - fmean(sides[0]))
        assert "3 rows of each in the baseline, 5 in the candidate" in str(found.pairing.asymptotic)
        assert "level asymptotic" in text.lines(found)[1]
        assert found.to_dict()["pairing"]["asymptotic"] == found.pairing.asymptotic

    def test_bundles_are_exchanged_with_their_number(self) -> None:
        retries = [drawn(seed, [1, 3, 2, 1, 2, 3, 1], 0.5) for seed in (1, 2)]
        retries[1] = [each[::-1] if i % 2 else [*each, 1] for i, each in enumerate(retries[1])]
        found = compared(*retries, repeats="bundle")
        rows = [attempts(side) for side in retries]
        wanted = pvalue(*rows, "id", lambda u, v: accuracy(u) - accuracy(v))
        assert found.pvalue == pytest.approx(float(wanted), rel=1e-9)
        assert found.difference == pytest.approx(float(accuracy(rows[1]) - accuracy(rows[0])))

    def test_attempts_within_examples(self) -> None:
        baseline, candidate = self.THREE[:4], self.FIVE[:4]
        found = compared(baseline, candidate, unit="attempt")
        observed = fmean(mean(u) - mean(v) for u, v in zip(candidate, baseline, strict=True))
        assert found.difference == pytest.approx(float(observed))
        assert found.pvalue == pytest.approx(float(of_attempts(baseline, candidate)), rel=1e-9)
        assert found.method == "attempts"
        assert found.interval is None
        assert found.pairing.asymptotic is None

    def test_attempts_need_passes(self) -> None:
        with pytest.raises(InputError, match="is not a share of rows that pass"):
            compared(self.THREE, self.FIVE, "f1", unit="attempt", parameters={"positive": 1})
        with pytest.raises(InputError, match="clusters, strata or classes"):
            compared(self.THREE, self.FIVE, "balanced_accuracy", unit="attempt")

    def test_numbers_that_vary_within_a_run(self) -> None:
        baseline, candidate = drawn(8, [1, 4, 2, 3], 0.3), drawn(9, [3, 2, 2, 5], 0.7)
        found = compared(baseline, candidate, unit="attempt")
        assert found.pvalue == pytest.approx(float(of_attempts(baseline, candidate)), rel=1e-9)

    @pytest.mark.parametrize("repeats", ["mean", "bundle"])
    def test_an_example_that_one_run_lacks(self, repeats: Any) -> None:
        with pytest.raises(PairingError, match="1 of 7 examples"):
            compared(self.THREE, self.FIVE[:-1], repeats=repeats)
        found = compared(self.THREE, self.FIVE[:-1], repeats=repeats, missing="drop")
        assert (found.n_examples, found.pairing.n_dropped) == (6, 1)
        assert found.pvalue == compared(self.THREE[:-1], self.FIVE[:-1], repeats=repeats).pvalue


def of_attempts(baseline: Passes, candidate: Passes) -> Fraction:
    """Two-sided p-value of all ways to deal the attempts of each example to the two runs."""
    examples = [(sum(u), len(u), sum(v), len(v)) for u, v in zip(candidate, baseline, strict=True)]
    observed = permuted_attempts.statistic(examples)
    return permuted_attempts.pvalue(permuted_attempts.permuted(examples), observed, "two-sided", mid=False)


class TestClusters:
    def test_of_attempts(self) -> None:
        """`cluster: id` with `--id id,seed`: rows are paired by both, and exchanged by example."""
        baseline, candidate = drawn(1, FIVE, 0.3), drawn(2, FIVE, 0.6)
        found = compared(baseline, candidate, cluster="id", columns={"id": "id,epoch"})
        assert found.pvalue == compared(baseline, candidate).pvalue

    def test_of_examples(self) -> None:
        sides = [
            [{**row, "document": int(row["id"][1:]) // 2} for row in attempts(drawn(seed, FIVE, rate))]
            for seed, rate in ((1, 0.3), (2, 0.6))
        ]
        frames = [pl.DataFrame(side) for side in sides]
        wanted = pvalue(*sides, "document", lambda u, v: accuracy(u) - accuracy(v))
        for repeats in (None, "mean"):
            found = trackperm.compare(*frames, "accuracy", cluster="document", repeats=repeats)
            assert found.pvalue == pytest.approx(float(wanted), rel=1e-9)
            assert found.n_examples == 4


@pytest.mark.parametrize(
    ("repeats", "options"), [("mean", {}), ("pass_at_k", {"k": 1}), ("pass_hat_k", {"k": 1})]
)
def test_averages_that_are_fractions_within_strata(
    tmp_path: Path, repeats: str, options: dict[str, int]
) -> None:
    """The mean over strata keeps its strata where averages have a unit of their own."""
    parameters = f"parameters: {options}\n" if options else ""
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: s\ncounts: {correct: prediction == label, n: 1}\nscore: correct / n\nstrata: label\n"
        f"repeats: {repeats}\n{parameters}".replace("'", "")
    )
    first = pl.DataFrame(
        [
            {"id": i, "epoch": e, "label": "ab"[i % 2], "prediction": "a" if e == 0 else "ab"[i % 2]}
            for i in range(4)
            for e in range(2)
        ]
    )
    for engine in ("polars", "duckdb"):
        found = trackperm.compare(
            first, first.with_columns(prediction=pl.col("label")), str(path), engine=engine
        )
        assert (found.baseline_score, found.candidate_score) == (0.75, 1.0)
        assert (found.n_discordant, found.pvalue) == (2, 0.5)


def test_balanced_accuracy_of_averages() -> None:
    rows = [
        {"id": i, "epoch": e, "label": "ab"[i % 2], "prediction": "a" if e == 0 else "ab"[i % 2]}
        for i in range(4)
        for e in range(2)
    ]
    first = pl.DataFrame(rows)
    second = first.with_columns(prediction=pl.col("label"))
    found = trackperm.compare(first, second, "balanced_accuracy", repeats="mean")
    assert (found.baseline_score, found.candidate_score, found.pvalue) == (0.75, 1.0, 0.5)
