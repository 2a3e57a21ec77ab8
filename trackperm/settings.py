"""Settings of the environment that are whole numbers."""

from __future__ import annotations

import os

from trackperm.errors import InputError


def positive_setting(name: str, default: int) -> int:
    """Return the value of the environment variable `name`, or `default` where it is not set.

    Raises
    ------
    InputError
        If it is not a whole number above 0.
    """
    written = os.environ.get(name, "").strip() or str(default)
    if not (written.isascii() and written.isdecimal()) or len(written) > 9 or int(written) < 1:
        raise InputError(f"`{name}` is {written!r}; expected a whole number above 0, such as {default}")
    return int(written)
