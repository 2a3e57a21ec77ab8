"""A folder with a policy file and the runs that it judges."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.comparisons import answers

POLICY = """\
policies:
  - name: pull-request
    baseline: {run: base.parquet}
    statistics: [accuracy, {name: f1, parameters: {positive: "yes"}}]
  - name: tiny
    baseline: {run: tiny-base.parquet}
  - name: first
    baseline: {run: not-there-yet.parquet}
    if_no_baseline: pass
  - name: strict
    baseline: {run: not-there-yet.parquet}
"""
BASE = [False] * 69 + [True] * 109 + [True] * 935 + [False] * 206
WORSE = [True] * 69 + [False] * 109 + [True] * 935 + [False] * 206


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make it the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, correct in {
        "base": BASE,
        "worse": WORSE,
        "same": BASE,
        "tiny-base": [True] * 9,
        "tiny": [False] * 3 + [True] * 6,
    }.items():
        answers(correct).write_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "trackperm.yaml").write_text(POLICY)
    return tmp_path
