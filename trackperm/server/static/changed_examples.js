// The table of examples that changed: filtered, searched and paged by the server.

import { element, part } from "./elements.js";
import { changed, Refusal } from "./server.js";

const AGAIN = 500; // milliseconds
const PAGE = 50, TYPING = 250, WIDE = 40, LONG = 240; // rows, milliseconds, characters
const WHOLE = 16; // characters of a cell that stays on one line on paper
const table = part("changed-scroll");
const [head] = table.getElementsByTagName("thead"), [body] = table.getElementsByTagName("tbody");
let job = null, offset = 0, asked = null, typing = 0;

/** Show the examples of a finished job. */
export function show(id, counts) {
  job = id;
  part("changed").hidden = counts.total === 0;
  const unit = counts.unit ?? "example";
  const sides = counts.better === null ? "" : `: the candidate is better on ${number(counts.better)}, worse on ${number(counts.worse)}`;
  part("changed-summary").textContent = counts.total === 0
    ? `The counts of the two runs are the same on every ${unit}.`
    : `The counts of the two runs differ on ${number(counts.total)} ${unit}${counts.total === 1 ? "" : "s"}${counts.case ?? ""}${sides}. Cells with an arrow show baseline → candidate.`;
  part("changed-title").textContent = `${unit[0].toUpperCase()}${unit.slice(1)}s that changed`;
  part("directions").hidden = counts.better === null;
  part("changed-filter").reset();
  head.replaceChildren();
  body.replaceChildren();
  if (counts.total > 0) load(0);
}

const number = (n) => n.toLocaleString("en");

async function load(start) {
  asked?.abort();
  const own = asked = new AbortController();
  table.classList.add("refreshing");
  try {
    const direction = part("changed-filter").elements.direction.value;
    const search = part("changed-search").value;
    const found = await changed({ id: job, offset: start, limit: PAGE, search, direction }, own.signal);
    if (found.ready === false) { // it is written after the result
      place("The table is being written…", false, false);
      setTimeout(() => { if (own === asked) load(start); }, AGAIN);
      return;
    }
    offset = start;
    render(found);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Refusal)) console.error(error);
    place(error.status === 404 ? "The result has expired: press Compare again." : error.message, false, false);
  }
  if (own === asked) table.classList.remove("refreshing");
}

function render({ columns, rows, matching }) {
  const numeric = columns.map((_, i) => rows.every((row) => row[i] === null || typeof row[i] === "number"));
  const hidden = columns.map((name, i) => name === "change" && i === 0);
  head.replaceChildren(element("tr", {}, ...columns.map((name, i) => element(
    "th", { scope: "col", class: numeric[i] ? "number" : null }, name))));
  body.replaceChildren(...rows.map((row) => element("tr", {}, ...row.map((value, i) => (
    hidden[i] ? direction(value) : cell(value, numeric[i]))))));
  table.scrollTop = 0;
  const last = offset + rows.length;
  place(matching === 0 ? "No example matches" : `${number(offset + 1)}–${number(last)} of ${number(matching)}`, offset > 0, last < matching);
}

function place(words, back, on) {
  part("changed-place").textContent = words;
  part("changed-previous").disabled = !back;
  part("changed-next").disabled = !on;
}

const MARKERS = { better: "▲", worse: "▼" };

function direction(word) {
  const marker = element("span", { "aria-hidden": "true" }, MARKERS[word] ?? "·");
  return element("td", { class: `change ${MARKERS[word] ? word : ""}` }, marker, ` ${word}`);
}

/** A value, or the values of baseline and candidate where they differ. */
function cell(value, numeric) {
  const texts = (Array.isArray(value) ? value : [value]).map((each) => (each === null ? "" : String(each)));
  const wide = texts.some((text) => text.length > WIDE || text.includes("\n"));
  // words from right to left do not move what is beside them
  const shown = texts.map((text) => element("bdi", {}, folded(text)));
  if (texts.length === 2) shown.splice(1, 0, element("span", { class: "to" }, wide ? "\n→ " : " → "));
  return element("td", { class: numeric ? "number" : wide ? "long" : texts.join("").length > WHOLE ? "some" : null }, ...shown);
}

/** A long text is cut, and unfolds. */
function folded(text) {
  if (text.length <= LONG) return text;
  const start = element("summary", {}, element("span", {}, `${text.slice(0, LONG)}… `), "all");
  return element("details", {}, start, text);
}

part("changed-filter").addEventListener("submit", (event) => { event.preventDefault(); load(0); });
part("directions").addEventListener("change", () => load(0));
part("changed-search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => load(0), TYPING);
});
part("changed-previous").addEventListener("click", () => load(Math.max(0, offset - PAGE)));
part("changed-next").addEventListener("click", () => load(offset + PAGE));
