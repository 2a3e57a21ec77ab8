"""Ball arithmetic of these tests has 300 bits."""

from __future__ import annotations

from collections.abc import Iterator

import flint
import pytest


@pytest.fixture(autouse=True)
def _many_bits() -> Iterator[None]:
    with flint.ctx.workprec(300):
        yield
