from __future__ import annotations

from pathlib import Path

import pytest
from support.cli_comparison import compared

from trackperm.errors import SourceError
from trackperm.tables import read_examples
from trackperm.tables.registry import detect_format
from trackperm.tables.source import SourceFile


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_text_and_id(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.trn", ";; comment", "at  three (s1-u1)", "(s1-u2)", "", "naïve (19-198-0003) "
    )
    assert detect_format(SourceFile(path)).name == "trn"
    frame = read_examples(path).frame
    assert frame["id"].to_list() == ["s1-u1", "s1-u2", "19-198-0003"]
    assert frame["prediction"].to_list() == ["at three", "", "naïve"]


def test_word_error_rate(tmp_path: Path) -> None:
    """The order of utterances differs between the files, as ids pair them."""
    ids = range(8)
    old = written(tmp_path / "old.trn", *(f"a x c (s-u{i})" for i in ids))
    new = written(tmp_path / "new.trn", *(f"a b c (s-u{i})" for i in reversed(ids)))
    gold = written(tmp_path / "ref.trn", *(f"a b c (s-u{i})" for i in ids))
    found = compared(old, new, "--labels", gold)
    assert found["statistic"] == "word_error_rate"
    assert (found["baseline_score"], found["candidate_score"]) == (pytest.approx(1 / 3), 0.0)
    assert (found["n_discordant"], found["pvalue"]) == (8, 2 / 2**8)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no id", r"line 3 does not end with the id of an utterance, such as `\(spk1-utt2\)`"),
        ("again (s-1)", "line 3: the utterance `s-1` is in an earlier line, too"),
        ("so { uh / @ } on (s-3)", r"line 3 has alternative or optional words \(`\{ uh"),
        ("so (uh) on (s-3)", r"line 3 has alternative or optional words \(`\(uh\)"),
    ],
)
def test_refused(tmp_path: Path, line: str, message: str) -> None:
    long = "a" * 2**16  # what follows is not in the head by which the format is recognised
    path = written(tmp_path / "a.trn", "b (s-1)", f"{long} (s-2)", line)
    with pytest.raises(SourceError, match=message):
        read_examples(path)


@pytest.mark.parametrize(
    "line", ["Toy Story (1995)", "Friends (1994-2004)", "score (acc)", "print(a-b)", "well (so-so"]
)
def test_other_texts(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "a.txt", "text (s-1)", line, "more (s-2)")
    assert detect_format(SourceFile(path)).name != "trn"
