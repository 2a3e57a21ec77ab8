"""Ordinary files, told from pipes and devices: those make a reader wait for ever."""

from __future__ import annotations

import stat
from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}

HINT = "write what it would give to a file, and name that."


def special_kind(path: Path) -> str | None:
    """Return what is at `path` if it is neither a file nor a folder, such as ``a pipe``; else None."""
    try:
        return _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except (OSError, ValueError):
        return None
