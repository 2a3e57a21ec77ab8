"""Every code block of the README runs, in order and in one folder, and prints what the README says.

Classifiers are trained, and another version of a library may train them a little differently: numbers
that come from them have to agree in sign and within a factor of three, everything else exactly.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import sqlite3
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.command_line import call_trackperm
from support.processes import ROOT, run, script

pytestmark = pytest.mark.tracker

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]\d)")
RUN_ID = re.compile(r"\b[0-9a-f]{32}\b")


@dataclass
class Block:
    language: str
    text: str
    line: int


@dataclass
class Folder:
    """Where the blocks run: after `make demo`, which printed `demo`, with what they export in `env`."""

    path: Path
    demo: str
    env: dict[str, str]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Make it the current folder, with the environment that blocks have exported."""
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries; other tests are strict
            patch.chdir(self.path)
            for name, value in self.env.items():
                patch.setenv(name, value)
            yield


def blocks() -> list[Block]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start()) + 1)
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def agree(found: str, stated: str) -> bool:
    """Whether two outputs say the same, their numbers taken loosely."""
    found, stated = (RUN_ID.sub("<run id>", text.strip()) for text in (found, stated))
    if NUMBER.sub("<number>", found) != NUMBER.sub("<number>", stated):
        return False
    pairs = zip(numbers(found), numbers(stated), strict=True)
    return all(a == b or (b != 0 and 1 / 3 < a / b < 3) for a, b in pairs)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Commands of a console block and what they print; `make demo` prints commands itself."""
    if text.startswith("$ make demo\n"):
        yield "make demo", text.removeprefix("$ make demo\n")
        return
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def demo(path: Path) -> str:
    """What `make demo` prints in the folder `path`, with the environment called as it is in a clone."""
    result = run([sys.executable, ROOT / "examples" / "demo.py"], cwd=path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    return result.stdout.replace(os.path.relpath(script("mlflow"), path), ".venv/bin/mlflow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = tmp_path_factory.mktemp("readme")
    (path / "examples").symlink_to(ROOT / "examples")
    return Folder(path, demo(path), {})


def run_console(text: str, folder: Folder) -> None:
    for command, stated in commands(text):
        name, _, value = command.removeprefix("export ").partition("=")
        if command.startswith("export "):
            folder.env[name] = value
            continue
        if command == "make demo":
            found = folder.demo
        else:
            program, *arguments = shlex.split(command)
            assert program == "trackperm"
            with folder.entered():
                result = call_trackperm(folder.path, *arguments, env=folder.env)
            assert result.returncode == 0, result.stderr
            found = result.stdout + result.stderr
        assert agree(found, stated), f"$ {command}\n{found}"


def run_pycon(text: str, folder: Folder) -> None:
    class Loosely(doctest.OutputChecker):
        def check_output(self, want: str, got: str, optionflags: int) -> bool:
            return super().check_output(want, got, optionflags) or ("mlflow:" in text and agree(got, want))

    example = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
    said: list[str] = []
    with folder.entered():
        runner = doctest.DocTestRunner(checker=Loosely())
        runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)


def write_yaml(text: str, folder: Folder) -> None:
    name = re.match(r"# ([\w-]+\.yaml)\n", text)
    assert name is not None, "the first line of a YAML block says the file's name"
    (folder.path / name[1]).write_text(text, encoding="utf-8")


RUNNERS = {"console": run_console, "pycon": run_pycon, "yaml": write_yaml}


def test_every_block_in_order(folder: Folder):
    for block in blocks():
        RUNNERS[block.language](block.text, folder)


@pytest.mark.slow
def test_demo_adds_nothing_twice(folder: Folder):
    def rows() -> list[tuple[object, ...]]:
        with sqlite3.connect(folder.path / "demo-store" / "mlflow.db") as store:
            query = "select run_uuid, name, status, lifecycle_stage from runs order by run_uuid"
            return store.execute(query).fetchall()

    before = rows()
    printed = demo(folder.path)
    assert rows() == before
    assert printed.count("found ") == 6
    assert printed.count("already logged") == 4


def test_agreement_can_fail():
    assert agree("p = 0.188  exact", "p = 0.19  exact")
    assert not agree("p = 0.188  exact", "p = 0.188  certified")
    assert not agree("p = 0.188", "p = 0.01")
    assert not agree("difference +0.01", "difference -0.01")
    assert agree("logged: mlflow:" + "0a" * 16, "logged: mlflow:" + "1b" * 16)
