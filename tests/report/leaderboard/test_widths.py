"""Leaderboards in a terminal fit its width, and show the same cells."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len
from support.comparisons import answers

import trackperm
from trackperm.report.leaderboard import cells as parts
from trackperm.report.leaderboard.text import lines

RUNS = {
    name: answers([True] * n + [False] * (40 - n))
    for name, n in {
        "mlp": 40,
        "gradient-boosting-lr0.01-depth5-seed42-subsample0.8": 32,
        "gradient-boosting-lr0.01-depth5-seed43-subsample0.8": 28,
        "日本語で書かれた質問に答える大きな言語モデルの三番目の版": 10,
    }.items()
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("options", [{}, {"baseline": "mlp"}, {"baseline": "mlp", "alternative": "less"}])
@pytest.mark.parametrize("width", [72, 80, 100, 160])
def test_a_table_fits(width: int, options: dict[str, Any]) -> None:
    board = trackperm.leaderboard(RUNS, **options)
    found = lines(board, width=width)
    table = found[4 : found.index(f"scope: {parts.SCOPE}")]
    table = [line for line in table if line.startswith((" ", "rank"))]
    assert max(map(cell_len, table)) <= width
    every = parts.cells(board)
    for name, *column in zip(every.header, *every.rows, strict=True):
        for cell in column if name != "run" else ():
            assert any(cell in line for line in table)
    n_tables = [line.split()[0] for line in table].count("rank")
    assert n_tables in {160: (1,), 100: (1, 2)}.get(width, (2,))


def test_a_file_has_one_table() -> None:
    board = trackperm.leaderboard(RUNS)
    assert lines(board) == lines(board, width=1000)
