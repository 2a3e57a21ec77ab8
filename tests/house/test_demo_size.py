"""What `make demo` says about what it installs is measured."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

from support.installed import required
from support.processes import ROOT


def size(installed: Distribution) -> int:
    """Sum the bytes of the files of a distribution."""
    paths = [Path(str(installed.locate_file(file))) for file in installed.files or ()]
    return sum(path.stat().st_size for path in paths if path.is_file())


def test_the_makefile_states_the_size_of_the_demo():
    found: dict[str, set[str]] = {}
    required("trackperm", frozenset({"demo"}), found)
    stated = re.search(
        r"about (\d+) packages and ([\d.]+) GB", (ROOT / "Makefile").read_text(encoding="utf-8")
    )
    assert stated is not None
    gigabytes = sum(size(distribution(name)) for name in found) / 1e9
    assert 0.75 < len(found) / int(stated[1]) < 1.25
    assert 0.75 < gigabytes / float(stated[2]) < 1.25
