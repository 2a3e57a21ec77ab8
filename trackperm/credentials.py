"""Credentials do not leave with what is said of an address."""

from __future__ import annotations

import re

# Up to the last `@` before the path, as addresses are read: people forget to encode that of a password.
_USER = re.compile(r"(?<=://)[^/?#\s'\"]+@")
# They forget `/`, `?` and `#` as well, with which addresses are read otherwise: a
# host whose port is no number is a user with a password then.
_PASSWORD = re.compile(r"(?<=://)[^/?#\s'\":@\[]*:(?!\d{1,5}(?:[/?#]|$))[^\s'\"]{0,500}@")
# The key of a database's client is a file.
_IN_QUERY = re.compile(
    r"([?&](?!ssl_?key=)(?:[^=&\s]*(?:key|token|secret|password|passwd|signature|credential)[^=&\s]*|pass|pwd|sig)=)"
    r"[^&\s'\"`]+",
    re.IGNORECASE,
)


def without_credentials(text: str) -> str:
    """Return `text` without what is before the ``@`` of its addresses, and without secrets in queries."""
    return _IN_QUERY.sub(r"\1…", _PASSWORD.sub("", _USER.sub("", text)))
