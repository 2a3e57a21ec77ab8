"""Several rows of one example, such as epochs and attempts: what they come to, and how many each run has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.choices import RepeatsInSpec
from trackperm.errors import InputError, PairingError
from trackperm.pairing.checks.differences import few
from trackperm.pairing.checks.refusals import side_by_side
from trackperm.pairing.columns import PairedColumns
from trackperm.pairing.grouping import STRATUM
from trackperm.pairing.keyed_run import KEY, PADDING, KeyedRun
from trackperm.pairing.paired_counts import PairedCounts
from trackperm.statistic import Statistic, load_statistic
from trackperm.statistic.definition import ATTEMPTS

_NUMBER = "trackperm.number"
_SMALLEST_UNIT = 2**31
"""Least common multiple of numbers of rows, up to which averages are integers of a common unit."""

UNEQUAL: frozenset[RepeatsInSpec] = frozenset(("bundle", "mean", "pass_at_k", "pass_hat_k", "attempts"))
"""Rules for which an example may have more rows in one run than in the other."""

ASYMPTOTIC: frozenset[RepeatsInSpec] = frozenset(("mean", "pass_at_k", "pass_hat_k"))
"""Rules by which examples with other numbers of rows in the two runs are exchangeable only in the limit."""

ADDED: frozenset[RepeatsInSpec | None] = frozenset((None, "sum", "bundle"))
"""Rules that add up counts."""


@dataclass(frozen=True, eq=False)
class RowNumbers:
    """Number of rows of every example in both runs.

    Attributes
    ----------
    baseline, candidate : ndarray of int64, shape (N,)
        In the order of the ids.
    """

    baseline: npt.NDArray[np.int64]
    candidate: npt.NDArray[np.int64]

    @classmethod
    def of(cls, runs: tuple[KeyedRun, KeyedRun]) -> RowNumbers:
        """Count the rows of runs in which every example has as many, some of them padding."""
        keys = runs[0].keys.to_polars()
        frame = pl.DataFrame(
            {KEY: keys, **{str(i): ~run.is_padding.to_polars() for i, run in enumerate(runs)}}
        )
        sizes = frame.group_by(KEY).agg(pl.col("0", "1").sum().cast(pl.Int64)).sort(KEY)
        return cls(sizes["0"].to_numpy(), sizes["1"].to_numpy())

    @property
    def is_equal(self) -> bool:
        """Whether every example has as many rows in both runs."""
        return bool((self.baseline == self.candidate).all())

    def __str__(self) -> str:
        """Say how many rows examples have, as in ``3 rows of each in the baseline, 5 in the candidate``."""
        sides = [_span(numbers) for numbers in (self.baseline, self.candidate)]
        if self.is_equal:
            return f"{sides[0]} {'row' if sides[0] == '1' else 'rows'} of each"
        return f"{sides[0]} rows of each in the baseline, {sides[1]} in the candidate"


def _span(numbers: npt.NDArray[np.int64]) -> str:
    least, most = int(numbers.min()), int(numbers.max())
    return str(least) if least == most else f"{least} to {most}"


def with_equal_rows(
    baseline: KeyedRun, candidate: KeyedRun, rule: RepeatsInSpec
) -> tuple[KeyedRun, KeyedRun]:
    """Give every example as many rows in both runs, where `rule` allows it, by rows marked as padding.

    Raises
    ------
    PairingError
        If `rule` wants as many rows in both runs, and they have not.
    """
    if len(baseline) == len(candidate) and (baseline.keys == candidate.keys).all():
        return baseline, candidate
    if rule not in UNEQUAL:
        raise _unequal(baseline, candidate)
    numbered = [_numbered(run) for run in (baseline, candidate)]
    first, second = (
        replace(run, frame=nw.from_native(_padded(own, other), eager_only=True))
        for run, own, other in zip((baseline, candidate), numbered, reversed(numbered), strict=True)
    )
    return first, second


def _numbered(run: KeyedRun) -> pl.DataFrame:
    frame = run.frame.to_polars()
    return frame.with_columns(pl.int_range(pl.len()).over(KEY).alias(_NUMBER))


def _padded(own: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Repeat the first row of an example for every row that only the other run has."""
    lacking = other.select(KEY, _NUMBER).join(own, on=[KEY, _NUMBER], how="anti")
    first = own.filter(pl.col(_NUMBER) == 0).drop(_NUMBER)
    padding = lacking.join(first, on=KEY, how="left").select(own.columns)
    marked = [
        own.with_columns(pl.lit(False).alias(PADDING)),
        padding.with_columns(pl.lit(True).alias(PADDING)),
    ]
    return pl.concat(marked).sort(KEY, _NUMBER).drop(_NUMBER)


