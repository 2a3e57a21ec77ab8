from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.specs import load, refusal

from trackperm.exact import RationalStatistic
from trackperm.statistic.compiler import symmetry

COUNTS = """\
counts:
  correct: prediction == label
  gold: label == 1
  n: 1
"""


def spec(g: dict[str, str], h: str, more: str = "") -> str:
    lines = "".join(f"  {name}: {text}\n" for name, text in g.items())
    return f"{COUNTS}g:\n{lines}h: {h}\n{more}"


BOTH = {"x": "u.correct", "y": "v.correct"}
DISTANCE = {"d": "u.correct - v.correct"}


@pytest.mark.parametrize(
    ("g", "h", "more"),
    [
        (BOTH, "x - y", ""),
        (BOTH, "(x - y) ** 3", ""),
        (BOTH, "log(x / y)", ""),
        (BOTH, "sqrt(x) - sqrt(y)", ""),
        (BOTH, "(x - y) / (x + y)", "undefined: 0"),
        (BOTH, "(x - y) * abs(x - y)", ""),
        (BOTH, "where(x > y, x, 0) - where(x < y, y, 0)", ""),
        (DISTANCE, "d", ""),
        (DISTANCE, "d ** 3 + d", ""),
        # The same in both runs: constants, and counts that read the label alone.
        (DISTANCE | {"n": "u.n"}, "d / n", ""),
        (DISTANCE | {"gold": "u.gold"}, "d / gold", ""),
        (BOTH | {"gold": "u.gold"}, "x / gold - y / gold", "undefined: 1/2"),
        # g that mirror one another without being mirrored term by term.
        ({"more": "u.correct > v.correct", "less": "v.correct > u.correct"}, "more - less", ""),
        (
            {"more": "u.correct > v.correct", "less": "u.correct < v.correct"},
            "more / (more + less) - 1/2",
            "undefined: 0.5",
        ),
        ({"p": "u.correct * v.n", "q": "v.correct * u.n"}, "p - q", ""),
        ({"d": "max(u.correct - v.correct, 0) - max(v.correct - u.correct, 0)"}, "d", ""),
        ({"d": "(u.correct - v.correct) // u.n"}, "d", ""),
    ],
)
def test_accepted(tmp_path: Path, g: dict[str, str], h: str, more: str) -> None:
    load(tmp_path, spec(g, h, more))


@pytest.mark.parametrize(
    ("g", "h", "more"),
    [
        (BOTH, "x / y", ""),
        (BOTH, "x + y", ""),
        (BOTH, "abs(x - y)", ""),
        (BOTH, "sqrt(x) - y", ""),
        (BOTH, "x - y + 1/1000000", ""),
        ({"x": "u.correct"}, "x", ""),
        (DISTANCE, "d ** 2", ""),
        (DISTANCE | {"n": "u.correct + u.n"}, "d / n", ""),
        # Antisymmetric but for the value of 0/0.
        (BOTH, "(x - y) / (x + y)", "undefined: 1"),
        (DISTANCE, "d / d * d + 0 / d", "undefined: 1"),
    ],
)
def test_refused(tmp_path: Path, g: dict[str, str], h: str, more: str) -> None:
    message = refusal(tmp_path, spec(g, h, more))
    assert "a two-sided test needs an h that changes sign when the runs are exchanged" in message
    load(tmp_path, spec(g, h, f"{more}\nalternative: greater\n"))


def test_products_are_not_free_of_their_factors_in_sums(tmp_path: Path) -> None:
    # On one example c = a * b, on sums of several it is not: h is antisymmetric on the former alone.
    g = {"a": "u.correct", "b": "v.correct", "c": "u.correct * v.correct"}
    assert "changes sign" in refusal(tmp_path, spec(g, "a - b + (c - a * b)"))


def test_message(tmp_path: Path) -> None:
    text = "g: {c: u.err, b: v.err}\nh: c / b\n"
    assert refusal(tmp_path, text) == (
        "spec.yaml:2:4: a two-sided test needs an h that changes sign when the runs are exchanged"
        " at `$.h`\n"
        "\n"
        "    h: c / b\n"
        "       ^^^^^\n"
        "\n"
        "Hint: test the difference, `h: c - b`, or the log ratio, `h: log(c / b)`;"
        " or choose `alternative: greater` or `less`."
    )


def test_large_h_is_decided_on_samples(tmp_path: Path) -> None:
    names = [f"{side}{i}" for side in "xy" for i in range(20)]
    g = {name: f"{'u' if name[0] == 'x' else 'v'}.c{name[1:]}" for name in names}
    lines = "".join(f"  {name}: {text}\n" for name, text in g.items())
    halves = [
        " + ".join(f"{side}{2 * i} / ({side}{2 * i} + {side}{2 * i + 1})" for i in range(10)) for side in "xy"
    ]
    macro = f"g:\n{lines}h: {halves[0]} - ({halves[1]})\nundefined: 0\n"
    assert isinstance(load(tmp_path, macro).h, RationalStatistic)
    assert "changes sign" in refusal(tmp_path, macro.replace(" - (", " - 2 * ("))


def test_rational_h_does_not_hang_on_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = np.zeros((1, 2), dtype=object)
    monkeypatch.setattr(symmetry, "_samples", lambda *arguments, **options: (nowhere, nowhere))
    load(tmp_path, spec(BOTH, "x - y"))
    assert "changes sign" in refusal(tmp_path, spec(BOTH, "x - y + x * y"))


def test_a_mean_of_many_ratios(tmp_path: Path) -> None:
    # It is undefined where a random count is 0.
    names = [f"c{i}" for i in range(30)]
    lines = [f"  {side}{name}: {side}.{name}" for side in "uv" for name in names]
    ratios = " + ".join(f"1 / u{name} - 1 / v{name}" for name in names)
    load(tmp_path, "\n".join(["g:", *lines, f"h: {ratios}", ""]))


def test_sums_beyond_the_range_of_floats(tmp_path: Path) -> None:
    load(tmp_path, "g: {x: 9223372036854775807 ** 31 * (u.a - v.a)}\nh: abs(x) * x\n")
