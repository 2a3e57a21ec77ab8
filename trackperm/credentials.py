"""Credentials do not leave with what is said of an address."""

from __future__ import annotations

import re

# Up to the last `@` before the path, as addresses are read: people forget to encode that of a password.
_USER = re.compile(r"(?<=://)[^/?#\s'\"]+@")
_IN_QUERY = re.compile(
    r"([?&][^=&\s]*(?:key|token|secret|password|signature)[^=&\s]*=)[^&\s'\"`]+", re.IGNORECASE
)


def without_credentials(text: str) -> str:
    """Return `text` without what is before the ``@`` of its addresses, and without secrets in queries."""
    return _IN_QUERY.sub(r"\1…", _USER.sub("", text))
