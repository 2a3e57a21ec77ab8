"""What makes two comparisons the same one, what they conclude, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from support.comparisons import answers

import trackperm
from trackperm.errors import InputError, TrackpermError


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


def test_several_statistics_are_one_family() -> None:
    runs = answers([True] * 20), answers([False] * 12 + [True] * 8)
    alone = trackperm.compare(*runs)
    both = trackperm.compare(*runs, ["accuracy", "error_rate"])
    assert [each.title for each in both] == ["accuracy", "error_rate"]
    assert [each.corrected.n_tests for each in both if each.corrected is not None] == [2, 2]
    assert alone.corrected is None
    assert both[0].pvalue == alone.pvalue
    apart = trackperm.compare(*runs, ["accuracy", "error_rate"], correction="none")
    assert [each.corrected for each in apart] == [None, None]
    with pytest.raises(InputError, match="two statistics are called `accuracy`"):
        trackperm.compare(*runs, ["accuracy", "accuracy"])
    with pytest.raises(InputError, match="no statistic is given"):
        trackperm.compare(*runs, [])
    for options, message in (
        ({"statistic": 3}, "`statistic` is a int; expected a name"),
        ({"slices": "language"}, "`slices` is a str; expected a list of columns"),
        ({"correction": "magic"}, "`correction` is 'magic'; expected one of `holm`"),
    ):
        with pytest.raises(TrackpermError) as caught:
            trackperm.compare(*runs, **options)
        assert caught.value.message.startswith(message)


def test_slices_are_compared_where_they_are_named_or_declared(tmp_path: Path) -> None:
    spec = tmp_path / "sliced.yaml"
    spec.write_text("counts: {right: prediction == label, n: 1}\nscore: right / n\nslices: [language]\n")
    language = pl.Series("language", ["de", "en"] * 10)
    runs = [
        side.with_columns(language) for side in (answers([True] * 20), answers([False] * 12 + [True] * 8))
    ]
    titles = ["sliced", "sliced [language = de]", "sliced [language = en]"]
    assert trackperm.compare(*runs, spec).title == "sliced"
    assert [each.title for each in trackperm.compare(*runs, spec, slices=())] == titles
    assert [each.title for each in trackperm.compare(*runs, [spec])] == titles
    explored = trackperm.compare(*runs, "accuracy", slices=["language"])
    assert [each.part is not None and not each.part.declared for each in explored] == [False, True, True]
