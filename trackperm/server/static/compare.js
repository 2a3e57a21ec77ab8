// The page that compares two runs.

import * as address from "./address.js";
import * as choices from "./choices.js";
import { copies } from "./clipboard.js";
import { choose, drawings, element, list, options, part, whole } from "./elements.js";
import * as changedExamples from "./changed_examples.js";
import { arrived, follow, logging, problem } from "./outcome.js";
import { after, Refusal, run, runPage } from "./server.js";

const { baseline, candidate } = choices.form.elements;
const names = new Map();
let body = null, experiment = null;

async function compare(asked) {
  try {
    const made = choices.chosen([baseline.value, candidate.value], "");
    made.baseline = ""; // the first of the runs
    const margin = made.margin ? choices.number("margin", made.margin) : null;
    body = { ...choices.job("compare", made), runs: made.runs, margin };
    address.write(choices.short(made));
  } catch (error) {
    problem(error);
    return;
  }
  const found = await follow(body, "comparing the two runs");
  if (found) show(found, asked);
}

function show({ job, result }, asked) {
  for (const each of [result.baseline, result.candidate]) know(each);
  const headline = part("headline");
  headline.className = result.verdict;
  headline.querySelector(".marker").textContent = result.marker;
  headline.querySelector(".words").replaceChildren(...whole(result.headline));
  part("words").replaceChildren(...whole(result.words));
  drawings(part("bar"), result.bars);
  part("scope").textContent = `Scope: ${result.scope}.`;
  part("facts").replaceChildren(...result.facts.map(([name, value, detail]) => element(
    "div", {}, element("dt", {}, name), element("dd", {}, ...unbroken(value)),
    ...(detail ? [element("dd", { class: "small" }, ...source(name, detail, result))] : []))));
  list(part("notes"), result.notes);
  if (result.null.refusal) part("null").replaceChildren(element("p", {}, `Not drawn: ${result.null.refusal}.`));
  else drawings(part("null"), result.null.drawings);
  part("caption").replaceChildren(...whole(result.null.caption));
  part("explanation").replaceChildren(...result.explanation.map((text) => element("p", {}, ...whole(text))));
  part("pairing").replaceChildren(...result.pairing.map((text) => element("li", {}, ...whole(text))));
  part("signature").textContent = result.signature;
  arrived(`${result.marker} ${result.headline}`, asked);
  changedExamples.show(job, result.changed);
}

/** A value breaks between its numbers, never inside one. */
const unbroken = (value) => value.split(" ").flatMap((word, i) => [
  ...(i ? [" "] : []), element("span", { class: "whole" }, word)]);

/** The two scores name their runs: with a link where MLflow has a page of it. */
function source(name, detail, result) {
  const page = name === "baseline" || name === "candidate" ? runPage(result[name]) : null;
  return page ? [element("a", { href: page }, result[name].name)] : whole(detail);
}

/** Offer a run under its name. */
function know({ id, name, experiment_id }) {
  if (!id) return;
  names.set(id, name);
  experiment ??= experiment_id;
  for (const select of [baseline, candidate]) {
    const option = [...select.options].find(({ value }) => value === id);
    if (option) option.textContent = name;
    else select.append(...options([[id, name]]));
  }
}

async function learn(question) {
  const { result } = await run({ kind: "choices", ...question });
  for (const each of result.runs) know(each);
  return result;
}

async function open(runs, asked) {
  part("invitation").hidden = true;
  choose(baseline, runs[0]);
  choose(candidate, runs[1]);
  const compared = compare(asked);
  await after(compared);
  try {
    choices.offer(await learn({ runs }));
  } catch (error) {
    if (!(error instanceof Refusal)) console.error(error); // what it refuses, the comparison refuses as well
  }
  await compared;
}

choices.form.addEventListener("submit", (event) => { event.preventDefault(); compare(true); });
part("swap").addEventListener("click", () => {
  const [first, second] = [baseline.value, candidate.value];
  choose(baseline, second);
  choose(candidate, first);
  compare(false);
});
part("others").addEventListener("click", async ({ target }) => {
  target.disabled = true;
  try {
    await learn({ experiment });
    target.textContent = "All runs are offered";
    baseline.focus();
  } catch (error) {
    target.disabled = false;
    problem(error);
  }
});
part("open").addEventListener("click", () => {
  const runs = part("by-id").value.split(/[\s,]+/).filter(Boolean);
  if (runs.length === 2) open(runs, true);
  else problem(new Refusal(`two run ids are needed; found ${runs.length}`));
});
logging("comparison", () => body);
copies("copy-link", () => location.href, "Link copied");

const made = address.read();
choices.show(made);
if (made.runs.length === 2) open(made.runs, false);
else {
  part("invitation").hidden = false;
  if (made.runs.length) problem(new Refusal(
    `this page compares two runs; the address names ${made.runs.length}`, "the leaderboard takes more than two."));
}
