// Charts by Vega, without evaluating code: expressions are interpreted, and every text is shown as text.

import { element, part } from "./elements.js";
import { prefix } from "./server.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const program = import(`${prefix}/trackperm/static/vega.js`);
program.catch(() => {}); // said where a chart is to be drawn
let shown = null, view = null;

/** Draw a chart, or say why it is not drawn. */
export async function draw(chart) {
  shown = chart;
  const place = part("chart");
  view?.finalize();
  view = null;
  place.classList.toggle("refused", "refusal" in chart);
  part("caption").textContent = chart.caption ?? "";
  if ("refusal" in chart) {
    place.replaceChildren(element("p", {}, `Not drawn: ${chart.refusal}.`));
    return;
  }
  try {
    await program;
    if (chart !== shown) return;
    const drawn = await window.vegaEmbed(
      place, dark.matches ? { ...chart.spec, config: chart.dark } : chart.spec,
      { actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip: tip });
    view = drawn.view;
  } catch (error) {
    console.error(error);
    place.replaceChildren(element("p", {}, "Not drawn: the program of charts could not be loaded."));
  }
}

const box = element("div", { class: "tip", hidden: true });
document.body.append(box);

/** Show the value of a bar or point beside the pointer. */
function tip(handler, event, item, value) {
  box.hidden = !value;
  if (!value) return;
  box.replaceChildren(...Object.entries(value).filter(([, text]) => text !== "").map(([name, text]) => element(
    "div", {}, element("span", {}, name), element("span", {}, String(text)))));
  box.style.left = `${Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8)}px`;
  box.style.top = `${Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8)}px`;
}

dark.addEventListener("change", () => { if (shown) draw(shown); });
