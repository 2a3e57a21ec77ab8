"""Specs and expressions for tests, written in place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from trackperm.errors import SpecError
from trackperm.exact import RationalStatistic
from trackperm.statistic import Statistic, load_statistic
from trackperm.statistic.document import Document, Passage
from trackperm.statistic.expressions.tree import Expression

F1 = """\
name: f1
counts:                      # integers per example and run, from that run's columns
  tp: (prediction == positive) & (label == positive)
  incorrect: prediction != label
parameters: {positive: 1}
score: tp / (tp + incorrect / 2)      # one run's value
undefined: 0                 # value of 0/0
"""

LONG = """\
g:                           # integer, additive over examples; u = candidate, v = baseline
  x1: u.tp
  x2: u.incorrect
  x3: v.tp
  x4: v.incorrect
h: x1 / (x1 + x2 / 2) - x3 / (x3 + x4 / 2)
alternative: two-sided
"""


def passage(text: str) -> Passage:
    """`text` as the scalar behind the key `e` of a document."""
    return Document.parse(f"e: {json.dumps(text)}\n", "test.yaml").passage(("e",))


def parse(text: str) -> Expression:
    return Expression.parse(passage(text))


def load(tmp_path: Path, text: str, **options: object) -> Statistic:
    """Load the spec `text`, as a file called `spec.yaml`."""
    path = tmp_path / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return load_statistic(path, **options)


def refusal(tmp_path: Path, text: str, **options: object) -> str:
    """The message with which the spec `text` is refused, its file called `spec.yaml`."""
    with pytest.raises(SpecError) as caught:
        load(tmp_path, text, **options)
    return str(caught.value).replace(f"{tmp_path}/", "")


def underlined(message: str) -> str:
    """The characters above the carets of a message."""
    lines = message.split("\n")
    at = next(i for i, line in enumerate(lines) if re.fullmatch(r"\s*\^+", line))
    start = lines[at].index("^")
    return lines[at - 1][start : len(lines[at])]


def rational(h: object) -> RationalStatistic:
    assert isinstance(h, RationalStatistic)
    return h