def _unequal(baseline: KeyedRun, candidate: KeyedRun) -> PairingError:
    sizes = [run.frame.group_by(KEY).agg(nw.len().alias("n")).sort(KEY) for run in (baseline, candidate)]
    rows = [size.get_column("n") for size in sizes]
    differ = rows[0] != rows[1]
    found = [few(series.filter(differ)) for series in (sizes[0].get_column(KEY), *rows)]
    table = side_by_side(
        ("example", f"`{baseline.origin}`", f"`{candidate.origin}`"), zip(*found, strict=True)
    )
    return PairingError(
        f"{int(differ.sum())} of {len(differ)} examples have more rows in one run than in the other{table}",
        hint="what is exchanged depends on why. `--unit attempt`, where it is by design, as 3 against 5"
        " attempts: the attempts within each example, which is exact. `--repeats bundle`, where one rule of"
        " both runs made the numbers, as retries do: all rows of an example. `--repeats mean`: their means,"
        " at a level that holds only for many examples.",
    )


def without_padding(counts: PairedCounts, runs: tuple[KeyedRun, KeyedRun]) -> PairedCounts:
    """Set the counts of rows to 0 that stand in for others, so that sums are those of the runs' own rows."""
    frame = counts.frame
    for side, run in zip(("baseline", "candidate"), runs, strict=True):
        if run.n_own_rows < len(run):
            own = (~run.is_padding).cast(nw.Int64).alias(_NUMBER)
            frame = frame.with_columns(own).with_columns(
                nw.col(f"{side}.{name}") * nw.col(_NUMBER) for name in counts.names
            )
            frame = frame.drop(_NUMBER)
    return PairedCounts(frame, counts.names)


def combined(
    counts: PairedCounts,
    runs: tuple[KeyedRun, KeyedRun],
    strata: nw.Series[Any] | None,
    statistic: Statistic,
) -> tuple[PairedCounts, nw.Series[Any] | None, Statistic]:
    """Make one row of counts of the rows of every example, by a rule that does not add them up.

    Parameters
    ----------
    counts : PairedCounts
        Counts by row.
    runs : (KeyedRun, KeyedRun)
        Baseline and candidate, row by row the same examples.
    strata : Series, optional
        The stratum of each row.
    statistic : Statistic
        Names the rule; its counts have units.

    Returns
    -------
    counts : PairedCounts
        A row for every example and stratum, ordered by both.
    strata : Series or None
        The stratum of each row.
    statistic : Statistic
        With the units of the new counts.

    Raises
    ------
    InputError
        If the rule needs rows that pass or fail, more of them, or a unit that is too small.

    References
    ----------
    Chen et al. (2021), "Evaluating Large Language Models Trained on Code", eq. 1 (pass@k); Yao et al. (2024),
    "tau-bench", section 3 (pass^k).
    """
    sides = ("baseline", "candidate")
    own_names = [name for name in counts.names if name != ATTEMPTS]
    names = {f"{side}.{name}": f"{_NUMBER}.{side}" for side in sides for name in own_names}
    frame = counts.frame.to_polars().with_columns(
        runs[0].keys.to_polars().alias("id"),
        *(
            (~run.is_padding.to_polars()).cast(pl.Int64).alias(f"{_NUMBER}.{side}")
            for side, run in zip(sides, runs, strict=True)
        ),
    )
    by = ["id"]
    if strata is not None:
        frame, by = frame.with_columns(strata.to_polars().alias(STRATUM)), ["id", STRATUM]
    rule = statistic.repeats
    if rule != "mean":
        _require_passes(frame, own_names, statistic)
    frame = frame.group_by(by).agg(pl.col(*names, *dict.fromkeys(names.values())).sum()).sort(by)
    share = cache(_SHARES[rule](statistic) if rule in _SHARES else Fraction)
    shares = {
        name: [
            share(count, n) for count, n in zip(frame[name].to_list(), frame[number].to_list(), strict=True)
        ]
        for name, number in names.items()
    }
    unit = math.lcm(*{value.denominator for values in shares.values() for value in values})
    if unit > _SMALLEST_UNIT:
        raise InputError(
            f"the numbers of rows of an example have no common unit above 1/2^31 for `repeats: {rule}`",
            hint="`--repeats bundle` needs none, where one rule of both runs made the numbers.",
        )
    integers = [pl.Series(name, [int(each * unit) for each in values]) for name, values in shares.items()]
    if ATTEMPTS in counts.names:
        integers += [frame[f"{_NUMBER}.{side}"].alias(f"{side}.{ATTEMPTS}") for side in sides]
    result = frame.select("id", *(series.cast(pl.Int64) for series in integers))
    found = None if strata is None else nw.from_native(frame[STRATUM], series_only=True)
    if unit > 1:
        units = statistic.resolution if isinstance(statistic.resolution, Mapping) else {}
        scaled = {name: units.get(name, Fraction(1)) / unit for name in own_names}
        statistic = load_statistic(statistic, resolution=scaled)
    return PairedCounts(nw.from_native(result, eager_only=True), counts.names), found, statistic


