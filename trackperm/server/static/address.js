// All choices stand in the address of the page, so that it can be shared.

const PLAIN = [
  "artifact", "statistic", "metric", "unit", "repeats", "cluster", "allow_unseen", "alternative", "alpha", "margin",
  "missing", "baseline", "correction",
];
const GROUPS = { "column.": "columns", "parameter.": "parameters" };

/** Read the choices; texts, and "" for those that were not made. */
export function read() {
  const query = new URLSearchParams(location.search);
  const found = {
    runs: (query.get("runs") ?? "").split(",").map((run) => run.trim()).filter(Boolean),
    experiment: query.get("experiment") ?? "",
    columns: {}, parameters: {},
  };
  for (const name of PLAIN) found[name] = query.get(name) ?? "";
  for (const [name, value] of query) {
    for (const [start, group] of Object.entries(GROUPS)) {
      if (name.startsWith(start)) found[group][name.slice(start.length)] = value;
    }
  }
  return found;
}

/** Return the query that says the same. */
export function query(choices) {
  const found = new URLSearchParams();
  if (choices.runs.length) found.set("runs", choices.runs.join(","));
  else if (choices.experiment) found.set("experiment", choices.experiment);
  for (const name of PLAIN) if (choices[name]) found.set(name, choices[name]);
  for (const [start, group] of Object.entries(GROUPS)) {
    for (const [name, value] of Object.entries(choices[group])) if (value !== "") found.set(start + name, value);
  }
  return found.toString().replaceAll("%2C", ",");
}

/** Put the choices into the address, without a new entry in the history. */
export const write = (choices) => history.replaceState(null, "", `?${query(choices)}`);
