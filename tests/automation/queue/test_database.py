"""The file of the queue: made once, shared, private, and refused where it cannot be used."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.queue_tasks import KEY, claimed, task

from trackperm.automation.queue.database import default_folder
from trackperm.automation.queue.queue import Queue
from trackperm.errors import InputError


def test_two_queues_on_one_folder_are_one(tmp_path: Path):
    first, second = Queue(tmp_path), Queue(tmp_path)
    first.add([task()], "watch")
    assert claimed(second).candidate == "mlflow:run0"
    assert first.claim([KEY], "a") is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["queue.sqlite"]


def test_a_queue_that_many_open_at_once_is_made_once(tmp_path: Path):
    start = threading.Barrier(8)

    def opened(number: int) -> int:
        start.wait(10)
        return len(Queue(tmp_path / "new").add([task(number)], "watch"))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(opened, range(8))) == [1] * 8
    assert len(Queue(tmp_path / "new").entries()) == 8


def test_a_folder_that_cannot_be_written_to(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"the queue cannot be created in `.*/file`(?s:.*)`state=.FOLDER.`"):
        Queue(tmp_path / "file")


def test_a_damaged_file_and_one_of_another_version(tmp_path: Path):
    file = tmp_path / "queue.sqlite"
    file.write_bytes(b"not a database, but long enough to be read as one" * 100)
    with pytest.raises(InputError, match="cannot be used: file is not a database"):
        Queue(tmp_path)
    file.unlink()
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(InputError, match="its version is 7; expected 2"):
        Queue(tmp_path)


def test_a_process_that_does_not_let_go(tmp_path: Path):
    queue = Queue(tmp_path, busy=0.05)
    with queue._file.transaction(), pytest.raises(InputError, match="database is locked"):
        queue.add([task()], "watch")


def test_the_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Queue(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o077 == 0
    assert (tmp_path / "a" / "b" / "queue.sqlite").stat().st_mode & 0o077 == 0
    monkeypatch.delenv("TRACKPERM_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "trackperm"
    folders = {default_folder(tmp_path / name / "nightly.yaml") for name in ("a", "b")}
    assert len(folders) == 2
    assert all(folder.parent == default_folder() and folder.name.startswith("nightly-") for folder in folders)
    assert default_folder(tmp_path / "a" / ".." / "b" / "nightly.yaml") in folders
    monkeypatch.setenv("TRACKPERM_STATE", str(tmp_path / "own"))
    assert default_folder() == default_folder(tmp_path / "nightly.yaml") == tmp_path / "own"


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path):
    queue = Queue(tmp_path / "state")
    queue.add([task()], "watch")
    for file in (tmp_path / "state").iterdir():
        file.unlink()
    assert queue.entries() == []
    assert queue.add([task()], "watch") == [task()]
