// The form: what it offers, what was chosen, and the job that this comes to.

import * as address from "./address.js";
import { choose, element, options, part } from "./elements.js";
import { Refusal } from "./server.js";

export const form = part("choices");
const FIELDS = [
  "artifact", "statistic", "metric", "unit", "repeats", "cluster", "allow_unseen", "alternative", "alpha", "margin",
  "missing", "baseline", "correction",
];
const DEFAULTS = { alpha: "0.05", missing: "error", correction: "holm" };
let statistics = new Map();
let typed = { parameters: {}, columns: {} };

/** Put choices into the form. */
export function show(choices) {
  for (const name of FIELDS) {
    const field = form.elements[name];
    if (!field) continue;
    const value = choices[name] || DEFAULTS[name] || "";
    if (field.tagName === "SELECT") choose(field, value);
    else field.value = value;
  }
  typed = { parameters: choices.parameters, columns: choices.columns };
  describe();
}

/** Offer the artifacts and statistics that there are, keeping what is chosen. */
export function offer(found) {
  const { statistic, artifact } = form.elements;
  const chosen = { statistic: statistic.value, artifact: artifact.value };
  artifact.replaceChildren(...options([["", "found by itself"], ...found.artifacts.map((path) => [path, path])]));
  statistics = new Map(found.statistics.map((each) => [each.name, each]));
  const groups = Map.groupBy(found.statistics, (each) => each.origin);
  statistic.replaceChildren(...options([["", "as the runs say"]]), ...[...groups].map(([origin, members]) => element(
    "optgroup", { label: origin }, ...members.map(({ name, problem }) => element(
      "option", { value: name, disabled: Boolean(problem), title: problem }, problem ? `${name} (not valid)` : name)))));
  choose(statistic, chosen.statistic);
  choose(artifact, chosen.artifact);
  describe();
}

/** Say what the statistic is, and ask for its parameters and columns. */
function describe() {
  const found = statistics.get(form.elements.statistic.value);
  part("statistic-description").textContent = found?.description
    ?? "The runs' own metric; else accuracy, where they have predictions and labels.";
  ask("parameters", "parameter.", found?.parameters ?? {});
  ask("columns", "column.", found?.columns ?? { id: "", prediction: "", label: "" });
}

/** Offer a field for every name, with what holds where nothing is typed, and what was typed before. */
function ask(group, start, defaults) {
  const fieldset = part(group), names = Object.keys({ ...defaults, ...typed[group] });
  fieldset.hidden = names.length === 0;
  fieldset.replaceChildren(fieldset.querySelector("legend"), ...names.map((name) => element(
    "div", { class: "field" },
    element("label", { for: start + name }, name),
    element("input", {
      id: start + name, name: start + name, type: "text", spellcheck: "false",
      value: typed[group][name] ?? "", placeholder: String(defaults[name] ?? ""),
    }))));
}

/** Read the form; runs and experiment are those of the page. */
export function chosen(runs, experiment) {
  const found = { runs, experiment, columns: {}, parameters: {} };
  for (const name of FIELDS) found[name] = form.elements[name]?.value.trim() ?? "";
  for (const [group, start] of [["columns", "column."], ["parameters", "parameter."]]) {
    for (const field of form.querySelectorAll(`input[name^="${start}"]`)) {
      const value = field.value.trim();
      if (value) found[group][field.name.slice(start.length)] = value;
    }
  }
  return found;
}

/** Return the choices without those that are made anyway, for a short address. */
export function short(choices) {
  const found = { ...choices };
  for (const [name, value] of Object.entries(DEFAULTS)) if (found[name] === value) found[name] = "";
  return found;
}

/** Return the job that these choices ask for. */
export function job(kind, choices) {
  const found = {
    kind, artifact: choices.artifact || null, statistic: choices.statistic || null,
    metric: choices.metric || null, unit: choices.unit || null, repeats: choices.repeats || null,
    cluster: choices.cluster || null, allow_unseen: choices.allow_unseen === "yes",
    parameters: Object.fromEntries(Object.entries(choices.parameters).map(([name, text]) => [name, value(text)])),
    columns: choices.columns, alternative: choices.alternative || null,
    alpha: number("alpha", choices.alpha || DEFAULTS.alpha), missing: choices.missing || DEFAULTS.missing,
    log: false,
  };
  return found;
}

/** Read a number that somebody typed. */
export function number(name, text) {
  const found = Number(text.replace(",", "."));
  if (text === "" || !Number.isFinite(found)) {
    const field = form.elements[name];
    const title = field?.labels[0]?.textContent ?? name;
    field?.focus();
    throw new Refusal(`${title} is a number; found “${text}”`);
  }
  return found;
}

/** A parameter is a number, true or false, or else a text. */
function value(text) {
  if (text === "true" || text === "false") return text === "true";
  return /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/.test(text) ? Number(text) : text.replace(/^"(.*)"$/, "$1");
}

form.elements.statistic.addEventListener("change", () => { typed = { ...typed, parameters: {} }; describe(); });
form.addEventListener("input", () => {
  const { parameters, columns } = chosen([], "");
  typed = { parameters, columns };
});
