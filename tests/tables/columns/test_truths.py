"""True and false as text, which counts that compute with a column read as booleans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.budget import NIGHTLY
from support.engines import each_engine, each_with_engines, native

import trackperm
from trackperm.errors import InputTypeError
from trackperm.statistic import read_statistic
from trackperm.tables import read_examples
from trackperm.tables.columns.truths import with_like_truths, with_truths
from trackperm.tables.formats import delimited
from trackperm.tables.labels import with_labels
from trackperm.tables.table import ExampleTable

WORDS = ["True", None, "FALSE", "true"]


@each_engine
def test_words_are_booleans(engine: str) -> None:
    data = {"a.b": WORDS, 'yes "or" no': ["yes", "No", "no", None], "other": ["true", "maybe", None, "x"]}
    run = ExampleTable.from_native(native(engine, {"id": [0, 1, 2, 3], **data}), "run")
    found = with_truths(run, ["a.b", 'yes "or" no', "other", "id", "absent"])
    read = found.only(["id", *data]).frame.to_polars().sort("id")
    assert read["a.b"].to_list() == [True, None, False, True]
    assert read['yes "or" no'].to_list() == [True, False, False, None]
    assert read["other"].to_list() == data["other"]
    assert with_truths(found, ["a.b"]) is found


@pytest.mark.parametrize("size", [0, 10**9])
def test_of_files(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory, and as a scan; other columns stay without a type."""
    monkeypatch.setattr(delimited, "LARGE", size)
    path = tmp_path / "a.csv"
    path.write_text("id,passed,n\n" + "".join(f"{i},{word or ''},{i}\n" for i, word in enumerate(WORDS)))
    found = with_truths(read_examples(path), ["passed"])
    assert found.polars_column("passed").to_list() == [True, None, False, True]
    assert [found.is_untyped(name) for name in found.columns] == [True, False, True]


def test_beside_reference_answers() -> None:
    rows = ExampleTable.from_native(pl.LazyFrame({"id": [0, 1], "passed": ["no", "yes"]}), "run")
    answers = ExampleTable.from_native(pl.DataFrame({"id": [1, 0], "label": ["b", "a"]}), "labels")
    found = with_truths(with_labels(rows, answers, "id", "label"), ["passed"])
    read = found.only(["id", "label", "passed"]).frame.to_polars()
    assert read.sort("id").rows() == [(0, "a", False), (1, "b", True)]
    assert found.schema["passed"] == found.only(["passed"]).schema["passed"]


ATTEMPTS = {"id": [0, 0, 1, 1, 2, 2, 3, 3], "attempt": [0, 1] * 4}
OLD = [True, False, False, False, True, False, False, False]
NEW = [True, True, True, False, False, False, True, False]


def written(folder: Path, passed: list[bool], kind: str) -> str:
    """Write attempts as pandas does into CSV, or with other words, or as JSON Lines with booleans."""
    path = folder / f"{kind}{passed[1]}.{'jsonl' if kind == 'json' else 'csv'}"
    frame = pl.DataFrame({**ATTEMPTS, "passed": passed})
    if kind == "json":
        frame.write_ndjson(path)
    else:
        words = {True: "yes", False: "no"} if kind == "yes" else {True: "True", False: "False"}
        frame.with_columns(passed=pl.Series([words[each] for each in passed])).write_csv(path)
    return str(path)


COMPARED: dict[str, tuple[Any, dict[str, Any]]] = {
    "pass_at_k": ("pass_at_k", {"parameters": {"k": 2}}),
    "column": ("mean", {"columns": {"score": "passed"}}),
    "metric": ("mean", {"metric": "passed"}),
    "own": (read_statistic("counts: {a: not passed and attempt > 0, n: 1}\nscore: a / n", "s", "late"), {}),
}


