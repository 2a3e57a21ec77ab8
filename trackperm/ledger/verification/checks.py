"""What was checked of a logged comparison, line by line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_WIDEST = 60  # of a value in a line

CLOSE = 1e-12
"""Relative difference that other orders of the same floating-point sums explain."""


@dataclass(frozen=True)
class Check:
    """One thing that was logged, and what became of it when recomputed.

    Attributes
    ----------
    what : str
        Name of a field of the comparison, or of a file.
    logged, found : str
        Both values, as text.
    matches : bool
        Whether they are the same, within the errors that are certified for both.
    """

    what: str
    logged: str
    found: str
    matches: bool

    @classmethod
    def equal(cls, what: str, logged: object, found: object) -> Check:
        """Hold two values of plain types against each other."""
        return cls(what, _shown(logged), _shown(found), _shown(logged) == _shown(found))

    @classmethod
    def close(cls, what: str, logged: object, found: float | None, tolerance: float = CLOSE) -> Check:
        """Hold two numbers against each other, up to a relative difference."""
        if found is None or not isinstance(logged, int | float) or isinstance(logged, bool):
            return cls.equal(what, logged, found)
        matches = math.isclose(logged, found, rel_tol=tolerance, abs_tol=1e-300)
        return cls(what, _shown(logged), _shown(found), matches)

    @classmethod
    def failed(cls, what: str, problem: object) -> Check:
        """Report what could not be read or computed."""
        return cls(what, "logged", " ".join(str(problem).split()) or type(problem).__name__, False)


@dataclass(frozen=True)
class Verification:
    """Checks of a logged comparison, line by line, and what they take as logged.

    Attributes
    ----------
    checks : tuple of Check
        At least one.
    notes : tuple of str
        What was not checked, and why.
    """

    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()

    @property
    def matches(self) -> bool:
        """Whether all that was checked matches."""
        return all(check.matches for check in self.checks)

    def lines(self) -> Iterator[str]:
        """Give the checks as lines for a terminal, one for each, and how many do not match."""
        width = max(len(check.what) for check in self.checks)
        for check in self.checks:
            values = _cut(check.found)
            if not check.matches:
                values = f"logged {_cut(check.logged)}, found {values}"
            yield f"{'ok      ' if check.matches else 'MISMATCH'}  {check.what:{width}}  {values}".rstrip()
        yield from self.notes
        wrong, total = sum(not check.matches for check in self.checks), len(self.checks)
        yield f"{wrong} of {total} do not match" if wrong else f"all {total} match"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values that JSON can hold."""
        return {
            "matches": self.matches,
            "checks": [dict(vars(check)) for check in self.checks],
            "notes": list(self.notes),
        }


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
