"""Picture of a leaderboard: SVG that follows the reader's dark setting, and PNG."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from trackperm.leaderboards import Leaderboard
from trackperm.report.drawings import rasterised
from trackperm.report.drawings.drawing import escaped
from trackperm.report.formatting import shorten
from trackperm.report.leaderboard import cells
from trackperm.report.leaderboard.chart_layout import ChartLayout, DrawnRun, chart_layout

_WIDTH = 1200
_MARGIN = 28
_STEP = 22
"""Height of a run: a line of text."""

_CHARACTER = 7.4
"""Average width of a character in the widest of usual fonts, DejaVu Sans, at 12.5 pixels."""

_IN_SUBTITLE = 155
"""Characters of a line of the subtitle."""

_MOST_CAVEATS = 6

_STYLE = """
text { font: 12.5px system-ui, "DejaVu Sans", "Liberation Sans", sans-serif; fill: #16191d; }
.title { font-size: 22px; font-weight: 700; }
.soft { fill: #59616b; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.page { fill: #ffffff; }
.grid { stroke: #dfe2e6; }
.zero { stroke: #59616b; stroke-dasharray: 4 3; }
.track { fill: #dfe2e6; }
.better { fill: #00694d; stroke: #00694d; }
.worse { fill: #b04a00; stroke: #b04a00; }
.undecided { fill: #4c5866; stroke: #4c5866; }
.best, .baseline { fill: #16191d; stroke: #16191d; }
text.better, text.worse, text.undecided, text.best, text.baseline { stroke: none; }
.best text, .baseline text, text.best, text.baseline { font-weight: 700; stroke: none; }
line.interval { stroke-width: 4; stroke-linecap: round; stroke-opacity: .6; }
rect.range { fill-opacity: .4; stroke: none; }
rect.own { stroke: none; }
"""

_DARK = """
@media (prefers-color-scheme: dark) {
text { fill: #e8eaed; } .soft { fill: #a3abb5; } .page { fill: #15181c; }
.grid { stroke: #353b43; } .zero { stroke: #a3abb5; } .track { fill: #353b43; }
.better { fill: #4cc9a0; stroke: #4cc9a0; } .worse { fill: #f0944d; stroke: #f0944d; }
.undecided { fill: #a9b4c2; stroke: #a9b4c2; }
.best, .baseline { fill: #e8eaed; stroke: #e8eaed; }
}
"""


def svg(board: Leaderboard) -> str:
    """Draw the finding, and a row per run with score, verdict, possible ranks and interval, as SVG."""
    return _svg(board, _STYLE + _DARK)


def png(board: Leaderboard) -> bytes:
    """Draw the picture of :func:`svg` for a light page, as PNG 1,800 pixels wide.

    Raises
    ------
    MissingDependencyError
        If vl-convert is not installed.
    """
    return rasterised.png(_svg(board, _STYLE))


def _svg(board: Leaderboard, style: str) -> str:
    chart = chart_layout(board)
    title = textwrap.wrap(cells.finding(board), 95, break_long_words=True)
    remarks = [cells.lead(board), cells.summary(board), cells.method(board), *chart.remarks]
    subtitle = [(line, "soft") for remark in remarks for line in textwrap.wrap(remark, _IN_SUBTITLE)]
    subtitle += [(line, "") for caveat in _caveats(board) for line in textwrap.wrap(caveat, _IN_SUBTITLE)]
    top = 22 + 28 * len(title) + 18 * len(subtitle) + 44
    height = top + _STEP * len(chart.runs) + 18
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"'
        f' viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escaped(cells.finding(board))}">',
        f"<style>{style}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
    ]
    y = 12
    for line in title:
        y += 28
        parts.append(_text(_MARGIN, y, line, "title"))
    for line, kind in subtitle:
        y += 18
        parts.append(_text(_MARGIN, y, line, kind))
    parts += _Columns(chart).drawn(chart, top)
    return "".join([*parts, "</svg>\n"])


def _caveats(board: Leaderboard) -> list[str]:
    """Return the first caveats: a picture is passed on without the page that has all of them."""
    found = [shorten(each, 2 * _IN_SUBTITLE) for each in cells.cautions(board)]
    more = len(found) - _MOST_CAVEATS
    return found if more <= 0 else [*found[:_MOST_CAVEATS], f"and {more} more caveats"]


class _Columns:
    """Columns of the picture, from left to right: rank, name, score, verdict, possible ranks, difference."""

    def __init__(self, chart: ChartLayout) -> None:
        self.rank = _MARGIN + 24.0
        self.name = self.rank + 12
        score = max(len(chart.statistic), *(len(run.score) for run in chart.runs))
        self.score = self.name + _CHARACTER * (chart.name_width + min(score, 20)) + 16
        self.word = self.score + 14
        self.ranks = (self.word + 110, self.word + 230)
        self.difference = (self.ranks[1] + 24 if chart.has_ranks else self.ranks[0], _WIDTH - _MARGIN)

    def drawn(self, chart: ChartLayout, top: int) -> Iterator[str]:
        """Draw the header, whose last line ends at `top`, and all rows below it."""
        bottom = top + _STEP * len(chart.runs) + 4
        high = self.difference[1]
        yield _text(self.name, top - 8, "run", "soft")
        yield _text(self.score, top - 8, shorten(chart.statistic, 20), "soft end")
        yield _text(self.word, top - 8, f"against {chart.against}", "soft")
        if chart.has_ranks:
            yield _text(self.ranks[0], top - 26, "possible ranks", "soft")
            yield _text(self.ranks[0], top - 8, "1", "soft")
            yield _text(self.ranks[1], top - 8, f"{chart.n_runs}", "soft end")
        yield _text(high, top - 26, chart.axis, "soft end")
        for at, label in chart.ticks:
            x = _within(self.difference, at)
            yield _text(x, top - 8, label, "soft middle")
            kind = "zero" if at == chart.zero else "grid"
            yield f'<line class="{kind}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'
        yield f'<line class="grid" x1="{_MARGIN}" x2="{high}" y1="{top}" y2="{top}"/>'
        for place, run in enumerate(chart.runs):
            yield from self._row(run, top + _STEP * place + _STEP / 2 + 2, has_ranks=chart.has_ranks)

    def _row(self, run: DrawnRun, y: float, *, has_ranks: bool) -> Iterator[str]:
        strong = run.role if run.role in ("best", "baseline") else ""
        yield _text(self.rank, y + 4, f"{run.rank}", f"end {strong or 'soft'}")
        yield _text(self.name, y + 4, run.label, strong, run.name)
        yield _text(self.score, y + 4, run.score, f"end {strong}")
        yield _text(self.word, y + 4, f"{run.marker} {run.role}{run.dagger}".strip(), run.role)
        if has_ranks and run.ranks is not None:
            low, high = (_within(self.ranks, end) for end in (run.ranks[0], sum(run.ranks)))
            yield (
                f"<g><title>{escaped(run.ranks_words)}</title>"
                f"{_rect('track', self.ranks[0], y - 1, self.ranks[1] - self.ranks[0], 2)}"
                f"{_rect(f'range {run.role}', low, y - 5, high - low, 10)}"
                f"{_rect(f'own {run.role}', _within(self.ranks, run.own_rank) - 1.5, y - 7, 3, 14)}</g>"
            )
        yield f"<g><title>{escaped(run.name)}: {escaped(run.difference_words)}</title>"
        if run.interval is not None:
            low, high = (_within(self.difference, end) for end in (run.interval[0], sum(run.interval)))
            yield f'<line class="interval {run.role}" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>'
        x = _within(self.difference, run.at)
        yield f'<circle class="{run.role}" cx="{x}" cy="{y}" r="{5.5 if strong else 4}"/></g>'


def _within(ends: tuple[float, float], percent: float) -> float:
    return round(ends[0] + (ends[1] - ends[0]) * percent / 100, 1)


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height}" rx="1.5"/>'


def _text(x: float, y: float, words: str, kind: str, title: str | None = None) -> str:
    tip = "" if title is None or title == words else f"<title>{escaped(title)}</title>"
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{tip}{escaped(words)}</text>'
