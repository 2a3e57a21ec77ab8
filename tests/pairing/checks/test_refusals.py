"""What cannot be proved to belong together is refused, once and clearly, from the command line."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from support.command_line import call_trackperm

ROWS = [
    {"id": f"q{i:03}", "prediction": i % 3, "label": (i + i // 7) % 3, "doc_hash": f"h{i}"} for i in range(40)
]
Rows = list[dict[str, object]]


def changed(index: int, **values: object) -> Callable[[Rows], Rows]:
    return lambda rows: [{**row, **values} if i == index else row for i, row in enumerate(rows)]


def renamed(rename: Callable[[int, str], object]) -> Callable[[Rows], Rows]:
    return lambda rows: [{**row, "id": rename(i, str(row["id"]))} for i, row in enumerate(rows)]


def lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def table(rows: Rows) -> bytes:
    return pl.DataFrame(rows).write_csv().encode()


Case = tuple[Callable[[Rows], bytes], Callable[[Rows], Rows], Callable[[Rows], Rows], str]
"""How both are written, the baseline, the candidate, what the refusal says."""

REFUSED: dict[str, Case] = {
    "duplicate id": (lines, list, changed(7, id="q003"), "2 of 40 rows of `candidate` share their `id`"),
    "leading zeros": (
        table,
        renamed(lambda i, id_: f"{i + 1:03}"),
        renamed(lambda i, id_: str(i + 1)),
        "40 of them differ only in leading zeros",
    ),
    "ids in two normal forms": (
        lines,
        renamed(lambda i, id_: f"é{i}"),
        renamed(lambda i, id_: f"e\u0301{i}"),
        "40 of them differ only in Unicode normal form",
    ),
    "twins in one run": (
        lines,
        list,
        lambda rows: [*rows[:-2], {**rows[-2], "id": "é"}, {**rows[-1], "id": "e\u0301"}],
        "the same text in two Unicode normal forms",
    ),
}


def refused(folder: Path, *arguments: str) -> str:
    result = call_trackperm(folder, "compare", *arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.count("error:") == 1
    assert "Hint: " in result.stderr
    return result.stderr


@pytest.mark.extended
@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_runs(case: Case, tmp_path: Path) -> None:
    write, baseline, candidate, said = case
    (tmp_path / "baseline").write_bytes(write(baseline(ROWS)))
    (tmp_path / "candidate").write_bytes(write(candidate(ROWS)))
    assert said in refused(tmp_path, "baseline", "candidate")


def test_files(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(lines(ROWS))
    (tmp_path / "empty").write_bytes(b"")
    whole = tmp_path / "whole"
    pl.DataFrame(ROWS).write_parquet(whole)
    (tmp_path / "truncated").write_bytes(whole.read_bytes()[:-100])
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "a.csv").write_bytes(table(ROWS))
    (mixed / "b.jsonl").write_bytes(lines(ROWS))
    assert "`empty` is empty" in call_trackperm(tmp_path, "compare", "good", "empty").stderr
    assert "`truncated` is not a readable Parquet file" in refused(tmp_path, "good", "truncated")
    assert "`mixed` is a directory" in refused(tmp_path, "good", "mixed")


@pytest.mark.extended
def test_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    shuffled = random.Random(4).sample(ROWS, len(ROWS))
    (tmp_path / "baseline").write_bytes(lines(ROWS))
    better = [
        {**row, "prediction": row["label"] if i % 2 else row["prediction"]} for i, row in enumerate(ROWS)
    ]
    for rows in (better, [better[ROWS.index(row)] for row in shuffled]):
        (tmp_path / "candidate").write_bytes(lines(rows))
        for form in ((), ("--format", "json")):
            printed = call_trackperm(tmp_path, "compare", "baseline", "candidate", *form)
            assert printed.returncode == 0
            name = tmp_path / f"printed{len(form)}"
            if name.exists():
                assert name.read_text() == printed.stdout
            name.write_text(printed.stdout)
