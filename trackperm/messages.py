"""Wording that messages share: lists of names, suggestions, addresses without credentials."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_LISTED = 20

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


def listed(names: Iterable[str]) -> str:
    """Return names in backticks, separated by commas; of many the first 20."""
    quoted = [f"`{name}`" for name in names]
    more = f" and {len(quoted) - _LISTED} more" if len(quoted) > _LISTED else ""
    return ", ".join(quoted[:_LISTED]) + more


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean `x`?`` for the name in `known` that is closest to `name`, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean `{close[0]}`?" if close else ""


def kind(value: object) -> str:
    """Return what a value of a document is called in messages."""
    if value is None:
        return "nothing"
    names = {bool: "a boolean", int: "an integer", float: "a decimal", str: "text", list: "a list"}
    return names.get(type(value), "a mapping")


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
