"""Interface of a score that is a Python function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


class ScoreOfPython(Protocol):
    """Score that is a Python function; :class:`~trackperm.statistic.function.ScoreFunction` is one."""

    @property
    def function(self) -> Callable[..., Any]:
        """The function."""

    @property
    def undefined(self) -> float | None:
        """Value where the function has none."""

    @property
    def text(self) -> str:
        """The call of the function, such as ``f(tp, incorrect)``."""

    @property
    def digest(self) -> str | None:
        """Digest of the source of the function."""

    def __call__(self, totals: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the scores at totals, shape (..., p); NaN where they are undefined."""

    def number(self, totals: Sequence[int]) -> float:
        """Return the score at one point; raise UndefinedError if it has none."""
