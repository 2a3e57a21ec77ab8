"""Files that tests of readers write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
