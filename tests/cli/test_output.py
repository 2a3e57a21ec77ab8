"""``--format`` and ``-o``: printed results, written files, and errors of writing."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from trackperm.cli.output import Block, Renderers, emit, emit_checks, require_formats, write_files
from trackperm.errors import InputError, StorageError

RENDERERS: Renderers = {"text": lambda: "said", "json": lambda: '{"a": 1}\n', "png": lambda: b"\x89PNG"}


def test_one_line_end_and_bytes_as_they_are(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]):
    files = [tmp_path / name for name in ("a.txt", "b.JSON", "c.png")]
    emit(RENDERERS, "json", files)
    assert [file.read_bytes() for file in files] == [b"said\n", b'{"a": 1}\n', b"\x89PNG"]
    printed = capsysbinary.readouterr()
    assert printed.out == b'{"a": 1}\n'
    assert printed.err.splitlines() == [f"written: {file}".encode() for file in files]


def test_a_file_that_cannot_be_written_keeps_no_other_from_being_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    files = [tmp_path / "nowhere" / "a.txt", tmp_path / "b.json", tmp_path / "none" / "c.txt"]
    with pytest.raises(StorageError, match=r"nowhere/a\.txt` cannot be written"):
        emit(RENDERERS, "text", files)
    assert files[1].read_text() == '{"a": 1}\n'
    assert capsys.readouterr().out == "said\n"
    assert len(write_files(RENDERERS, files)) == 2


def test_half_of_a_surrogate_pair_is_escaped(tmp_path: Path):
    """A path may contain one, and reports contain paths."""
    emit({"text": lambda: "x\udcff"}, "text", [tmp_path / "a.txt"])
    assert (tmp_path / "a.txt").read_text() == "x\\udcff\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.pdf", "is not a format of this command"),
        ("a", "is not a format"),
        ("nowhere/a.txt", "does not exist"),
    ],
)
def test_files_are_refused_before_anything_is_computed(tmp_path: Path, name: str, message: str):
    with pytest.raises(InputError, match=message):
        require_formats([tmp_path / name], ("text", "json"))
    require_formats([tmp_path / "nowhere" / "a.txt"], ("text", "json"), check_folders=False)
    require_formats(None, ())


def test_problems_of_checks_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    blocks, file = [Block("a: ok"), Block("b: 1 problem", is_error=True)], tmp_path / "found.txt"
    with pytest.raises(typer.Exit) as ended:
        emit_checks(blocks, [], "text", [file])
    assert ended.value.exit_code == 2
    assert file.read_text() == "a: ok\nb: 1 problem\n"
    printed = capsys.readouterr()
    assert (printed.out, printed.err.splitlines()[0]) == ("a: ok\n", "b: 1 problem")
    emit_checks(blocks[:1], [], "json", None)
    assert capsys.readouterr().out == "[]\n"
