"""What makes two comparisons the same one."""

from __future__ import annotations

from pathlib import Path

import pytest
from comparisons import answers

import trackperm


def test_the_key_is_of_the_data_and_the_options_not_of_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline = answers([True, False, True, True])
    candidate = answers([True, True, True, False])
    baseline.write_parquet(tmp_path / "baseline.parquet")
    candidate.write_parquet(tmp_path / "candidate.parquet")
    monkeypatch.chdir(tmp_path)
    compared = trackperm.compare(tmp_path / "baseline.parquet", "candidate.parquet")
    assert trackperm.compare("baseline.parquet", tmp_path / "candidate.parquet").key == compared.key
    assert trackperm.compare(baseline.reverse(), candidate).key == compared.key
    assert trackperm.compare(candidate, baseline).key != compared.key
    assert trackperm.compare(baseline, candidate, alternative="greater").key != compared.key
    assert trackperm.compare(baseline, candidate, alpha=0.01).key != compared.key
    assert trackperm.compare(baseline, baseline).key != compared.key


@pytest.mark.parametrize(
    ("alternative", "verdict"), [("two-sided", "worse"), ("less", "worse"), ("greater", "undecided")]
)
def test_the_verdict_follows_the_alternative(alternative: str, verdict: str) -> None:
    baseline, candidate = answers([True] * 20), answers([False] * 12 + [True] * 8)
    assert trackperm.compare(baseline, candidate, alternative=alternative).verdict == verdict
