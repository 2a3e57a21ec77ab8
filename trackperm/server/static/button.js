// The bar with a button above MLflow's own Compare pages. It reads the address alone, and does nothing where it knows none.

(() => {
  "use strict";
  const prefix = document.currentScript.src.replace(/\/trackperm\/static\/.*$/, "");
  const LOOK = 500; // milliseconds; the application moves without an event that all browsers tell
  let shown = null, address = null;

  /** The runs that MLflow's page compares, the baseline first. */
  function compared() {
    const [path, query = ""] = location.hash.slice(1).split("?");
    const asked = new URLSearchParams(query);
    if (path.startsWith("/compare-runs")) {
      const runs = JSON.parse(asked.get("runs") ?? "[]");
      return Array.isArray(runs) ? runs.filter((run) => typeof run === "string") : [];
    }
    const pair = [asked.get("compareToRunUuid"), asked.get("selectedRunUuid")];
    return pair.every(Boolean) ? pair : [];
  }

  function draw() {
    const runs = compared();
    if (runs.length < 2) {
      shown?.remove();
      shown = null;
      return;
    }
    if (!shown?.isConnected) {
      shown = document.createElement("div");
      shown.id = "trackperm-button";
      const root = shown.attachShadow({ mode: "open" });
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(STYLE);
      root.adoptedStyleSheets = [sheet];
      root.append(document.createElement("a"));
      document.body.prepend(shown);
    }
    const link = shown.shadowRoot.querySelector("a");
    const two = runs.length === 2;
    link.textContent = two ? "Paired permutation test" : "Paired permutation tests";
    link.href = `${prefix}/trackperm/${two ? "compare" : "leaderboard"}?runs=${runs.map(encodeURIComponent).join(",")}`;
  }

  const STYLE = `
    :host { display: flex; flex: none; justify-content: center; padding: 6px; }
    a { padding: 5px 16px; border-radius: 4px; background: #0e538b; color: #fff;
        font: 600 13px/20px system-ui, sans-serif; text-decoration: none; }
    a:hover { background: #04355d; }
    a:focus-visible { outline: 2px solid #0e538b; outline-offset: 2px; }
    @media print { :host { display: none; } }`;

  // a bar above MLflow's page, which gets the height that is left, so that nothing is covered
  const room = new CSSStyleSheet();
  room.replaceSync(`
    body:has(> #trackperm-button) { display: flex; flex-direction: column; height: 100vh; }
    body:has(> #trackperm-button) > #root { flex: 1 1 0; min-height: 0; width: 100%; }`);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, room];

  function look() {
    try {
      if (location.hash === address && (!shown || shown.isConnected)) return;
      address = location.hash;
      draw();
    } catch { // an address of another shape: MLflow's page goes on without the button
      shown?.remove();
      shown = null;
    }
  }

  addEventListener("hashchange", look);
  addEventListener("popstate", look);
  setInterval(look, LOOK);
  look();
})();
