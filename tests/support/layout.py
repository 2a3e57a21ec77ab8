"""Boxes of a page in a browser: what is cut, what overlaps."""

from __future__ import annotations

from playwright.sync_api import Page

_BOARD = """() => {
  const problems = [], box = element => element.getBoundingClientRect();
  const apart = (first, second) => first.right <= second.left + 1 || second.right <= first.left + 1
    || first.bottom <= second.top + 1 || second.bottom <= first.top + 1;
  const each = (elements, name) => elements.forEach((first, i) => elements.slice(i + 1).forEach(second => {
    const words = `${name}: “${first.textContent}” on “${second.textContent}”`;
    if (!apart(box(first), box(second))) problems.push(words);
  }));
  const board = document.querySelector(".board"), edge = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > edge) problems.push("the page scrolls sideways");
  for (const row of board.querySelectorAll("li, .head")) {
    each([...row.children], "row");
    for (const cell of row.children) {
      if (box(cell).right > edge + 1 || box(cell).left < -1) problems.push(`outside: ${cell.textContent}`);
      if (!cell.matches("svg") && cell.scrollWidth > cell.clientWidth + 1 && cell.clientWidth) {
        problems.push(`cut: ${cell.textContent}`);
      }
    }
  }
  each([...board.querySelectorAll("li")], "rows");
  for (const axis of document.querySelectorAll(".board .head svg, .heat .columns, .heat .rows")) {
    const labels = [...axis.querySelectorAll("text")];
    each(labels, "labels");
    for (const label of labels) {
      if (box(label).right > edge + 1 || box(label).left < -1) problems.push(`outside: ${label.textContent}`);
    }
  }
  for (const shape of board.querySelectorAll("li svg rect, li svg circle")) {
    const column = box(shape.closest("svg")), own = box(shape);
    if (own.left < column.left - 7 || own.right > column.right + 7) problems.push("a shape is outside");
  }
  return problems;
}"""

_INKS = """() => [...document.querySelectorAll(".board li")].map(row => ({
  role: row.className, weight: getComputedStyle(row).fontWeight,
  ink: getComputedStyle(row.querySelector("circle")).fill, text: getComputedStyle(document.body).color,
  size: row.querySelector("circle").getBoundingClientRect().width,
}))"""


def board_problems(page: Page) -> list[str]:
    """List what is cut, overlaps or lies outside in the chart and the heat map of a leaderboard."""
    return list(page.evaluate(_BOARD))


def require_strongest_ink(page: Page) -> None:
    """Require that the best run, or the baseline, alone is bold, largest and in the ink of text."""
    rows = page.evaluate(_INKS)
    strong = [row for row in rows if row["role"] in ("best", "baseline")]
    assert len(strong) == 1
    assert (strong[0]["weight"], strong[0]["ink"]) == ("700", strong[0]["text"])
    others = [row for row in rows if row is not strong[0]]
    assert all(row["weight"] == "400" and row["ink"] != row["text"] for row in others)
    assert all(row["size"] < strong[0]["size"] for row in others)
