"""Types of arguments of the public functions in Python, which their annotations cannot enforce."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from trackperm.errors import InputTypeError
from trackperm.messages import echoed

_TYPES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "artifact": (str, "the path of an artifact"),
    "baseline_columns": (Mapping, "a mapping of names to columns"),
    "candidate_columns": (Mapping, "a mapping of names to columns"),
    "columns": (Mapping, "a mapping of names to columns"),
    "container": (str, "the name of an experiment or project"),
    "experiment": (str, "the name of an experiment or project"),
    "intervals": (bool, "True or False"),
    "metric": (str, "the name of a metric"),
    "missing": (str, "the name of a rule, such as `drop`"),
    "parameters": (Mapping, "a mapping of names to values"),
    "test_set": (str, "the first digits of a digest"),
    "tracking_uri": ((str, Path), "the address of a server or store"),
}

_OF_NAMES = ("baseline_columns", "candidate_columns", "columns")


def require_types(**values: object) -> None:
    """Refuse arguments of wrong types; an argument that is None was not given.

    Raises
    ------
    InputTypeError
        If there is one; the message names it and its value.
    """
    for name, value in values.items():
        types, expected = _TYPES[name]
        if value is not None and not isinstance(value, types):
            raise InputTypeError(f"`{name}` is {echoed(value)}; expected {expected}")
        if isinstance(value, Mapping):
            require_names(name, value)
            if name in _OF_NAMES:
                require_names(name, value.values())


def require_names(argument: str, names: Iterable[object]) -> None:
    """Refuse names in an argument that are not text."""
    for name in names:
        if not isinstance(name, str):
            raise InputTypeError(f"`{argument}` contains {echoed(name)}; expected names, which are text")
