"""Scores that may be greater where an attack succeeds, and successes that may be those of calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.questions import asked, the_one

import trackperm
from trackperm.errors import InputError

N = 20
FIRST, SECOND = [i % 3 > 0 for i in range(N)], [i % 3 > 1 for i in range(N)]


def runs(name: str = "success", as_text: bool = False, **columns: Any) -> list[pl.DataFrame]:
    frames = [pl.DataFrame({"id": range(N), **columns, name: each}) for each in (FIRST, SECOND)]
    texts = pl.col(name).cast(pl.String).str.to_titlecase()
    return [frame.with_columns(texts) for frame in frames] if as_text else frames


@pytest.mark.sample(4)
@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("name", ["success", "pass", "score"])
@pytest.mark.parametrize("column", ["attackType", "jailbreak_prompt"])
def test_attacks_that_succeed(name: str, column: str, as_text: bool, tmp_path: Path) -> None:
    """Regression: fewer attacks that succeed were worse."""
    frames = runs(name, as_text, **{column: "x"})
    said = f"`{name}` of `run 0` may say how well an attack succeeds: the log has a column `{column}`"
    with pytest.raises(InputError, match=said) as caught:
        asked(*frames)
    assert "`greater_is_better: false`" in str(caught.value.hint)
    notes = the_one(*frames, metrics=(name,)).found
    assert [
        note for note in notes if note.startswith(f"look: greater values of `{name}` are taken as better")
    ]
    path = tmp_path / "lower.yaml"
    spec = f"counts: {{total: score, n: 1}}\ncolumns: {{score: {name}}}\nscore: total / n\n"
    path.write_text(f"{spec}greater_is_better: false\n")
    assert trackperm.compare(*frames, path).difference < 0


def test_a_log_of_attacks_that_says_what_is_better() -> None:
    frames = [
        frame.with_columns(pl.col("success").cast(pl.Int64))
        for frame in runs(attack="x", lower_is_better=True)
    ]
    assert the_one(*frames).greater_is_better is False
    for name in ("correct", "passed", "reward"):
        assert the_one(*runs(name, attack="x")).chosen == f"the only score, `{name}`"
    assert the_one(*runs("score", **{"kwargs.forbidden_words": "x"})).chosen == "the only score, `score`"


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("name", ["rating", "quality", "rouge_l"])
def test_successes_may_be_those_of_calls(name: str, as_text: bool) -> None:
    """Regression: whether calls went through was compared, and not the quality of the answers."""
    frames = runs(as_text=as_text)
    rated = [frame.with_columns(pl.Series(name, range(i, N + i))) for i, frame in enumerate(frames)]
    with pytest.raises(InputError, match=f"each of `success`, `{name}` could be the score"):
        asked(*rated)
    of_data = [frame.with_columns(pl.Series(name, range(N)), latency=pl.Series(range(N))) for frame in frames]
    for others in (frames, of_data):
        assert the_one(*others).chosen == "the only score, `success`"


@pytest.mark.parametrize(
    ("name", "other"), [("exact_match", "f1"), ("acc", "acc_norm"), ("score", "faithfulness")]
)
def test_other_metrics_are_named(name: str, other: str) -> None:
    """Regression: such a score was called the only one."""
    frames = [frame.with_columns(pl.Series(other, range(i, N + i))) for i, frame in enumerate(runs(name))]
    statistic = the_one(*frames)
    assert (statistic.columns["score"], statistic.chosen) == (name, f"the score called `{name}`")
    assert f"not compared: `{other}`" in statistic.found
