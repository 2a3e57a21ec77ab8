"""Policy files that are edited while they are followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trackperm.automation.policy.edits import EditedPolicies
from trackperm.automation.policy.load import load_policies
from trackperm.automation.policy.resolve import policy_files, with_baseline
from trackperm.errors import InputError, SpecError

POLICY = "policies: [{{name: a, baseline: {{run: base.csv}}, alpha: {alpha}, statistics: [{statistic}]}}]\n"
SPEC = "counts: {correct: prediction == label, n: 1}\nscore: correct / n\n"


def written(path: Path, text: str) -> None:
    """Write a file with another time than it had, however coarse the clock of the disk is."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    os.utime(path, ns=(before + 10**9, before + 10**9))


def test_edits_are_taken_up_or_refused_once(tmp_path: Path):
    path, spec = tmp_path / "trackperm.yaml", tmp_path / "own.yaml"
    written(path, POLICY.format(alpha=0.05, statistic="accuracy"))
    followed = EditedPolicies(path, "a")
    assert [policy.alpha for policy in followed.load()] == [0.05]
    assert followed.edited() is None
    written(path, POLICY.format(alpha=0.01, statistic="own.yaml"))
    with pytest.raises(SpecError, match=r"`own\.yaml` does not exist"):
        followed.edited()
    assert followed.edited() is None
    for number in range(3):  # as a health file is written at every sign of life
        (tmp_path / f"health-{number}").touch()
        os.utime(tmp_path, ns=(number, number))
        assert followed.edited() is None
    written(spec, SPEC)
    edited = followed.edited()
    assert edited is not None
    assert [policy.alpha for policy in edited] == [0.01]
    before = edited[0].digest
    (tmp_path / "something else").touch()
    assert followed.edited() is None
    written(spec, SPEC.replace("correct / n", "2 * correct / n"))
    edited = followed.edited()
    assert edited[0].digest != before
    written(path, POLICY.format(alpha=0.01, statistic="accuracy").replace("name: a", "name: b"))
    with pytest.raises(InputError, match="has no policy `a`"):
        followed.edited()
    path.unlink()
    with pytest.raises(SpecError, match="there is no file"):
        followed.edited()
    assert followed.edited() is None


def test_the_files_of_a_policy(tmp_path: Path):
    path = tmp_path / "trackperm.yaml"
    written(path, POLICY.format(alpha=0.05, statistic="own.yaml, accuracy"))
    written(tmp_path / "own.yaml", SPEC)
    policy = load_policies(path).find()
    assert policy.file == path
    assert policy_files(policy) == [path, tmp_path / "own.yaml"]
    assert with_baseline(policy, "other.csv").file == path
