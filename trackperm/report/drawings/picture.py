"""Verdict as a picture: headline, plain words, caveats, effect bar and null distribution, as SVG and PNG."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from trackperm.comparison import Comparison
from trackperm.errors import CapacityError
from trackperm.report import phrases
from trackperm.report.drawings import drawing, rasterised
from trackperm.report.drawings.drawing import SOFT, TEXT, words_at
from trackperm.report.drawings.effect_bar import HEIGHT as BAR_HEIGHT
from trackperm.report.drawings.effect_bar import WIDTH, bar_parts, label
from trackperm.report.drawings.null_distribution import HEIGHT as NULL_HEIGHT
from trackperm.report.drawings.null_distribution import null_parts, why_not_drawn
from trackperm.report.formatting import shorten
from trackperm.report.headline import headline
from trackperm.report.notes import cautions_of
from trackperm.report.plain_words import plain_words

_MARGIN, _HEADLINE, _WORDS, _SMALL = 24, 20, 14, 12  # units; sizes of texts

_LINES = 4
"""Most lines of the headline."""

_IN_HEADLINE = 230
"""Most characters of the headline."""

_MOST_CAVEATS = 6
"""Caveats of a picture; the page has all of them."""

_IN_CAVEAT = 420
"""Characters of a caveat, which are three or four lines."""

_POWER = re.compile(r"10([⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def picture(comparison: Comparison) -> str:
    """Draw the verdict on a white ground, as an SVG document of 928 units' width.

    Without the null distribution if that does not fit the memory budget of the test.
    """
    parts: list[str] = []
    top = float(_MARGIN)
    for words, size, style in _texts(comparison):
        indent = 26 if size == _HEADLINE else 0
        for i, line in enumerate(_wrapped(words, size)):
            top += size * 1.35
            if indent and i == 0:
                ink = drawing.VERDICTS[comparison.verdict]
                parts.append(words_at(_MARGIN, top, comparison.marker, font_size=size, fill=ink))
            parts.append(_raised(words_at(_MARGIN + indent, top, line, font_size=size, **style), size))
        top += 4 if size == _SMALL else 8
    sections = [(bar_parts(comparison, WIDTH), BAR_HEIGHT)]
    try:
        sections.append((null_parts(comparison, WIDTH), NULL_HEIGHT))
    except CapacityError as error:
        refusal = shorten(f"Null distribution not drawn: {why_not_drawn(comparison.test, error)}", 110)
        sections.append((words_at(0, 14, refusal), 30))
    for section, height in sections:
        top += 14
        parts.append(f'<g transform="translate({_MARGIN} {round(top, 1)})">{section}</g>')
        top += height
    width, height = WIDTH + 2 * _MARGIN, round(top + _MARGIN / 2)
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    title = f"{headline(comparison)}: {label(comparison)}"
    return drawing.with_fixed_inks(drawing.svg(width, height, title, ground + "".join(parts)))


def _texts(comparison: Comparison) -> Iterator[tuple[str, int, dict[str, str | int]]]:
    """Yield texts with their sizes and styles: a picture is passed on without the page that it is from."""
    yield _fitting_headline(comparison), _HEADLINE, {"fill": TEXT, "font_weight": 700}
    yield plain_words(comparison), _WORDS, {"fill": SOFT}
    yield f"{phrases.examples(comparison)}; {label(comparison)}", _SMALL, {"fill": SOFT}
    caveats = cautions_of(comparison)
    for caveat in caveats[:_MOST_CAVEATS]:
        yield shorten(caveat, _IN_CAVEAT), _SMALL, {"fill": TEXT}
    if len(caveats) > _MOST_CAVEATS:
        yield f"and {len(caveats) - _MOST_CAVEATS} more caveats", _SMALL, {"fill": TEXT}
    yield f"scope: {phrases.SCOPE}", _SMALL, {"fill": SOFT}


def _fitting_headline(comparison: Comparison) -> str:
    """Return the headline with as much of the names of the runs as four lines hold."""
    rooms = range(_IN_HEADLINE, 0, -10)
    fitting = (
        found for room in rooms if len(_wrapped(found := headline(comparison, room), _HEADLINE)) <= _LINES
    )
    return next(fitting, headline(comparison, 0))


def _wrapped(words: str, size: float) -> list[str]:
    """Break a text into lines of the picture's width."""
    columns = int(1.1 * WIDTH / drawing.width_of("x", size))
    return textwrap.wrap(words, columns, break_on_hyphens=False)


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
