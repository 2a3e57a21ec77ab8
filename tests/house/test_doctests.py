"""Every example in a docstring runs, in a folder with two runs in it."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from comparisons import answers

import trackperm

ELSEWHERE = {"trackperm.hooks.huggingface", "trackperm.hooks.lightning"}
"""Modules whose libraries have an environment of their own."""


def examples() -> Iterator[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    for info in pkgutil.walk_packages(trackperm.__path__, "trackperm."):
        if info.name in ELSEWHERE:
            continue
        yield from finder.find(importlib.import_module(info.name))
    yield from finder.find(trackperm)


@pytest.mark.parametrize("example", [e for e in examples() if e.examples], ids=lambda e: e.name)
def test_docstring(example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    better, worse, both, neither = 109, 69, 935, 206
    baseline = answers([False] * better + [True] * (worse + both) + [False] * neither)
    candidate = answers([True] * better + [False] * worse + [True] * both + [False] * neither)
    baseline.write_parquet("baseline.parquet")
    candidate.write_parquet("candidate.parquet")
    example.globs.update(np=np, Path=Path, trackperm=trackperm)
    example.globs["comparison"] = trackperm.compare("baseline.parquet", "candidate.parquet")

    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)
    assert runner.tries == len(example.examples)
