"""Messages in the words of policies: keys in place of the options of commands."""

from __future__ import annotations

from trackperm.automation.policy.policy import PolicyKeys
from trackperm.errors import TrackpermError
from trackperm.option_names import COLUMNS, PAIRS, rewritten

_KEYS = {"slice": "slices", "statistic": "statistics"}


def in_policies(text: str) -> str:
    """Return a message with keys of policies in place of options of commands."""

    def key(name: str, value: str | None) -> str | None:
        if name in COLUMNS:
            return "columns" if value is None else f"columns: {{{name}: {value}}}"
        if name in PAIRS:
            entry, _, given = (value or "").partition("=")
            return f"{PAIRS[name]}: {{{entry}: {given}}}" if given else PAIRS[name]
        written = _KEYS.get(name, name.replace("-", "_"))
        if written not in PolicyKeys.model_fields:
            return None
        is_switch = value is None and PolicyKeys.model_fields[written].annotation is bool
        return f"{written}: true" if is_switch else f"{written}: {value}" if value else written

    return rewritten(text, key)


def hint_for_policies(error: Exception) -> str | None:
    """Return the hint of an error, as :func:`in_policies` writes it."""
    if not isinstance(error, TrackpermError) or error.hint is None:
        return None
    return in_policies(error.hint)
