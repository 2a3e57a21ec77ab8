"""Every example in a docstring runs, in a folder with two runs in it."""

from __future__ import annotations

import doctest
import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.comparisons import answers

import trackperm

BASELINE, CANDIDATE = "baseline.parquet", "candidate.parquet"

ELSEWHERE = {"trackperm.automation.training.huggingface", "trackperm.automation.training.lightning"}
"""Modules whose libraries have an environment of their own."""


def modules() -> Iterator[str]:
    """Modules with examples; none is imported before it is tested."""
    folder = Path(trackperm.__path__[0])
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
        if name not in ELSEWHERE and ">>>" in path.read_text(encoding="utf-8"):
            yield name


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, trackperm.Comparison]:
    """A folder with two runs, and what comparing them gives."""
    better, worse, both, neither = 109, 69, 935, 206
    folder = tmp_path_factory.mktemp("compared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        answers([False] * better + [True] * (worse + both) + [False] * neither).write_parquet(BASELINE)
        answers([True] * better + [False] * worse + [True] * both + [False] * neither).write_parquet(
            CANDIDATE
        )
        return folder, trackperm.compare(BASELINE, CANDIDATE)


@pytest.mark.parametrize("name", list(modules()))
def test_docstrings(
    name: str, compared: tuple[Path, trackperm.Comparison], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    runs, comparison = compared
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name))
    examples = [example for example in found if example.examples]
    assert examples
    for number, example in enumerate(examples):
        folder = tmp_path / str(number)
        shutil.copytree(runs, folder)
        monkeypatch.chdir(folder)
        example.globs.update(np=np, Path=Path, trackperm=trackperm, comparison=comparison)
        check(example)


def check(example: doctest.DocTest) -> None:
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)
    assert runner.tries == len(example.examples)
