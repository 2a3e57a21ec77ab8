"""Messages about values that pydantic refuses, in the wording of trackperm."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, get_args

from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ErrorType

from trackperm.messages import did_you_mean, kind, listed

_KINDS = {
    "string": "text",
    "bool": "`true` or `false`",
    "dict": "keys and values",
    "model": "keys and values",
    "list": "a list",
    "tuple": "a list",
    "float": "a number",
    "int": "an integer",
    "none": "nothing",
    "date": "a date such as `2026-01-31`",
    "datetime": "a date such as `2026-01-31`",
}
_KIND = re.compile(rf"({'|'.join(_KINDS)})_(.*(?:type|required|parsing|size|from_float|object_invalid))")
_BOUNDS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("of at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("of at most", "le"),
}
_LENGTHS = {
    "string_too_short": ("at least", "min_length", "character"),
    "string_too_long": ("at most", "max_length", "character"),
    "too_short": ("at least", "min_length", "value"),
    "too_long": ("at most", "max_length", "value"),
}


def in_words(problem: ErrorDetails, keys: Sequence[str]) -> tuple[str, str | None]:
    """Return message and hint for a mistake that pydantic found, an entry of ``ValidationError.errors()``.

    `keys` are those of the mapping that contains the value.
    """
    type_, value, context = problem["type"], problem["input"], problem.get("ctx", {})
    name, found = str(problem["loc"][-1]) if problem["loc"] else "", kind(value)
    if type_ not in _types_of_pydantic():
        return problem["msg"], None
    if of_kind := _KIND.fullmatch(type_):
        found = found if of_kind[2].endswith("type") else f"`{value}`"
        is_scalar = isinstance(value, bool | int | float)
        hint = "put it in quotes." if type_ == "string_type" and is_scalar else None
        return f"expected {_KINDS[of_kind[1]]}, found {found}", hint
    if type_ in _BOUNDS:
        words, key = _BOUNDS[type_]
        return f"expected a number {words} {context[key]:g}, found {value}", None
    if type_ in _LENGTHS:
        words, key, unit = _LENGTHS[type_]
        number = f"{context[key]} {unit}{'' if context[key] == 1 else 's'}"
        return f"expected {words} {number}, found {len(value)}", None
    match type_:
        case "extra_forbidden":
            return f"unknown key `{name}`", f"the keys are {listed(keys)}.{did_you_mean(name, keys)}"
        case "missing":
            return f"the key `{name}` is missing", None
        case "union_tag_not_found":
            return f"the key `{_tag(context)}` is missing", None
        case "literal_error" | "union_tag_invalid":
            return _not_one_of(value, context)
        case "finite_number":
            return f"expected a finite number, found {value}", None
        case "string_pattern_mismatch":
            return f"expected text of the form `{context['pattern']}`, found `{value}`", None
        case "value_error" | "assertion_error":
            return str(context["error"]), None
        case "json_invalid":
            return f"not JSON: {context['error']}", None
    return f"{found} is not a valid value", None


def _not_one_of(value: Any, context: dict[str, Any]) -> tuple[str, str | None]:
    """Return a message with the allowed values, and a hint with the one most like `value`."""
    expected = context.get("expected") or context.get("expected_tags") or ""
    allowed = [name.strip("'") for name in re.split(", | or ", expected)]
    value = value.get(_tag(context)) if isinstance(value, dict) and "discriminator" in context else value
    found = f"`{value}`" if type(value) in (int, str) and str(value) not in allowed else kind(value)
    suggestion = did_you_mean(str(value), allowed).strip()
    return f"expected one of {listed(allowed)}, found {found}", suggestion or None


def _tag(context: dict[str, Any]) -> str:
    return str(context["discriminator"]).strip("'")


@cache
def _types_of_pydantic() -> frozenset[str]:
    """Return the types of pydantic's own mistakes; messages of others are ours."""
    return frozenset(get_args(ErrorType))
