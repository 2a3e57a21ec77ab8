"""Fuzz the meanings of an expression: data frames, integer arrays, rational and real functions, and tests.

From an input comes an expression of the right types and the values of its names; every target must give what
exact arithmetic does.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import atheris
from grammar import EXTREME, Exact, Grammar, NoValueError, Tree, value, written
from harness import INSTRUMENTED, run

with atheris.instrument_imports(include=INSTRUMENTED):
    import narwhals as nw
    import numpy as np
    import polars as pl

    from trackperm.errors import CapacityError, InputError, SpecError, UndefinedError
    from trackperm.exact import structured_test
    from trackperm.statistic import OUT_OF_RANGE, ColumnType
    from trackperm.statistic.compile import compile_statistic
    from trackperm.statistic.document import Document, Passage
    from trackperm.statistic.entries import Entries
    from trackperm.statistic.expressions.arrays import integers
    from trackperm.statistic.expressions.exact_functions import exact_function, is_rational
    from trackperm.statistic.expressions.frames import count_expression
    from trackperm.statistic.expressions.tree import Expression
    from trackperm.statistic.expressions.types import Checker

PASSAGE = Document.parse("e: x\n", "f.yaml").passage(("e",))
TYPES = {
    **dict.fromkeys(("i", "j", "small"), ColumnType.INTEGER),
    "d": ColumnType.DECIMAL,
    "flag": ColumnType.BOOLEAN,
    **dict.fromkeys(("s", "t"), ColumnType.TEXT),
}
DECIMALS = ("0.5", "0.1", "2.5", "100.25")
UNDEFINED = (None, Fraction(0), Fraction(1), Fraction(1, 3))


def parse(tree: Tree) -> Expression:
    passage = Passage(written(tree), PASSAGE.path, PASSAGE._source, None, 0, 1)
    return Expression.parse(passage)


def counts(data: Any) -> None:
    """Counts on polars; where a part is large they may be out of range."""
    grammar = Grammar(data, ("i", "j", "small"), flags=("flag",), texts=("s", "t"))
    tree = grammar.number() if data.ConsumeBool() else grammar.condition(4)
    rows = [
        {
            "i": grammar.pick(EXTREME),
            "j": grammar.pick(EXTREME),
            "small": grammar.pick((0, 1, 128, 250, 255)),
            "flag": bool(grammar.pick((0, 1))),
            "s": grammar.pick(("1", "01", "", "a", "1.0")),
            "t": grammar.pick(("1", "a", "Ä", "null")),
        }
        for _ in range(4)
    ]
    expression = parse(tree)
    try:
        Checker(True, lambda _, node: TYPES[node.full], "column").result(expression, "the count")
        compiled = count_expression(expression, {name: name for name in TYPES}, TYPES)
    except SpecError:
        return  # a division by zero, a degree, too long
    frame = pl.DataFrame(rows, schema_overrides={"i": pl.Int64, "j": pl.Int64, "small": pl.UInt8})
    column = nw.from_native(frame).select(nw.col("i").alias("key"), compiled.alias("count"))["count"]
    assert column.dtype == nw.Int64
    for found, row in zip(column.to_list(), rows, strict=True):
        exact = Exact(row)
        try:
            wanted = int(exact(tree))
        except NoValueError:
            assert found == OUT_OF_RANGE, (written(tree), row, found)
            continue
        may_overflow = exact.peak >= 2**31
        assert found == wanted or (may_overflow and found == OUT_OF_RANGE), (
            written(tree),
            row,
            found,
            wanted,
        )


def arrays(data: Any) -> None:
    """Integers of pairs, as g is."""
    names = ("u.a", "u.b", "v.a", "v.b")
    grammar = Grammar(data, names)
    tree = grammar.number()
    rows = [{name: grammar.pick(EXTREME) for name in names} for _ in range(3)]
    expression = parse(tree)
    try:
        Checker(True, lambda *_: ColumnType.INTEGER).result(expression, "g")
    except SpecError:
        return
    wanted = [value(tree, row) for row in rows]
    columns = {name: np.array([row[name] for row in rows], dtype=np.int64) for name in names}
    try:
        found = integers(expression, columns, len(rows)).tolist()
    except SpecError as error:
        assert "a division by zero" in error.message
        assert None in wanted, (written(tree), rows)
        return
    assert found == wanted, (written(tree), rows, found, wanted)


def functions(data: Any) -> None:
    """Rational and real functions of integers of any size."""
    names = ("x", "y", "z")
    conditional = data.ConsumeBool()
    grammar = Grammar(data, names, ("+", "-", "*", "/"), DECIMALS, exponents=(-3, 4), conditional=conditional)
    tree = grammar.number()
    undefined = grammar.pick(UNDEFINED)
    points = [tuple(grammar.pick((*EXTREME, 10**30)) for _ in names) for _ in range(3)]
    expression = parse(tree)
    try:
        Checker(False, lambda *_: ColumnType.INTEGER).result(expression, "h")
        h = exact_function(expression, names, undefined, real=True)
        exact = exact_function(expression, names, undefined) if is_rational(expression) else None
    except SpecError:
        return
    assert conditional or exact is not None
    for point in points:
        evaluation = Exact(dict(zip(names, point, strict=True)), undefined, real=True)
        context = (written(tree), point, undefined)
        try:
            wanted = Fraction(evaluation(tree))
        except NoValueError:
            wanted = None
        try:
            assert h.number(point).compare(wanted if wanted is not None else 0) == (0, False), context
            assert wanted is not None, context
        except UndefinedError:
            assert wanted is None, context
        enclosure = h.enclosed([np.array([x], dtype=object) for x in point])
        found, error = (np.broadcast_to(part, (1,))[0] for part in (enclosure.value, enclosure.bound))
        if np.broadcast_to(enclosure.undefined, (1,))[0]:
            assert wanted is None, context
        elif wanted is not None and np.isfinite(error) and np.isfinite(found):
            assert abs(Fraction(float(found)) - wanted) <= Fraction(float(error)), (*context, found, error)
        if exact is None:
            continue
        try:
            assert exact(point) == wanted, context
        except ZeroDivisionError:
            assert wanted is None, context
        if wanted is not None and not evaluation.singular:
            quotient(exact, point, wanted)


def quotient(exact: Any, point: tuple[int, ...], wanted: Fraction) -> None:
    try:
        found = exact.quotient
    except CapacityError:
        return
    assert Fraction(found.numerator(point), found.denominator(point)) == wanted


def tests(data: Any) -> None:
    """P-values of whole specs against the 32 exchanges of five examples."""
    names = ("a", "b", "c")[: data.ConsumeIntInRange(1, 3)]
    per_example = Grammar(data, ("prediction", "label"), ("+", "-", "*"), exponents=(0, 2))
    counted = {name: per_example.number(2) for name in names}
    conditional = data.ConsumeBool()
    scored = Grammar(
        data, names, ("/", "-", "+", "*"), ("0.5", "0.1"), exponents=(-1, 2), conditional=conditional
    )
    score = scored.number(3)
    undefined = scored.pick(UNDEFINED)
    alternative = scored.pick(("two-sided", "less", "greater"))
    rows = [
        [{"prediction": scored.pick(range(4)), "label": label} for _ in range(2)]
        for label in (scored.pick(range(4)) for _ in range(5))
    ]
    lines = ["counts:", *(f"  {name}: {written(tree)!r}" for name, tree in counted.items())]
    lines += [f"score: {written(score)!r}", f"alternative: {alternative}"]
    if undefined is not None:
        lines.append(f"undefined: {undefined}")
    text = "\n".join(lines) + "\n"
    try:
        statistic = compile_statistic(Entries(Document.parse(text, "f.yaml"), {}, {}), "f")
        types = dict.fromkeys(statistic.used_columns, ColumnType.INTEGER)
        expressions = statistic.counts(types)
    except SpecError:
        return
    integral = [[{name: value(tree, row) for name, tree in counted.items()} for row in pair] for pair in rows]
    sides = []
    for side in range(2):
        frame = nw.from_native(pl.DataFrame([pair[side] for pair in rows]))
        found = frame.select(nw.col("label").alias("key"), **expressions).select(*names).to_numpy()
        wanted = [[int(pair[side][name]) for name in names] for pair in integral]
        if (found != np.array(wanted, dtype=object)).any():
            assert (found == OUT_OF_RANGE).any(), (text, rows, found.tolist(), wanted)
            return
        sides.append(found)
    differences = []
    for exchanged in product((0, 1), repeat=len(rows)):
        scores = []
        for side in range(2):
            chosen = [pair[side ^ e] for pair, e in zip(integral, exchanged, strict=True)]
            totals = {name: sum(int(example[name]) for example in chosen) for name in names}
            scores.append(value(score, totals, undefined, real=True))
        differences.append(None if None in scores else Fraction(scores[0]) - Fraction(scores[1]))
    try:
        observed, swapped = statistic.pairs(*sides)
        result = structured_test(observed, swapped, statistic.h, alternative=alternative)
    except CapacityError:
        return
    except InputError as error:
        known = "undefined" in str(error) or "2^62" in str(error) or "64 bits" in str(error)
        assert known, (text, rows, str(error))
        assert None in differences or "undefined" not in str(error), (text, rows, str(error))
        return
    at = differences[0]
    extreme = {
        "two-sided": lambda t: abs(t) >= abs(at),
        "less": lambda t: t <= at,
        "greater": lambda t: t >= at,
    }[alternative]
    defined = [t for t in differences if t is not None]
    least = Fraction(sum(map(extreme, defined)), len(differences))
    most = least + Fraction(len(differences) - len(defined), len(differences))
    assert least == most or result.pvalue == 1, (
        text,
        rows,
        result,
    )  # whatever the values are that are lacking
    slack = Fraction(result.error_bound) * most + Fraction(1, 2**50)
    assert result.ties == "exact", (text, rows)
    assert result.error_bound <= 1e-6, (text, rows, result)
    assert least - slack <= Fraction(result.pvalue) <= most + slack, (text, rows, result, least, most)


def check(content: bytes) -> None:
    data = atheris.FuzzedDataProvider(content)
    (counts, arrays, functions, tests)[data.ConsumeIntInRange(0, 3)](data)


if __name__ == "__main__":
    run(check, "targets", [bytes([kind]) * 200 for kind in range(4)])
