"""Descriptions of corrections for many tests, and validation of a family's p-values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trackperm.errors import InputError, InputTypeError
from trackperm.exact.distributions.characteristic import FloatArray

ErrorRate = Literal["FWER", "FDR"]
"""Family-wise error rate, the probability of any false rejection; or false discovery rate, the expected share
of false ones among the rejections."""


@dataclass(frozen=True)
class Correction:
    """Description of a correction for many tests.

    Attributes
    ----------
    name : str
        Key of the correction.
    title : str
        Name in tables and texts.
    controls : {'FWER', 'FDR'}
        Error rate that is at most alpha if adjusted p-values below alpha mean rejection.
    valid_under : str
        Dependence among p-values for which that is proven.
    source : str
        Reference of the proof.
    """

    name: str
    title: str
    controls: ErrorRate
    valid_under: str
    source: str


@dataclass(frozen=True)
class Scale:
    """Scale of p-values: linear, or by decimal logarithms.

    Attributes
    ----------
    times : callable
        Function that multiplies p-values on this scale by positive factors.
    one : float
        P-value 1 on this scale.
    """

    times: Callable[[FloatArray, npt.ArrayLike], FloatArray]
    one: float

    def capped(self, values: FloatArray) -> FloatArray:
        """Return `values`, limited to 1."""
        return np.minimum(values, self.one)


def _add_log10(values: FloatArray, factors: npt.ArrayLike) -> FloatArray:
    shifted: FloatArray = values + np.log10(factors)
    return shifted


LINEAR = Scale(np.multiply, 1.0)
LOG10 = Scale(_add_log10, 0.0)


def checked_pvalues(pvalues: npt.ArrayLike) -> FloatArray:
    """Return p-values as float64, shape (m,).

    Raises
    ------
    InputError
        If one is NaN or outside [0, 1], or they are not one-dimensional.
    InputTypeError
        If they are not numbers.
    """
    values = _vector(pvalues, "pvalues")
    refused = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
    if refused.size:
        raise InputError(
            f"the p-value at index {refused[0]} is {values[refused[0]]}; expected a number from 0 to 1",
            hint="a family has no gaps: repair the test that failed, or declare the family without it.",
        )
    return values


def checked_log10_pvalues(log10_pvalues: npt.ArrayLike) -> FloatArray:
    """Return decimal logarithms of p-values as float64, shape (m,).

    Raises
    ------
    InputError
        If one is NaN, infinite or above 0, or they are not one-dimensional.
    InputTypeError
        If they are not numbers.
    """
    values = _vector(log10_pvalues, "log10_pvalues")
    refused = np.flatnonzero(~(np.isfinite(values) & (values <= 0.0)))
    if refused.size:
        raise InputError(
            f"the logarithm of the p-value at index {refused[0]} is {values[refused[0]]}; "
            "expected a finite number up to 0"
        )
    return values


def _vector(values: npt.ArrayLike, name: str) -> FloatArray:
    array: npt.NDArray[Any] = np.asarray(values)
    if array.size and array.dtype.kind not in "fiu":
        raise InputTypeError(f"`{name}` has type {array.dtype}; expected numbers")
    if array.ndim != 1:
        raise InputError(f"`{name}` has shape {array.shape}; expected one dimension")
    return array.astype(np.float64)
