// The chart of a leaderboard: a row per run with its score, verdict, possible ranks and interval.

import { drawn, element, part } from "./elements.js";

/** Show the chart; `page` returns the address of the run at a place, or null. */
export function show(chart, page) {
  const place = part("chart");
  place.classList.toggle("ranked", chart.has_ranks);
  place.style.setProperty("--name", `${(0.6 * chart.name_width).toFixed(1)}rem`);
  place.style.setProperty("--grid", chart.ticks.map(line(chart.zero)).join(", "));
  place.replaceChildren(head(chart), element("ol", {}, ...chart.runs.map((run, i) => row(run, page(i)))));
}

const line = (zero) => ([at]) => {
  const colour = at === zero ? "var(--soft)" : "var(--line)";
  return `linear-gradient(${colour}, ${colour}) ${at}% 0 / 1px 100% no-repeat`;
};

const cell = (name, ...content) => element("span", { class: name }, ...content);

function head({ has_ranks: ranked, n_runs: n, ticks, statistic, against, axis }) {
  const label = (x, text, name) => drawn("text", { x, y: "80%", class: name }, text);
  const titled = (title, ...labels) => [cell("title", title), drawn("svg", {}, ...labels)];
  const ranks = () => cell("ranks", ...titled("possible ranks", label("0", "1", "first"), label("100%", String(n), "last")));
  return element(
    "div", { class: "head", "aria-hidden": "true" },
    cell("rank"), cell("name", "run"), cell("score", statistic), cell("word", `against ${against}`), ...(ranked ? [ranks()] : []),
    cell("difference", ...titled(axis, ...ticks.map(([at, text]) => label(`${at}%`, text)))));
}

function row(run, page) {
  const { role, marker, label, name } = run;
  const named = { title: name === label ? null : name };
  return element(
    "li", { class: role },
    cell("rank", String(run.rank)),
    element("span", { class: "name", ...named }, page ? element("a", { href: page }, label) : label),
    cell("score", run.score),
    cell("word", ...(marker ? [element("span", { "aria-hidden": "true" }, marker), " "] : []), role + run.dagger),
    ...(run.ranks ? [picture("ranks", run.ranks_words, bar(run.ranks), drawn("rect", { x: `${run.own_rank}%` }))] : []),
    picture("difference", run.difference_words, ...(run.interval ? [bar(run.interval)] : []), drawn("circle", { cx: `${run.at}%` })));
}

const bar = ([x, width]) => drawn("rect", { x: `${x}%`, width: `${width}%` });

const picture = (name, words, ...shapes) => drawn("svg", { class: name, role: "img" }, drawn("title", {}, words), ...shapes);
