"""Files on a full disk: the error names the file, and nothing is half written."""

from __future__ import annotations

import errno
import gzip
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.processes import run
from support.queue_tasks import task
from support.watchers import COMMAND

from trackperm.automation.queue.queue import Queue
from trackperm.errors import QueueError, StorageError
from trackperm.storage import temporary_files, write_whole
from trackperm.tables import read_examples

FULL = Path("/dev/full")


@pytest.fixture
def small_files() -> Iterator[None]:
    """Refuse files of more than 4 KiB to this process, as a quota does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, small_files: None):
    old, new, link = tmp_path / "old", tmp_path / "new", tmp_path / "link"
    old.write_text("before")
    old.chmod(0o640)
    link.symlink_to(old)
    for path in (old, new, link):
        with pytest.raises(StorageError, match=rf"`{path}` cannot be written: .*\s+Hint: the disk is full"):
            write_whole(path, b"x" * 10_000)
    assert sorted(tmp_path.iterdir()) == [link, old]
    assert old.read_text() == "before"
    write_whole(link, b"after")
    assert (old.read_text(), link.is_symlink(), stat.S_IMODE(old.stat().st_mode)) == ("after", True, 0o640)


def test_what_is_no_file_is_written_to(tmp_path: Path):
    reader, writer = os.pipe()
    write_whole(Path(f"/dev/fd/{writer}"), b"said")
    os.close(writer)
    assert os.read(reader, 10) == b"said"
    os.close(reader)
    with pytest.raises(StorageError, match="`/dev/full` cannot be written: No space left on device"):
        write_whole(FULL, b"said")


def test_other_failures_than_a_full_disk_pass():
    with pytest.raises(PermissionError), temporary_files():
        raise PermissionError(errno.EACCES, "Permission denied")


def test_a_queue(tmp_path: Path, small_files: None):
    """Regression: the error of SQLite was called a fault in trackperm."""
    with pytest.raises(QueueError, match=r"the queue `.*/queue\.sqlite` cannot be used: "):
        Queue(tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".draft"]


def test_a_queue_that_fills_its_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    queue = Queue(tmp_path)
    with queue._file.opened() as rows:
        pages = rows.execute("PRAGMA page_count").fetchone()[0]
    opened = queue._file.opened

    @contextmanager
    def full() -> Iterator[object]:
        with opened() as rows:
            rows.execute(f"PRAGMA max_page_count = {pages}")
            yield rows

    monkeypatch.setattr(queue._file, "opened", full)
    with pytest.raises(QueueError, match=r"database or disk is full\s+Hint: make room on its disk"):
        queue.add([task(number) for number in range(5000)], "watch")
    monkeypatch.undo()
    assert queue.entries() == []


def test_temporary_files(tmp_path: Path, small_files: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"id,prediction,label\n" + b"1,a,a\n" * 5000))
    with pytest.raises(StorageError, match=rf"temporary files in `{tmp_path}` cannot be written"):
        read_examples(path)


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_the_command_line(tmp_path: Path):
    """Regression: a spec that could not be written was called the result, and left an empty file."""
    with FULL.open("w") as full:
        ended = subprocess.run(
            [*COMMAND, "statistic", "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: standard output cannot be written: No space left on device\n")
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9)); {COMMAND[-1]}"
    ended = run([sys.executable, "-c", limited, "statistic", "new", "mine"], cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: `mine.yaml` cannot be written: File too large\n")
    assert not list(tmp_path.iterdir())


def test_a_name_of_two_lines_is_said_on_one(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nowhere/a\\nb.json` cannot be written: No such file"):
        write_whole(tmp_path / "nowhere" / "a\nb.json", b"x")