Share = Callable[[int, int], Fraction]


def _pass_hat_k(statistic: Statistic) -> Share:
    """Return the share of the choices of k among n rows in which all are of the c that pass."""
    k = statistic.parameters.get("k")

    def share(c: int, n: int) -> Fraction:
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise InputError(
                f"`{statistic.name}` takes `k` attempts of each example, and `k` is {k!r}",
                hint="`--set k=5`, for example: an integer of at least 1.",
            )
        if n < k:
            raise InputError(
                f"`{statistic.name}` takes {k} attempts of each example, and some have {n}",
                hint=f"`--set k={n}` takes as many as there are.",
            )
        return Fraction(math.comb(c, k), math.comb(n, k))

    return share


def _pass_at_k(statistic: Statistic) -> Share:
    """Return the share of the choices of k among n rows in which any is of the c that pass."""
    none_passes = _pass_hat_k(statistic)
    return lambda c, n: 1 - none_passes(n - c, n)


_SHARES: Mapping[RepeatsInSpec | None, Callable[[Statistic], Share]] = {
    "any": lambda _: lambda c, n: Fraction(min(c, 1, n)),
    "all": lambda _: lambda c, n: Fraction(c == n),
    "pass_at_k": _pass_at_k,
    "pass_hat_k": _pass_hat_k,
}
"""What c of n rows that pass come to."""


def _require_passes(frame: pl.DataFrame, names: Sequence[str], statistic: Statistic) -> None:
    """Refuse counts of which rows cannot be said to pass or fail.

    Raises
    ------
    InputError
        If counts are others than 0 and 1, more than one of them varies, or more is worse.
    """
    values: list[set[int]] = []
    for name in names:
        sides = [
            frame.filter(pl.col(f"{_NUMBER}.{side}") == 1)[f"{side}.{name}"].unique().to_list()
            for side in ("baseline", "candidate")
        ]
        values.append({value for side in sides for value in side})
    varying = [each for each in values if len(each) > 1]
    if len(varying) > 1 or any(each - {0, 1} for each in values) or not statistic.greater_is_better:
        raise InputError(
            f"`repeats: {statistic.repeats}` takes rows that pass or fail, and `{statistic.name}` is not a"
            " share of rows that pass",
            hint="`--repeats mean` averages the rows of an example, whatever they count.",
        )


def asymptotic(numbers: RowNumbers, rule: RepeatsInSpec | None) -> str | None:
    """Say why the level of the test holds only for many examples; None where it is exact."""
    if rule not in ASYMPTOTIC or numbers.is_equal:
        return None
    return (
        f"the runs have other numbers of rows ({numbers}), whose means are not exchangeable: the level"
        " holds only for many examples"
    )


def unit_note(numbers: RowNumbers, columns: PairedColumns) -> str:
    """Say what the rows of an example come to."""
    how = {
        "sum": "their counts are added up",
        "bundle": "their counts are added up, and their number is exchanged with them, which holds if one"
        " rule of both runs made it",
        "mean": "their counts are averaged",
        "any": "an example passes where any of them does",
        "all": "an example passes where all of them do",
        "pass_at_k": "estimate the chance that any of k passes",
        "pass_hat_k": "estimate the chance that all of k pass",
        "attempts": "attempts are exchanged among those of their example",
    }[columns.repeats or "sum"]
    return f"unit: the example, by `{columns.id}`; {numbers}, {how}"
