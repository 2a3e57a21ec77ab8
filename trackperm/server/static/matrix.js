// All pairs of runs as a table: one stop of the Tab key, within which arrow keys move.

import { element, part } from "./elements.js";

const table = part("matrix");
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
let links = [];

/** Show the table; `pair` returns what was found of two places. */
export function show(runs, pair) {
  const [head] = table.getElementsByTagName("thead"), [body] = table.getElementsByTagName("tbody");
  const found = runs.map((run, i) => runs.map((other, j) => (i === j ? null : pair(i, j))));
  links = found.map((row) => row.map((each) => each && link(each)));
  head.replaceChildren(element(
    "tr", {}, element("td", {}), ...runs.map(({ rank, name }) => element("th", { scope: "col", title: name }, String(rank)))));
  body.replaceChildren(...runs.map(({ rank, name, label }, i) => element(
    "tr", {}, element("th", { scope: "row", title: name }, `${rank} ${label}`),
    ...links[i].map((each, j) => element("td", { class: found[i][j]?.verdict }, ...(each ? [each] : []))))));
  links.flat().find(Boolean).tabIndex = 0;
}

function link({ marker, verdict, p, words, page, tell }) {
  const made = element(
    "a", { href: page, tabindex: "-1", "aria-label": words }, `${marker} ${verdict}`, element("small", {}, p));
  for (const event of ["focus", "pointerenter"]) made.addEventListener(event, tell);
  return made;
}

/** The cell that an arrow key leads to, over the diagonal; null at the edge and for other keys. */
export function move(event, i, j, n) {
  const step = MOVES[event.key];
  if (!step) return null;
  event.preventDefault();
  do [i, j] = [i + step[0], j + step[1]]; while (i === j);
  return Math.min(i, j) >= 0 && Math.max(i, j) < n ? [i, j] : null;
}

table.addEventListener("keydown", (event) => {
  const i = links.findIndex((row) => row.includes(event.target));
  const place = i < 0 ? null : move(event, i, links[i].indexOf(event.target), links.length);
  if (!place) return;
  const next = links[place[0]][place[1]];
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});
