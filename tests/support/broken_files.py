"""Files that are refused once one thing in them is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from trackperm.errors import SourceError
from trackperm.tables import read_examples


def check_refused(path: Path, text: str, old: str, new: str, message: str) -> None:
    """Write `text` with `new` in place of `old`, which it has once, and see it refused with `message`."""
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(SourceError, match=message):
        read_examples(path)
