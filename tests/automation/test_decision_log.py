"""Log lines: whole, and with nothing secret in them."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from contextlib import suppress

import pytest
from support.hooked_runs import Heard

from trackperm.automation.decision_log import DecisionLog, scrubbed


def test_nothing_secret_is_noted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "correct horse battery")
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    heard = Heard()
    heard.log(
        "x",
        reason="at https://me:pass@host/p?api_key=k123&x=1 with `correct horse battery`",
        more=["Bearer abcdefgh", "key 0123456789abcdef", "Authorization: Basic dXNlcjpwYXNz"],
        nothing=None,
        number=1.5,
    )
    [line] = heard.lines
    for secret in ("pass@", "correct horse", "k123", "abcdefgh", "0123456789abcdef", "dXNl"):
        assert secret not in heard.text
    assert "https://host/p" in line["reason"]
    assert (line["number"], "nothing" in line) == (1.5, False)
    assert len(scrubbed("x" * 10_000)) == 2000


def test_the_environment_may_change_meanwhile(monkeypatch: pytest.MonkeyPatch):
    # A copy: where a thread changes the process's own environment, libraries that read it from C may crash.
    monkeypatch.setattr(os, "environ", {**os.environ, "WANDB_API_KEY": "0123456789abcdef"})
    ended = threading.Event()

    def change() -> None:
        while not ended.is_set():
            for number in range(200):
                os.environ[f"TRACKPERM_TEST_{number}"] = "x"
            for number in range(200):
                del os.environ[f"TRACKPERM_TEST_{number}"]

    thread = threading.Thread(target=change)
    thread.start()
    try:
        assert {scrubbed("at 0123456789abcdef") for _ in range(300)} == {"at …"}
    finally:
        ended.set()
        thread.join()


def test_notes_are_whole_lines(capsys: pytest.CaptureFixture[str]):
    notes = DecisionLog(policy="p")
    threads = [threading.Thread(target=notes, args=("e",), kwargs={"text": "x" * 500}) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["policy"] for line in lines] == ["p"] * 20


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_what_a_stream_cannot_encode_is_escaped(encoding: str):
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding)
    DecisionLog(stream)("e", name="実験", half="\udcff", known="é")
    [line] = written.getvalue().decode(encoding).splitlines()
    found = json.loads(line)
    assert (found["name"], found["half"], found["known"]) == ("実験", "\udcff", "é")


def test_a_line_that_cannot_be_written():
    """It is an error, unless somebody wants to be told of it."""
    reading, writing = os.pipe()
    os.close(reading)
    told = threading.Event()
    stream = os.fdopen(writing, "w")
    with pytest.raises(BrokenPipeError):
        DecisionLog(stream)("e")
    notes = DecisionLog(stream, broken=told.set)
    assert notes.failure is None
    notes("e")
    notes("e")
    assert told.is_set()
    assert isinstance(notes.failure, BrokenPipeError)
    with suppress(BrokenPipeError):
        stream.close()
    told.clear()
    notes("e")  # a stream that is closed
    assert told.is_set()


def test_readable_where_the_stream_can_be():
    heard = Heard()
    heard.log("e", name="実験 …")
    assert "実験 …" in heard.text


def test_without_standard_output(monkeypatch: pytest.MonkeyPatch):
    """As where a process is started with it closed; nothing is printed then either."""
    monkeypatch.setattr(sys, "stdout", None)
    notes = DecisionLog()
    notes("e")
    assert notes.failure is None
