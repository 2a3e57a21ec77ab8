"""Verdict as a picture: headline, plain words, effect bar and null distribution, as SVG and PNG."""

from __future__ import annotations

import re
import textwrap

from trackperm.comparison import Comparison
from trackperm.errors import CapacityError
from trackperm.report import drawing, rasterised, text
from trackperm.report.drawing import SOFT, TEXT, words_at
from trackperm.report.effect_bar import HEIGHT as BAR_HEIGHT
from trackperm.report.effect_bar import WIDTH, bar_parts, label
from trackperm.report.null_distribution import HEIGHT as NULL_HEIGHT
from trackperm.report.null_distribution import null_parts, why_not_drawn
from trackperm.report.plain_words import plain_words

_MARGIN, _HEADLINE, _WORDS = 24, 20, 14  # units; sizes of texts
_POWER = re.compile(r"10([⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def picture(comparison: Comparison) -> str:
    """Draw the verdict on a white ground, as an SVG document of 928 units' width.

    Without the null distribution if that does not fit the memory budget of the test.
    """
    parts: list[str] = []
    top = float(_MARGIN)
    for words, size, style in (
        (text.headline(comparison), _HEADLINE, {"fill": TEXT, "font_weight": 700}),
        (plain_words(comparison), _WORDS, {"fill": SOFT}),
    ):
        columns = int(1.1 * WIDTH / drawing.width_of("x", size))
        indent = 26 if size == _HEADLINE else 0
        for i, line in enumerate(textwrap.wrap(words, columns, max_lines=4, placeholder="…")):
            top += size * 1.35
            if indent and i == 0:
                ink = drawing.VERDICTS[comparison.verdict]
                parts.append(words_at(_MARGIN, top, comparison.marker, font_size=size, fill=ink))
            parts.append(_raised(words_at(_MARGIN + indent, top, line, font_size=size, **style), size))
        top += 8
    sections = [(bar_parts(comparison, WIDTH), BAR_HEIGHT)]
    try:
        sections.append((null_parts(comparison, WIDTH), NULL_HEIGHT))
    except CapacityError as error:
        refusal = text.shorten(f"Null distribution not drawn: {why_not_drawn(comparison.test, error)}", 110)
        sections.append((words_at(0, 14, refusal), 30))
    for section, height in sections:
        top += 14
        parts.append(f'<g transform="translate({_MARGIN} {round(top, 1)})">{section}</g>')
        top += height
    width, height = WIDTH + 2 * _MARGIN, round(top + _MARGIN / 2)
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    title = f"{text.headline(comparison)}: {label(comparison)}"
    return drawing.with_fixed_inks(drawing.svg(width, height, title, ground + "".join(parts)))


def _raised(element: str, size: float) -> str:
    """Raise exponents, for which few fonts have letters of their own."""
    up, small = f"{0.35 * size:g}", f"{0.7 * size:g}"

    def exponent(match: re.Match[str]) -> str:
        digits = match[1].translate(_DIGITS)
        return f'10<tspan dy="-{up}" font-size="{small}">{digits}</tspan><tspan dy="{up}">\u200b</tspan>'

    return _POWER.sub(exponent, element)


def png(comparison: Comparison) -> bytes:
    """Render :func:`picture` as PNG, 1,392 pixels wide, without a browser or network.

    Raises
    ------
    MissingDependencyError
        If vl-convert is not installed.
    """
    return rasterised.png(picture(comparison))
