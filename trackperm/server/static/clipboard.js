// Copying, also where the browser keeps the clipboard from pages without TLS.

import { element, part } from "./elements.js";

/** Let the button `id` copy what `text` returns, and say so. */
export function copies(id, text, done) {
  const button = part(id), said = part("copied"), label = button.textContent;
  button.addEventListener("click", async () => {
    const tell = (words) => {
      said.textContent = words;
      button.textContent = words === done ? "Copied" : label;
      setTimeout(() => { button.textContent = label; }, 1600);
    };
    try {
      await navigator.clipboard.writeText(text());
      tell(done);
    } catch {
      const area = element("textarea", { readonly: true, "aria-label": "Text to copy" });
      area.value = text();
      button.parentElement.append(area);
      area.select();
      if (document.execCommand("copy")) {
        area.remove();
        button.focus();
        tell(done);
      } else tell("Copy the text with the keyboard");
    }
  });
}
