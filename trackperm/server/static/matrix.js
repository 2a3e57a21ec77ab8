// All pairs of runs as a matrix: one stop of the Tab key, within which arrow keys move.

import { element, part } from "./elements.js";

const table = part("matrix"), detail = part("pair-detail"), untouched = detail.textContent;
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
let links = [];

/** Show the matrix; `page` returns the address of the comparison of two runs. */
export function show(matrix, rows, page) {
  part("pairs").hidden = matrix === null;
  detail.textContent = untouched;
  if (matrix === null) return;
  const [head] = table.getElementsByTagName("thead"), [body] = table.getElementsByTagName("tbody");
  const { names, cells } = matrix;
  links = cells.map((row, i) => row.map((cell, j) => cell && link(cell, names[i], names[j], page(rows[i].id, rows[j].id))));
  head.replaceChildren(element("tr", {}, element("td", {}), ...names.map((name) => element("th", { scope: "col", title: name }, name))));
  body.replaceChildren(...cells.map((row, i) => element(
    "tr", {}, element("th", { scope: "row", title: names[i] }, names[i]),
    ...row.map((cell, j) => element("td", { class: cell?.verdict }, ...(cell ? [links[i][j]] : []))))));
  links.flat().find(Boolean).tabIndex = 0;
}

function link({ marker, verdict, p, difference }, first, second, href) {
  const words = `${first} against ${second}: ${verdict}, difference ${difference}, adjusted p = ${p}`;
  const made = element("a", { href, tabindex: "-1", "aria-label": words }, marker);
  for (const event of ["focus", "pointerenter"]) {
    made.addEventListener(event, () => { detail.textContent = `${marker} ${words}`; });
  }
  return made;
}

table.addEventListener("keydown", (event) => {
  const move = MOVES[event.key];
  if (!move) return;
  event.preventDefault();
  let i = links.findIndex((row) => row.includes(event.target));
  let j = links[i].indexOf(event.target);
  do [i, j] = [i + move[0], j + move[1]]; while (links[i]?.[j] === null); // over the diagonal
  const next = links[i]?.[j];
  if (!next) return;
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});
