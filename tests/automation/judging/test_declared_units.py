"""Gates that want units declared: what they refuse, what declares them, and that others judge it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from support.command_line import call_trackperm
from support.document_effects import documents, sides

import trackperm
from trackperm.errors import InputError

SPEC = """
counts: {correct: prediction == label, n: 1}
score: correct / n
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs with a document effect, runs without one, and runs of three epochs."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    plain = sides(rng, documents(), 0.0)
    runs = {
        "effect": sides(rng, documents(), 1.0),
        "plain": plain,
        "epochs": [pl.concat([frame.with_columns(epoch=pl.lit(i)) for i in range(3)]) for frame in plain],
    }
    for name, (baseline, candidate) in runs.items():
        baseline.write_parquet(tmp_path / f"{name}-base.parquet")
        candidate.write_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "own.yaml").write_text(SPEC)
    (tmp_path / "by_document.yaml").write_text(SPEC + "cluster: document\n")
    (tmp_path / "summed.yaml").write_text(SPEC + "repeats: sum\n")
    return tmp_path


def judged(name: str, **keys: Any) -> str:
    policy = {"name": "strict", "baseline": {"run": f"./{name}-base.parquet"}, "units": "declared", **keys}
    Path("trackperm.yaml").write_text(yaml.safe_dump({"policies": [policy]}))
    return trackperm.gate(f"{name}.parquet").outcome


def refusal(name: str, **keys: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        judged(name, **keys)
    return caught.value


def test_a_dependence_that_is_seen(folder: Path) -> None:
    error = refusal("effect", statistics=["accuracy"])
    assert error.message.startswith(
        "the policy `strict` has `units: declared` and declares no unit: by `accuracy`,"
    )
    assert "are correlated within each `document`" in error.message
    assert "design effect" in error.message
    assert error.hint.startswith("`cluster: document` exchanges whole clusters; `unit: example` declares")


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "declared",
    [
        {"cluster": "document"},
        {"unit": "example"},
        {"unit": "row"},
        {"repeats": "mean"},
        {"statistics": ["by_document.yaml"]},
        {"statistics": ["summed.yaml"]},
        {"units": "any"},
    ],
)
def test_what_declares_units(folder: Path, declared: dict[str, Any]) -> None:
    assert judged("effect", **{"statistics": ["accuracy"], **declared}) in ("pass", "fail", "undecided")


def test_one_statistic_of_two_declares_its_own_alone(folder: Path) -> None:
    error = refusal("effect", statistics=["by_document.yaml", "own.yaml"])
    assert "by `own`, the differences between the runs are correlated within each `document`" in error.message


def test_nothing_is_to_be_declared_where_nothing_is_seen(folder: Path) -> None:
    assert judged("plain", statistics=["accuracy"]) in ("pass", "undecided")
    assert judged("plain") in ("pass", "undecided"), "by what the runs say"


def test_rows_that_were_taken_together_by_default(folder: Path) -> None:
    error = refusal("epochs", statistics=["accuracy"])
    assert error.message.endswith("an example has several rows, which `accuracy` combined by default")
    assert judged("epochs", statistics=["accuracy"], repeats="sum") in ("pass", "undecided")
    assert judged("epochs", statistics=["accuracy"], unit="example") in ("pass", "undecided")
    assert judged("epochs", statistics=["summed.yaml"]) in ("pass", "undecided")


def test_on_the_command_line(folder: Path) -> None:
    refusal("effect", statistics=["accuracy"])
    found = call_trackperm(folder, "gate", "--candidate", "effect.parquet")
    assert found.returncode == 2
    assert "`cluster: document`" in found.stdout + found.stderr
    assert "units declared" in call_trackperm(folder, "policy", "check", "trackperm.yaml").stdout
