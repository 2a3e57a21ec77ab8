"""Whole numbers from environment variables."""

from __future__ import annotations

import os

from trackperm.errors import InputError


def positive_setting(name: str, default: int) -> int:
    """Return the environment variable `name` as a whole number above 0, or `default` if it is not set."""
    written = os.environ.get(name, "").strip() or str(default)
    if not (written.isascii() and written.isdecimal()) or len(written) > 9 or int(written) < 1:
        raise InputError(f"`{name}` is {written!r}; expected a whole number above 0, such as {default}")
    return int(written)
