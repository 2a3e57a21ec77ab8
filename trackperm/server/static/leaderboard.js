// The page that ranks runs.

import * as address from "./address.js";
import * as board from "./board.js";
import * as choices from "./choices.js";
import { copies } from "./clipboard.js";
import { choose, element, lines, list, options, part } from "./elements.js";
import { arrived, follow, logging, problem } from "./outcome.js";
import * as pairs from "./pairs.js";
import { after, Refusal, run, runPage } from "./server.js";
import { sortable } from "./sorting.js";

const { baseline } = choices.form.elements;
let body = null, result = null, runs = [], experiment = "";

async function rank(asked) {
  try {
    const made = choices.chosen(runs, experiment);
    body = {
      ...choices.job("leaderboard", made), ...field(), baseline: made.baseline || null,
      correction: made.correction,
    };
    address.write(choices.short(made));
  } catch (error) {
    problem(error);
    return;
  }
  const found = await follow(body, "ranking the runs");
  if (found) show(found.result, asked);
}

/** The runs that are ranked, as a job names them. */
const field = () => (runs.length ? { runs } : { experiment });

function show(found, asked) {
  result = found;
  part("headline").textContent = found.finding;
  part("lead").textContent = sentence(found.lead);
  part("summary").textContent = `${found.summary}.`;
  part("method").textContent = `${sentence(found.method)} ${sentence(`scope: ${found.scope}`)}`;
  part("remarks").replaceChildren(...lines("p", found.chart.remarks.map(sentence)));
  table(found);
  part("legend").replaceChildren(...lines("li", found.legend));
  list(part("notes"), found.notes);
  list(part("incomplete"), found.incomplete.map(([name, reason]) => `${name}: ${reason}`));
  part("signature").textContent = found.signature;
  offer(found.rows.filter(({ id }) => id));
  board.show(found.chart, (place) => runPage(found.rows[place]));
  pairs.show(found.pairs, found.chart.runs, (i, j) => comparison(found.rows[i].id, found.rows[j].id));
  arrived(found.finding, asked);
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

function table({ columns, rows, chart }) {
  const [head] = part("board").getElementsByTagName("thead"), [content] = part("board").getElementsByTagName("tbody");
  const verdict = columns.findIndex(({ name }) => name === "verdict"), run = columns.findIndex(({ name }) => name === "run");
  content.replaceChildren(...rows.map((row, place) => element("tr", { class: row.verdict }, ...row.cells.map((text, i) => {
    if (i === run) return element("td", { class: "name", title: text }, link(row, chart.runs[place].label));
    if (i === verdict) return element("td", { class: "verdict" }, ...words(text));
    return element("td", { class: columns[i].numeric ? "number" : null }, text);
  }))));
  sortable(head, content, columns, rows);
}

/** A verdict whose marker is not read aloud. */
function words(text) {
  const [marker, word] = text.split(" ");
  return word ? [element("span", { "aria-hidden": "true" }, marker), ` ${word}`] : [text];
}

function link(row, text) {
  const page = runPage(row);
  return page ? element("a", { href: page }, text) : text;
}

/** Where two runs are compared by themselves, with the same choices. */
function comparison(first, second) {
  const made = { ...choices.short(choices.chosen([second, first], "")), baseline: "", correction: "" };
  return `compare?${address.query(made)}`;
}

/** Offer runs as baseline, keeping the choice. */
function offer(found) {
  const chosen = baseline.value;
  baseline.replaceChildren(...options([["", "all pairs of runs"], ...found.map(({ id, name }) => [id, `all with ${name}`])]));
  choose(baseline, chosen);
}

async function open(asked) {
  part("invitation").hidden = true;
  part("field").textContent = runs.length ? `${runs.length} runs` : `All runs of experiment ${experiment}`;
  const ranked = rank(asked);
  await after(ranked);
  try {
    const { result: found } = await run({ kind: "choices", ...field() });
    choices.offer(found);
    if (!result) offer(found.runs);
    if (found.experiment) part("field").textContent = `All runs of ${found.experiment}`;
  } catch (error) {
    if (!(error instanceof Refusal)) console.error(error); // what it refuses, the leaderboard refuses as well
  }
  await ranked;
}

choices.form.addEventListener("submit", (event) => { event.preventDefault(); rank(true); });
part("open").addEventListener("click", () => {
  const named = part("by-id").value.split(/[\s,]+/).filter(Boolean);
  [runs, experiment] = named.length > 1 ? [named, ""] : [[], named[0] ?? ""];
  if (named.length) open(true);
  else problem(new Refusal("an experiment id, or two run ids and more, are needed"));
});
logging("leaderboard", () => body);
copies("copy-link", () => location.href, "Link copied");
copies("copy-markdown", () => result.markdown, "Markdown copied");
copies("copy-latex", () => result.latex, "LaTeX copied");

const made = address.read();
choices.show(made);
({ runs, experiment } = made);
if (runs.length > 1 || experiment) open(false);
else part("invitation").hidden = false;
