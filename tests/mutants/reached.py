"""Lines of the package that each test reaches, recorded by running every test once under a trace function.

A recording belongs to one test module and is kept in `.mutants/` until the package, the module or what tests
share changes. Lines that run while a module is collected or its fixtures are set up count for all its tests.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from multiprocessing.connection import wait
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOMS = ("exact", "pairing", "statistic", "comparison", "leaderboards", "ledger", "report")
"""Folders of tests that run mutants."""

MEMORY = 6 * 2**30
"""Bytes that a process may allocate, so that a mutant cannot exhaust the machine."""

SPARE_SECONDS = 10.0
"""Processor time that each test may use beyond four times its recorded time."""

OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", "-o", "timeout=300")
"""Options of pytest: the same generated cases each time, and an end to tests that wait for ever."""


class Recorder:
    """Plugin that records which lines of a package each test reaches, its seconds and its failures."""

    def __init__(self, package: Path) -> None:
        self.reached: dict[str, dict[str, set[int]]] = {}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self._prefix = f"{package}{os.sep}"
        self._begin("")

    def _begin(self, name: str) -> None:
        self._lines = self.reached.setdefault(name, defaultdict(set))
        self._left: dict[int, set[int]] = {}

    def _calls(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if not code.co_filename.startswith(self._prefix):
            return None
        left = self._left.get(id(code))
        if left is None:
            left = self._left[id(code)] = {line for _, _, line in code.co_lines() if line}
        return self._steps if left else None

    def _steps(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            code = frame.f_code
            self._lines[code.co_filename].add(frame.f_lineno)
            self._left.get(id(code), set()).discard(frame.f_lineno)
        return self._steps

    def _traced(self, name: str) -> Iterator[None]:
        self._begin(name)
        threading.settrace(self._calls)
        sys.settrace(self._calls)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Record a module while it is imported."""
        return (yield from self._traced(_module(collector.nodeid)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Record fixtures for the whole module; results that other tests cached are computed again."""
        for module in [m for name, m in list(sys.modules.items()) if name.startswith("trackperm.")]:
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
        return (yield from self._traced(_module(item.nodeid)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Record a test."""
        return (yield from self._traced(item.nodeid))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Record the end of fixtures for the whole module."""
        return (yield from self._traced(_module(item.nodeid)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note modules that cannot be imported."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the seconds of a test."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def of(self, module: str) -> dict[str, Any]:
        """Return the recording of one test module as JSON data."""
        return {
            "failed": sorted({name for name in self.failed if _module(name) == module}),
            "seconds": {name: s for name, s in self.seconds.items() if _module(name) == module},
            "reached": {
                name: {path.removeprefix(self._prefix): sorted(lines) for path, lines in files.items()}
                for name, files in self.reached.items()
                if _module(name) == module
            },
        }


class Chosen:
    """Plugin that runs the given tests only, in their order, with a limit of processor time for each."""

    def __init__(self, tests: dict[str, float]) -> None:
        self.tests = tests
        self.failed = ""
        self.ran = 0
        self._limit(3 * SPARE_SECONDS)

    def _limit(self, seconds: float) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, hard))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep and order the chosen tests."""
        place = {name: number for number, name in enumerate(self.tests)}
        items[:] = sorted((i for i in items if i.nodeid in place), key=lambda i: place[i.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Allow a test its processor time."""
        self.ran += 1
        self._limit(SPARE_SECONDS + 4.0 * self.tests[nodeid])

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        """Note the first failure."""
        self.failed = self.failed or node.nodeid


def _module(name: str) -> str:
    return name.partition("::")[0]


def enter(tree: Path) -> None:
    """Make this process, which is one of its own, run tests of a tree, with little memory and in silence."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(tree)
    sys.path[:0] = [str(tree), str(tree / "tests")]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])


def run(modules: list[str], plugin: Recorder | Chosen, *options: str) -> int:
    """Run test modules in this process: the exit code of pytest."""
    quiet = "ignore::pytest.PytestAssertRewriteWarning"  # of plugins that are imported before the fork
    return int(pytest.main([*OPTIONS, *options, "-W", quiet, *modules], plugins=[plugin]))


def forked(
    work: Callable[..., Any], calls: Iterable[tuple[Any, ...]], processes: int
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Call a function in processes of their own: yield arguments and result, None if the process ended."""
    fork = multiprocessing.get_context("fork")
    waiting = list(calls)[::-1]
    running: dict[Any, tuple[Any, Any, tuple[Any, ...]]] = {}

    def answer(sender: Any, arguments: tuple[Any, ...]) -> None:
        sender.send(work(*arguments))

    while waiting or running:
        while waiting and len(running) < processes:
            arguments = waiting.pop()
            receiver, sender = fork.Pipe(duplex=False)
            process = fork.Process(target=answer, args=(sender, arguments))
            process.start()
            sender.close()
            running[process.sentinel] = process, receiver, arguments
        for sentinel in wait(list(running)):
            process, receiver, arguments = running.pop(sentinel)
            process.join()
            with suppress(ProcessLookupError):  # what a test started and did not end
                os.killpg(process.pid, signal.SIGKILL)
            try:
                yield arguments, receiver.recv()
            except EOFError:
                yield arguments, None


class Recordings:
    """Recordings of all test modules: which tests reach a line."""

    def __init__(self, root: Path, tree: Path, processes: int) -> None:
        kept = root / ".mutants"
        modules = sorted(
            str(path.relative_to(tree))
            for room in ROOMS
            for path in (tree / "tests" / room).rglob("test_*.py")
        )
        shared = hashlib.sha256()
        for path in sorted(p for folder in ("trackperm", "tests") for p in (tree / folder).rglob("*")):
            if path.is_file() and not {"__pycache__", "mutants"} & {*path.parts} and path.name[:5] != "test_":
                shared.update(path.read_bytes())
        files = {}
        for module in modules:
            digest = shared.copy()
            digest.update((tree / module).read_bytes())
            files[module] = kept / f"{module.replace(os.sep, '.')}.{digest.hexdigest()[:16]}.json"
        missing = [module for module in modules if not files[module].exists()]
        kept.mkdir(exist_ok=True)
        for outdated in {*kept.iterdir()} - {*files.values()}:
            outdated.unlink()

        def record(part: list[str]) -> None:
            recorder = Recorder(tree / "trackperm")
            enter(tree)
            # A module that cannot be collected is one of those that `failed` names; the others are recorded.
            run(part, recorder, "--continue-on-collection-errors")
            for module in part:
                files[module].write_text(json.dumps(recorder.of(module)))

        parts = [(missing[start::16],) for start in range(min(16, len(missing)))]
        for (part,), _ in forked(record, parts, processes):
            print(f"recorded {len(part)} of {len(missing)} test modules", flush=True)
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self._reached: dict[str, dict[str, list[int]]] = {}
        for module in modules:
            recording = json.loads(files[module].read_text())
            self.seconds.update(recording["seconds"])
            self._reached.update(recording["reached"])
            self.failed.update(recording["failed"])

    def tests(self, path: str, lines: range, limit: float) -> dict[str, float]:
        """Return the tests that reach one of the lines and their seconds, by module, up to a sum of seconds.

        Modules in the folder that mirrors the package come first, among these the quickest.
        """
        reached = {
            name
            for name, files in self._reached.items()
            if path in files and any(line in lines for line in files[path])
        }
        chosen = {
            test: seconds
            for test, seconds in self.seconds.items()
            if (test in reached or _module(test) in reached) and test not in self.failed
        }
        total: dict[str, float] = defaultdict(float)
        for test, seconds in chosen.items():
            total[_module(test)] += seconds

        def place(test: str) -> tuple[int, float, str]:
            module = _module(test)
            near = os.path.commonpath([Path(module).parent, Path("tests", path).with_suffix("")])
            return -near.count(os.sep), total[module], module

        ordered = sorted(chosen, key=place)
        sums = accumulate(chosen[test] for test in ordered)
        return {
            test: chosen[test]
            for test, sum_ in zip(ordered, sums, strict=True)
            if sum_ - chosen[test] < limit
        }
