"""Usual names of columns that say how an answer was judged: a judge, its metric, its reasons."""

from __future__ import annotations

from trackperm.tables.columns.directions import states_by_truth
from trackperm.tables.columns.names import EVALUATORS, METRICS, words_of

# fmt: off
_OF_JUDGES = frozenset((
    *METRICS, *EVALUATORS, "comment", "comments", "explanation", "grade", "evaluation", "reason", "rationale",
    "justification",
))
"""Usual names of columns that say how an answer was judged."""

_JUDGES = frozenset((
    "judge", "judges", "judgement", "judgment", "grader", "rater", "annotator", "evaluator", "scorer",
    "rubric", "criterion", "criteria", "verdict", "critique", "feedback",
))
"""Words in other names of columns of judges."""

_JUDGED = frozenset((
    "score", "scores", "eval", "evaluation", "grade", "grading", "rating", "metric", "judging",
))
_REASONS = frozenset((
    "reason", "reasons", "reasoning", "comment", "comments", "explanation", "rationale", "justification",
))
"""Words of the reasons of a judge: a name with a word of both groups is one of a judge, as `eval_comment`."""
# fmt: on


def names_reasons(name: str) -> bool:
    """Whether the name of a column means the reasons of a judge, or texts with which people commented."""
    return name.lower() in _REASONS


def names_judgement(name: str) -> bool:
    """Whether the name of a column means a judge of answers, or the reasons of one."""
    words = {*words_of(name)}
    are_reasons = bool(words & _JUDGED and words & _REASONS)
    return name.lower() in _OF_JUDGES or bool(words & _JUDGES) or are_reasons or states_by_truth(name)
