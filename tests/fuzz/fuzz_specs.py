"""Fuzz the reader and the compiler of specs: any file is a statistic or refused, in bounded time."""

from __future__ import annotations

from harness import BUILTINS, run
from properties import spec_or_one_error

SEEDS = (
    *BUILTINS,
    b"g: {x: u.a * 2 - v.a ** 2, y: v.b // 3}\nh: log(x / y)\nalternative: less\n",
    b"counts: {a: a, b: 1}\nscore: sqrt(a / b)\ncontrast: log ratio\nundefined: 1/2\nresolution: {a: 0.01}\n",
    b"counts: {a: x}\nscore: a\nrepeats: sum\ncluster: c\nstrata: s\nweights: {p: 1/3, q: 2}\n",
    b"counts:\n  a: |\n    (x == p)\n    & (y > 1)\nscore: where(a > 1, 2, exp(-a))\nparameters: {p: x}\n",
    b"counts: {a: x == class, n: 1}\nscore: a / n\nclasses: [p, q]\nweights: {p: 1, q: 2}\n",
)

if __name__ == "__main__":
    run(spec_or_one_error, "specs", SEEDS)
