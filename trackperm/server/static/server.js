// The way to the server: what it is asked, what it answers, and where its pages are.

export const prefix = document.documentElement.dataset.prefix;
const api = `${prefix}/ajax-api/2.0/trackperm`;
const SHORTEST_WAIT = 80, LONGEST_WAIT = 1000, SOON = 1500, HEADSTART = 1500; // milliseconds

/** What the server refused, with the next step where it names one. */
export class Refusal extends Error {
  constructor(message, hint = null, status = 0) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

async function ask(address, request) {
  let answer;
  try {
    answer = await fetch(address, { cache: "no-store", credentials: "same-origin", ...request });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("the server does not answer", "check that it runs, then try again.");
  }
  const found = await answer.json().catch(() => null);
  if (answer.ok && found) return found;
  const said = found?.error;
  const fallback = { 401: "sign in to MLflow first", 403: "you may not read this" }[answer.status];
  throw new Refusal(
    said?.message ?? fallback ?? `the server answered ${answer.status} ${answer.statusText}`,
    said?.hint ?? null, answer.status);
}

const pause = (milliseconds, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, milliseconds);
  signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
});

/** Let the verdict come first: wait for what is asked already, but not for long. */
export const after = (work) => Promise.race([work, pause(HEADSTART)]);

/** Start a job, tell `report` how far it is, and return its id and result. */
export async function run(body, { signal, report = () => {} } = {}) {
  const { job } = await ask(`${api}/jobs`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
  });
  const begun = performance.now();
  for (let wait = SHORTEST_WAIT; ;) {
    await pause(wait, signal);
    if (performance.now() - begun > SOON) wait = Math.min(1.3 * wait, LONGEST_WAIT);
    const found = await ask(`${api}/jobs?${new URLSearchParams({ id: job })}`, { signal });
    if (found.state === "done") return { job, result: found.result };
    if (found.state === "failed") throw new Refusal(found.error.message, found.error.hint);
    report(found);
  }
}

/** Return one page of the examples that changed. */
export const changed = (query, signal) => ask(`${api}/flips?${new URLSearchParams(query)}`, { signal });

/** Where MLflow shows a run; null for one that it does not know. */
export function runPage(run) {
  if (!run.id || !run.experiment_id) return null;
  return `${prefix}/#/experiments/${encodeURIComponent(run.experiment_id)}/runs/${encodeURIComponent(run.id)}`;
}
