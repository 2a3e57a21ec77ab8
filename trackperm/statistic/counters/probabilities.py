"""Predicted probabilities of classes, and their losses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.errors import UncountableError
from trackperm.exact.scores.floats import CHANCE, DOUBLE, SINGLE, ULPS
from trackperm.messages import listed
from trackperm.statistic.counters.base import Integers

OUTCOMES = (1, 0)
"""Whether the event of the probability happened; it does by default."""

CLIPPED = float(np.finfo(np.float64).eps)
"""Distance from 0 and 1 to which probabilities are clipped, as by scikit-learn: log(0) is not finite."""

MOST_DIGITS = 7
"""Most decimals of probabilities whose squares add up in integers below 2^53, for up to 90 classes."""

SINGLE_DIGITS = 4
"""Most decimals that probabilities of single precision are not near by chance."""

MOST_CLASSES = 90
"""Most classes for which sums of squares are computed in integers."""

ROUNDED = 0.005
"""Largest rounding error of one probability that was written with two decimals."""

_CLASSES = "`--set labels=cat,dog` names the classes of the probabilities, in their order."
_HINT = "convert other scores, such as logits or percentages, first."

Floats = npt.NDArray[np.float64]


def log_loss(probability: pl.Series, outcome: int) -> Floats:
    """Return -log of the probability of what happened, with probabilities clipped as by scikit-learn."""
    values = probability.cast(pl.Float64).to_numpy()
    outside = ~((values >= 0.0) & (values <= 1.0))
    if outside.any():
        row = int(outside.argmax())
        raise UncountableError(
            row, f"`{probability.name}` is {values[row]}; expected a probability from 0 to 1", _HINT
        )
    clipped = np.clip(values, CLIPPED, 1.0 - CLIPPED)
    losses: Floats = -np.log(clipped if outcome else 1.0 - clipped)
    return losses


def class_probability(probabilities: pl.Series, class_: pl.Series, classes: str) -> Floats:
    """Return the probability of a class of each example, such as its label."""
    return _Probabilities.of(probabilities, class_.alias("class"), classes).of_labels


def class_log_loss(probabilities: pl.Series, label: pl.Series, classes: str) -> Floats:
    """Return -log of the probability of the label, clipped as by scikit-learn."""
    own = _Probabilities.of(probabilities, label, classes).of_labels
    losses: Floats = -np.log(np.clip(own, CLIPPED, 1.0 - CLIPPED))
    return losses


def class_squared_error(probabilities: pl.Series, label: pl.Series, classes: str) -> Floats:
    """Return the sum over classes of (probability - y)^2, where y is 1 for the label and 0 otherwise.

    Sums of decimals are computed in integers and rounded once. Each example is read alone, so that its count
    is the same in all runs.
    """
    found = _Probabilities.of(probabilities, label, classes)
    rows = np.arange(len(found.values))
    errors = found.values.copy()
    errors[rows, found.labels] -= 1.0
    sums = np.asarray((errors**2).sum(axis=1))
    if found.values.shape[1] > MOST_CLASSES:
        return sums
    is_single = (found.values.astype(np.float32) == found.values).all(axis=1)
    # Those of single precision come first: where both forms fit, that of double precision remains.
    for digits, eps, possible in ((SINGLE_DIGITS, SINGLE, is_single), (MOST_DIGITS, DOUBLE, True)):
        scale = 10**digits
        wholes = np.rint(found.values * scale)
        ulps = min(ULPS, CHANCE / (2.0 * eps * scale))
        is_near = np.abs(wholes / scale - found.values) <= ulps * eps * found.values
        wholes[rows, found.labels] -= scale
        exact = (wholes.astype(np.int64) ** 2).sum(axis=1) / scale**2
        sums = np.where(is_near.all(axis=1) & possible, exact, sums)
    return sums


def class_names(text: str) -> tuple[str, ...]:
    """Return the names in a list of classes, such as ``cat,dog``."""
    return tuple(name.strip() for name in text.split(",")) if text else ()


@dataclass(frozen=True, eq=False)
class _Probabilities:
    """Probabilities of K classes, and the class of every label.

    Attributes
    ----------
    values : ndarray of float64, shape (N, K)
        The probabilities.
    labels : ndarray of int64, shape (N,)
        Index of the label among the classes.
    """

    values: Floats
    labels: Integers

    @property
    def of_labels(self) -> Floats:
        """Probability of the label of each example, shape (N,)."""
        return np.take_along_axis(self.values, self.labels[:, None], axis=1)[:, 0]

    @classmethod
    def of(cls, column: pl.Series, label: pl.Series, classes: str) -> _Probabilities:
        """Read lists in the order of the classes, or objects or structs of classes; refuse other numbers."""
        names, hint, of_numbers = list(class_names(classes)) or None, _CLASSES, _HINT
        if names is not None and len(set(names)) < len(names):
            raise UncountableError(0, f"the classes {listed(names)} have one twice", _CLASSES)
        if isinstance(column.dtype, pl.Struct):
            values, names = column.struct.unnest().to_numpy(), [field.name for field in column.dtype.fields]
            hint = f"the class of each column is the part of its name at the star of `{column.name}`."
            of_numbers += f" The columns are of {listed(names)}; `--set labels=cat,dog` names other classes."
        elif column.dtype == pl.String:
            values, names = _of_texts(column, names)
        else:
            values = _of_lists(column)
        own = names or _usual(label, values.shape[1])
        if len(own) != values.shape[1]:
            raise UncountableError(
                0,
                f"`{column.name}` has {values.shape[1]} probabilities, and there are {len(own)} classes"
                f" ({listed(own)})",
                _CLASSES,
            )
        _require_distribution(column.name, values, of_numbers)
        texts = label.cast(pl.String)
        if label.dtype == pl.Boolean:
            own = [name.lower() for name in own]
        outside = ~texts.is_in(own)
        if outside.any():
            row = int(outside.arg_true()[0])
            raise UncountableError(
                row,
                f"`{label.name}` is {label[row]!r}, and the classes of `{column.name}` are {listed(own)}",
                hint,
            )
        places = texts.replace_strict(own, list(range(len(own))), return_dtype=pl.Int64)
        return cls(values, places.to_numpy())


def _usual(label: pl.Series, n: int) -> list[str]:
    """Return the classes of lists where the user named none: integers from 0, or false and true."""
    if label.dtype == pl.Boolean:
        return ["false", "true"]
    if label.dtype == pl.String:
        raise UncountableError(
            0,
            f"`{label.name}` is text, so that the order of the classes is unknown",
            _CLASSES,
        )
    return [str(i) for i in range(n)]


def _of_lists(column: pl.Series) -> Floats:
    lengths = column.list.len()
    if (lengths != lengths[0]).any():
        row = int((lengths != lengths[0]).arg_true()[0])
        raise UncountableError(
            row, f"`{column.name}` has {lengths[row]} probabilities, and {lengths[0]} on other examples"
        )
    values = column.explode()
    if values.has_nulls():
        row = int(values.is_null().arg_true()[0]) // int(lengths[0])
        raise UncountableError(row, f"the list in `{column.name}` contains a null")
    return values.cast(pl.Float64).to_numpy().reshape(len(column), -1)


def _of_texts(column: pl.Series, names: list[str] | None) -> tuple[Floats, list[str] | None]:
    """Read JSON: lists, or objects that map classes to probabilities, whose classes are returned in order."""
    rows: list[Any] = []
    for row, text in enumerate(column.to_list()):
        try:
            rows.append(json.loads(text))
        except ValueError:
            rows.append(None)
        if not isinstance(rows[-1], list | dict) or type(rows[-1]) is not type(rows[0]):
            raise UncountableError(
                row,
                f"`{column.name}` is {text!r}; expected probabilities",
                'write a list, `[0.2, 0.8]`, or an object, `{"cat": 0.2, "dog": 0.8}`, on every example.',
            )
    if rows and isinstance(rows[0], dict):
        own = names or sorted(rows[0])
        for row, each in enumerate(rows):
            if each.keys() != set(own):
                raise UncountableError(
                    row,
                    f"`{column.name}` has the classes {listed(sorted(each))}, and not {listed(own)}",
                    "every example needs the probability of every class.",
                )
        return _matrix(column.name, [[each[name] for name in own] for each in rows], len(own)), own
    n = len(rows[0]) if rows else 0
    for row, each in enumerate(rows):
        if len(each) != n:
            raise UncountableError(row, f"`{column.name}` has {len(each)} probabilities, and {n} elsewhere")
    return _matrix(column.name, rows, n), names


def _matrix(name: str, rows: Sequence[Sequence[Any]], n: int) -> Floats:
    """Return probabilities as an array, shape (N, n); refuse what is not a number."""
    for row, values in enumerate(rows):
        if any(type(value) not in (int, float) for value in values):
            raise UncountableError(row, f"`{name}` contains a null, or what is not a number")
    return np.array(rows, dtype=np.float64).reshape(len(rows), n)


def _require_distribution(name: str, values: Floats, hint: str) -> None:
    """Refuse numbers outside of 0 to 1, and sums that are not 1, even after rounding to two decimals."""
    outside = ~((values >= 0.0) & (values <= 1.0)).all(axis=1)
    if outside.any():
        row = int(outside.argmax())
        raise UncountableError(row, f"`{name}` has a number that is not from 0 to 1", hint)
    sums = values.sum(axis=1)
    wrong = np.abs(sums - 1.0) > ROUNDED * values.shape[1]
    if wrong.any():
        row = int(wrong.argmax())
        raise UncountableError(
            row, f"the probabilities in `{name}` add up to {sums[row]:.4g}, not to 1", hint
        )
