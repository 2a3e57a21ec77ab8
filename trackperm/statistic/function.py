"""Statistics whose score is a Python function of the sums of counts."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from trackperm.choices import Alternative
from trackperm.errors import InputError, InputTypeError, UndefinedError
from trackperm.messages import listed
from trackperm.statistic.compiler.compile import compile_statistic
from trackperm.statistic.compiler.entries import Entries
from trackperm.statistic.definition import ATTEMPTS, Statistic
from trackperm.statistic.document import Document, dump

FloatArray = npt.NDArray[np.float64]

FEW_POINTS = 64
"""Most points that are evaluated one by one without an attempt to evaluate them as arrays."""

SAMPLED_POINTS = 16
"""Points of an array that are evaluated one by one, too: enough to notice that the function mixes points."""

AGREEMENT = 1e-12
"""Largest relative difference of the two values, which vectorised functions may round differently."""


def from_function(
    function: Callable[..., Any],
    counts: Mapping[str, str | int],
    *,
    name: str | None = None,
    description: str = "",
    greater_is_better: bool | None = None,
    undefined: float | None = None,
    alternative: Alternative = "two-sided",
    columns: Mapping[str, str] | None = None,
    parameters: Mapping[str, object] | None = None,
) -> Statistic:
    """Make a statistic of declared counts and a Python function of their sums.

    The statistic is the function's value for the candidate minus that for the baseline. Python code is
    opaque: it is evaluated in floating point, values within 2^-40 of the observed one count as ties
    (``ties='approximate'``), and logs contain its name and the digest of its source, from which
    :func:`trackperm.verify` cannot recompute the result. A spec in YAML has none of these limits.

    Parameters
    ----------
    function : callable
        Score of one run. Its arguments are the sums of the counts, by name, as floats; if it also takes
        float64 arrays, it is called with arrays. A value that is not finite, a division by zero and a
        ``ValueError``, such as that of ``math.log(0)``, mean that the score is undefined.
    counts : mapping of str to str
        Counts of an example by name, as expressions of a spec, such as
        ``{"correct": "prediction == label", "n": 1}``.
    name : str, optional
        Name of the statistic; by default that of the function.
    description : str
        Description for people.
    greater_is_better : bool, optional
        Whether a greater value is better: true by default. It is required if the name is that of an error.
    undefined : float, optional
        Score where the function has no value, such as 0 for 0/0. Without it, such a score is refused.
    alternative : {'two-sided', 'less', 'greater'}
        Alternative of the test.
    columns, parameters : mapping, optional
        Columns and parameters that the counts read, as in a spec.

    Raises
    ------
    InputTypeError
        If `function` is not callable or does not take the counts as arguments.
    InputError
        If there are no counts.
    SpecError
        If a count or the name is not valid.

    Examples
    --------
    >>> from trackperm.statistic.function import from_function
    >>> def fowlkes_mallows(tp, fp, fn):
    ...     return tp / ((tp + fp) * (tp + fn)) ** 0.5
    >>> statistic = from_function(
    ...     fowlkes_mallows,
    ...     {
    ...         "tp": "(prediction == 1) & (label == 1)",
    ...         "fp": "(prediction == 1) & (label != 1)",
    ...         "fn": "(prediction != 1) & (label == 1)",
    ...     },
    ...     undefined=0.0,
    ... )
    >>> y_true, old, new = [1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1], [1, 1, 1, 0, 0, 0]
    >>> trackperm.compare(y_true, old, new, statistic=statistic).pvalue
    0.25
    """
    if not callable(function):
        raise InputTypeError(f"`function` is a {type(function).__name__}; expected a function of the counts")
    if not counts:
        raise InputError(
            "`counts` is empty; expected a mapping of names to expressions",
            hint='`counts={"correct": "prediction == label", "n": 1}`.',
        )
    _require_arguments(function, counts)
    if name is None:
        name = getattr(function, "__name__", "function").replace("<lambda>", "function")
    given = {"description": description, "columns": columns, "parameters": parameters}
    data: dict[str, Any] = {
        "name": name,
        "counts": dict(counts),
        # The sum stands in place of the function, so that the counts are checked as those of any spec.
        "score": " + ".join(counts),
        "alternative": alternative,
        **{
            key: dict(value) if isinstance(value, Mapping) else value for key, value in given.items() if value
        },
    }
    if greater_is_better is not None:
        data["greater_is_better"] = greater_is_better
    document = Document.parse(dump(data), f"counts of `{name}`")
    return with_function(compile_statistic(Entries(document, {}, {}), name), function, undefined)


def with_function(
    statistic: Statistic, function: Callable[..., Any], undefined: float | None = None
) -> Statistic:
    """Replace the score of a compiled statistic by a Python function of the sums of its counts."""
    if ATTEMPTS in statistic.count_names:
        raise InputError(
            f"`{statistic.name}` is a Python function; `--unit attempt` needs a mean of pass rates",
            hint="exchange the means of examples by `--repeats mean`.",
        )
    units = [1.0] * len(statistic.count_names)
    if isinstance(statistic.resolution, Mapping):
        units = [float(statistic.resolution.get(name, 1)) for name in statistic.count_names]
    score = ScoreFunction(function, statistic.count_names, tuple(units), undefined)
    return replace(statistic, h=DifferenceOfScores(score), score=score, part_score=score, function=score)


@dataclass(frozen=True)
class ScoreFunction:
    """Score of a run: a Python function of the sums of counts.

    Attributes
    ----------
    function : callable
        The function, with one argument for each count.
    names : tuple of str
        Names of the counts.
    units : tuple of float
        Units of the sums.
    undefined : float or None
        Value where the function has none.
    """

    function: Callable[..., Any]
    names: tuple[str, ...]
    units: tuple[float, ...]
    undefined: float | None = None

    def __call__(self, totals: npt.ArrayLike) -> FloatArray:
        """Return the scores at `totals`, shape (..., p); NaN where they are undefined."""
        sums = np.asarray(totals, dtype=np.float64) * np.array(self.units)
        points = sums.reshape(-1, len(self.names))
        values = self._of_arrays(points) if len(points) > FEW_POINTS else None
        if values is None:
            values = self._one_by_one(points)
        if self.undefined is not None:
            values = np.where(np.isnan(values), self.undefined, values)
        return values.reshape(sums.shape[:-1])

    def number(self, totals: Sequence[int]) -> float:
        """Return the score at one point.

        Raises
        ------
        UndefinedError
            If it is undefined.
        """
        value = float(self(np.array(totals, dtype=np.float64)))
        if math.isnan(value):
            raise UndefinedError(f"`{self.text}` has no value")
        return value

    @property
    def text(self) -> str:
        """The call of the function, such as ``f(tp, incorrect)``."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"{name.replace('<lambda>', 'lambda')}({', '.join(self.names)})"

    @property
    def digest(self) -> str | None:
        """SHA-256 of the source of the function; None if Python does not know it."""
        try:
            return hashlib.sha256(inspect.getsource(self.function).encode()).hexdigest()
        except (OSError, TypeError):
            return None

    def _of_arrays(self, points: FloatArray) -> FloatArray | None:
        """Evaluate all points in one call; None if the function takes only numbers, or mixes points."""
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(self._called(points.T.copy()), dtype=np.float64)
        except Exception:  # functions of single numbers raise any error here; `_one_by_one` reports theirs
            return None
        if values.shape != (len(points),):
            return None
        values = np.where(np.isfinite(values), values, np.nan)
        sample = np.linspace(0, len(points) - 1, SAMPLED_POINTS).astype(int)
        single = self._one_by_one(points[sample])
        is_same = np.isclose(values[sample], single, rtol=AGREEMENT, atol=AGREEMENT, equal_nan=True)
        return values if is_same.all() else None

    def _one_by_one(self, points: FloatArray) -> FloatArray:
        return np.array([self._value(point) for point in points.tolist()], dtype=np.float64)

    def _value(self, point: Sequence[float]) -> float:
        try:
            value = self._called(point)
        except (ArithmeticError, ValueError):
            return math.nan
        except Exception as error:
            raise InputError(
                f"the function `{self.text}` failed at {self._place(point)}: {type(error).__name__}: {error}"
            ) from error
        try:
            value = float(value)
        except (TypeError, ValueError):
            raise InputTypeError(
                f"the function `{self.text}` returned a {type(value).__name__} at {self._place(point)};"
                " expected a number"
            ) from None
        return value if math.isfinite(value) else math.nan

    def _called(self, values: Any) -> Any:
        return self.function(**dict(zip(self.names, values, strict=True)))

    def _place(self, point: Sequence[float]) -> str:
        return ", ".join(f"{name} = {value:g}" for name, value in zip(self.names, point, strict=True))


@dataclass(frozen=True)
class DifferenceOfScores:
    """Score of the candidate minus score of the baseline, as a function of the sums of both."""

    score: ScoreFunction

    def __call__(self, totals: npt.NDArray[Any]) -> FloatArray:
        """Return the differences at `totals`, shape (..., 2p): candidate's sums, then the baseline's."""
        n = len(self.score.names)
        return np.asarray(self.score(totals[..., :n]) - self.score(totals[..., n:]))


def _require_arguments(function: Callable[..., Any], counts: Mapping[str, object]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built-in functions have none
        return
    try:
        signature.bind(**dict.fromkeys(counts))
    except TypeError as error:
        raise InputTypeError(
            f"the function takes {signature}, and the counts are {listed(counts)}: {error}",
            hint="give the function one argument for each count, with its name.",
        ) from None
