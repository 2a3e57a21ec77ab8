// Parts of a page. Strings become text, never markup.

/** The element of that id. */
export const part = (id) => document.getElementById(id);

/** Make an element with attributes and children, which are nodes or strings. */
export const element = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);

/** Make an element of a drawing, as `element` does. */
export const drawn = (tag, attributes, ...children) => (
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children));

function filled(made, attributes = {}, children = []) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const NUMBER = /((?:\bmid-)?\bp [=≈<] [\d.]+(?:e[+-]\d+)?|\b\d[\d.]*e[+-]\d+|\b\d+ %|\b[\d.]+% CI|\[[+-]?[\d.∞]+(?:e[+-]\d+)?, [+-]?[\d.∞]+(?:e[+-]\d+)?\])/;

/** Make nodes of a text in which no line breaks inside of what reads as one number. */
export const whole = (text) => text.split(NUMBER).map((words, i) => (
  i % 2 ? element("span", { class: "whole" }, words) : words));

/** Show a drawing for wide and one for narrow windows: SVG in which the server has escaped all texts. */
export function drawings(place, [wide, narrow]) {
  place.replaceChildren(...[["wide", wide], ["narrow", narrow]].map(([width, drawing]) => element(
    "div", { class: width }, new DOMParser().parseFromString(drawing, "image/svg+xml").documentElement)));
}

/** Make one element of that tag for each text. */
export const lines = (tag, texts) => texts.map((text) => element(tag, {}, text));

/** Show a list of sentences in a section, or hide it where there are none. */
export function list(section, sentences) {
  section.hidden = sentences.length === 0;
  section.querySelector("ul").replaceChildren(...sentences.map((text) => element("li", {}, ...whole(text))));
}

/** Make the options of a select element: [value, text] each. */
export const options = (pairs) => pairs.map(([value, text]) => element("option", { value }, text));

/** Choose a value of a select element, adding it where it is not offered. */
export function choose(select, value) {
  if (![...select.options].some((option) => option.value === value)) {
    select.append(...options([[value, value]]));
  }
  select.value = value;
}
