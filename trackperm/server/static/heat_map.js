// All pairs of many runs as a heat map: one link, which the pointer and the arrow keys move from cell to cell.

import { drawn, element, part } from "./elements.js";
import { move } from "./matrix.js";

const [place] = part("heat-map").getElementsByClassName("heat");

/** Show the heat map; `pair` returns what is to be said of two runs, and the address of their comparison. */
export function show({ n, paths, side, ticks, label }, pair) {
  place.style.setProperty("--side", `${side}px`);
  const link = element("a", { class: "cell", "aria-describedby": "pair-detail" });
  const square = drawn(
    "svg", { role: "img", "aria-label": label, viewBox: `0 0 ${n} ${n}`, "shape-rendering": "crispEdges" },
    ...Object.entries(paths).map(([verdict, d]) => drawn("path", { class: verdict, d })));
  const box = element("div", { class: "square" }, square, link);
  let at = [0, 1];
  const select = (row, column, tell = true) => {
    at = [row, column];
    for (const [name, value] of [["left", column], ["top", row], ["width", 1], ["height", 1]]) {
      link.style.setProperty(name, `${(100 * value) / n}%`);
    }
    const found = pair(row, column);
    link.href = found.page;
    link.setAttribute("aria-label", found.words);
    if (tell) found.tell();
  };
  select(...at, false);
  box.addEventListener("pointermove", (event) => {
    const { left, top, width, height } = box.getBoundingClientRect();
    const row = Math.floor((n * (event.clientY - top)) / height), column = Math.floor((n * (event.clientX - left)) / width);
    const inside = row !== column && Math.min(row, column) >= 0 && Math.max(row, column) < n;
    if (inside && (row !== at[0] || column !== at[1])) select(row, column);
  });
  for (const event of ["focus", "pointerenter"]) link.addEventListener(event, () => select(...at));
  link.addEventListener("keydown", (event) => {
    const next = move(event, ...at, n);
    if (next) select(...next);
  });
  const labels = (name, attributes) => drawn(
    "svg", { class: name, "aria-hidden": "true" }, ...ticks.map(([where, rank]) => drawn("text", attributes(where), rank)));
  place.replaceChildren(
    labels("columns", (where) => ({ x: `${where}%`, y: "75%" })), labels("rows", (where) => ({ x: "80%", y: `${where}%` })), box);
}
