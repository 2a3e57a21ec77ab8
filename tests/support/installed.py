"""Packages that tests install: the module that they write, and what it declares."""

from __future__ import annotations

from pathlib import Path


def installed(folder: Path, name: str, entry_points: str) -> dict[str, str]:
    """Declare the entry points of a package in `folder`, and return the environment that has it."""
    package = folder / f"{name}-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (package / "entry_points.txt").write_text(entry_points)
    return {"PYTHONPATH": str(folder)}
