"""Report of a gate as Markdown, for a pull request or a job summary: the outcome first, details folded."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import quote

from trackperm.automation.gate.report import GateReport, one_line
from trackperm.automation.judging.judge import Finding
from trackperm.automation.policy.wording import in_policies
from trackperm.comparison import Comparison
from trackperm.messages import amount
from trackperm.report import phrases
from trackperm.report.changed_examples import WORSE, directions
from trackperm.report.description import explanation
from trackperm.report.drawings.text_bar import text_bar
from trackperm.report.formatting import escape_markdown, shorten
from trackperm.report.markdown_rows import ALIGNMENT, HEADER, cells
from trackperm.report.notes import notes_of
from trackperm.report.plain_words import plain_words
from trackperm.trackers.references import TrackedRun

_SIGNS = {"pass": "✅", "fail": "❌", "undecided": "⚠️", "no baseline": "✅", "error": "❌"}
_RANK = {"fail": 0, "undecided": 1, "pass": 2}
_MOST_ROWS = 50
_MOST_WORSE = 10
_LIMIT = 60_000  # GitHub accepts comments of up to 65,536 characters
_NAME = 80
_MENTION = re.compile(r"([@#])(?=\w)")

Row = tuple[Finding, Comparison, str | None]


def markdown(report: GateReport) -> str:
    """Render a report: the outcome, a table of the comparisons with the worst first, and details.

    The first line is a comment, the same for all reports of a policy, by which a bot finds its earlier
    report.

    Returns
    -------
    str
        At most 60,000 characters, in which names cannot act as markup or mention anybody.
    """
    parts = [f"<!-- trackperm gate: {report.policy.name} -->\n{_heading(report)}", *_body(report)]
    found = "\n\n".join(parts)
    folded = [part for part in parts if part.startswith("<details>")]
    while len(found) > _LIMIT and folded:
        parts.remove(folded.pop())
        found = "\n\n".join(parts)
    return found + "\n"


def _heading(report: GateReport) -> str:
    return f"### {_SIGNS[report.outcome]} {escape_markdown(report.summary)}"


def _body(report: GateReport) -> Iterator[str]:
    yield _runs(report)
    if report.message:
        yield _quoted(report.message)
    if report.findings:
        rows = _rows(report)
        yield _reasons(report)
        yield _picture(rows[0])
        yield _table(rows[:_MOST_ROWS])
        if len(rows) > _MOST_ROWS:
            yield f"and {len(rows) - _MOST_ROWS} more with the same or a better outcome."
        yield from _folded(rows)


def _rows(report: GateReport) -> list[Row]:
    """Join findings, comparisons and the URLs of their runs, the worst outcome first."""
    urls = [each.run.url for each in report.published] or [None] * len(report.findings)
    rows = zip(report.findings, report.comparisons, urls, strict=False)
    return sorted(rows, key=lambda row: _RANK[row[0].outcome])


def _runs(report: GateReport) -> str:
    if report.candidate is None:
        return "The candidate was not found."
    candidate = _run(report.candidate)
    if report.baseline is None:
        return f"Candidate {candidate}"
    why = _prose(report.baseline.why)
    return f"{candidate} against {_run(report.baseline.run)} ({why})"


def _reasons(report: GateReport) -> str:
    """Return the deciding reasons: one sentence, or a list."""
    reasons = [f"**{_code(each.title)}**: {_prose(each.reason)}" for each in report.deciding]
    if len(reasons) == 1:
        return reasons[0]
    shown = reasons[:_MOST_WORSE] if report.outcome != "pass" else []
    if shown:
        return "\n".join(f"- {reason}" for reason in shown)
    if report.policy.fail_on == "regression":
        return "No comparison shows that the candidate is worse."
    return f"Every comparison shows that the candidate is at most {report.policy.margin:g} worse."


def _picture(row: Row) -> str:
    """Return the worst comparison in plain words and as a bar of characters."""
    finding, comparison, _ = row
    bar = "\n".join(text_bar(comparison))
    return f"{_code(finding.title)}: {_prose(plain_words(comparison))}\n\n```text\n{bar}\n```"


def _table(rows: Sequence[Row]) -> str:
    lines = [f"| | {HEADER}", f"|---|{ALIGNMENT}"]
    for finding, comparison, url in rows:
        title, *numbers = cells(comparison, _linked(_code(comparison.title), url))
        shown = (_SIGNS[finding.outcome], title, *map(_unlinked, numbers))
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def _folded(rows: Sequence[Row]) -> Iterator[str]:
    """Yield folded details: examples that got worse, and what was tested."""
    for finding, comparison, _ in rows[:_MOST_WORSE]:
        worse = _worse(comparison) if finding.outcome != "pass" else []
        if worse:
            number = comparison.n_worse or len(worse)
            more = f" (the first {len(worse)})" if number > len(worse) else ""
            where = f"{comparison.title}{phrases.in_one_case(comparison)}"
            yield _details(
                f"{amount(number, phrases.unit(comparison))} that got worse by {where}{more}",
                "\n".join(f"- {_code(example)}" for example in worse),
            )
    first = rows[0][1]
    of = f"{first.title}: " if len(rows) > 1 else ""
    notes = [f"- {_prose(in_policies(note))}" for note in notes_of(first)]
    signatures = "\n".join(html.escape(one_line(each.signature)) for _, each, _ in rows[:_MOST_ROWS])
    yield _details(
        "What was tested",
        "\n\n".join(
            filter(
                None,
                [
                    _prose(f"{of}{phrases.examples(first)}."),
                    _prose(" ".join(explanation(first))),
                    "\n".join(notes),
                    f"<pre>\n{signatures}\n</pre>",
                ],
            )
        ),
    )


def _worse(comparison: Comparison) -> list[str]:
    """Return the first examples on which the candidate is worse, if single examples have a sign."""
    words = directions(comparison) or []
    ids = [
        name
        for name in comparison.statistic.columns["id"].split(",")
        if name in comparison.discordant.columns
    ]
    rows = comparison.discordant.select(ids or comparison.discordant.columns[:1]).rows()
    worse = (row for row, word in zip(rows, words, strict=False) if word == WORSE)
    return [" ".join(map(str, row)) for row in islice(worse, _MOST_WORSE)]


def _details(summary: str, content: str) -> str:
    shown = html.escape(_unlinked(one_line(summary)))
    return f"<details>\n<summary>{shown}</summary>\n\n{content}\n\n</details>"


def _run(run: TrackedRun) -> str:
    return _linked(_code(run.name), run.url)


def _linked(shown: str, url: str | None) -> str:
    """Link to a page; characters of the address that would end the link are encoded."""
    return shown if not url else f"[{shown}]({quote(url, safe=':/?#@!$&*+,;=%~')})"


def _code(name: str) -> str:
    """Write a name as code, where ``@`` and ``#`` neither mention nor link."""
    return f"<code>{escape_markdown(shorten(name, _NAME))}</code>"


def _quoted(message: str) -> str:
    return "\n>\n".join(f"> {_prose(paragraph)}" for paragraph in message.split("\n\n"))


def _prose(found: str) -> str:
    """Escape text so that it is shown unchanged, and mentions no user and no issue."""
    return _unlinked(escape_markdown(found))


def _unlinked(found: str) -> str:
    return _MENTION.sub("\\1\u200b", found)
