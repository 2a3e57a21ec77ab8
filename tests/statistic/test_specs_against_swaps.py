"""P-values of random specs, against all 32 swaps of five examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budget import cases
from support.written_expressions import UNDEFINED, Over, Written, python, quotients, whole

from trackperm.errors import CapacityError, InputError, SpecError
from trackperm.exact import structured_test
from trackperm.statistic import OUT_OF_RANGE, ColumnType, read_statistic
from trackperm.statistic.count_expressions import count_expressions

COUNTS = whole(["prediction", "label"], columns=False)
SPECS = st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]).flatmap(
    lambda names: st.tuples(
        st.fixed_dictionaries(dict.fromkeys(names, COUNTS)), quotients(list(names), conditional=True)
    )
)
ROWS = st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=5, max_size=5)
EXTREME: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "two-sided": lambda t, observed: abs(t) >= abs(observed),
    "less": lambda t, observed: t <= observed,
    "greater": lambda t, observed: t >= observed,
}


def difference(score: Written, totals: list[Mapping[str, Any]], undefined: Fraction | None) -> Any:
    """The candidate's score minus the baseline's in fractions; None if one is undefined."""
    names = {"abs": abs, "min": min, "max": max, "over": Over(undefined), "Fraction": Fraction}
    try:
        baseline, candidate = (
            Fraction(eval(score.python, {"__builtins__": {}, **names, **own})) for own in totals
        )
    except ZeroDivisionError:
        return None
    return candidate - baseline


@settings(deadline=None, max_examples=cases(25))
@given(SPECS, ROWS, UNDEFINED, st.sampled_from(sorted(EXTREME)))
def test_against_all_swaps(
    spec: tuple[dict[str, Written], Written],
    rows: list[tuple[int, int, int]],
    undefined: Fraction | None,
    alternative: str,
) -> None:
    """After some swaps the score may be undefined: p is then an upper end, or 1."""
    counted, score = spec
    lines = ["counts:", *(f"  {name}: {count.ours!r}" for name, count in counted.items())]
    lines += [f"score: {score.ours!r}", f"alternative: {alternative}"]
    lines += [] if undefined is None else [f"undefined: {undefined}"]
    try:
        statistic = read_statistic("\n".join(lines), "x.yaml")
        counts = count_expressions(statistic, dict.fromkeys(statistic.used_columns, ColumnType.INTEGER))
    except SpecError:
        return
    sides: list[Any] = []
    for side in (1, 2):
        own = [{"label": row[0], "prediction": row[side]} for row in rows]
        found = nw.from_native(pl.DataFrame(own)).select(nw.col("label").alias("key"), **counts)
        sides.append(found.select(*counted).to_numpy().astype(np.int64))
        if (sides[-1] == OUT_OF_RANGE).any():
            return
        wanted = [[python(count.python, row) for count in counted.values()] for row in own]
        assert sides[-1].tolist() == wanted
    differences = []
    for swap in product((0, 1), repeat=len(rows)):
        outputs = [[sides[side ^ s][i] for i, s in enumerate(swap)] for side in (0, 1)]
        sums = [map(Fraction, np.sum(each, axis=0).tolist()) for each in outputs]
        totals = [dict(zip(counted, each, strict=True)) for each in sums]
        differences.append(difference(score, totals, undefined))
    try:
        observed, swapped = statistic.pairs(sides[1], sides[0])
        result = structured_test(observed, swapped, statistic.h, alternative=alternative)
    except CapacityError:
        return
    except InputError as error:
        if not (None in differences or "2^62" in error.message or "64 bits" in error.message):
            raise
        return
    defined = [t for t in differences if t is not None]
    least = Fraction(sum(EXTREME[alternative](t, differences[0]) for t in defined), len(differences))
    most = least + Fraction(len(differences) - len(defined), len(differences))
    assert least == most or result.pvalue == 1
    slack = Fraction(result.error_bound) * most + Fraction(1, 2**50)
    assert result.ties == "exact"
    assert result.error_bound <= 1e-6
    assert least - slack <= Fraction(result.pvalue) <= most + slack
