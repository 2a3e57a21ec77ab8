"""Answers to questions, compared as by the evaluation script of SQuAD 2.0."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.statistic.counters.base import Integers, Items, numbered, same_rows
from trackperm.statistic.counters.sets import shared

Number = TypeVar("Number", bound=np.generic)

_PUNCTUATION = re.compile("[" + re.escape(string.punctuation) + "]")
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def n_answer_tokens(column: pl.Series) -> Integers:
    """Count the words of the answer, without articles."""
    return _tokens(column).lengths


def answer_overlap(prediction: pl.Series, label: pl.Series) -> Integers:
    """Count the words that two answers share, each as often as the one has it that has it less often."""
    return shared(_tokens(prediction), _tokens(label), repeated=True)


def answer_f1(prediction: pl.Series, label: pl.Series) -> npt.NDArray[np.float64]:
    """F1 score of the words of the answer, the best over all answers that are accepted."""
    answers = _Accepted.read(label)
    predicted, actual = _tokens(prediction.gather(answers.rows)), _tokens(answers.texts)
    overlap = shared(predicted, actual, repeated=True)
    total = predicted.lengths + actual.lengths
    # No words in either is the right answer to a question that has none.
    f1 = np.where(total == 0, 1.0, 2.0 * overlap / np.maximum(total, 1))
    return answers.best(np.where(answers.void(actual), 0.0, f1))


def answer_matches(prediction: pl.Series, label: pl.Series) -> Integers:
    """Whether the answer is, word by word, one of those that are accepted."""
    answers = _Accepted.read(label)
    predicted, actual = _tokens(prediction.gather(answers.rows)), _tokens(answers.texts)
    (a, b), _ = numbered(predicted, actual)
    same = same_rows(predicted, a, actual, b)
    return answers.best((same & ~answers.void(actual)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class _Accepted:
    """Accepted answers of all rows, end to end.

    Attributes
    ----------
    texts : polars.Series
        The answers.
    rows : ndarray of int64
        The row of each.
    starts : ndarray of int64
        Where the answers of each row begin.
    """

    texts: pl.Series
    rows: Integers
    starts: Integers

    @classmethod
    def read(cls, label: pl.Series) -> _Accepted:
        """Take one text, or a list of texts, of which none means the empty answer."""
        if label.dtype == pl.String:
            rows = np.arange(len(label))
            return cls(label, rows, rows)
        no_answer = pl.lit(pl.Series([[""]], dtype=pl.List(pl.String)))
        some = pl.when(pl.first().list.len() > 0).then(pl.first()).otherwise(no_answer)
        items = Items.read(label.to_frame().select(some.alias(label.name)).to_series())
        return cls(items.values, items.rows, items.offsets[:-1])

    def void(self, tokens: Items) -> npt.NDArray[np.bool_]:
        """Whether an answer has no words although another of its row has some: such a one is no answer."""
        most = self.best(tokens.lengths)
        return np.asarray((tokens.lengths == 0) & (most[self.rows] > 0))

    def best(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return the largest value of every row."""
        return np.maximum.reduceat(values, self.starts) if len(values) else values


def _tokens(column: pl.Series) -> Items:
    """Lower case, no punctuation, no articles: `normalize_answer` of the script, and then split."""
    # One pass over all texts; a line break is whitespace to the script, and separates the texts here.
    text = "\n".join(column.str.replace_all("\n", " ", literal=True).to_list())
    text = _ARTICLES.sub(" ", _PUNCTUATION.sub("", text.lower()))
    return Items.read(pl.Series(column.name, text.split("\n")[: len(column)], dtype=pl.String))
