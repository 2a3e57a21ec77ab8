"""Words such as `None` for scores that are missing, beside numbers or truths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import invoke

import trackperm
from trackperm.errors import InputError, InputTypeError
from trackperm.report.notes import cautions_of
from trackperm.tables import read_examples
from trackperm.tables.columns.missing_words import MissingWords

N = 60


def written(path: Path, name: str, values: list[str]) -> Path:
    path.write_text("".join(f"{i},{value}\n" for i, value in [("id", name), *enumerate(values)]))
    return path


def runs(folder: Path, name: str, word: str, good: str, bad: str) -> list[Path]:
    """Write two runs that are equal, but for 14 examples that the second one did not score."""
    old = [good if i % 4 else bad for i in range(N)]
    new = [word if 5 <= i < 19 else value for i, value in enumerate(old)]
    return [written(folder / "old.csv", name, old), written(folder / "new.csv", name, new)]


@pytest.mark.parametrize(
    ("word", "good", "bad"),
    [("None", "1", "0"), ("N/A", "0.75", "0.5"), ("null", "True", "False"), ("-", "7", "3")],
)
@pytest.mark.parametrize("options", [{}, {"metric": "score"}, {"statistic": "mean"}])
def test_missing_scores_are_neither_failures_nor_numbers(
    tmp_path: Path, word: str, good: str, bad: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of the hint leaves them empty, so that `missing` decides: the runs are equal."""
    paths = runs(tmp_path, "score", word, good, bad)
    with pytest.raises(
        (InputError, InputTypeError), match=r"14 of 60 rows of `.*new\.csv`, which is"
    ) as raised:
        trackperm.compare(*paths, **options)
    hint = str(raised.value.hint)
    assert "score=1" not in hint
    exec(f"import polars as pl\n{hint.split('`')[1]}")
    assert trackperm.compare(paths[0], tmp_path / "new-empty.csv", missing="drop").pvalue == 1.0


def test_missing_scores_beside_numbers_of_json(tmp_path: Path) -> None:
    for name, words in (("old", []), ("new", ["N/A"])):
        rows = [{"id": i, "score": score} for i, score in enumerate([*([1, 0] * 9), 0.5, *words])]
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(InputError, match=r"`score` is 'N/A' in 1 of 20 rows of .*, which is not a number"):
        trackperm.compare(tmp_path / "old.jsonl", tmp_path / "new.jsonl")


def test_other_texts_are_no_missing_scores(tmp_path: Path) -> None:
    for others in (["good", "None"], ["1", "yes", "None"], ["None", "None"], ["1", "0"]):
        path = written(tmp_path / "run.csv", "score", others)
        assert MissingWords.of([read_examples(path)], "score") is None


def test_missing_scores_beside_errors_are_no_failures(tmp_path: Path) -> None:
    path = written(tmp_path / "run.csv", "score", ["1", "0", "N/A", "error"] * 5)
    for options in ({}, {"metric": "score"}):
        with pytest.raises(InputError) as raised:
            trackperm.compare(path, path, **options)
        assert "score=1" not in str(raised.value.hint)
        assert "and leave missing values empty" in str(raised.value.hint) or not options
    assert "score=1" not in invoke("inspect", str(path))


def test_a_share_says_which_words_it_counts_as_others(tmp_path: Path) -> None:
    paths = runs(tmp_path, "verdict", "None", "CORRECT", "INCORRECT")
    (said,) = cautions_of(trackperm.compare(*paths, metric="verdict=CORRECT"))
    assert said.startswith("look: `verdict` is 'None' in 14 rows of")
    paths = runs(tmp_path, "answer", "B", "NA", "A")
    assert cautions_of(trackperm.compare(*paths, metric="answer=NA")) == []
