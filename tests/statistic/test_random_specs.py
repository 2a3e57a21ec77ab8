"""Random and edited specs: a statistic, or one error, in bounded time."""

from __future__ import annotations

import contextlib
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fuzz.properties import spec_or_one_error
from hypothesis import given, settings
from hypothesis import strategies as st
from support.specs import load, refusal

from trackperm.errors import SpecError
from trackperm.statistic import ColumnType
from trackperm.statistic.compiler.compile import compile_statistic
from trackperm.statistic.compiler.entries import Entries
from trackperm.statistic.count_expressions import count_expressions
from trackperm.statistic.counters import COUNTERS
from trackperm.statistic.document import Document, dump
from trackperm.statistic.expressions.tree import FUNCTIONS
from trackperm.statistic.load import BUILTIN
from trackperm.statistic.written_spec import written_spec

KEYS = [
    "name",
    "description",
    "counts",
    "score",
    "g",
    "h",
    "parameters",
    "columns",
    "undefined",
    "resolution",
    "alternative",
    "greater_is_better",
    "u.a",
    "a",
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 10**30, float("inf")]),
    st.sampled_from(
        ["a", "u.a", "v.a - u.a", "a / a", "x == 'y'", "1/2", "two-sided", "sqrt(a)", "a +", "(a", ""]
    ),
    st.text("ab=&|() u.v/-", max_size=8),
)
VALUES: Any = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b", "u.a", "id"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=6),
    st.sampled_from(
        [{}, {"counts": {"a": "a", "b": 1}, "score": "a / b"}, {"g": {"a": "u.a", "b": "v.a"}, "h": "a - b"}]
    ),
)
def test_random_specs_are_statistics_or_one_error(random: dict[str, Any], valid: dict[str, Any]) -> None:
    with contextlib.suppress(SpecError):
        document = Document.parse(dump(valid | random), "spec.yaml")
        statistic = compile_statistic(Entries(document, {}, {}), "spec")
        types = dict.fromkeys(statistic.used_columns, ColumnType.INTEGER)
        count_expressions(statistic, types)
        text = written_spec(statistic)
        again = compile_statistic(Entries(Document.parse(text, "again.yaml"), {}, {}), "spec")
        assert written_spec(again) == text


WORDS = [
    *("counts", "score", "g", "h", "parameters", "columns", "weights", "strata", "undefined", "resolution"),
    *(*FUNCTIONS, *COUNTERS, "prediction", "label", "u.", "v.", "and", "or", "not", "**-1", "/ 0", "1e99"),
    *(": ", "\n", "\n  ", " ", "{", "}", "[", "]", "(", ")", "'", '"', "|", ">", "&a ", "*a", "!!", "#", ","),
    *("0", "1", "-1", "0.5", "1/3", "9" * 20, "true", "null", ".inf", "x", "\t", "é", "\0"),
]
BUILTINS = [path.read_text(encoding="utf-8") for path in sorted(BUILTIN.glob("*.yaml"))]
EDITS = st.lists(
    st.tuples(st.integers(0, 999), st.sampled_from([0, 0, 1, 3, 10]), st.sampled_from(["", *WORDS])),
    min_size=1,
    max_size=4,
)


@settings(deadline=timedelta(seconds=10), max_examples=150)
@given(st.sampled_from(BUILTINS), EDITS)
def test_edited_built_ins_are_statistics_or_one_error(text: str, edits: list[tuple[int, int, str]]) -> None:
    for place, deleted, inserted in edits:
        at = place * len(text) // 999
        text = text[:at] + inserted + text[at + deleted :]
    spec_or_one_error(text.encode())


@pytest.mark.parametrize(
    "score",
    [
        "a / (" * 30 + "a" + ")" * 30,
        "(" * 45 + "a" + " ** -1)" * 45,
        f"sqrt({'(' * 45}a{' ** -1)' * 45})",
        "1 / (a + b + c + d + e + f + g + i) ** 31",
        f"log({' + '.join('1 / (a + b + c + d + e + f + g + i) ** 31' for _ in range(90))})",
    ],
    ids=["divisions", "inverses", "in a root", "a power", "many powers"],
)
def test_divisors_compile_in_seconds(tmp_path: Path, score: str) -> None:
    started = time.process_time()
    load(tmp_path, f"counts: {{{', '.join(f'{name}: {name}' for name in 'abcdefgi')}}}\nscore: {score}\n")
    assert time.process_time() - started < 5


def test_a_long_divisor_that_is_always_0(tmp_path: Path) -> None:
    names = "abcdefgi"
    power = f"({' + '.join(names)}) ** 30"
    counts = ", ".join(f"{name}: {name}" for name in names)
    message = refusal(tmp_path, f"counts: {{{counts}}}\nscore: 1 / ({power} - {power})\n")
    assert message.startswith("spec.yaml:2:12: this divisor is always 0")


def test_means_over_parts_are_bounded(tmp_path: Path) -> None:
    text = f"counts: {{a: x, b: y}}\nscore: {' + '.join(['a / b'] * 40)}\nstrata: s\n"
    load(tmp_path, text, strata=[str(i) for i in range(100)])
    with pytest.raises(SpecError, match="too long for a mean of 500 parts") as caught:
        load(tmp_path, text, strata=[str(i) for i in range(500)])
    assert "spec.yaml:2:8" in str(caught.value)


def test_counts_that_g_names_are_bounded(tmp_path: Path) -> None:
    sums = [" + ".join(f"u.a{50 * i + j}" for j in range(50)) for i in range(5)]
    lines = [f"  x{i}: {text}" for i, text in enumerate(sums)]
    text = "\n".join(["g:", *lines, "h: x0", "alternative: less", ""])
    assert "spec.yaml:2:3: more than 200 counts at `$.g`" in refusal(tmp_path, text)
    load(tmp_path, text.replace(lines[4] + "\n", ""))
