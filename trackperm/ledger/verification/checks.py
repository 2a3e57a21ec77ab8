"""Checks of a logged comparison, one per logged value."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trackperm.messages import printable

_WIDEST = 60  # characters of a value in a line

CLOSE = 1e-12
"""Relative difference that the order of floating-point sums explains: some 4,500 units of rounding."""

BOUND_CLOSE = 0.5
"""Relative difference of certified bounds: they sum rounding errors, which differ between machines."""


@dataclass(frozen=True)
class Check:
    """Logged value and recomputed value.

    Attributes
    ----------
    what : str
        Name of a field of the comparison, or of a file.
    logged, found : str
        Both values, as text.
    matches : bool
        Whether they agree, within the certified errors of both.
    """

    what: str
    logged: str
    found: str
    matches: bool

    @classmethod
    def equal(cls, what: str, logged: object, found: object) -> Check:
        """Compare two JSON values for equality."""
        return cls(what, _shown(logged), _shown(found), _shown(logged) == _shown(found))

    @classmethod
    def close(cls, what: str, logged: object, found: float | None, tolerance: float = CLOSE) -> Check:
        """Compare two numbers up to a relative difference."""
        if found is None or not isinstance(logged, int | float) or isinstance(logged, bool):
            return cls.equal(what, logged, found)
        matches = math.isclose(logged, found, rel_tol=tolerance, abs_tol=1e-300)
        return cls(what, _shown(logged), _shown(found), matches)

    @classmethod
    def failed(cls, what: str, problem: object) -> Check:
        """Record a value that could not be read or computed."""
        return cls(what, "logged", " ".join(str(problem).split()) or type(problem).__name__, False)


@dataclass(frozen=True)
class Verification:
    """All checks of a logged comparison.

    Attributes
    ----------
    checks : tuple of Check
        At least one check.
    notes : tuple of str
        Values that were not checked, and why.
    files : tuple of str
        Files that were read, and runs, for which a reference may stand.
    """

    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def matches(self) -> bool:
        """Whether all checks match."""
        return all(check.matches for check in self.checks)

    def lines(self) -> Iterator[str]:
        """Yield one line per check, the notes, and the number of checks that do not match."""
        width = max(len(check.what) for check in self.checks)
        for check in self.checks:
            values = _cut(check.found)
            if not check.matches:
                values = f"logged {_cut(check.logged)}, found {values}"
            state = "ok      " if check.matches else "MISMATCH"
            yield printable(f"{state}  {check.what:{width}}  {values}".rstrip())
        yield from map(printable, self.notes)
        wrong, total = sum(not check.matches for check in self.checks), len(self.checks)
        yield f"{wrong} of {total} do not match" if wrong else f"all {total} match"

    def to_dict(self) -> dict[str, Any]:
        """Return the checks as JSON values."""
        return {
            "matches": self.matches,
            "checks": [dict(vars(check)) for check in self.checks],
            "notes": list(self.notes),
        }


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
