"""Log lines: whole, and with nothing secret in them."""

from __future__ import annotations

import json
import os
import threading

import pytest
from hooked_runs import Heard

from trackperm.hooks.notes import Notes, scrubbed


def test_nothing_secret_is_noted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "correct horse battery")
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    heard = Heard()
    heard.notes(
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
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
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
    notes = Notes(policy="p")
    threads = [threading.Thread(target=notes, args=("e",), kwargs={"text": "x" * 500}) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["policy"] for line in lines] == ["p"] * 20
