"""A statistic written out as a document reads back the same."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from support.specs import F1, LONG, load, rational

from trackperm.exact import RationalStatistic
from trackperm.statistic import builtin_names, load_statistic
from trackperm.statistic.written_spec import written_spec

DOCUMENT = """\
name: f1
counts:
  tp: (prediction == positive) & (label == positive)
  incorrect: prediction != label
parameters:
  positive: '1'
columns:
  label: gold
g:
  u.tp: u.tp
  u.incorrect: u.incorrect
  v.tp: v.tp
  v.incorrect: v.incorrect
h: u.tp / (u.tp + u.incorrect / 2) - v.tp / (v.tp + v.incorrect / 2)
undefined: 0
alternative: two-sided
greater_is_better: true
"""


def test_document(tmp_path: Path) -> None:
    statistic = load(tmp_path, F1, parameters={"positive": "1"}, columns={"label": "gold"})
    assert written_spec(statistic) == DOCUMENT
    spaced = (
        F1.replace(" == ", "==").partition("score")[0]
        + "score: |\n  tp\n  / ((tp)+(incorrect/2))\nundefined: 0.0\n"
    )
    again = load(tmp_path, spaced, parameters={"positive": "1"}, columns={"label": "gold"})
    assert written_spec(again) == DOCUMENT


@pytest.mark.parametrize("name", builtin_names())
def test_documents_of_built_ins_read_back(tmp_path: Path, name: str) -> None:
    statistic = load_statistic(name)
    again = load(tmp_path, written_spec(statistic))
    assert written_spec(again) == written_spec(statistic)
    assert again.count_names == statistic.count_names
    assert again.ranges == statistic.ranges
    assert again.g_names == statistic.g_names
    point = list(range(3, 3 + len(again.g_names)))
    if isinstance(statistic.h, RationalStatistic):
        assert rational(again.h)(point) == statistic.h(point)
    else:
        assert again.h == statistic.h


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        "counts: {a: 'x == \"it''s\"'}\nscore: sqrt(a) * 0.10\nundefined: 2/6\n",
        "counts: {a: x == p}\nscore: a * q\nparameters: {p: 'yes', q: -0.5}\nalternative: less\n",
        "counts: {a: (x == p) | ~(x > 1) and not x % 3 == 2}\nscore: -a ** 2\nparameters: {p: true}\n",
    ],
)
def test_documents_read_back(tmp_path: Path, text: str) -> None:
    document = written_spec(load(tmp_path, text))
    assert written_spec(load(tmp_path, document)) == document


def test_statistics_can_be_copied_and_pickled(tmp_path: Path) -> None:
    for text in (F1, LONG, "counts: {a: a}\nscore: sqrt(a)\n"):
        statistic = load(tmp_path, text)
        for other in (pickle.loads(pickle.dumps(statistic)), copy.deepcopy(statistic)):
            assert written_spec(other) == written_spec(statistic)
