"""Columns that state whether lower values of a score are better: ``is_lower_better``, ``mode: min``."""

from __future__ import annotations

import re

from trackperm.tables.columns.names import words_of

_MIN = r"min|minimum|minimi[sz]ed?|minimi[sz]ing|minimi[sz]ation"
_MAX = r"max|maximum|maximi[sz]ed?|maximi[sz]ing|maximi[sz]ation"
_LOWER = rf"lower|smaller|less|fewer|{_MIN}"
_GREATER = rf"higher|greater|bigger|larger|more|{_MAX}"
_BESIDE = r"(?:is|are|the|to|should|be|metrics?|scores?|values?)*"
"""Words that may stand beside those of a direction, without separators."""

_BY_TRUTH = re.compile(
    rf"{_BESIDE}(?:(?:(?P<lower>{_LOWER})|{_GREATER}){_BESIDE}better"
    rf"|(?:(?P<minimise>minimi[sz]ed?)|maximi[sz]ed?)){_BESIDE}"
)
_BY_WORD = re.compile(
    rf"{_BESIDE}(?:optimi[sz]ation|optimi[sz]er|study|eval|evaluation)?{_BESIDE}"
    r"(?:directions?|modes?|goals?|objectives?|better)"
)
_WORD = re.compile(
    rf"{_BESIDE}(?:(?P<lower>{_LOWER})|{_GREATER}){_BESIDE}better"
    rf"|{_BESIDE}(?:(?P<alone>lower|smaller|{_MIN})|higher|greater|{_MAX}){_BESIDE}"
)
_OF_MODE = re.compile(rf"(?:(?P<lower>{_MIN})|{_MAX})")
"""Values of a ``mode``, which may also be `lower`, as the case of letters."""

_TRUE, _FALSE = ("true", "yes", "1", "1.0"), ("false", "no", "0", "0.0")
_LONGEST = 40
"""Most characters of a value that states a direction; a ``goal`` may also be the text of a task."""


def states_by_truth(name: str) -> bool:
    """Whether a column of this name, with true or false, states a direction: ``higherIsBetter``."""
    return _BY_TRUTH.fullmatch(_joined(name)) is not None


def may_state_direction(name: str) -> bool:
    """Whether a column of this name states a direction, if its values are of the right kind."""
    return states_by_truth(name) or _BY_WORD.fullmatch(_joined(name)) is not None


def may_be_setting(name: str) -> bool:
    """Whether a column of this name may also hold a setting of the run or a property of the example."""
    return _joined(name).removesuffix("s") in ("mode", "goal", "objective")


def lower_is_better_by(name: str, value: object) -> bool | None:
    """Return whether a value of a column states that lower is better; None if it states no direction."""
    if (found := _BY_TRUTH.fullmatch(_joined(name))) is not None:
        is_true = _truth(str(value))
        names_lower = found["lower"] is not None or found["minimise"] is not None
        return None if is_true is None else is_true is names_lower
    if not isinstance(value, str) or len(value) > _LONGEST or _BY_WORD.fullmatch(_joined(name)) is None:
        return None
    joined = _joined(value)
    if _joined(name).endswith("mode") and not joined.endswith("better"):
        word = _OF_MODE.fullmatch(joined)
        return None if word is None else word["lower"] is not None
    word = _WORD.fullmatch(joined)
    return None if word is None else (word["lower"] or word["alone"]) is not None


def _joined(name: str) -> str:
    return "".join(words_of(name))


def _truth(value: str) -> bool | None:
    """Parse a boolean such as `true`, `yes` or `1`; None for any other value."""
    return True if value.casefold() in _TRUE else False if value.casefold() in _FALSE else None
