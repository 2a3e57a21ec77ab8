"""Names of options in messages, as each reader knows them: command line, Python, policies or pages.

A message contains an option as the command line has it, in backticks: ``--missing drop``. ``str(error)``
writes it as an argument of Python, policies as a key, and pages as the label of a field.
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
"""Equivalents in Python of options without a value."""

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
    "memory": "memory_budget",
    "resamples": "n_resamples",
    "samples": "n_samples",
}
"""Arguments in Python of options with a value."""

COLUMNS = ("id", "label", "prediction")
"""Options that name a column; keys of ``columns`` in Python and in policies."""

PAIRS = {
    "baseline-column": "baseline_columns",
    "candidate-column": "candidate_columns",
    "column": "columns",
    "set": "parameters",
}
"""Mappings in Python and in policies of options with the value ``NAME=VALUE``."""

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
"""Labels of the fields of pages, by option."""


WITHOUT_FIELD = ("samples", "slice")
"""Options of ``trackperm compare`` in notes that pages have no field for: there, notes name the command."""


def rewritten(text: str, write: Callable[[str, str | None], str | None]) -> str:
    """Rewrite the options in `text`, which are in backticks and have the form of the command line.

    `write` receives the name of an option and its value (None without one), and returns the new content of
    the backticks, or None to keep the option. Consecutive mappings with the same name are merged.
    """

    def one(option: re.Match[str]) -> str:
        written = write(option[1], option[2])
        return option[0] if written is None else f"`{written}`"

    text, n_joined = _OPTION.sub(one, text), 1
    while n_joined:
        text, n_joined = _SAME_MAPPING.subn(r"`\1\2{\3, ", text)
    return text


def argument_of(option: str) -> str | None:
    """Return the argument in Python of an option with a value; None for other options."""
    return {**NAMES, **PAIRS, "slice": "slices"}.get(option)


def in_python(text: str) -> str:
    """Rewrite options as arguments of Python, such as ``missing="drop"``."""
    return rewritten(_COMMAND.sub(_call, text), _argument)


def on_pages(text: str) -> str:
    """Rewrite options as fields of a page, such as ``Examples that a run lacks: drop``."""
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
    return "trackperm.log" if name == "log-to" else argument_of(name)


def _call(command: re.Match[str]) -> str:
    """Rewrite a command as a call of the Python function with its name."""
    words = re.split(r" (?=--)", f" {command[2]}")
    arguments = [_text(word) for word in words[0].split()]
    for option in words[1:]:
        name, _, value = option.removeprefix("--").partition(" ")
        arguments.append(_argument(name, value or None) or option)
    return f"`trackperm.{command[1]}({', '.join(arguments)})`"


def _field(name: str, value: str | None) -> str | None:
    if name in WITHOUT_FIELD:
        return f"trackperm compare --{name}{f' {value}' if value else ''}"
    if name not in LABELS or value is None:
        return LABELS.get(name)
    return f"{LABELS[name]}: {f'{name}={value}' if name in COLUMNS else value}"


def _unquoted(value: str) -> str:
    """Remove the quotes of a shell word."""
    try:
        words = shlex.split(value)
    except ValueError:
        return value
    return words[0] if len(words) == 1 else value


def _scalar(value: str) -> str:
    """Convert a YAML scalar to a Python literal."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return _text(value[1:-1])
    return value if _NUMBER.fullmatch(value) else _CONSTANTS.get(value) or _text(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
