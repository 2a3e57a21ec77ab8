"""A compiled statistic: counts of one run's examples, g of a pair, h of their sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from trackperm.documents import Document, did_you_mean, dump, listed
from trackperm.exact import Alternative, RationalStatistic, RealStatistic
from trackperm.exact.resolution import format_unit
from trackperm.statistic.arrays import integers
from trackperm.statistic.check import Checker
from trackperm.statistic.expression import Expression, Name
from trackperm.statistic.frames import count_expression
from trackperm.tables import ColumnType

ParameterValue = int | float | str | bool
Units = Mapping[str, Fraction]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Statistic:
    """What is tested, compiled from a spec by :func:`~trackperm.statistic.load_statistic`.

    Attributes
    ----------
    name, description : str
        For people; the name also begins the names of logged metrics.
    alternative : {'two-sided', 'less', 'greater'}
        As the spec says.
    greater_is_better : bool
        Whether a greater value is a better candidate.
    count_names : tuple of str
        What is counted on every example of one run, in integers of the unit that `resolution` gives it.
    columns : mapping of str to str
        Actual column of every name that the counts use, and of ``id`` and ``label``.
    used_columns : tuple of str
        The actual columns that the counts read.
    parameters : mapping
        Values of the parameters, as used.
    resolution : mapping of str to Fraction, or Fraction
        Units of counts, by name; others have the unit 1. Or what all decimal counts are to be rounded to
        multiples of: which ones these are, only the data tell, and loading the statistic again with the units
        of each makes it a mapping.
    g_names : tuple of str
        The integers of a pair whose sums h takes.
    h : RationalStatistic or RealStatistic
        Rational where it is built by ``+ - * /`` and integer powers alone. Its value is in the units of the
        spec, whatever those of the integers that it takes.
    score : RationalStatistic, RealStatistic or None
        Value of one run from the totals of its counts; None where the spec has the long form.
    """

    name: str
    description: str
    alternative: Alternative
    greater_is_better: bool
    count_names: tuple[str, ...]
    columns: Mapping[str, str]
    used_columns: tuple[str, ...]
    parameters: Mapping[str, ParameterValue]
    resolution: Units | Fraction
    g_names: tuple[str, ...]
    h: RationalStatistic | RealStatistic = field(repr=False)
    score: RationalStatistic | RealStatistic | None = field(repr=False)
    undefined: Fraction | None = field(repr=False)
    _counts: Mapping[str, Expression] = field(repr=False)
    _g: Mapping[str, Expression] = field(repr=False)
    _scaled_g: Mapping[str, Expression] = field(repr=False)
    _h: Expression = field(repr=False)
    _source: Document = field(repr=False)

    def counts(self, types: Mapping[str, ColumnType]) -> dict[str, nw.Expr]:
        """Return the data frame expression of every count, of type int64, or float64 for decimals.

        A count whose arithmetic leaves 64 bits, divides by zero or meets NaN is
        :data:`~trackperm.statistic.OUT_OF_RANGE` on that example, or NaN if it is a decimal.

        Parameters
        ----------
        types : mapping of str to ColumnType
            Types of the actual columns, at least of `used_columns`.

        Raises
        ------
        SpecError
            If types do not fit, such as text compared with a number, with the place in the spec.
        """

        def column_type(expression: Expression, node: Name) -> ColumnType:
            column = self.columns[node.full]
            if column not in types:
                hint = f"the columns are {listed(types)}.{did_you_mean(column, types)}"
                raise expression.error(node, f"the data has no column `{column}`", hint=hint)
            return types[column]

        checker = Checker(True, column_type, "column", self.columns.__getitem__, decimals=True)
        expressions = {}
        for name, expression in self._counts.items():
            checker.result(expression, f"the count `{name}`")
            expressions[name] = count_expression(expression, self.columns, types)
        return expressions

    def pairs(
        self, candidate: npt.NDArray[np.int64], baseline: npt.NDArray[np.int64]
    ) -> tuple[Integers, Integers]:
        """Return g of pairs of examples as they are (stay) and with outputs exchanged (swap).

        Parameters
        ----------
        candidate, baseline : ndarray of int64, shape (K, p)
            Counts of both runs, in the order of `count_names`, in integers of their units.

        Returns
        -------
        stay, swap : ndarray of int64, shape (K, m)

        Raises
        ------
        SpecError
            If g divides by zero or leaves 64 bits.
        """
        return self._joint(candidate, baseline), self._joint(baseline, candidate)

    def _joint(self, u: npt.NDArray[np.int64], v: npt.NDArray[np.int64]) -> Integers:
        values = joint_values(self.count_names, u, v)
        result = np.empty((len(u), len(self._scaled_g)), dtype=np.int64)
        for i, (name, expression) in enumerate(self._scaled_g.items()):
            column = integers(expression, values, len(u))
            if column.dtype == object:
                largest = max(map(abs, column), default=0)
                if largest >= 2**62:
                    raise expression.error(
                        expression.tree, f"`{name}` reaches {largest}, which 64 bits cannot hold"
                    )
            result[:, i] = column
        return result

    def document(self) -> str:
        """Return the spec as used: its long form as YAML, without the description.

        Parameters and columns stand there with the values that were used. Specs that mean the same and
        are written differently (spaces, comments, short form) mostly have the same document.
        """
        optional: dict[str, Any] = {
            "parameters": dict(self.parameters),
            "columns": {name: column for name, column in self.columns.items() if name != column},
            "resolution": self._resolution_as_written(),
        }
        data: dict[str, Any] = {
            "name": self.name,
            "counts": {name: _plain(str(expression)) for name, expression in self._counts.items()},
            **{key: value for key, value in optional.items() if value},
            "g": {name: _plain(str(expression)) for name, expression in self._g.items()},
            "h": str(self._h),
        }
        if self.undefined is not None:
            data["undefined"] = _plain(str(self.undefined))
        data["alternative"] = self.alternative
        data["greater_is_better"] = self.greater_is_better
        return dump(data)

    def _resolution_as_written(self) -> Any:
        if isinstance(self.resolution, Fraction):
            return format_unit(self.resolution)
        return {name: format_unit(unit) for name, unit in self.resolution.items()}


def _plain(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def joint_values(
    names: tuple[str, ...], u: npt.NDArray[np.int64], v: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that ``u.<count>`` and ``v.<count>`` stand for."""
    sides = {"u": np.asarray(u), "v": np.asarray(v)}
    return {f"{side}.{name}": array[:, i] for side, array in sides.items() for i, name in enumerate(names)}
