"""Credentials do not leave with what is said of an address."""

from __future__ import annotations

import re

# Up to the last `@` before the path, as addresses are read: people forget to encode that of a password.
_USER = re.compile(r"(?<=://)[^/?#\s'\"]+@")
# They forget `/`, `?` and `#` as well, with which addresses are read otherwise: a
# host whose port is no number is a user with a password then.
_PASSWORD = re.compile(r"(?<=://)[^/?#\s'\":@\[]*:(?!\d{1,5}(?:[/?#]|$))[^\s'\"]{0,500}@")
# The key of a database's client is a file. Names end at `?`, so that nothing is read
# for more than one of them, and what is masked already stays as it is.
_IN_QUERY = re.compile(
    r"([?&](?!ssl_?key=)(?=[^=&?\s]*(?:key|token|secret|password|passwd|signature|credential)|(?:pass|pwd|sig)=)"
    r"[^=&?\s]+=)(?!…+(?:[&\s'\"`]|$))[^&\s'\"`]+",
    re.IGNORECASE,
)


def without_credentials(text: str) -> str:
    """Return `text` without what is before the ``@`` of its addresses, and without secrets in queries."""
    return _IN_QUERY.sub(r"\1…", _PASSWORD.sub("", _USER.sub("", text)))


def masked(text: str) -> str:
    """Return `text` with dots in place of what :func:`without_credentials` takes out, as long as it was.

    What is left stands where it did, also after :func:`without_credentials`.
    """
    for pattern in (_USER, _PASSWORD):
        text = pattern.sub(lambda found: "…" * len(found[0]), text)
    return _IN_QUERY.sub(lambda found: found[1] + "…" * (len(found[0]) - len(found[1])), text)
