"""What makes two comparisons the same one, what they conclude, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from comparisons import answers

import trackperm
from trackperm.errors import InputError


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


def test_one_class_that_nobody_has_does_not_stop_a_macro_average(tmp_path: Path) -> None:
    """0/0 in one part of a sum has its declared value; only where every part is 0/0 is there nothing."""
    part = "tp_{0} / (tp_{0} + incorrect_{0} / 2)"
    counts = "".join(
        f"  tp_{c}: (prediction == '{c}') & (label == '{c}')\n"
        f"  incorrect_{c}: (prediction == '{c}') != (label == '{c}')\n"
        for c in "abc"
    )
    spec = tmp_path / "macro.yaml"
    score = " + ".join(part.format(c) for c in "abc")
    spec.write_text(f"counts:\n{counts}score: ({score}) / 3\nundefined: 0\n")
    label = ["a", "a", "b", "b"]
    frames = [
        pl.DataFrame({"id": range(4), "label": label, "prediction": prediction})
        for prediction in (["a", "b", "b", "b"], ["a", "a", "b", "b"])
    ]
    comparison = trackperm.compare(*frames, spec)
    assert comparison.candidate_score == pytest.approx(2 / 3)
    strangers = [frame.with_columns(label=pl.lit("z"), prediction=pl.lit("z")) for frame in frames]
    with pytest.raises(InputError, match="0/0 in both runs"):
        trackperm.compare(*strangers, spec)


def test_a_comparison_introduces_itself_on_one_line() -> None:
    comparison = trackperm.compare(answers([True] * 20), answers([False] * 12 + [True] * 8))
    assert repr(comparison) == (
        "<Comparison of `candidate` with `baseline` by accuracy: p = 0.000488, worse>"
    )


def test_artifact_paths_are_of_tracked_runs(tmp_path: Path) -> None:
    answers([True, False]).write_parquet(tmp_path / "a")
    with pytest.raises(InputError, match="neither of these is one"):
        trackperm.compare(str(tmp_path / "a"), answers([True, True]), artifact="predictions.parquet")
