from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from trackperm.errors import EngineError
from trackperm.report import drawing_process

PNG = b"\x89PNG\r\n"
BAR = {"data": {"values": [{"a": 1}]}, "mark": "bar", "encoding": {"x": {"field": "a"}}}


@pytest.fixture
def drawer(monkeypatch: pytest.MonkeyPatch) -> Any:
    drawer = drawing_process._Drawer()
    monkeypatch.setattr(drawing_process, "_DRAWER", drawer)
    yield drawer
    drawer.close()


def draw(spec: Any = BAR) -> bytes:
    return drawing_process.png(spec, vl_version="5.20", scale=1.0)


def test_pictures_are_drawn_in_another_process(drawer: Any) -> None:
    with ThreadPoolExecutor(4) as pool:
        pictures = list(pool.map(lambda _: draw(), range(8)))
    assert all(picture.startswith(PNG) for picture in pictures)
    assert len(set(pictures)) == 1
    names = {
        (task / "comm").read_text().strip() for task in Path(f"/proc/{drawer._process.pid}/task").iterdir()
    }
    assert any("V8" in name for name in names)
    own = {(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()}
    assert not any("V8" in name for name in own)


def test_a_process_that_ended_is_started_again(drawer: Any) -> None:
    first = draw()
    before = drawer._process
    before.kill()
    before.wait()
    assert draw() == first
    assert drawer._process.pid != before.pid


def test_what_it_refuses_and_what_ends_it_twice_are_errors(
    drawer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EngineError, match="the chart cannot be drawn: Vega-Lite to PNG conversion failed"):
        draw({"mark": 1, "encoding": 2})
    drawer.close()
    monkeypatch.setattr(drawing_process, "_PROGRAM", "import os; os._exit(11)")
    with pytest.raises(EngineError, match="the process that draws it ended"):
        draw()


@pytest.mark.skipif(sys.platform != "linux", reason="os.fork")
def test_a_fork_has_a_process_of_its_own(drawer: Any) -> None:
    first = draw()
    child = os.fork()
    if child == 0:
        os._exit(0 if draw() == first and drawer._owner == os.getpid() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert draw() == first
