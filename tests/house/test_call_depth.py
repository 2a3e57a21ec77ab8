"""How much of the package a comparison passes through: what somebody reads who follows one call."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import polars as pl

import trackperm

MOST_MODULES = 35
DEEPEST = 17
"""Frames of ours on the stack, of which the first refuses unknown arguments.

Comprehensions are frames until Python 3.11.
"""

HOME = str(Path(trackperm.__file__).parent)


def test_a_comparison_by_f1_enters_few_modules_and_is_not_deep() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 900)
    runs = [
        pl.DataFrame(
            {
                "id": [f"e{i}" for i in range(900)],
                "prediction": np.where(rng.random(900) < 0.85, label, 1 - label),
                "label": label,
            }
        )
        for _ in range(2)
    ]
    trackperm.compare(*runs, "f1")  # what is imported and compiled on first use is not what is counted
    modules: set[str] = set()
    deepest: list[str] = []

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        if event != "call" or not frame.f_code.co_filename.startswith(HOME):
            return
        modules.add(frame.f_code.co_filename)
        stack, at = [], frame
        while at is not None:
            if at.f_code.co_filename.startswith(HOME):
                stack.append(at.f_code.co_name)
            at = at.f_back
        deepest = max(deepest, stack[::-1], key=len)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        trackperm.compare(*runs, "f1")
    finally:
        sys.setprofile(before)
    assert len(modules) <= MOST_MODULES, sorted(modules)
    assert len(deepest) <= DEEPEST, deepest
