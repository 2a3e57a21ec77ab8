"""Random expressions in our language, as Python would write them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st


@dataclass(frozen=True)
class Written:
    """An expression in our language and the same in Python."""

    ours: str
    python: str


def join(operator: str, a: Written, b: Written, python: str | None = None) -> Written:
    return Written(f"({a.ours} {operator} {b.ours})", f"({a.python} {python or operator} {b.python})")


def power(a: Written, exponent: int) -> Written:
    return Written(f"({a.ours} ** {exponent})", f"({a.python} ** {exponent})")


def call(name: str, *arguments: Written) -> Written:
    return Written(
        f"{name}({', '.join(a.ours for a in arguments)})", f"{name}({', '.join(a.python for a in arguments)})"
    )


def where(condition: Written, yes: Written, no: Written) -> Written:
    return Written(
        f"where({condition.ours}, {yes.ours}, {no.ours})",
        f"({yes.python} if {condition.python} else {no.python})",
    )


def same(text: str) -> Written:
    return Written(text, text)


COMPARISONS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
TEXT = st.sampled_from(["s", "t", "'a'", "'Ä'"]).map(same)


def conditions(numbers: Any, *, columns: bool = True) -> Any:
    leaves = st.builds(join, COMPARISONS, numbers, numbers)
    if columns:
        leaves = leaves | st.just(same("flag")) | st.builds(join, st.sampled_from(["==", "!="]), TEXT, TEXT)
        others = st.sampled_from(["d", "0.1", "2.5", "i"]).map(same)
        leaves = leaves | st.builds(join, COMPARISONS, others, st.just(same("d")))
    return st.one_of(
        leaves,
        st.builds(join, st.sampled_from(["&", "|", "and", "or"]), leaves, leaves),
        leaves.map(lambda a: Written(f"(~{a.ours})", f"(not {a.python})")),
        leaves.map(lambda a: Written(f"(not {a.ours})", f"(not {a.python})")),
    )


def whole(names: list[str], *, columns: bool = True) -> Any:
    leaves = st.sampled_from(names).map(same) | st.integers(0, 12).map(lambda n: same(str(n)))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(join, st.sampled_from(["+", "-", "*", "//", "%"]), inner, inner),
            st.builds(power, inner, st.integers(0, 3)),
            inner.map(lambda a: Written(f"(-{a.ours})", f"(-{a.python})")),
            inner.map(lambda a: call("abs", a)),
            st.builds(call, st.sampled_from(["min", "max"]), inner, inner),
            st.builds(where, conditions(inner, columns=columns), inner, inner),
        ),
        max_leaves=8,
    )


UNDEFINED = st.sampled_from([None, Fraction(0), Fraction(1, 3)])


@dataclass
class Over:
    """Division in a score, where 0/0 may be declared.

    Attributes
    ----------
    undefined : Fraction or None
        Value of 0/0.
    n_undefined : int
        How often it was taken.
    """

    undefined: Fraction | None
    n_undefined: int = 0

    def __call__(self, a: Fraction, b: Fraction) -> Fraction:
        if a == b == 0 and self.undefined is not None:
            self.n_undefined += 1
            return self.undefined
        return Fraction(a) / b


def quotients(names: list[str], *, conditional: bool = False) -> Any:
    """Expressions of scores; Python reads decimals as `Fraction` and divides by a function `over`."""
    leaves = st.sampled_from(names).map(same) | st.sampled_from(["1", "2", "0.1", "1.5"]).map(
        lambda n: Written(n, f"Fraction('{n}')")
    )

    def larger(inner: Any) -> Any:
        divided = st.builds(
            lambda a, b: Written(f"({a.ours} / {b.ours})", f"over({a.python}, {b.python})"), inner, inner
        )
        found = [
            st.builds(join, st.sampled_from(["+", "-", "*"]), inner, inner),
            divided,
            st.builds(power, inner, st.sampled_from([1, 2, 3, -1, -2] if conditional else [1, 2, 3])),
            inner.map(lambda a: Written(f"(-{a.ours})", f"(-{a.python})")),
        ]
        if conditional:
            found += [
                inner.map(lambda a: call("abs", a)),
                st.builds(call, st.sampled_from(["min", "max"]), inner, inner),
                st.builds(where, conditions(inner, columns=False), inner, inner),
                conditions(inner, columns=False),
            ]
        return st.one_of(found)

    return st.recursive(leaves, larger, max_leaves=8)


INTEGERS = whole(["i", "j", "small"])


def python(text: str, row: dict[str, Any]) -> int | None:
    """What Python makes of it; None where it divides by zero."""
    try:
        return int(eval(text, {"__builtins__": {}, "abs": abs, "min": min, "max": max, **row}))
    except ZeroDivisionError:
        return None
