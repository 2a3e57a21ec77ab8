"""Rows of documented tables of coverages, as a program prints them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def print_rows(
    description: str | None,
    laws: Sequence[Any],
    simulated: Callable[[Any, int, int], np.ndarray],
    titles: Callable[[Any], list[str]],
) -> None:
    """Print a row for each law: its titles, and shares of data sets without and with a rule, in pairs.

    `simulated` returns the shares of a law, a number of data sets and a seed, shape (2, k).
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--sets", type=int, default=1_000, help="data sets of each law")
    asked = parser.parse_args()
    for law in laws:
        rates = simulated(law, asked.sets, 1).T.ravel()
        cells = [*titles(law), *(f"{100 * rate:.1f} %" for rate in rates)]
        sys.stdout.write("| " + " | ".join(cells) + " |\n")
        sys.stdout.flush()
