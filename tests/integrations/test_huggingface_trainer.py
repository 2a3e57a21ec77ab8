"""The script for transformers' Trainer, run as its README says: a baseline, a candidate, two processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.recipes import CANDIDATES, Recipe, assert_trained_and_compared

pytestmark = [pytest.mark.tracker, pytest.mark.training]


@CANDIDATES
def test_its_commands(tmp_path: Path, names: list[str]):
    recipe = Recipe("huggingface-trainer", tmp_path, {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"})
    assert_trained_and_compared(recipe, "fine-tuning", [f"s{i}" for i in range(201)], names)
