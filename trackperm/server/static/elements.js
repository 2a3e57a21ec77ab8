// Parts of a page. Strings become text, never markup.

/** The element of that id. */
export const part = (id) => document.getElementById(id);

/** Make an element with attributes and children, which are nodes or strings. */
export const element = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);

/** Make an element of a drawing, as `element` does. */
export const drawn = (tag, attributes, ...children) => (
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children));

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Make one element of that tag for each text. */
export const lines = (tag, texts) => texts.map((text) => element(tag, {}, text));

/** Show a list of sentences in a section, or hide it where there are none. */
export function list(section, sentences) {
  section.hidden = sentences.length === 0;
  section.querySelector("ul").replaceChildren(...lines("li", sentences));
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
