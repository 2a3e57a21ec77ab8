"""Problems of the layout of a page, found from the boxes of its texts in a browser."""

from __future__ import annotations

from playwright.sync_api import Page

_PROBLEMS = """() => {
  const found = [], wide = innerWidth, root = document.documentElement;
  if (root.scrollWidth > wide) found.push(`the page is ${root.scrollWidth} px wide in a window of ${wide}`);
  const styles = new Map();
  const style = (element) => {
    if (!styles.has(element)) styles.set(element, getComputedStyle(element));
    return styles.get(element);
  };
  const name = (element) => `<${element.tagName.toLowerCase()}${element.id ? "#" + element.id : ""}>`;
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const text = node.data.trim(), parent = node.parentElement;
    if (!text || !parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (parent.closest("script, style, option, [aria-hidden=true]")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const { left, top, right, bottom } of range.getClientRects()) {
      let box = { left, top, right, bottom }, scroller = null, layer = null, cut = null;
      for (let up = parent; up && up !== document.body; up = up.parentElement) {
        const { overflowX, overflowY, position, textOverflow } = style(up);
        if (["sticky", "fixed"].includes(position)) layer ??= up;
        if (overflowX === "visible" && overflowY === "visible" || up instanceof SVGElement) continue;
        const frame = up.getBoundingClientRect();
        const scrolls = ["auto", "scroll"].includes(overflowX) || ["auto", "scroll"].includes(overflowY);
        const isOutside = box.right > frame.right + 1 || box.left < frame.left - 1;
        if (!scrolls && textOverflow !== "ellipsis" && isOutside) cut = up;
        if (scrolls) scroller ??= up;
        box = {
          left: Math.max(box.left, frame.left), right: Math.min(box.right, frame.right),
          top: Math.max(box.top, frame.top), bottom: Math.min(box.bottom, frame.bottom),
        };
      }
      if (cut && cut.getBoundingClientRect().width > 2)
        found.push(`"${text}" is cut by ${name(cut)}`);
      if (box.right - box.left < 2 || box.bottom - box.top < 2) continue;
      if (!scroller && (box.right > wide + 1 || box.left < -1 && box.right > 0))
        found.push(`"${text}" is outside of the window`);
      boxes.push({ ...box, node, parent, layer, text });
    }
  }
  boxes.sort((a, b) => a.top - b.top);
  for (let i = 0; i < boxes.length; i++) {
    const a = boxes[i];
    for (let j = i + 1; j < boxes.length && boxes[j].top < a.bottom - 3; j++) {
      const b = boxes[j];
      if (a.node === b.node || a.layer !== b.layer) continue;
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      if (across > 2 && Math.min(a.bottom, b.bottom) - b.top > 3)
        found.push(`"${a.text}" in ${name(a.parent)} and "${b.text}" in ${name(b.parent)} overlap`);
    }
  }
  return [...new Set(found)].slice(0, 20);
}"""


def layout_problems(page: Page) -> list[str]:
    """List texts that are cut, overlap or lie outside of the window, and whether the page scrolls sideways.

    Texts that a reader reaches by scrolling a part of the page, or that end in an ellipsis, are not cut.
    Sticky headers may lie over what scrolls below them, and links that appear with the keyboard's focus wait
    left of the window.
    """
    problems: list[str] = page.evaluate(_PROBLEMS)
    return problems
