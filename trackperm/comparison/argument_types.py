"""Names and types of arguments of the public functions in Python, which their annotations cannot enforce."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import ParamSpec, TypeVar

from trackperm.errors import InputTypeError
from trackperm.messages import did_you_mean, echoed, listed
from trackperm.option_names import COLUMNS, argument_of

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

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

_SLIPS = 0.7
"""Likeness of a misspelt name; `positive` and `by_position` are less alike."""

_OF_NAMES = ("baseline_columns", "candidate_columns", "columns")


def with_known_options(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Decorate a function so that it refuses an unknown keyword with what to write in its place."""
    parameters = signature(function).parameters.values()
    known = [each.name for each in parameters if each.kind is not Parameter.VAR_POSITIONAL]

    @wraps(function)
    def checked(*args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        for name, value in options.items():
            if name not in known:
                raise InputTypeError(
                    f"`{function.__name__}` has no argument `{name}`", hint=_meant(name, value, known)
                )
        return function(*args, **options)

    return checked


def _meant(name: str, value: object, known: Collection[str]) -> str:
    """Return what to write instead of an unknown argument."""
    shown = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else echoed(value)
    in_columns = f'`columns={{"{name}": {shown}}}`'
    if name in COLUMNS:
        return f"{in_columns} names a column."
    argument = argument_of(name.replace("_", "-"))
    if argument in known:
        return f"`{argument}={shown}`."
    if close := did_you_mean(name, known, likeness=_SLIPS):
        return close.strip()
    if argument is not None:  # of another function
        return f"it has {listed(known)}."
    return f'`parameters={{"{name}": {shown}}}` gives a parameter of the statistic, {in_columns} a column.'


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
