"""Wording that messages share: lists of names, suggestions, what must not be shown."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

_LISTED = 20

# Up to the last `@` before the path, as addresses are read: people forget to encode that of a password.
_USER = re.compile(r"(?<=://)[^/?#\s'\"]+@")
# They forget `/`, `?` and `#` as well, with which addresses are read otherwise: a
# host whose port is no number is a user with a password then.
_PASSWORD = re.compile(r"(?<=://)[^/?#\s'\":@\[]*:(?!\d{1,5}(?:[/?#]|$))[^\s'\"]{0,500}@")
# Names of parameters that hold credentials: by a part of them, or as a whole after `-`, `_` or `.`.
_IN_PART = r"key|token|secret|password|passwd|passphrase|signature|credential|odbc_connect"
_AS_WHOLE = r"auth|authorization|bearer|code|jwt|oauth|otp|pass|pat|pwd?|sas|session(?:_?id)?|sid|sig|ticket"
# The key of a database's client is a file. Names end at `?`, so that nothing is read
# for more than one of them, and what is masked already stays as it is.
_IN_QUERY = re.compile(
    rf"([?&#;](?!ssl_?key=)(?=[^=&?#;\s]*(?:{_IN_PART})|(?:[^=&?#;\s]*[-_.])?(?:{_AS_WHOLE})=)"
    r"[^=&?#;\s]+=)(?!…+(?:[&\s'\"`]|$))[^&\s'\"`]+",
    re.IGNORECASE,
)
# As databases' own messages write it, and mappings.
_PASSWORD_OF = re.compile(
    r"(?<![?&#;\w])((?:password|passwd|pwd)(?: ?= ?|['\"]: ?))(?!…+(?:[&;,\s'\"`})\]]|$))"
    r"(?:'[^'\n]*'|\"[^\"\n]*\"|[^&;,\s'\"`]+)",
    re.IGNORECASE,
)
# Tokens that say what they are: JSON web tokens, and those of GitHub, GitLab, Databricks, Hugging Face, Slack
# and AWS.
_TOKEN = re.compile(
    r"(?<![\w-])(?:eyJ[\w-]{8,}\.[\w-]+\.[\w-]*|gh[oprsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|dapi[0-9a-f]{32}|hf_\w{20,}|xox[abeoprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16})(?![\w-])"
)
# As HTTP writes them.
_BEARER = re.compile(r"\b([Bb]earer|Basic) +[A-Za-z0-9._~+/=-]{6,}")
# Environment variables whose names say that their values are secret.
_SECRET_VARIABLE = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|JWT|_PWD$|(?:^|_)(?:AUTH|PASS|PAT)$",
    re.IGNORECASE,
)
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/?#\s'\":@]*:([^/?#\s]+)@")
_SHORTEST_SECRET = 6  # shorter values, such as `1`, are everywhere
# What moves a terminal's cursor, ends a line, or turns the direction of a text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_CONTROL_IN_LINES = re.compile(f"(?![\n\t]){_CONTROL.pattern}")


def listed(names: Iterable[str]) -> str:
    """Return names in backticks, separated by commas; of many the first 20."""
    quoted = [f"`{printable(name)}`" for name in names]
    more = f" and {len(quoted) - _LISTED} more" if len(quoted) > _LISTED else ""
    return ", ".join(quoted[:_LISTED]) + more


def listing(lines: Sequence[str]) -> str:
    """Return indented lines for a message; of many the first 20."""
    more = [f"and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
    return "\n".join(f"    {line}" for line in [*lines[:_LISTED], *more])


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
    text = _PASSWORD.sub("", _USER.sub("", text))
    return _TOKEN.sub("…", _PASSWORD_OF.sub(r"\1…", _IN_QUERY.sub(r"\1…", text)))


def without_secrets(text: str) -> str:
    """Return `text` without values of secret environment variables, and without any credentials.

    Secret are variables whose names say so (``AWS_SECRET_ACCESS_KEY``), and passwords in the addresses that
    others hold (``DATABASE_URL``).
    """
    for value in sorted(_secrets_of_environment(), key=len, reverse=True):
        text = text.replace(value, "…")
    return _BEARER.sub(r"\1 …", without_credentials(text))


def masked(text: str) -> str:
    """Return `text` with dots in place of what :func:`without_credentials` takes out, as long as it was.

    What is left stands where it did, also after :func:`without_credentials`.
    """
    for pattern in (_USER, _PASSWORD):
        text = pattern.sub(lambda found: "…" * len(found[0]), text)
    for pattern in (_IN_QUERY, _PASSWORD_OF):
        text = pattern.sub(lambda found: found[1] + "…" * (len(found[0]) - len(found[1])), text)
    return _TOKEN.sub(lambda found: "…" * len(found[0]), text)


def printable(name: object) -> str:
    r"""Return a name or path with escapes, such as ``\n``, in place of control characters."""
    return _CONTROL.sub(_escaped, str(name))


def printable_lines(text: str) -> str:
    r"""Return `text` with escapes in place of control characters other than line ends and tabs."""
    return _CONTROL_IN_LINES.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _secrets_of_environment() -> set[str]:
    found: set[str] = set()
    for name in list(os.environ):  # which other threads change meanwhile
        value = os.environ.get(name, "")
        passwords = _PASSWORD_IN_ADDRESS.findall(value) if "://" in value else []
        found.update([value] if _SECRET_VARIABLE.search(name) else [*passwords, *map(unquote, passwords)])
    return {value for value in found if len(value) >= _SHORTEST_SECRET}
