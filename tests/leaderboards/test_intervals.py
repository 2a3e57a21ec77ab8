"""Intervals of rows agree with the corrected verdicts, or are marked."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.budget import Measured, cases
from support.comparisons import answers, numbered

import trackperm
from trackperm.exact.intervals import Interval
from trackperm.leaderboards import Leaderboard
from trackperm.leaderboards.intervals import agreeing
from trackperm.report.leaderboard import cells, picture, tables

N = 200
BASE = [True] * 100 + [False] * 100


def changed(better: int, worse: int = 0) -> pl.DataFrame:
    """A run that is right on so many more examples than the base, and wrong on so many others."""
    return answers([False] * worse + [True] * (100 - worse + better) + [False] * (100 - better))


def against_base(*runs: tuple[int, int], **options: Any) -> Leaderboard:
    named = {f"+{better}-{worse}": changed(better, worse) for better, worse in runs}
    return trackperm.leaderboard({"base": answers(BASE), **named}, baseline="base", **options)


def row(board: Leaderboard, name: str) -> Any:
    return next(each for each in board.rows if each.name == name)


def contradicts(board: Leaderboard) -> list[str]:
    """Names of rows whose interval and verdict disagree without a mark."""
    shown = dict(zip([each.name for each in board.rows], cells.cells(board).rows, strict=True))
    return [
        each.name
        for each in board.rows
        if each.pair is not None and each.interval is not None
        if (each.pair.verdict == "undecided") != (0.0 in each.interval)
        and not any(cells.DAGGER in cell for cell in shown[each.name])
    ]


def test_a_row_that_is_undecided_after_correction_has_an_interval_that_holds_0() -> None:
    """6 better and 0 worse have p = 1/32, by themselves below 0.05, and 1/16 among two comparisons."""
    board = against_base((6, 0), (3, 2))
    found = row(board, "+6-0")
    alone = trackperm.compare(answers(BASE), changed(6))
    assert (alone.verdict, 0.0 in (alone.interval or ())) == ("better", False)
    assert found.pair.verdict == "undecided"
    assert found.interval.low < 0.0 < found.interval.high
    assert found.interval.alpha == board.interval_level == 0.025
    expected = trackperm.compare(answers(BASE), changed(6), alpha=0.025).interval
    assert (found.interval.low, found.interval.high) == (expected.low, expected.high)


def test_one_comparison_has_the_interval_of_compare() -> None:
    board = against_base((6, 0))
    alone = trackperm.compare(answers(BASE), changed(6))
    assert row(board, "+6-0").interval == alone.interval
    assert "95 % interval" in cells.cells(board).header
    assert not any("simultaneous" in line for line in cells.legend(board))


def test_decisions_by_later_steps_of_holm_are_marked() -> None:
    """The larger of the two p is compared with 0.05, but simultaneous intervals have 97.5 % each."""
    board = against_base((60, 0), (6, 0))
    found = row(board, "+6-0")
    assert (found.pair.verdict, found.pair.adjusted) == ("better", 0.03125)
    assert 0.0 in found.interval
    assert found.holds_zero
    assert not row(board, "+60-0").holds_zero
    for format_ in ("text", "markdown", "html"):
        said = trackperm.report.render(board, format_).decode()
        assert "later steps of Holm's procedure decide" in said.replace("&#39;", "'")
        assert said.count(cells.DAGGER) >= 2
        assert "simultaneous 95 % interval" in said
    latex = tables.latex(board)
    assert re.search(r"\$\[-0\.\d+, \+0\.\d+\]\^\{\\dagger\}\$", latex)
    assert cells.DAGGER not in latex
    lines = {line["name"]: line for line in csv.DictReader(io.StringIO(tables.rows_csv(board)))}
    assert lines["+6-0"]["interval_kind"] == "simultaneous 95 % interval, holds 0 although decided"
    assert lines["+60-0"]["interval_kind"] == "simultaneous 95 % interval"
    data = json.loads(board.to_json())
    assert data["intervals"] == {"promise": "simultaneous", "confidence": 0.95, "level_of_each": 0.025}
    of_row = {each["name"]: each["interval"] for each in data["rows"]}
    assert [of_row[name]["holds_zero_though_decided"] for name in ("+6-0", "+60-0")] == [True, False]
    drawn = picture.svg(board)
    assert "† the row is decided, but its interval contains 0" in drawn
    assert drawn.count("▲ better†") == 1
    assert "difference to the baseline, simultaneous 95 % interval" in drawn
    assert contradicts(board) == []


def test_bonferroni_agrees_with_its_intervals() -> None:
    board = against_base((60, 0), (6, 0), (7, 0), (2, 1), correction="bonferroni")
    for each in board.rows:
        if each.pair is not None and each.interval is not None:
            assert (each.pair.verdict == "undecided") == (0.0 in each.interval)
    assert sum(each.interval is not None for each in board.rows) == 4
    assert not any(cells.DAGGER in line for line in cells.legend(board))


def test_intervals_at_the_level_of_the_false_discovery_rate_agree_with_it() -> None:
    """R alpha / (m H_m): of two decided pairs among two, 0.05 / 1.5, which 1/32 is below."""
    board = against_base((60, 0), (6, 0), correction="by")
    assert [pair.verdict for pair in board.pairs] == ["better", "better"]
    assert board.interval_level == pytest.approx(0.05 / 1.5)
    assert 0.0 not in row(board, "+6-0").interval
    assert contradicts(board) == []
    none = against_base((6, 0), (3, 2), correction="by")
    assert none.interval_level == pytest.approx(0.05 / 3.0)
    assert all(0.0 in row(none, name).interval for name in ("+6-0", "+3-2"))
    (line,) = [line for line in cells.legend(board) if "intervals" in line]
    assert "FCR 95 % intervals" in line
    assert "the 2 decided pairs" in line
    assert "they are not simultaneous" in line


@pytest.mark.sample(3)
@pytest.mark.parametrize("correction", ["holm", "bonferroni", "by"])
@pytest.mark.parametrize("statistic", ["accuracy", "f1", "mean"])
@pytest.mark.parametrize("baseline", [None, "m0"])
def test_no_interval_contradicts_its_verdict(correction: Any, statistic: str, baseline: str | None) -> None:
    rng = np.random.default_rng(5)
    label = rng.integers(0, 2, 150)
    runs = {}
    for i, rate in enumerate((0.9, 0.84, 0.8, 0.75, 0.6)):
        right = rng.random(150) < rate
        runs[f"m{i}"] = numbered(
            label=label,
            prediction=np.where(right, label, 1 - label),
            score=np.round(10 * rate + rng.normal(0.0, 2.0, 150)).astype(int),
        )
    board = trackperm.leaderboard(runs, statistic, correction=correction, baseline=baseline)
    assert any(each.interval is not None for each in board.rows)
    assert contradicts(board) == []
    assert all(each.pair.difference in each.interval for each in board.rows if each.interval is not None)
    bare = trackperm.leaderboard(runs, statistic, correction=correction, baseline=baseline, intervals=False)
    assert all(each.interval is None for each in bare.rows)


def test_an_approximate_interval_is_widened_to_0() -> None:
    (pair,) = against_base((3, 2)).pairs
    assert pair.verdict == "undecided"
    found = Interval(0.01, 0.2, 0.05, "two-sided", "bootstrap BCa", "may disagree", "")
    assert (agreeing(found, pair).low, agreeing(found, pair).high) == (0.0, 0.2)
    below = replace(found, low=-0.2, high=-0.01)
    assert (agreeing(below, pair).low, agreeing(below, pair).high) == (-0.2, 0.0)
    decided = replace(pair, verdict="better")
    assert agreeing(found, decided) == found


def test_notes_explain_rows_without_an_interval() -> None:
    label = ["yes", "no"] * 100
    frames = {}
    for name, wrong in (("a", 0), ("b", 3), ("c", 3), ("d", 60)):
        prediction = ["no" if i < wrong else answer for i, answer in enumerate(label)]
        frames[name] = pl.DataFrame({"id": range(200), "prediction": prediction, "label": label})
    board = trackperm.leaderboard(frames, "f1", parameters={"positive": "yes"}, baseline="a")
    by_run = [note for note in board.notes if note.startswith("no interval of")]
    assert by_run == [
        "no interval of `b`, `c`: only 2 examples differ between the runs; a score interval needs 13"
    ]
    assert row(board, "d").interval is not None


def test_a_one_sided_leaderboard_states_its_assumption() -> None:
    board = against_base((60, 0), (6, 0), alternative="greater")
    said = "one-sided: p is valid only if `greater` was chosen before the results were seen"
    for format_ in ("text", "markdown", "html", "latex"):
        assert said.removeprefix("one-sided") in trackperm.report.render(board, format_).decode().replace(
            "\\`", "`"
        )
    assert not any("chosen before" in line for line in cells.legend(against_base((6, 0))))


def test_monte_carlo_is_labelled_beside_p() -> None:
    board = against_base((60, 0), (6, 0), method="monte-carlo", n_samples=2000)
    assert {pair.test.method for pair in board.pairs} == {"monte-carlo"}
    place = cells.cells(board).header.index("adjusted p")
    written = [cell[place] for cell in cells.cells(board).rows if cell[place]]
    assert all(cell.startswith("≈") and cell.endswith(" MC") for cell in written)
    lines = list(csv.DictReader(io.StringIO(tables.rows_csv(board))))
    assert {line["p_certainty"] for line in lines if line["difference"]} == {"Monte Carlo"}
    assert "exact" not in trackperm.report.render(board, "text").decode()
    assert "≈0" not in tables.latex(board)
    exact = against_base((60, 0), (6, 0))
    assert not any("MC" in cell or "≈" in cell for cell in cells.cells(exact).rows[0])
    assert {line["p_certainty"] for line in csv.DictReader(io.StringIO(tables.rows_csv(exact)))} == {
        "",
        "exact",
    }


def test_an_exact_pair_with_a_sampled_adjusted_p_is_labelled() -> None:
    board = against_base((60, 0), (6, 0), (7, 0))
    pairs = sorted(board.pairs, key=lambda pair: pair.log10_upper)
    sampled = replace(
        pairs[0], test=replace(pairs[0].test, method="monte-carlo"), log10_adjusted=-1.5, adjusted=0.03
    )
    taken = replace(pairs[1], log10_adjusted=-1.5, adjusted=0.03)
    board = replace(board, pairs=(sampled, taken, pairs[2]))
    assert [board.relation(pair) for pair in board.pairs] == ["≈", "≈", "="]


def test_certified_ends_valid_and_exact_pvalues_of_a_board_are_told_apart() -> None:
    board = against_base((60, 0), (25, 0), (7, 0))
    pairs = sorted(board.pairs, key=lambda pair: pair.log10_upper)
    ends = replace(pairs[0].test, method="bracket", error_bound=0.05)
    valid = replace(pairs[1].test, method="tilted", error_bound=math.inf)
    board = replace(board, pairs=(replace(pairs[0], test=ends), replace(pairs[1], test=valid), pairs[2]))
    assert [board.relation(pair) for pair in board.pairs] == ["≤", "≤", "="]
    assert [cells.certainty(board, pair) for pair in board.pairs] == ["certified upper end", "valid", "exact"]
    assert [cells.adjusted(board, pair)[0] == "≤" for pair in board.pairs] == [True, True, False]
    assert "1 exact, 1 valid by tilted sampling, 1 by certified upper ends, two-sided" in cells.method(board)


@pytest.mark.slow
@pytest.mark.generated
def test_intervals_of_all_rows_cover_at_once(measured: Measured) -> None:
    """Also if the reference is the run with the best score."""
    rng, n_boards = np.random.default_rng(6), cases(60)
    rates, n = np.array([0.8, 0.8, 0.8, 0.78, 0.75]), 300
    together = 0
    for _ in range(n_boards):
        runs = {f"m{i}": answers((rng.random(n) < rate).tolist()) for i, rate in enumerate(rates)}
        board = trackperm.leaderboard(runs)
        truth = {f"m{i}": rate for i, rate in enumerate(rates)}
        best = truth[board.rows[0].name]
        together += all(
            each.interval is not None and truth[each.name] - best in each.interval
            for each in board.rows
            if each.pair is not None
        )
    measured(f"of 5 runs: simultaneous 95 % intervals all hold the truth in {together / n_boards:.3f}")
    assert together >= 0.93 * n_boards
