// All pairs of runs: a table of a few runs, a heat map of many.

import { part } from "./elements.js";
import * as heatMap from "./heat_map.js";
import * as matrix from "./matrix.js";

const MARKERS = { better: "▲", worse: "▼", undecided: "≈" };
const OPPOSITE = { better: "worse", worse: "better", undecided: "undecided" };
const detail = part("pair-detail"), untouched = detail.textContent;

/** Show the pairs of `runs`, best first; `page` returns the address of the comparison of two places. */
export function show(pairs, runs, page) {
  part("pairs").hidden = pairs === null;
  detail.textContent = untouched;
  if (pairs === null) return;
  const pair = (i, j) => {
    const found = compared(pairs.below, i, j), marker = MARKERS[found.verdict];
    const words = `${runs[i].name} against ${runs[j].name}: ${found.verdict}, difference ${found.difference}, adjusted p = ${found.p}`;
    return { ...found, marker, words, page: page(i, j), tell: () => { detail.textContent = `${marker} ${words}`; } };
  };
  part("matrix-scroll").hidden = pairs.heat !== null;
  part("heat-map").hidden = pairs.heat === null;
  if (pairs.heat === null) matrix.show(runs, pair);
  else heatMap.show(pairs.heat, pair);
}

/** What was found of the run at place `i` against that at place `j`. */
function compared(below, i, j) {
  const [verdict, difference, p] = i > j ? below[i][j] : below[j][i];
  if (i > j) return { verdict, difference, p };
  const turned = difference.replace(/^[+-]/, (sign) => (sign === "+" ? "-" : "+"));
  return { verdict: OPPOSITE[verdict], difference: turned, p };
}
