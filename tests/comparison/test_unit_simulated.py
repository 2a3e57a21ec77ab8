"""Size of the test by default, where attempts at one example depend on each other, at the level 0.05."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from support.eval_logs import promptfoo, promptfoo_result

import trackperm

N_EXAMPLES, N_ATTEMPTS, N_SETS = 40, 5, 200
ERROR = math.sqrt(0.05 * 0.95 / N_SETS)

pytestmark = pytest.mark.slow

Passes = npt.NDArray[np.int64]


def exchangeable(rng: np.random.Generator) -> tuple[Passes, Passes]:
    """Passes of two systems of shape (examples, attempts): each has a chance of its own on every example."""
    chances = rng.beta(0.3, 0.3, size=(2, N_EXAMPLES, 1))
    first, second = rng.random((2, N_EXAMPLES, N_ATTEMPTS)) < chances
    return first.astype(np.int64), second.astype(np.int64)


def as_epochs(passes: Passes, _: Path) -> Any:
    ids, epochs = np.indices(passes.shape).reshape(2, -1)
    return pl.DataFrame({"id": ids, "epoch": epochs, "score": passes.ravel()})


def as_promptfoo(passes: Path | Passes, path: Path) -> Any:
    """With `--repeat`, for which promptfoo numbers the tests on."""
    results = []
    for example, of_one in enumerate(np.asarray(passes)):
        for passed in of_one:
            result = promptfoo_result(len(results), "a", "Say", score=float(passed))
            results.append({**result, "vars": {"word": f"hi {example}"}})
    path.write_text(json.dumps(promptfoo(results)))
    return path


@pytest.mark.parametrize("write", [as_epochs, as_promptfoo])
def test_size(tmp_path: Path, write: Callable[[Passes, Path], Any]) -> None:
    rng = np.random.default_rng(0)
    rejected = {"example": 0, "row": 0}
    for _ in range(N_SETS):
        paths = tmp_path / "baseline.json", tmp_path / "candidate.json"
        sides = [write(passes, path) for passes, path in zip(exchangeable(rng), paths, strict=True)]
        rejected["example"] += trackperm.compare(*sides).pvalue < 0.05
        rejected["row"] += trackperm.compare(*sides, unit="row").pvalue < 0.05
    assert rejected["example"] / N_SETS < 0.05 + 3.0 * ERROR
    assert rejected["row"] / N_SETS > 0.18