@pytest.mark.sample(4)
@each_with_engines(COMPARED, "polars", "duckdb")
def test_files_as_booleans(name: str, engine: Any, tmp_path: Path) -> None:
    statistic, options = COMPARED[name]
    kinds = [("json", "json"), ("true", "yes"), ("true", "true"), ("true", "json")]
    if engine == "spark" and not NIGHTLY:
        del kinds[2:]
    found = [
        trackperm.compare(
            written(tmp_path, OLD, old), written(tmp_path, NEW, new), statistic, engine=engine, **options
        )
        for old, new in kinds
    ]
    first = found[0].baseline_score, found[0].candidate_score, found[0].pvalue
    assert all((each.baseline_score, each.candidate_score, each.pvalue) == first for each in found)


def test_other_text_is_named() -> None:
    """A built-in file is nothing that a user can change, and so is not named."""
    old, new = (
        pl.DataFrame({"id": [0, 1], "passed": words}) for words in (["True", "no"], ["True", "False"])
    )
    for pair in ((old, new), (old, old)):
        with pytest.raises(InputTypeError, match="`passed` of `baseline` holds text") as caught:
            trackperm.compare(*pair, "pass_at_1")
        assert "built-in" not in str(caught.value)
    assert "such as" not in caught.value.message
    with pytest.raises(
        InputTypeError, match="holds text, such as 'a'; `mean` computes with numbers"
    ) as caught:
        trackperm.compare(*[new.with_columns(score=pl.Series(["1", "a"]))] * 2, "mean")
    assert "`--metric score=a` compares the shares of one text" in str(caught.value.hint)


class TestOfAnswers:
    """Labels and predictions that are booleans, which formats write in different ways."""

    LABELS = [True, False] * 8
    WRONG = ([0, 3, 5, 6, 9], [3])

    def runs(self, folder: Path) -> dict[str, list[Any]]:
        """Both runs, in each format."""
        found: dict[str, list[Any]] = {"polars.csv": [], "pandas.csv": [], "frame": []}
        for i, wrong in enumerate(self.WRONG):
            predictions = [label != (row in wrong) for row, label in enumerate(self.LABELS)]
            frame = pl.DataFrame({"id": range(16), "prediction": predictions, "label": self.LABELS})
            frame.write_csv(path := folder / f"{i}-polars.csv")
            frame.to_pandas().to_csv(other := folder / f"{i}-pandas.csv", index=False)
            for name, run in zip(found, (path, other, frame), strict=True):
                found[name].append(run)
        return found

    def test_all_formats_are_read_alike(self, tmp_path: Path) -> None:
        runs = self.runs(tmp_path)
        expected = trackperm.compare(*runs["frame"])
        for old in runs:
            for new in runs:
                found = trackperm.compare(runs[old][0], runs[new][1])
                assert (found.difference, found.pvalue) == (expected.difference, expected.pvalue)
        f1 = trackperm.compare(runs["pandas.csv"][0], runs["frame"][1], "f1")
        assert f1.pvalue == trackperm.compare(*runs["frame"], "f1").pvalue
        board = trackperm.leaderboard({"old": runs["pandas.csv"][0], "new": runs["frame"][1]})
        assert board.rows[0].score == expected.candidate_score

    def test_texts_beside_booleans(self) -> None:
        """Predictions of SuperGLUE are text in JSON, and its labels booleans."""
        runs = []
        for wrong in self.WRONG:
            words = ["true" if label != (row in wrong) else "false" for row, label in enumerate(self.LABELS)]
            runs.append(pl.DataFrame({"id": range(16), "prediction": words, "label": self.LABELS}))
        found = trackperm.compare(*runs)
        assert (found.baseline_score, found.candidate_score) == (11 / 16, 15 / 16)
        board = trackperm.leaderboard({"old": runs[0], "new": runs[1]})
        assert board.rows[0].score == 15 / 16

    @pytest.mark.parametrize("words", [["Yes", "no"], ["True", "false"], ["true", "maybe"]])
    def test_answers_in_other_words_stay_text(self, words: list[str], tmp_path: Path) -> None:
        """A model may write them: that another case is another answer is for the user to decide."""
        table = pl.DataFrame({"id": range(16), "prediction": words * 8, "label": ["true", "false"] * 8})
        table.write_csv(tmp_path / "a.csv")
        tables = [read_examples(tmp_path / "a.csv"), ExampleTable.from_native(table, "run")]
        assert with_like_truths(tables, ["prediction", "label"]) == tables
