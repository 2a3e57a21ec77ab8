"""Several rows of one example, such as epochs and attempts: how they are combined and counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import polars as pl

from trackperm.choices import RepeatsInSpec
from trackperm.errors import InputError, PairingError
from trackperm.messages import side_by_side
from trackperm.pairing.checks.differences import few
from trackperm.pairing.columns.roles import PairedColumns
from trackperm.pairing.counts.counting import STRATUM
from trackperm.pairing.counts.scaling import by_distinct
from trackperm.pairing.engines.base import Frame
from trackperm.pairing.joined import KEY, SIDES, SIZE, JoinedRows, count_of
from trackperm.statistic import Statistic, load_statistic
from trackperm.statistic.definition import ATTEMPTS

_SHOWN = 5
_FEW = 3  # distinct counts that are read: among three, at least one is neither 0 nor 1
_N_ROWS = "n_rows"
_SMALLEST_UNIT = 2**31
"""Largest denominator of the common unit of averages: counts up to 2^31 then stay below 2^62."""

UNEQUAL: frozenset[RepeatsInSpec] = frozenset(("bundle", "mean", "pass_at_k", "pass_hat_k", "attempts"))
"""Rules for which an example may have more rows in one run than in the other."""

ASYMPTOTIC: frozenset[RepeatsInSpec] = frozenset(("mean", "pass_at_k", "pass_hat_k"))
"""Rules whose test is only asymptotic if an example has more rows in one run than in the other."""

ADDED: frozenset[RepeatsInSpec | None] = frozenset((None, "sum", "bundle"))
"""Rules that add up counts."""


@dataclass(frozen=True)
class RowNumbers:
    """Numbers of rows per example in both runs.

    Attributes
    ----------
    baseline, candidate : (int, int)
        Smallest and largest number of rows of an example.
    is_equal : bool
        Whether every example has the same number of rows in both runs.
    """

    baseline: tuple[int, int]
    candidate: tuple[int, int]
    is_equal: bool

    @classmethod
    def of(cls, rows: JoinedRows) -> RowNumbers:
        """Count the rows of the examples that are in the test."""
        f = rows.functions
        sizes = rows.in_test.group_by(KEY).agg(
            (~rows.padding(side)).cast(f.Int64).sum().alias(side) for side in SIDES
        )
        found = rows.engine.collected(
            sizes.select(
                *(f.col(side).min().alias(f"least_{side}") for side in SIDES),
                *(f.col(side).max().alias(f"most_{side}") for side in SIDES),
                (f.col(SIDES[0]) != f.col(SIDES[1])).cast(f.Int64).sum().alias("unequal"),
            )
        )
        (least, least_of_candidate, most, most_of_candidate, unequal) = (int(n or 0) for n in found.row(0))
        return cls((least, most), (least_of_candidate, most_of_candidate), not unequal)

    def __str__(self) -> str:
        """Describe the numbers, as in ``3 rows of each in the baseline, 5 in the candidate``."""
        sides = [_span(numbers) for numbers in (self.baseline, self.candidate)]
        if self.is_equal:
            return f"{_rows(sides[0])} of each"
        return f"{_rows(sides[0])} of each in the baseline, {sides[1]} in the candidate"


def _rows(span: str) -> str:
    return f"{span} {'row' if span == '1' else 'rows'}"


def _span(numbers: tuple[int, int]) -> str:
    least, most = numbers
    return str(least) if least == most else f"{least} to {most}"


def require_equal_rows(rows: JoinedRows) -> None:
    """Refuse examples with more rows in one run than in the other, unless the rule allows them."""
    if rows.columns.repeats in UNEQUAL:
        return
    f = rows.functions
    sizes = (
        rows.frame.filter(rows.keyed("baseline") & rows.keyed("candidate"))
        .group_by(KEY)
        .agg((~rows.padding(side)).cast(f.Int64).sum().alias(side) for side in SIDES)
    )
    differ = sizes.filter(f.col(SIDES[0]) != f.col(SIDES[1]))
    first = rows.engine.collected(differ.sort(KEY).head(_SHOWN).select(KEY, *SIDES))
    if not len(first):
        return
    counted = (rows.engine.collected(each.select(f.len())).item() for each in (differ, sizes))
    n_unequal, n_examples = map(int, counted)
    table = side_by_side(
        ("example", *(f"`{run.origin}`" for run in rows.runs)),
        zip(*(few(first[name]) for name in (KEY, *SIDES)), strict=True),
    )
    raise PairingError(
        f"{n_unequal:,} of {n_examples:,} examples have more rows in one run than in the other{table}",
        hint="choose what the test exchanges. `--unit attempt`: single attempts within each example, which is"
        " exact if their numbers were fixed beforehand, such as 3 against 5. `--repeats bundle`: all rows"
        " of an example, if one rule, such as retries, made the numbers in both runs. `--repeats mean`:"
        " their means, at a level that holds only for many examples.",
    )


def combined(
    rows: JoinedRows, frame: Frame, statistic: Statistic, *, strata: bool
) -> tuple[Frame, Statistic]:
    """Combine the counts of all rows of an example by a rule of the statistic other than the sum.

    It returns a row for every example and stratum, with the key, the stratum and the counts, and the
    statistic with the units of the new counts. It raises InputError if the rule needs rows that pass or fail,
    more rows than there are, or a unit that is too small.

    References
    ----------
    Chen et al. (2021), "Evaluating Large Language Models Trained on Code", eq. 1 (pass@k); Yao et al. (2024),
    "tau-bench", section 3 (pass^k).
    """
    engine, f = rows.engine, rows.functions
    own_names = [name for name in statistic.count_names if name != ATTEMPTS]
    columns = {count_of(side, name): f"{_N_ROWS}_{side}" for side in SIDES for name in own_names}
    numbers = list(dict.fromkeys(columns.values()))
    rule, by = statistic.repeats, [KEY, STRATUM] if strata else [KEY]
    frame = frame.with_columns(
        (~rows.padding(side)).cast(f.Int64).alias(f"{_N_ROWS}_{side}") for side in SIDES
    )
    if rule != "mean":
        _require_passes(rows, frame, own_names, statistic)
    sums = frame.group_by(by).agg(
        f.col(name).sum().cast(f.Int64).alias(name) for name in (*columns, *numbers)
    )
    share = cache(_SHARES[rule](statistic) if rule in _SHARES else Fraction)
    ones = {name: _one(statistic, name) if rule in _SHARES else 1 for name in own_names}
    one_of = {count_of(side, name): ones[name] for side in SIDES for name in own_names}
    unit = 1

    def shares(distinct: pl.DataFrame) -> pl.DataFrame:
        nonlocal unit
        found = {
            name: [
                share(c // one_of[name], n) * one_of[name]
                for c, n in zip(distinct[name].to_list(), distinct[number].to_list(), strict=True)
            ]
            for name, number in columns.items()
        }
        unit = math.lcm(*{value.denominator for values in found.values() for value in values})
        if unit > _SMALLEST_UNIT:
            raise InputError(
                f"the numbers of rows of an example have no common unit above 1/2^31 for `repeats: {rule}`",
                hint="`--repeats bundle` needs no unit, if one rule made the numbers in both runs.",
            )
        return distinct.with_columns(
            pl.Series(f"{_N_ROWS}_{name}", [int(each * unit) for each in values], pl.Int64)
            for name, values in found.items()
        )

    found = by_distinct(engine, engine.kept(sums), (*columns, *numbers), shares)
    integers = [f.col(f"{_N_ROWS}_{name}").alias(name) for name in columns]
    if ATTEMPTS in statistic.count_names:
        integers += [f.col(f"{_N_ROWS}_{side}").alias(count_of(side, ATTEMPTS)) for side in SIDES]
    found = engine.kept(found.select(*by, *integers, f.lit(1, f.Int64).alias(SIZE)))
    if unit > 1:
        units = statistic.resolution if isinstance(statistic.resolution, Mapping) else {}
        scaled = {name: units.get(name, Fraction(1)) / unit for name in own_names}
        names = list(statistic.weights) if strata else None
        statistic = load_statistic(statistic, resolution=scaled, strata=names)
    return found, statistic


Share = Callable[[int, int], Fraction]


def _pass_hat_k(statistic: Statistic) -> Share:
    """Return the function that estimates pass^k: the share of k-subsets of n rows that all pass."""
    k = statistic.parameters.get("k")

    def share(c: int, n: int) -> Fraction:
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise InputError(
                f"`k` of `{statistic.name}` is {k!r}; expected an integer of at least 1",
                hint="`--set k=5`, for example.",
            )
        if n < k:
            raise InputError(
                f"`{statistic.name}` needs {k} attempts of each example, but some examples have {n}",
                hint=f"`--set k={n}` needs no more.",
            )
        return Fraction(math.comb(c, k), math.comb(n, k))

    return share


def _pass_at_k(statistic: Statistic) -> Share:
    """Return the function that estimates pass@k: the share of k-subsets of n rows in which any row passes."""
    none_passes = _pass_hat_k(statistic)
    return lambda c, n: 1 - none_passes(n - c, n)


_SHARES: Mapping[RepeatsInSpec | None, Callable[[Statistic], Share]] = {
    "any": lambda _: lambda c, n: Fraction(min(c, 1, n)),
    "all": lambda _: lambda c, n: Fraction(c == n),
    "pass_at_k": _pass_at_k,
    "pass_hat_k": _pass_hat_k,
}
"""Value of an example, of whose n rows c pass, by rule."""


def _one(statistic: Statistic, name: str) -> int:
    """Return a count of 1 in its unit, which a statistic that was logged after averages has."""
    units = statistic.resolution
    return int(1 / Fraction(units.get(name, 1))) if isinstance(units, Mapping) else 1


def _require_passes(rows: JoinedRows, frame: Frame, names: Sequence[str], statistic: Statistic) -> None:
    """Refuse counts other than 0 and 1, several counts that vary, and statistics where lower is better."""
    values: list[set[int]] = []
    for name in names:
        found: set[int] = set()
        for side in SIDES:
            own = frame.filter(~rows.padding(side)).select(
                rows.functions.col(count_of(side, name)).alias("value")
            )
            found |= set(rows.engine.collected(own.unique().sort("value").head(_FEW)).to_series().to_list())
        values.append(found)
    hint = "`--repeats mean` averages the rows of an example for any counts."
    needed = f"`repeats: {statistic.repeats}` requires rows that pass or fail"
    for name, found in zip(names, values, strict=True):
        if found - {0, _one(statistic, name)}:
            raise InputError(
                f"{needed}, counted as 1 and 0, but the count `{name}` of `{statistic.name}` has other"
                " values",
                hint=hint,
            )
    if sum(len(each) > 1 for each in values) > 1 or not statistic.greater_is_better:
        raise InputError(f"{needed}, but `{statistic.name}` is not a share of rows that pass", hint=hint)


def asymptotic(numbers: RowNumbers, rule: RepeatsInSpec | None) -> str | None:
    """Return the reason why the level of the test holds only for many examples; None if it is exact."""
    if rule not in ASYMPTOTIC or numbers.is_equal:
        return None
    return (
        f"the runs have different numbers of rows ({numbers}), so their means are not exchangeable: the level"
        " holds only for many examples"
    )


def unit_note(numbers: RowNumbers, columns: PairedColumns) -> str:
    """Note how the rows of an example are combined."""
    how = {
        "sum": "their counts are added up",
        "bundle": "their counts are added up, and their number is exchanged with them, which is valid if"
        " one rule made it in both runs",
        "mean": "their counts are averaged",
        "any": "an example passes if any of them does",
        "all": "an example passes if all of them do",
        "pass_at_k": "they estimate the chance that any of k passes",
        "pass_hat_k": "they estimate the chance that all of k pass",
        "attempts": "attempts are exchanged among those of their example",
    }[columns.repeats or "sum"]
    return f"unit: the example, by `{columns.id}`; {numbers}; {how}"
