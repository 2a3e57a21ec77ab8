"""Ledger of a test set: stable numbers, and p-values adjusted for all logged comparisons."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.comparisons import accuracy

from trackperm.errors import InputError, SourceError
from trackperm.exact.multiplicity import adjust_log10
from trackperm.exact.multiplicity.alpha_spending import spending_levels
from trackperm.ledger import TestFamily, families
from trackperm.ledger.comparison_publication import look_sentence, looks_sentence, parquet
from trackperm.ledger.leaderboard_publication import LOG10_COLUMN, PAIRS_FILE
from trackperm.trackers.publication import LoggedComparison
from trackperm.trackers.references import RunReference, TrackedRun

START = datetime(2025, 7, 1, tzinfo=timezone.utc)


def logged(
    run: str,
    seconds: float,
    log10_p: float | str = -2.0,
    key: str = "",
    *,
    finished: bool = True,
    **tags: str,
) -> LoggedComparison:
    found = {"test_set": "saa", "key": key or run, "log10_p": str(log10_p), "verdict": "▲ better"} | tags
    return LoggedComparison(
        TrackedRun(RunReference("mlflow", run), f"accuracy: {run}", "1"),
        START + timedelta(seconds=seconds),
        finished,
        {f"trackperm.{name}": value for name, value in found.items()},
    )


def family(*comparisons: LoggedComparison) -> TestFamily:
    (found,) = families(comparisons)
    return found


class TestNumbers:
    def test_order_is_by_beginning_and_then_by_id(self):
        found = family(logged("c", 5), logged("b", 1), logged("a", 5), logged("d", 0))
        assert [(look.number, look.key) for look in found.entries] == [(1, "d"), (2, "b"), (3, "a"), (4, "c")]
        assert [found.place(key) for key in "dbac"] == [1, 2, 3, 4]
        assert found.place("e") is None

    @given(st.permutations(range(6)))
    @settings(max_examples=20)
    def test_the_order_of_the_listing_does_not_matter(self, order: list[int]):
        made = [logged(f"r{i}", i // 2, -i) for i in range(6)]
        assert family(*(made[i] for i in order)) == family(*made)

    def test_a_later_comparison_changes_no_number(self):
        made = [logged("a", 0), logged("b", 1)]
        before = family(*made).entries
        assert family(*made, logged("c", 2)).entries[:2] == before

    def test_an_unfinished_one_keeps_its_place_when_it_is_completed(self):
        others = [logged("a", 0), logged("c", 2)]
        broken, whole = logged("b", 1, finished=False), logged("b", 1)
        for second in (broken, whole):
            assert [look.key for look in family(*others, second).entries] == ["a", "b", "c"]
        assert family(*others, broken).entries[1].log10_pvalue is None

    def test_runs_of_one_key_are_one_look_since_the_first(self):
        found = family(
            logged("x", 0, -1, "k", finished=False),
            logged("y", 1, -5),
            logged("z", 2, -3, "k"),
            logged("w", 3, -9, "k", finished=False),
        )
        assert [(look.number, look.key, look.log10_pvalue) for look in found.entries] == [
            (1, "k", -3.0),
            (2, "y", -5.0),
        ]
        assert found.entries[0].run.name == "accuracy: z"

    def test_a_digest_of_an_earlier_version_has_a_note(self):
        assert not any("earlier version" in note for note in family(logged("a", 3)).notes())
        assert any("earlier version" in note for note in family(logged("a", 3, test_set="aa")).notes())

    def test_test_sets_are_families_of_their_own(self):
        made = [logged("a", 3), logged("b", 1, test_set="sbb"), logged("c", 4)]
        stray = LoggedComparison(made[0].run, START, True, {"trackperm.key": "s"})
        found = families([*made, stray])
        assert [(each.test_set, len(each.entries)) for each in found] == [("sbb", 1), ("saa", 2)]


class TestAdjusted:
    def test_holm_by_hand(self):
        pvalues = [0.01, 0.04, 0.03, 0.005]
        found = family(*(logged(str(i), i, math.log10(p)) for i, p in enumerate(pvalues)))
        adjusted = {number: 10**value for number, value in found.adjusted("holm").items()}
        assert adjusted == pytest.approx({1: 0.03, 2: 0.06, 3: 0.06, 4: 0.02})

    def test_pvalues_below_the_range_of_floats(self):
        found = family(logged("a", 0, -1204.5), logged("b", 1, -2))
        assert found.adjusted("bonferroni")[1] == pytest.approx(-1204.5 + math.log10(2))

    def test_unfinished_ones_are_in_no_adjustment_and_change_no_spending(self):
        made = [logged("a", 0, -2), logged("b", 1, -2, finished=False), logged("c", 2, -2)]
        found = family(*made)
        assert set(found.adjusted()) == set(found.spent()) == {1, 3}
        assert found.adjusted("bonferroni")[1] == pytest.approx(-2 + math.log10(2))
        completed = family(made[0], logged("b", 1, -2), made[2])
        assert {number: completed.spent()[number] for number in (1, 3)} == found.spent()

    def test_spending_rejects_exactly_below_the_level_of_the_look(self):
        levels = spending_levels(4, 0.05)
        for factor in (0.999, 1.001):
            found = family(*(logged(str(i), i, math.log10(x * factor)) for i, x in enumerate(levels)))
            assert all((10**value < 0.05) == (factor < 1) for value in found.spent().values())

    @pytest.mark.parametrize("log10_p", ["nan", "-inf", "0.5", "much", ""])
    def test_unreadable_pvalues_count_as_1(self, log10_p: str):
        found = family(logged("a", 0, -3), logged("b", 1, log10_p))
        assert [look.number for look in found.unreadable] == [2]
        assert found.adjusted("bonferroni") == pytest.approx({1: -3 + math.log10(2), 2: 0.0})
        assert "the p-values of 2 cannot be read" in found.notes()[-1]

    def test_mid_p_is_noted(self):
        signature = accuracy(9, 2, mid_p=True).signature
        found = family(
            logged("a", 0, signature=signature), logged("b", 1, signature=accuracy(9, 2).signature)
        )
        assert [note for note in found.notes() if note.startswith("mid-p: 1;")]

    def test_an_unknown_method_is_refused(self):
        with pytest.raises(InputError, match="expected one of `holm`"):
            family(logged("a", 0)).adjusted("none")


def board(
    run: str, seconds: float, log10_ps: list[float | None], *, finished: bool = True, **tags: str
) -> LoggedComparison:
    own = {"kind": "leaderboard", "n_pairs": str(len(log10_ps)), "statistic": "accuracy", "log10_p": "-99"}
    return logged(run, seconds, finished=finished, **{**own, **tags})


class Files:
    """Tracker with the files of pairs of leaderboards."""

    def __init__(self, **pairs: list[Any]) -> None:
        self.pairs = pairs

    def files(self, run: TrackedRun) -> dict[str, bytes]:
        if run.reference.locator not in self.pairs:
            raise SourceError("gone")
        values = self.pairs[run.reference.locator]
        names = [f"mlflow:{i}" for i in range(len(values))]
        frame = pl.DataFrame({"candidate_run": names, "baseline_run": names, LOG10_COLUMN: values})
        return {PAIRS_FILE: parquet(frame)}


class TestLeaderboards:
    """A leaderboard is one look with one hypothesis per pair."""

    PAIRS = (-4.0, -0.5, -2.0)

    def read(self, *others: LoggedComparison, pairs: tuple[Any, ...] = PAIRS, **tags: str) -> TestFamily:
        made = family(
            logged("a", 0, -3), board("b", 1, list(self.PAIRS), **tags), logged("c", 2, -2), *others
        )
        return made.with_pairs(Files(b=list(pairs)))

    def test_each_pair_is_counted(self):
        found = self.read(board("d", 3, [-1.0], finished=False), logged("e", 4))
        assert [(look.number, look.n_pairs, look.in_leaderboards) for look in found.entries] == [
            (1, 1, 0),
            (2, 3, 0),
            (5, 1, 3),
            (6, 1, 3),
            (7, 1, 4),
        ]
        assert found.n_comparisons == 7
        assert found.entries[1].log10_pvalue == -4.0

    @pytest.mark.parametrize("method", ["holm", "by", "bonferroni"])
    def test_the_correction_is_that_of_all_hypotheses(self, method: str):
        found = self.read()
        expected = adjust_log10([-3.0, *self.PAIRS, -2.0], method).tolist()
        assert found.adjusted_pairs(method) == {1: expected[:1], 2: expected[1:4], 5: expected[4:]}
        assert found.adjusted(method)[2] == min(expected[1:4])

    def test_a_leaderboard_spends_equal_shares_on_its_pairs(self):
        found = self.read()
        shares = spending_levels(5, 0.05) / 0.05
        each = math.log10(sum(shares[1:4]) / 3)
        assert found.spent_pairs()[2] == pytest.approx([min(p - each, 0.0) for p in self.PAIRS])
        reverse = self.read(pairs=self.PAIRS[::-1])
        assert reverse.spent_pairs()[2] == found.spent_pairs()[2][::-1]
        assert {n: found.spent()[n] for n in (1, 5)} == pytest.approx(
            {1: -3 - math.log10(shares[0]), 5: -2 - math.log10(shares[4])}
        )

    @pytest.mark.parametrize(
        "pairs", [(-4.0, -2.0), (-4.0, None, -2.0), (-4.0, math.nan, -2.0), (-4.0, 0.5, -2.0)]
    )
    def test_pairs_that_cannot_be_read_count_as_one(self, pairs: tuple[Any, ...]):
        found = self.read(pairs=pairs)
        assert found.entries[1].pairs == ()
        assert found.adjusted("bonferroni") == pytest.approx(
            {1: -3 + math.log10(5), 2: 0, 5: -2 + math.log10(5)}
        )
        assert "the p-values of 2 cannot be read" in found.notes()[-1]
        gone = family(board("x", 0, list(self.PAIRS))).with_pairs(Files())
        assert gone.adjusted_pairs() == {1: [0.0, 0.0, 0.0]}

    def test_plain_values_have_all_pairs(self):
        entry = self.read().to_dict("bonferroni")["comparisons"][1]
        assert (entry["kind"], entry["n_pairs"], entry["log10_p"]) == ("leaderboard", 3, -4.0)
        adjusted = [min(p + math.log10(5), 0.0) for p in self.PAIRS]
        assert [pair["log10_p_bonferroni"] for pair in entry["pairs"]] == pytest.approx(adjusted)


@pytest.mark.parametrize(
    ("number", "ending"),
    [(1, "st"), (2, "nd"), (3, "rd"), (4, "th"), (11, "th"), (13, "th"), (21, "st"), (112, "th")],
)
def test_the_sentence(number: int, ending: str):
    assert look_sentence(number) == f"{number}{ending} logged comparison on this test set"


def test_the_sentence_has_what_is_counted():
    counted = "(5 before in leaderboards, each pair counted)"
    assert look_sentence(7, 5) == f"7th logged comparison on this test set {counted}"
    places = "logged comparisons 7 to 9 on this test set, one for each pair"
    assert looks_sentence(7, 3) == places
    assert looks_sentence(7, 3, 5) == f"{places} {counted}"
    assert looks_sentence(7, 1, 5) == look_sentence(7, 5)
