"""Leaderboards in Markdown, truncated at whole lines to the length that a tracker stores."""

from __future__ import annotations

_INCOMPLETE = "Incomplete"
_SHARE_OF_INCOMPLETE = 4  # a quarter leaves most of the room to the table, which is what readers look for


def truncate_leaderboard(markdown: str, limit: int, whole: str) -> str | None:
    """Truncate the Markdown of a leaderboard to `limit` characters; None if not even the heading fits.

    The list of incomplete runs is cut to a quarter of the limit, then the table from its last row upwards.
    Other lines stay, and a line says how many runs are left out; `whole`, a link to the whole leaderboard,
    completes "2 more runs are in ...".
    """
    if len(markdown) <= limit:
        return markdown
    lines = markdown.splitlines()
    rule = next((i for i, line in enumerate(lines) if line.startswith("|") and set(line) <= set("|:-")), None)
    if rule is None:
        return None
    end = next(i for i in range(rule + 1, len(lines) + 1) if i == len(lines) or not lines[i].startswith("|"))
    rows, rest = lines[rule + 1 : end], lines[end:]
    start = next((i for i, line in enumerate(rest) if line.startswith(_INCOMPLETE)), None)
    if start is not None:
        first = next((i for i in range(start + 1, len(rest)) if rest[i].startswith("- ")), len(rest))
        last = next(i for i in range(first, len(rest) + 1) if i == len(rest) or not rest[i].startswith("- "))
        kept = _within(rest[first:last], limit // _SHARE_OF_INCOMPLETE)
        left = last - first - kept
        said = [f"- {left} more {'is' if left == 1 else 'are'} in {whole}"] if left else []
        rest = [*rest[: first + kept], *said, *rest[last:]]
    for n in range(len(rows), -1, -1):
        left = len(rows) - n
        said = ["", f"{left} more run{'s are' if left != 1 else ' is'} in {whole}."] if left else []
        text = "\n".join([*lines[: rule + 1], *rows[:n], *said, *rest])
        if len(text) <= limit:
            return text
    return None


def _within(lines: list[str], limit: int) -> int:
    """Return how many of the first lines have at most `limit` characters together."""
    total = 0
    for n, line in enumerate(lines):
        total += len(line) + 1
        if total > limit:
            return n
    return len(lines)
