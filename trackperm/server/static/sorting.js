// A table that is sorted by the column whose heading is pressed.

import { element } from "./elements.js";

/** Give `head` a heading for each column; `rows` are those of `content`, in their first order. */
export function sortable(head, content, columns, rows) {
  const made = [...content.rows];
  const headings = columns.map(({ name, numeric }, i) => {
    const button = element("button", { type: "button" }, name);
    const heading = element("th", { scope: "col", class: numeric ? "number" : null, "aria-sort": "none" }, button);
    button.addEventListener("click", () => {
      const descending = heading.getAttribute("aria-sort") === "ascending";
      for (const other of headings) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const order = rows.map((row, place) => place).sort(by(rows, i, descending ? -1 : 1));
      content.append(...order.map((place) => made[place]));
    });
    return heading;
  });
  head.replaceChildren(element("tr", {}, ...headings));
}

/** Compare by number where there are any, else by text; what has no value comes last, either way. */
function by(rows, i, sign) {
  const numbers = rows.some(({ sort }) => sort[i] !== null);
  const value = ({ sort, cells }) => (numbers ? sort[i] : cells[i]);
  const none = (found) => found === null || found === "";
  return (first, second) => {
    const [a, b] = [value(rows[first]), value(rows[second])];
    if (none(a) || none(b)) return none(a) - none(b) || first - second;
    return sign * (numbers ? a - b : a.localeCompare(b, undefined, { numeric: true })) || first - second;
  };
}
