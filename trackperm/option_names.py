"""Options in messages, in the words of whoever reads them: the command line, Python, a policy, a page.

A message names an option once, as the command line does and in backticks: ``--missing drop``. The command
line prints it so. ``str(error)`` writes it as an argument of Python; policies write keys, pages their labels.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable

_OPTION = re.compile(r"`--([a-z]+(?:-[a-z]+)*)(?: ([^`]+))?`")
_SAME_MAPPING = re.compile(r"`(\w+)(=|: )\{([^`{}]*)\}`(?:,| and) `\1\2\{")
_COMMAND = re.compile(r"`trackperm (family|power) ([^`]+)`")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_CONSTANTS = {"true": "True", "false": "False"}

ARGUMENTS = {
    "allow-unseen": "allow_unseen=True",
    "alert": "alert=True",
    "by-position": "by_position=True",
    "from-runs": "from_runs=True",
    "mid-p": "mid_p=True",
    "tag-runs": "tag_runs=True",
    "no-log": "trackperm.compare",
    "second-opinions": "comparison.with_second_opinions()",
    "studentized": "comparison.with_studentized()",
}
"""Options without a value, by what does the same in Python."""

NAMES = {
    **{
        name: name.replace("-", "_")
        for name in (
            *("alpha", "alternative", "artifact", "baseline", "candidate", "cluster", "correction"),
            *("difference", "discordance", "engine", "exceedances", "experiment", "labels", "margin"),
            *("method", "metric", "missing", "name", "policy", "power", "repeats", "resolution", "seed"),
            *("state", "statistic", "test-set", "tracking-uri", "unit"),
        )
    },
    "examples": "n_examples",
    "samples": "n_samples",
}
"""Options with a value, by the argument of Python that takes it."""

COLUMNS = ("id", "label", "prediction")
"""Options that name a column: Python and policies take it in ``columns``."""

PAIRS = {"column": "columns", "set": "parameters"}
"""Options whose value is ``NAME=VALUE``, by the mapping that takes it in Python and in policies."""

LABELS = {
    "allow-unseen": "Predictions that no label equals",
    "alpha": "Level alpha",
    "alternative": "Alternative",
    "artifact": "Artifact with the predictions",
    "baseline": "Baseline",
    "cluster": "Column of clusters",
    "column": "Columns of other names",
    "correction": "Correction",
    "id": "Columns of other names",
    "label": "Columns of other names",
    "margin": "Margin",
    "metric": "Metric of the runs",
    "missing": "Examples that a run lacks",
    "prediction": "Columns of other names",
    "repeats": "Rows of one example",
    "set": "Parameters",
    "statistic": "Statistic",
    "unit": "What is exchanged",
}
"""Options that are fields of a page, by the label of the field."""


def rewritten(text: str, write: Callable[[str, str | None], str | None]) -> str:
    """Return `text` with another form of its options.

    Parameters
    ----------
    text : str
        In which options stand in backticks, as on the command line.
    write : callable
        Takes the name of an option and its value, or None where it has none, and returns what stands in the
        backticks instead; None leaves the option as it is. Mappings of one name that follow each other are
        written as one.
    """

    def one(option: re.Match[str]) -> str:
        written = write(option[1], option[2])
        return option[0] if written is None else f"`{written}`"

    text, n_joined = _OPTION.sub(one, text), 1
    while n_joined:
        text, n_joined = _SAME_MAPPING.subn(r"`\1\2{\3, ", text)
    return text


def in_python(text: str) -> str:
    """Return `text` with options as arguments of Python, such as ``missing="drop"``."""
    return rewritten(_COMMAND.sub(_call, text), _argument)


def on_pages(text: str) -> str:
    """Return `text` with options as fields of a page, such as ``Examples that a run lacks: drop``."""
    return rewritten(text, _field)


def _argument(name: str, value: str | None) -> str | None:
    if value is None:
        return ARGUMENTS.get(name) or _argument_without_value(name)
    value = _unquoted(value)
    if name in COLUMNS:
        return f'columns={{"{name}": {_text(value)}}}'
    if name in PAIRS:
        key, _, given = value.partition("=")
        return f"{PAIRS[name]}={{{_text(key)}: {_scalar(given)}}}"
    if name == "slice":
        return f"slices=[{_text(value)}]"
    if name == "log-to":
        scheme, _, container = value.partition(":")
        return f"trackperm.log(result, trackperm.open_tracker({_text(scheme)}), {_text(container)})"
    return f"{NAMES[name]}={_scalar(value)}" if name in NAMES else None


def _argument_without_value(name: str) -> str | None:
    if name in COLUMNS:
        return "columns"
    return {**NAMES, **PAIRS, "slice": "slices", "log-to": "trackperm.log"}.get(name)


def _call(command: re.Match[str]) -> str:
    """Write a command as a call of the function of its name."""
    words = re.split(r" (?=--)", f" {command[2]}")
    arguments = [_text(word) for word in words[0].split()]
    for option in words[1:]:
        name, _, value = option.removeprefix("--").partition(" ")
        arguments.append(_argument(name, value or None) or option)
    return f"`trackperm.{command[1]}({', '.join(arguments)})`"


def _field(name: str, value: str | None) -> str | None:
    if name not in LABELS or value is None:
        return LABELS.get(name)
    return f"{LABELS[name]}: {f'{name}={value}' if name in COLUMNS else value}"


def _unquoted(value: str) -> str:
    """Read a word as a shell does."""
    try:
        words = shlex.split(value)
    except ValueError:
        return value
    return words[0] if len(words) == 1 else value


def _scalar(value: str) -> str:
    """Write a value, read as YAML reads it, as Python does."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return _text(value[1:-1])
    return value if _NUMBER.fullmatch(value) else _CONSTANTS.get(value) or _text(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
