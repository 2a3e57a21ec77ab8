from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from support.boards import of_scores, sweep

from trackperm.report.leaderboard.cells import legend
from trackperm.report.leaderboard.chart_layout import MOST_ROWS, chart_layout, labelled_places
from trackperm.report.leaderboard.pairs import OPPOSITE, cells_of_pairs, has_pairs, heat_map

BOARDS = {
    "two": lambda: sweep(2),
    "forty": lambda: sweep(40),
    "against a baseline": lambda: sweep(40, baseline=12),
    "one-sided": lambda: of_scores(100, 180, 101, baseline="m0", alternative="greater"),
    "lower is better": lambda: of_scores(20, 140, 150, statistic="error_rate"),
    "equal": lambda: of_scores(100, 100, 100),
    "no intervals": lambda: of_scores(20, 140, 150, intervals=False),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", BOARDS)
def test_positions_are_those_of_the_numbers(name: str) -> None:
    board = BOARDS[name]()
    chart = chart_layout(board)
    assert [run.name for run in chart.runs] == [row.name for row in board.rows]
    assert all(0 < at < 100 for at, _ in chart.ticks)
    (zero,) = [at for at, label in chart.ticks if label == "0"]
    assert zero == chart.zero
    for row, run in zip(board.rows, chart.runs, strict=True):
        difference = 0.0 if row.pair is None else row.pair.difference
        assert (run.at > zero) - (run.at < zero) == (difference > 0) - (difference < 0)
        assert (run.interval is None) == (row.interval is None)
        if run.interval is not None:
            start, length = run.interval
            assert -0.1 <= start <= run.at <= start + length + 0.1 <= 100.2
            if row.interval.low > 0:  # the verdict is seen: the bar does not reach the line of the best
                assert start >= zero
        if row.ranks is not None:
            n = len(board.rows)
            assert run.ranks[0] == pytest.approx(100 * (row.ranks[0] - 1) / n, abs=0.06)
            assert sum(run.ranks) == pytest.approx(100 * row.ranks[1] / n, abs=0.11)
            assert run.ranks[0] <= run.own_rank <= sum(run.ranks)
    ordered = [run.at for run in chart.runs]
    assert all(
        (first >= second) if board.statistic.greater_is_better else (first <= second)
        for first, second in pairwise(ordered)
    )


def test_the_open_side_of_a_one_sided_interval_reaches_the_edge() -> None:
    chart = chart_layout(BOARDS["one-sided"]())
    drawn = [run.interval for run in chart.runs if run.interval is not None]
    assert drawn
    assert all(sum(interval) == pytest.approx(100.0) for interval in drawn)


@pytest.mark.extended
def test_at_most_two_hundred_runs_are_drawn_and_the_rest_is_named() -> None:
    board = of_scores(*range(100, 100 + MOST_ROWS + 5), n=400)
    chart = chart_layout(board)
    assert len(chart.runs) == MOST_ROWS
    assert f"the chart shows the first {MOST_ROWS} of {MOST_ROWS + 5} runs" in chart.remarks
    heat = heat_map(board)
    assert heat.n == MOST_ROWS
    assert heat.label.endswith(f"the first {MOST_ROWS} of {MOST_ROWS + 5} runs are shown")


@pytest.mark.parametrize(("n", "most"), [(3, 12), (40, 12), (129, 12), (1000, 12)])
def test_few_places_are_labelled(n: int, most: int) -> None:
    places = labelled_places(n, most)
    assert places[0] == 0
    assert len(places) <= most + 1
    assert len({second - first for first, second in pairwise(places[1:])}) <= 1


def unfolded(path: str) -> set[tuple[int, int]]:
    """Return the cells that a path of the heat map covers, as row and column."""
    covered = set()
    for piece in filter(None, path.split("M")):
        start, _, rest = piece.partition("h")
        column, row = map(int, start.split())
        length, _, back = rest.partition("v1h-")
        assert back == f"{length}z"
        covered |= {(row, column + step) for step in range(int(length))}
    return covered


def test_the_heat_map_shows_every_verdict_once() -> None:
    board = sweep(40)
    heat = heat_map(board)
    found = {verdict: unfolded(path) for verdict, path in heat.paths.items()}
    assert sum(map(len, found.values())) == 40 * 39
    for pair in board.pairs:
        assert (pair.candidate, pair.baseline) in found[pair.verdict]
        assert (pair.baseline, pair.candidate) in found[OPPOSITE[pair.verdict]]
    assert [label for _, label in heat.ticks][:2] == ["1", f"{board.rows[4].rank}"]
    decided = sum(pair.verdict != "undecided" for pair in board.pairs)
    assert heat.label == f"{decided} of 780 pairs are shown to differ, {780 - decided} are undecided"


def test_counts_of_pairs_have_separators() -> None:
    board = replace(sweep(7), pairs=sweep(7).pairs * 50)
    assert " of 1,050 pairs are shown to differ, " in heat_map(board).label
    assert "all 1,050 intervals cover jointly" in " ".join(legend(board))


def test_pairs_are_antisymmetric() -> None:
    board = sweep(7)
    found = cells_of_pairs(board)
    scores = [row.score for row in board.rows]
    for i, row in enumerate(found):
        assert row[i] is None
        for j, cell in enumerate(row):
            if cell is not None:
                mirrored = found[j][i]
                assert (cell.p, cell.verdict) == (mirrored.p, OPPOSITE[mirrored.verdict])
                assert float(cell.difference) == pytest.approx(scores[i] - scores[j], abs=1e-4)
                assert cell.difference != "-0.0000"


def test_two_runs_and_a_baseline_have_no_pairs_to_show() -> None:
    assert not has_pairs(sweep(2))
    assert not has_pairs(sweep(7, baseline=0))
    assert has_pairs(sweep(7))
