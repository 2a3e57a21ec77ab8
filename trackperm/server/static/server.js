// The way to the server: what it is asked, what it answers, and where its pages are.

export const { prefix, page } = document.documentElement.dataset;
const api = `${prefix}/ajax-api/2.0/trackperm`, jobs = `${api}/jobs`;
const own = { "X-Trackperm-Page": page }; // by which the server tells pages apart
const SHORTEST_WAIT = 80, LONGEST_WAIT = 1000, LONGEST_TURN = 2000, SOON = 1500, HEADSTART = 1500; // milliseconds

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
    answer = await fetch(address, {
      cache: "no-store", credentials: "same-origin", ...request, headers: { ...own, ...request.headers },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("the server does not answer", "check that it runs, then try again.");
  }
  const text = await answer.text(), found = value(text);
  if (answer.ok && found) return found;
  if (text.startsWith("Cross-origin")) throw new Refusal(
    "MLflow lets no page of this address start anything",
    `\`mlflow server --cors-allowed-origins ${location.origin}\` lets it.`, answer.status);
  const said = found?.error;
  const fallback = { 401: "sign in to MLflow first", 403: "you may not read this" }[answer.status];
  throw new Refusal(
    said?.message ?? fallback ?? `the server answered ${answer.status} ${answer.statusText}`,
    said?.hint ?? null, answer.status);
}

/** The value of JSON text; null if the text is not JSON. */
function value(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const pause = (milliseconds, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, milliseconds);
  signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
});

/** Let the verdict come first: wait for what is asked already, but not for long. */
export const after = (work) => Promise.race([work, pause(HEADSTART)]);

/** Start a job, tell `report` how far it is, and return its id and result; a signal cancels it. */
export async function run(body, { signal, report = () => {} } = {}) {
  for (;;) {
    const { job } = await ask(jobs, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    const address = `${jobs}?${new URLSearchParams({ id: job })}`;
    try {
      signal?.throwIfAborted();
      const found = await wait(address, signal, report);
      // the server drops what pages wait for that it does not hear of, such as those in the background
      if (found.state !== "dropped") return { job, result: found.result };
    } catch (error) {
      if (signal?.aborted) fetch(address, { method: "DELETE", headers: own, keepalive: true }).catch(() => {});
      throw error;
    }
  }
}

async function wait(address, signal, report) {
  const begun = performance.now();
  for (let time = SHORTEST_WAIT; ;) {
    await pause(time, signal);
    const found = await ask(address, { signal });
    if (found.state === "done" || found.state === "dropped") return found;
    if (found.state === "failed") throw new Refusal(found.error.message, found.error.hint);
    report(found);
    const waiting = found.state === "waiting";
    if (waiting || performance.now() - begun > SOON) time = Math.min(1.3 * time, waiting ? LONGEST_TURN : LONGEST_WAIT);
  }
}

/** Return one page of the examples that changed. */
export const changed = (query, signal) => ask(`${api}/changed?${new URLSearchParams(query)}`, { signal });

/** Where MLflow shows a run; null for one that it does not know. */
export function runPage(run) {
  if (!run.id || !run.experiment_id) return null;
  return `${prefix}/#/experiments/${encodeURIComponent(run.experiment_id)}/runs/${encodeURIComponent(run.id)}`;
}
