"""``--format`` and ``-o``: printed results, written files, and errors of writing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer
from support.comparisons import answers
from typer.testing import CliRunner

from trackperm.cli import commands
from trackperm.cli.output import (
    LABELS,
    Block,
    Renderers,
    echo_error,
    emit,
    emit_checks,
    require_formats,
    require_other_files,
    write_files,
)
from trackperm.cli.progress import working
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


@pytest.mark.parametrize("command", ["compare", "leaderboard", "inspect", "gate"])
def test_files_that_are_read_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Regression: `-o` replaced predictions, or the baseline of a policy, by the result."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b.json"):
        answers([True, False] * 10).write_json(name)
    Path("link.json").symlink_to("a.json")
    Path("trackperm.yaml").write_text("policies: [{name: p, baseline: {run: a.json}}]")
    before = Path("a.json").read_bytes()
    runs = {"inspect": ["a.json::x"], "gate": ["--candidate", "b.json"]}.get(command, ["a.json", "b.json"])
    for written in ("a.json", "link.json", str(tmp_path / "a.json")):
        found = CliRunner().invoke(commands.app, [command, *runs, "-o", written])
        assert isinstance(found.exception, InputError)
        assert "; expected another file for `-o`" in found.exception.message
    assert Path("a.json").read_bytes() == before


def test_labels_and_policy_files_are_not_written(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text("")
    with pytest.raises(InputError, match=r"policy.json` is the policy file; expected another file"):
        require_other_files([policy], {LABELS: (None,), "the policy file": (policy,)})
    require_other_files([tmp_path / "new.json"], {LABELS: (None, "mlflow:run", "\0", "~nobody/x")})


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_closed_stream_is_no_terminal(monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    """Regression: `trackperm compare ... >&-` ended with AttributeError."""
    monkeypatch.setattr(sys, stream, None)
    emit(RENDERERS, "text", is_prose=True)
    echo_error("error: x")
    with working("x"):
        pass


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
