// What every page does with a job: progress, problems, and logging its result.

import { element, lines, part } from "./elements.js";
import { Refusal, run, runPage } from "./server.js";

const [bar] = part("progress").getElementsByTagName("progress");
let running = null;

/** Run a job and show how it goes; returns null where another one took its place or it failed. */
export async function follow(body, title) {
  running?.abort();
  const own = running = new AbortController();
  problem(null);
  part("cancelled").textContent = "";
  part("result").classList.add("stale");
  const late = setTimeout(() => progress({ step: title }), 250);
  try {
    return await run(body, {
      signal: own.signal,
      report: (state) => { if (own === running && !part("progress").hidden) progress(state, title); },
    });
  } catch (error) {
    if (own === running && error.name !== "AbortError") problem(error);
    return null;
  } finally {
    clearTimeout(late);
    if (own === running) progress(null);
  }
}

function progress(state, title) {
  part("progress").hidden = state === null;
  part("start").disabled = state !== null;
  if (state === null) {
    part("step").textContent = part("amount").textContent = "";
    return;
  }
  const step = state.step === "waiting" ? "waiting for other comparisons" : state.step || title;
  if (part("step").textContent !== step) part("step").textContent = step; // said aloud once
  const share = state.done ? `${Math.floor(100 * Math.min(1, state.done / state.total))} %` : "";
  part("amount").textContent = [share, state.bytes ? size(state.bytes) : ""].filter(Boolean).join(", ");
  if (state.total) {
    bar.max = state.total;
    bar.value = state.done;
  } else bar.removeAttribute("value");
}

part("cancel").addEventListener("click", () => {
  running?.abort();
  running = null;
  progress(null);
  part("cancelled").textContent = `Cancelled. “${part("start").textContent}” starts again.`;
  part("start").focus();
});
addEventListener("pagehide", () => running?.abort());

/** Write a number of bytes. */
function size(bytes) {
  if (bytes < 1e6) return `${Math.max(1, Math.round(bytes / 1e3))} kB read`;
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB read`;
}

const sentence = (text) => text[0].toUpperCase() + text.slice(1);

/** Show what went wrong and what to do about it; null takes it away. */
export function problem(error) {
  const place = part("problem");
  place.hidden = error === null;
  if (error === null) return place.replaceChildren();
  if (!(error instanceof Refusal)) console.error(error);
  const message = error instanceof Refusal ? error.message : "this page failed; load it again";
  place.replaceChildren(
    element("p", {}, element("strong", {}, sentence(message))),
    ...(error.hint ? [element("p", { class: "soft" }, sentence(error.hint))] : []));
}

/** Show the result, and move there if the reader has asked for it. */
export function arrived(title, asked) {
  part("invitation").hidden = true;
  part("result").hidden = false;
  part("result").classList.remove("stale");
  part("logged").hidden = true;
  part("copied").textContent = "";
  document.title = `${title} · trackperm`;
  if (asked) part("headline").focus({ preventScroll: false });
}

/** Let the button log what `body` returns as a job; `what` is its noun. */
export function logging(what, body) {
  const button = part("log"), place = part("logged");
  const [said] = place.getElementsByTagName("p"), [remarks] = place.getElementsByTagName("ul");
  button.addEventListener("click", async () => {
    const own = body();
    const tell = (failed, ...content) => {
      if (own !== body()) return;
      place.hidden = false;
      place.classList.toggle("failed", failed);
      said.replaceChildren(...content);
    };
    button.disabled = true;
    remarks.replaceChildren();
    tell(false, `Logging this ${what}…`);
    const cancelling = new AbortController();
    const cancel = element("button", { type: "button", class: "quiet" }, "Cancel");
    cancel.addEventListener("click", () => cancelling.abort());
    const report = ({ state, step }) => {
      if (state === "waiting") tell(false, `Waiting to log this ${what}… `, cancel); // what is begun is completed
      else tell(false, `Logging this ${what}: ${step}…`);
    };
    try {
      const { result } = await run({ ...own, log: true }, { signal: cancelling.signal, report });
      const { logged, not_logged: refused } = result;
      if (refused) throw new Refusal(refused.message, refused.hint);
      const page = runPage(logged);
      tell(false,
        logged.created ? "Logged as " : "It was logged before, and is up to date: ",
        page ? element("a", { href: page }, logged.name) : logged.name,
        logged.look ? `; look ${logged.look} on this test set.` : ".");
      remarks.replaceChildren(...lines("li", logged.remarks));
    } catch (error) {
      if (cancelling.signal.aborted) return tell(true, "Not logged: cancelled.");
      if (!(error instanceof Refusal)) console.error(error);
      tell(true, `Not logged: ${error.message}${error.hint ? `. ${sentence(error.hint)}` : ""}`);
    } finally {
      button.disabled = false;
    }
  });
}
