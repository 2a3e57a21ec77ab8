"""Helpers for messages: lists of names, suggestions, and removal of secrets and control characters."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from urllib.parse import unquote

_LISTED = 20
_ECHOED = 200  # characters of a refused value, of which the first ones say what it is

# The user ends at the last `@` before the path, because people forget to encode the `@` of a password.
_USER = re.compile(r"(?<=://)[^/?#\s'\"]+@")
# People also forget to encode `/`, `?` and `#`: then a host whose port is not a number is a user with a
# password.
_PASSWORD = re.compile(r"(?<=://)[^/?#\s'\":@\[]*:(?!\d{1,5}(?:[/?#]|$))[^\s'\"]{0,500}@")
# Names of parameters with credentials: a part of the name, or a whole word after `-`, `_` or `.`.
_IN_PART = r"key|token|secret|password|passwd|passphrase|signature|credential|odbc_connect"
_AS_WHOLE = r"auth|authorization|bearer|code|jwt|oauth|otp|pass|pat|pwd?|sas|session(?:_?id)?|sid|sig|ticket"
# `sslkey` is the file name of a database client's key. Names end at `?`, so that no text is scanned twice.
# Masked values stay unchanged.
_IN_QUERY = re.compile(
    rf"([?&#;](?!ssl_?key=)(?=[^=&?#;\s]*(?:{_IN_PART})|(?:[^=&?#;\s]*[-_.])?(?:{_AS_WHOLE})=)"
    r"[^=&?#;\s]+=)(?!…+(?:[&\s'\"`]|$))[^&\s'\"`]+",
    re.IGNORECASE,
)
# Passwords in messages of databases, and in mappings.
_PASSWORD_OF = re.compile(
    r"(?<![?&#;\w])((?:password|passwd|pwd)(?: ?= ?|['\"]: ?))(?!…+(?:[&;,\s'\"`})\]]|$))"
    r"(?:'[^'\n]*'|\"[^\"\n]*\"|[^&;,\s'\"`]+)",
    re.IGNORECASE,
)
# Tokens with a known form: JSON web tokens, and those of GitHub, GitLab, Databricks, Hugging Face, Slack and
# AWS.
_TOKEN = re.compile(
    r"(?<![\w-])(?:eyJ[\w-]{8,}\.[\w-]+\.[\w-]*|gh[oprsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|dapi[0-9a-f]{32}|hf_\w{20,}|xox[abeoprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16})(?![\w-])"
)
# Credentials in HTTP headers.
_BEARER = re.compile(r"\b([Bb]earer|Basic) +[A-Za-z0-9._~+/=-]{6,}")
# Names of environment variables with secret values.
_SECRET_VARIABLE = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|JWT|_PWD$|(?:^|_)(?:AUTH|PASS|PAT)$",
    re.IGNORECASE,
)
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/?#\s'\":@]*:([^/?#\s]+)@")
_SHORTEST_SECRET = 6  # shorter values, such as `1`, are everywhere
# Characters that move a terminal's cursor, end a line, or reverse the direction of text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_CONTROL_IN_LINES = re.compile(f"(?![\n\t]){_CONTROL.pattern}")


def size(n_bytes: int) -> str:
    """Return a number of bytes in MiB or GiB, or as a power of 2 if it is beyond any memory."""
    if n_bytes >= 2**60:
        return f"2^{n_bytes.bit_length() - 1} bytes"
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{max(n_bytes / 2**20, 0.1):.1f} MiB"


def amount(n: int, noun: str) -> str:
    """Return a number with its noun, as in "1 example" and "1,319 examples"."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def scientific(n: int) -> str:
    """Return a large number rounded up to two digits, as in "1.4 × 10^8"."""
    rounded = Decimal(n).normalize(Context(prec=2, rounding=ROUND_CEILING))
    digits, exponent = f"{rounded:.1e}".split("e+")
    return f"{digits} × 10^{exponent}"


def listed(names: Iterable[str]) -> str:
    """Return names in backticks, separated by commas: at most the first 20."""
    quoted = [f"`{printable(name)}`" for name in names]
    more = f" and {len(quoted) - _LISTED} more" if len(quoted) > _LISTED else ""
    return ", ".join(quoted[:_LISTED]) + more


def listing(lines: Sequence[str]) -> str:
    """Return indented lines for a message: at most the first 20."""
    more = [f"and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
    return "\n".join(f"    {printable(line)}" for line in [*lines[:_LISTED], *more])


def did_you_mean(name: str, known: Iterable[str], *, likeness: float = 0.6) -> str:
    """Return `` Did you mean `x`?`` for the name in `known` that is closest to `name`, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=likeness)
    return f" Did you mean `{printable(close[0])}`?" if close else ""


def echoed(value: object) -> str:
    """Return the `repr` of a value for a message that refuses it, cut to one line of it."""
    text = repr(value).partition("\n")[0]
    return text if len(text) <= _ECHOED else f"{text[: _ECHOED - 1]}…"


def kind(value: object) -> str:
    """Return the name of a value's type in messages about documents."""
    if value is None:
        return "nothing"
    names = {bool: "a boolean", int: "an integer", float: "a decimal", str: "text", list: "a list"}
    return names.get(type(value), "a mapping")


def without_credentials(text: str) -> str:
    """Remove users and passwords of addresses from `text`, and secrets in queries."""
    text = _PASSWORD.sub("", _USER.sub("", text))
    return _TOKEN.sub("…", _PASSWORD_OF.sub(r"\1…", _IN_QUERY.sub(r"\1…", text)))


def without_secrets(text: str) -> str:
    """Remove the values of secret environment variables and all credentials from `text`.

    Variables with secret names (``AWS_SECRET_ACCESS_KEY``) are secret, and so are passwords in addresses that
    other variables contain (``DATABASE_URL``).
    """
    for value in sorted(_secrets_of_environment(), key=len, reverse=True):
        text = text.replace(value, "…")
    return _BEARER.sub(r"\1 …", without_credentials(text))


def masked(text: str) -> str:
    """Replace what :func:`without_credentials` removes by dots, without a change of length or positions."""
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
    for name in list(os.environ):  # a copy, because other threads may change it
        value = os.environ.get(name, "")
        passwords = _PASSWORD_IN_ADDRESS.findall(value) if "://" in value else []
        found.update([value] if _SECRET_VARIABLE.search(name) else [*passwords, *map(unquote, passwords)])
    return {value for value in found if len(value) >= _SHORTEST_SECRET}


def side_by_side(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format rows of cells as a table below a header, as a paragraph that follows another."""
    lines = [tuple(header), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n\n" + "\n".join(
        "    " + "   ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
