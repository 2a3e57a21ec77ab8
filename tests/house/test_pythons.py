"""The versions of Python that are declared are those for which style and types are checked."""

from __future__ import annotations

import importlib.metadata
import re

from packaging.specifiers import SpecifierSet
from packaging.version import Version
from support.processes import ROOT


def test_declared_and_checked_versions_agree():
    metadata = importlib.metadata.metadata("trackperm")
    classifiers = "\n".join(metadata.get_all("Classifier") or ())
    declared = sorted(map(Version, re.findall(r"Python :: (3\.\d+)", classifiers)))
    assert declared == [Version(f"3.{minor}") for minor in range(declared[0].minor, declared[-1].minor + 1)]
    required = SpecifierSet(metadata["Requires-Python"])
    assert [Version(f"3.{minor}") in required for minor in (declared[0].minor - 1, declared[0].minor)] == [
        False,
        True,
    ]
    checked = re.findall(r"--python-version (3\.\d+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert [Version(version) for version in checked] == [declared[0], declared[-1]]
    [ruff] = re.findall(
        r'^target-version = "py3(\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M
    )
    assert Version(f"3.{ruff}") == declared[0]
