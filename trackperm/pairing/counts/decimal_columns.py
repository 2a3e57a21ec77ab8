"""Decimal columns of several runs, which are all computed in integers or all in floats.

In floats, |0.1 - 0.3| is 0.19999999999999998. If one run were computed in integers and another in floats,
equal predictions would have different counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_

import polars as pl

from trackperm.choices import Missing
from trackperm.errors import InputError, InputTypeError
from trackperm.exact.scores.floats import DecimalForms
from trackperm.pairing.columns.roles import PairedColumns
from trackperm.pairing.engines.base import Engine, Frame, Types
from trackperm.pairing.engines.in_memory import InMemory
from trackperm.pairing.internal_names import internal
from trackperm.pairing.joined import SIDES, of
from trackperm.statistic import Statistic
from trackperm.statistic.count_expressions import computed_decimals, computed_in_floats
from trackperm.statistic.expressions.frames import Decimals
from trackperm.tables.columns.types import ColumnType
from trackperm.tables.table import ExampleTable

Forms = Mapping[str, DecimalForms]


def decimals_of_pair(engine: Engine, frame: Frame, names: Iterable[str]) -> dict[str, Decimals]:
    """Return those of `names` whose values in both runs, without nulls, are all decimals."""
    return _decimals(
        {name: _common([_forms(engine, frame, of(side, name)) for side in SIDES]) for name in names}
    )


def _forms(engine: Engine, frame: Frame, column: str) -> DecimalForms:
    values = engine.collected(frame.select(column).unique())[column].drop_nulls()
    return DecimalForms.of(values.cast(pl.Float64).to_numpy())


def _common(forms: Iterable[DecimalForms]) -> DecimalForms:
    return reduce(and_, forms, DecimalForms())


def _decimals(forms: Forms) -> dict[str, Decimals]:
    return {
        name: Decimals(10**each.places, math.ceil(each.largest * 10**each.places) + 1)
        for name, each in forms.items()
        if each.places is not None
    }


@dataclass(frozen=True)
class DecimalsOfMany:
    """Decimal columns of many runs that are paired with one reference run.

    Attributes
    ----------
    runs : frozenset of int
        Indices of the runs whose columns could be read.
    decimals : mapping of str to Decimals
        Columns that are decimals in all of these runs.
    is_of_pairs : bool
        Whether each pair of runs alone is computed in the same way: a count is in floats in no pair, or in
        every pair. It is false for counts of classes.
    """

    runs: frozenset[int] = frozenset()
    decimals: Mapping[str, Decimals] = field(default_factory=dict)
    is_of_pairs: bool = True

    @classmethod
    def find(
        cls,
        reference: ExampleTable,
        candidates: Sequence[ExampleTable],
        statistic: Statistic,
        *,
        missing: Missing = "error",
        by_position: bool = False,
    ) -> DecimalsOfMany | None:
        """Read the columns of all runs; None if no count computes with decimals."""
        engine = InMemory()
        read: dict[int, tuple[Frame, Types]] = {}
        for number, candidate in enumerate(candidates):
            try:
                columns = PairedColumns.find(reference, candidate, statistic, by_position, missing)
                texts = *columns.texts, *columns.ids
                typed, types = engine.typed((reference, candidate), columns.names, texts)
            except (InputError, InputTypeError):
                continue
            read[number] = typed[1], types
        common = _common_types(types for _, types in read.values())
        names = computed_decimals(statistic, common)
        if not names:
            return None
        own = [{name: _forms(engine, frame, internal(name)) for name in names} for frame, _ in read.values()]
        decimals = _decimals({name: _common(forms[name] for forms in own) for name in names})
        if statistic.has_classes:
            return cls(frozenset(read), decimals, False)
        in_floats = computed_in_floats(statistic, common, decimals)
        alone = [computed_in_floats(statistic, common, _decimals(forms)) for forms in own]
        # A pair is in floats if one of its runs is: a single run in integers is in floats in all its pairs.
        is_of_pairs = all(sum(name not in each for each in alone) <= 1 for name in in_floats)
        return cls(frozenset(read), decimals, is_of_pairs)


def _common_types(types: Iterable[Types]) -> dict[str, ColumnType]:
    """Return the types of columns; a column that is decimal in a pair of runs is decimal."""
    common: dict[str, ColumnType] = {}
    for each in types:
        for name, found in each.items():
            if found is ColumnType.DECIMAL or name not in common:
                common[name] = found
    return common
