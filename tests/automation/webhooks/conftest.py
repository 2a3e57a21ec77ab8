"""A receiver that listens, and that says nothing secret."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.receivers import MLFLOW, WANDB, Site, listening


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    with listening(made.server):
        yield made
    assert WANDB not in made.heard.text
    assert MLFLOW not in made.heard.text
    assert not made.heard.events("delivery-failed")
