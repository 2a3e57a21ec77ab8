"""Leaderboard as a table for other programs: LaTeX (booktabs) and CSV."""

from __future__ import annotations

import csv
import io
import re

from trackperm.leaderboards import Leaderboard, Row
from trackperm.report.leaderboard import cells as parts

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}
_MARKERS = {
    "▲": r"$\blacktriangle$",
    "▼": r"$\blacktriangledown$",
    "≈": r"$\approx$",
    parts.DAGGER: r"$\dagger$",
}
_EXPONENT = re.compile(r"(?P<mantissa>[-+]?\d+(?:\.\d+)?)e(?P<sign>[-+])0*(?P<exponent>\d+)(?P<stars>\**)")
_SIGNED = re.compile(r"[-+]\d")


def latex(board: Leaderboard, *, stars: bool = False) -> str:
    r"""Render `board` as a booktabs ``tabular`` with its notes below.

    It needs ``\usepackage{booktabs}`` and, for the markers, ``\usepackage{amssymb}``.
    """
    table = parts.cells(board, stars=stars)
    columns = "".join("r" if numeric else "l" for numeric in table.numeric)
    places = [
        name in ("difference", parts.pvalue_name(board), parts.interval_name(board)) for name in table.header
    ]
    body = [
        " & ".join(
            _number(cell) if numeric else _escaped(cell) for cell, numeric in zip(row, places, strict=True)
        )
        + r" \\"
        for row in table.rows
    ]
    sentences = [
        parts.summary(board),
        parts.method(board),
        *parts.legend(board, stars=stars),
        *parts.notes(board),
        *(f"incomplete: {name}: {reason}" for name, reason in parts.incomplete(board)),
    ]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs} and \usepackage{amssymb}",
            f"% {' '.join(board.signature.split())}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(map(_escaped, table.header)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
            r"\par\smallskip\begin{minipage}{\linewidth}\footnotesize",
            *(f"{_sentence(_escaped(sentence))}" for sentence in sentences),
            r"\end{minipage}",
            "",
        ]
    )


def rows_csv(board: Leaderboard) -> str:
    """Render `board` as CSV with all digits: compared runs by rank, then excluded runs."""
    buffer = io.StringIO()
    rows = [_csv_row(board, row) for row in board.rows]
    writer = csv.DictWriter(buffer, rows[0], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    for run in board.incomplete:
        reason = " ".join(run.reason.split())
        writer.writerow({"name": run.name, "run": run.origin, "incomplete": reason})
    return buffer.getvalue()


def _csv_row(board: Leaderboard, row: Row) -> dict[str, object]:
    pair, interval = row.pair, row.interval
    low, high = (None, None) if row.ranks is None else row.ranks
    kind = parts.interval_name(board) + (", holds 0 although decided" if row.holds_zero else "")
    return {
        "rank": row.rank,
        "name": row.name,
        "run": row.origin,
        "score": row.score,
        "difference": pair and pair.difference,
        "interval_low": interval and interval.low,
        "interval_high": interval and interval.high,
        "interval_kind": interval and kind,
        "verdict": pair and pair.verdict,
        "adjusted_p": pair and (pair.adjusted or parts.adjusted(board, pair)),
        "log10_adjusted_p": pair and pair.log10_adjusted,
        "p_certainty": pair and parts.certainty(board, pair),
        "letters": row.letters,
        "best_rank": low,
        "worst_rank": high,
        "clones": "; ".join(row.clones),
        "incomplete": None,
    }


def _escaped(text: str) -> str:
    """Escape `text` for LaTeX, with markers as symbols."""
    return "".join(_MARKERS.get(c) or _LATEX.get(c, c) for c in " ".join(text.split()))


def _number(text: str) -> str:
    """Write a number in math mode, with exponents as powers of ten."""
    if text.startswith("≈"):
        number, _, label = text[1:].partition(" ")
        return rf"$\approx$ {_number(number)} {label}"
    text = text.replace("∞", r"\infty").replace(parts.DAGGER, r"^{\dagger}")
    match = _EXPONENT.fullmatch(text)
    if match:
        exponent = f"{'-' if match['sign'] == '-' else ''}{match['exponent']}"
        return rf"${match['mantissa']} \cdot 10^{{{exponent}}}${match['stars']}"
    return f"${text}$" if _SIGNED.search(text) else text


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
