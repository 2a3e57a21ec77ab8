"""Packages that tests install, and what is installed because of others."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def installed(folder: Path, name: str, entry_points: str) -> dict[str, str]:
    """Declare the entry points of a package in `folder`, and return the environment that has it."""
    package = folder / f"{name}-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (package / "entry_points.txt").write_text(entry_points)
    return {"PYTHONPATH": str(folder)}


def required(name: str, extras: frozenset[str], found: dict[str, set[str]]) -> None:
    """Add a distribution and, if it is installed, all that it requires with `extras` to `found`."""
    name = canonicalize_name(name)
    if name in found and extras <= found[name]:
        return
    known = found.setdefault(name, set())
    known |= extras
    try:
        requires = distribution(name).requires or ()
    except PackageNotFoundError:
        return
    for each in map(Requirement, requires):
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *known)):
            required(each.name, frozenset(each.extras), found)
