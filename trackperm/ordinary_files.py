"""Check for ordinary files, since pipes and devices can block a reader forever."""

from __future__ import annotations

import stat
from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}

HINT = "write its content to a file, and name that file."


def special_kind(path: Path) -> str | None:
    """Return the kind of a path that is neither a file nor a folder, such as ``a pipe``; else None."""
    try:
        return _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except (OSError, ValueError):
        return None
