"""Answers to questions, compared as by the evaluation script of SQuAD 2.0."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from trackperm.statistic.counters.base import Integers, Items, numbered, require_no_written_lists, same_rows
from trackperm.statistic.counters.sets import shared

Number = TypeVar("Number", bound=np.generic)

_PUNCTUATION = re.compile("[" + re.escape(string.punctuation) + "]")
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def n_answer_tokens(column: pl.Series) -> Integers:
    """Count the words of the answer, without articles."""
    return _tokens(column).lengths


def answer_overlap(prediction: pl.Series, label: pl.Series) -> Integers:
    """Count the words that two answers share, with repetitions that both have."""
    return shared(_tokens(prediction), _tokens(label), repeated=True)


def answer_f1(prediction: pl.Series, label: pl.Series) -> npt.NDArray[np.float64]:
    """Compute the F1 score of the words of the answer, the best over all accepted answers."""
    answers = _Accepted.read(label)
    predicted, actual = _tokens(prediction.gather(answers.rows)), _tokens(answers.texts)
    overlap = shared(predicted, actual, repeated=True)
    total = predicted.lengths + actual.lengths
    # Two answers without words agree that the question has no answer.
    f1 = np.where(total == 0, 1.0, 2.0 * overlap / np.maximum(total, 1))
    return answers.best(np.where(answers.void(actual), 0.0, f1))


def answer_matches(prediction: pl.Series, label: pl.Series) -> Integers:
    """Test whether the answer equals an accepted one, word by word; 1 or 0."""
    answers = _Accepted.read(label)
    predicted, actual = _tokens(prediction.gather(answers.rows)), _tokens(answers.texts)
    (a, b), _ = numbered(predicted, actual)
    same = same_rows(predicted, a, actual, b)
    return answers.best((same & ~answers.void(actual)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class _Accepted:
    """Accepted answers of all rows, concatenated.

    Attributes
    ----------
    texts : polars.Series
        The answers.
    rows : ndarray of int64
        Row of each answer.
    starts : ndarray of int64
        Position of the first answer of each row.
    """

    texts: pl.Series
    rows: Integers
    starts: Integers

    @classmethod
    def read(cls, label: pl.Series) -> _Accepted:
        """Read one text, or a list of texts; an empty list means the empty answer."""
        if label.dtype == pl.String:
            hint = "give the accepted answers as a list, as in JSON Lines or Parquet."
            require_no_written_lists(label, hint, of_texts=True)
            rows = np.arange(len(label))
            return cls(label, rows, rows)
        no_answer = pl.lit(pl.Series([[""]], dtype=pl.List(pl.String)))
        some = pl.when(pl.first().list.len() > 0).then(pl.first()).otherwise(no_answer)
        items = Items.read(label.to_frame().select(some.alias(label.name)).to_series())
        return cls(items.values, items.rows, items.offsets[:-1])

    def void(self, tokens: Items) -> npt.NDArray[np.bool_]:
        """Whether an answer has no words although another one of its row has some."""
        most = self.best(tokens.lengths)
        return np.asarray((tokens.lengths == 0) & (most[self.rows] > 0))

    def best(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return the largest value of every row."""
        return np.maximum.reduceat(values, self.starts) if len(values) else values


def _tokens(column: pl.Series) -> Items:
    """Normalise as the script's `normalize_answer` (lower case, no punctuation, no articles), and split."""
    # All texts are joined for one pass. A line break, which is whitespace to the script, separates them.
    text = "\n".join(column.str.replace_all("\n", " ", literal=True).to_list())
    text = _ARTICLES.sub(" ", _PUNCTUATION.sub("", text.lower()))
    return Items.read(pl.Series(column.name, text.split("\n")[: len(column)], dtype=pl.String))
