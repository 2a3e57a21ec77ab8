"""Parts of SVG drawings: inks, texts and axes, without a script or a style sheet.

Inks are custom properties of the page with a fallback, so that one drawing suits light and dark pages.
"""

from __future__ import annotations

import math
import re
from html import escape

TEXT, SOFT, LINE = "var(--text, #16191d)", "var(--soft, #59616b)", "var(--line, #dfe2e6)"
USUAL, EXTREME = "var(--usual, #7f9fbf)", "var(--extreme, #d55e00)"
"""Inks; the last two are distinguishable with every kind of colour blindness."""

VERDICTS = {
    "better": "var(--better, #00694d)",
    "worse": "var(--worse, #b04a00)",
    "undecided": "var(--undecided, #4c5866)",
    "equivalent": "var(--undecided, #4c5866)",
}
"""Ink of each verdict."""

_INK = re.compile(r'(?<==")var\(--\w+, (#\w+)\)(?=")')
_CHARACTER = 0.62  # of the size of a text: its mean width in wide fonts
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def svg(width: float, height: float, label: str, parts: str) -> str:
    """Return an ``svg`` element that fills the width of its parent, with an accessible label."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="100%" role="img"'
        f' aria-label="{escaped(label)}" font-family="system-ui, sans-serif" font-size="12">{parts}</svg>'
    )


def with_fixed_inks(drawing: str) -> str:
    """Replace inks by their fallbacks, for programs that know no custom properties."""
    return _INK.sub(r"\1", drawing)


def escaped(words: str) -> str:
    """Escape words for XML, and replace characters that XML does not allow."""
    return escape(_CONTROL.sub("\ufffd", words))


def words_at(x: float, y: float, words: str, **attributes: str | int) -> str:
    """Return a text in soft ink, unless `attributes` say otherwise; underscores stand for hyphens."""
    found = {"fill": SOFT, **{name.replace("_", "-"): value for name, value in attributes.items()}}
    styles = "".join(f' {name}="{value}"' for name, value in found.items())
    return f'<text x="{round(x, 1)}" y="{round(y, 1)}"{styles}>{escaped(words)}</text>'


def width_of(words: str, size: float = 12.0) -> float:
    """Estimate the width of a text, generously."""
    return _CHARACTER * len(words) * size


def kept_inside(x: float, words: str, low: float, high: float, size: float = 12.0) -> float:
    """Return the middle of a text as near to `x` as it can be between `low` and `high`."""
    half = width_of(words, size) / 2.0
    return min(max(x, low + half), high - half) if 2.0 * half < high - low else (low + high) / 2.0


def ticks_between(low: float, high: float, most: int) -> list[float]:
    """Return the multiples of 1, 2 or 5 times a power of ten inside the range, at most `most` + 1."""
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(s * power for s in (1, 2, 5, 10, 20) if (high - low) / (s * power) <= most)
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def tick_label(value: float, ticks: list[float]) -> str:
    """Write a tick with its sign and as many decimals as the step needs; with a power if these are many."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else abs(value) or 1.0
    if abs(value) < step / 2:
        return "0"
    largest = max(map(abs, ticks))
    exponent = math.floor(math.log10(step) + 1e-9)
    if exponent >= -5 and largest < 1e6:
        found = f"{value:+.{max(0, -exponent)}f}"
    else:
        found = f"{value:+.{max(0, math.floor(math.log10(abs(value)) + 1e-9) - exponent)}e}"
    return found.replace("-", "−")
