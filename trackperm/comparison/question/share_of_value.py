"""Statistic of a column of words, such as a judge's verdicts: the share of examples with one value.

``--metric verdict=CORRECT`` counts the examples whose `verdict` is ``CORRECT``, and
``--metric verdict!=WRONG`` those with any other value than ``WRONG``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from trackperm.comparison.question.metric_directions import known_direction
from trackperm.comparison.question.metric_names import names_in_spec
from trackperm.errors import InputError, InputTypeError
from trackperm.messages import amount, did_you_mean, listed
from trackperm.pairing.checks.differences import folded
from trackperm.pairing.checks.label_values import DistinctValues, read_option
from trackperm.statistic import Statistic, read_statistic
from trackperm.statistic.definition import class_text
from trackperm.statistic.direction import direction_word, lower_is_better_by_name, word_of_value
from trackperm.statistic.document import dump
from trackperm.statistic.expressions.tree import Literal, written
from trackperm.tables.columns.missing_words import is_missing_word
from trackperm.tables.columns.names import names_categories, words_of
from trackperm.tables.columns.truths import TRUTHS
from trackperm.tables.columns.types import FIRST_ROWS, LISTS, NUMBER_TEXT, ColumnType
from trackperm.tables.table import ExampleTable, have

PLACEHOLDER = "VALUE"
"""Stands in a suggestion where no value says that it is good."""

_MOST_WORDS = 20
"""Most distinct values of a column that is suggested as a column of verdicts."""

_LONGEST_WORD = 30
"""Most characters of a verdict that is suggested."""

_GRADES = frozenset("CIPN")
"""Grades of Inspect's scorers, which its data frames have in ``score_match`` and the like: C is correct."""

_ANSWERS = re.compile("answer|output|response|solution|completion|prediction", re.IGNORECASE)
"""Parts of names of columns of answers, whose values are not verdicts even if they are few."""


class ShareOfValue(NamedTuple):
    """Condition on examples: `column` is `value`, or is not, as the user wrote it."""

    column: str
    is_equal: bool
    value: str

    @classmethod
    def parse(cls, text: str, tables: Sequence[ExampleTable]) -> ShareOfValue:
        """Read ``COLUMN=VALUE`` or ``COLUMN!=VALUE``; refuse a column that a run lacks."""
        signs = list(re.finditer("!?=", text))
        for sign in signs:
            named = text[: sign.start()]
            for column in (named, named.strip()):
                if column and have(tables, [column]):
                    return cls(column, sign[0] == "=", text[sign.end() :])
        column = text[: signs[0].start()].strip()
        table = next((table for table in tables if column not in table.columns), tables[0])
        raise InputError(
            f"`{table.origin}` has no column `{column}`, of which `--metric {text}` counts a value",
            hint=f"its columns are {listed(table.columns)}.{did_you_mean(column, table.columns)}",
        )

    @property
    def text(self) -> str:
        """The condition as a user writes it."""
        return f"{self.column}{'=' if self.is_equal else '!='}{self.value}"

    def statistic(
        self, tables: Sequence[ExampleTable], *, allow_unseen: bool = False, is_mean: bool = False
    ) -> Statistic:
        """Build the share of the examples that are counted.

        `allow_unseen` accepts a value that no run has, and runs without a common value. `is_mean` gives the
        share the name of the column, whose mean it is.

        Raises
        ------
        InputError
            If no run has the value, if values differ from it only in case, spaces or punctuation, if a run
            has no value of another one, or if the words leave open whether more of it is better.
        InputTypeError
            If the values are lists.
        """
        present = [values_of(table, self.column) for table in tables]
        value = self._as_in(tables, present, allow_unseen=allow_unseen)
        sign, words = ("==", "is") if self.is_equal else ("!=", "is not")
        if isinstance(value, bool):
            matches = "value" if value is self.is_equal else "not value"
        else:
            literal = written(Literal(0, 0, value)) if isinstance(value, str) else str(value)
            matches = f"value {sign} {literal}"
        shown = class_text(value)
        is_better = self._is_better(shown, known_direction(self.column, self.column, tables)[0])
        if is_better is None:
            columns = dump({"value": self.column}).strip()
            raise InputError(
                f"`--metric {self.text}` leaves open whether more such examples are better",
                hint="`--metric COLUMN=VALUE` names the value of good examples, `--metric COLUMN!=VALUE` that"
                f" of bad ones; or declare it in a spec: `counts: {{matches: {matches}, n: 1}}`,"
                f" `columns: {{{columns}}}`, `score: matches / n` and `greater_is_better`.",
            )
        title = self.column if is_mean else f"{self.column} {words} {shown}"
        worst, best = ({"matches": int(counts), "n": 1} for counts in (not is_better, is_better))
        document = {
            **names_in_spec(re.sub(r"[^A-Za-z0-9_.-]+", "_", title), "_".join(title.split())),
            "description": f"Share of examples whose `{self.column}` {words} `{shown}`.",
            "columns": {"value": self.column},
            "counts": {"matches": matches, "n": 1},
            "missing": dict(worst),
            "worst": worst,
            "best": best,
            "score": "matches / n",
            "greater_is_better": is_better,
        }
        counted = f"counted: examples whose `{self.column}` {words} `{shown}`"
        found = (
            f"{counted}; {'more' if is_better else 'fewer'} are better",
            *self._notes_on_missing(tables, present, shown),
        )
        return replace(read_statistic(dump(document), f"metric {self.text}"), found=found)

    def _is_better(self, value: str, declared: bool | None) -> bool | None:
        """Whether more such examples are better; None if the words leave it open.

        ``=`` names the value of good examples and ``!=`` that of bad ones, unless its words say otherwise; an
        error that is true is bad. `declared` is whether logs say that greater values are better.
        """
        word = word_of_value(value)
        if word == "true" and self.is_equal:
            if declared is not None:
                return declared
            if lower_is_better_by_name(self.column):
                return False
        is_open = word == "open" or (word == "true" and not self.is_equal)
        if is_open or declared is False or direction_word(self.column) is not None:
            return None
        return word != "bad" if self.is_equal else word != "good"

    def _notes_on_missing(
        self, tables: Sequence[ExampleTable], found: Sequence[DistinctValues], value: str
    ) -> Iterator[str]:
        """Yield a note for each run with words for missing values, such as `None`, which are not counted."""
        for table, each in zip(tables, found, strict=True):
            words = {word: n for word, n in each.counts.items() if is_missing_word(word)}
            if words and not is_missing_word(value):
                said, rows = ", ".join(map(repr, words)), amount(sum(words.values()), "row")
                yield (
                    f"look: `{self.column}` is {said} in {rows} of `{table.origin}`, which counts as not"
                    f" `{value}`; leave missing values empty, and `--missing` says how they count"
                )

    def _as_in(
        self, tables: Sequence[ExampleTable], found: Sequence[DistinctValues], *, allow_unseen: bool
    ) -> Any:
        """Return the value in its type; refuse one that no run has, or that is written in several ways.

        `found` are the values of each run.
        """
        present = [value for each in found for value in each.counts]
        exact = [text for text in (self.value, self.value.strip()) if text in present]
        read = read_option(self.value.strip())
        equal = exact or [value for each in found for value in each.read_as(read)]
        where = "; ".join(
            f"`{self.column}` of `{table.origin}` has {', '.join(each.shown()) or 'no values'}"
            for table, each in zip(tables[:2], found, strict=False)
        )
        unseen = self.value.strip() if any(each.type is ColumnType.TEXT for each in found) else read
        if allow_unseen:
            return equal[0] if equal else unseen
        if not equal and all(each.is_all for each in found):
            raise InputError(
                f"no run has the value {self.value!r} in `{self.column}`: {where}",
                hint="write the value as in the runs; quote the option for the shell if it has spaces."
                f"{did_you_mean(self.value, sorted(map(class_text, present)))}",
            )
        texts = {value for value in present if isinstance(value, str)}
        similar = sorted(each for each in texts - {*exact[:1]} if folded(each) == folded(self.value))
        if exact and similar:
            raise InputError(
                f"{listed(map(repr, similar))} in `{self.column}` would not count as {exact[0]!r}: {where}",
                hint="write equal values in the same way.",
            )
        n_runs = Counter(present)
        for table, each in zip(tables, found, strict=True):
            is_alone = bool(each.counts) and all(n_runs[value] == 1 for value in each.counts)
            if is_alone and len(tables) > 1 and all(other.is_all for other in found):
                raise InputError(
                    f"no value of `{self.column}` in `{table.origin}` occurs in another run: {where}",
                    hint="write equal values in the same way in all runs; `--allow-unseen` accepts these.",
                )
        return equal[0] if equal else unseen


def option_of_column(tables: Sequence[ExampleTable], column: str) -> str | None:
    """Return a value to count in a column of few different words, such as verdicts, as ``COLUMN=VALUE``.

    The value is a good one that all runs have, or else the placeholder ``VALUE``; None if there are no such
    words, each run has one in all rows, as its name, or there are numbers beside words for missing values,
    which are no failures.
    """
    try:
        found = [values_of(table.head(FIRST_ROWS), column).counts for table in tables]
    except InputTypeError:
        return None
    counts = _summed(found)
    few = 2 <= len(counts) <= _MOST_WORDS and 2 * len(counts) * len(found) <= counts.total()
    if not few or not all(isinstance(word, str) and len(word) <= _LONGEST_WORD for word in counts):
        return None
    if all(len(each) < 2 for each in found) or not any(
        letter.isalpha() for word in counts for letter in word
    ):
        return None
    if all(is_missing_word(word) or re.match(NUMBER_TEXT, word) for word in counts):
        return None
    words = [word for word, _ in counts.most_common() if all(word in each for each in found)]
    good = next((word for word in words if word_of_value(word) == "good"), None)
    if good is None and direction_word(column) is None and not lower_is_better_by_name(column):
        good = next((word for word in words if word_of_value(word) == "true"), None)
    if {"C", "I"} <= counts.keys() <= _GRADES and "C" in words and "score" in words_of(column):
        good = "C"
    if good is not None and re.match(NUMBER_TEXT, good) and any(map(is_missing_word, counts)):
        return None
    return f"{column}={PLACEHOLDER if good is None else good}"


def likely_option(tables: Sequence[ExampleTable], columns: Iterable[str]) -> str | None:
    """Return the option of the column that most likely has verdicts; None if none of `columns` has them.

    Verdicts differ between the runs, and one of their values is good. A column with the name of a category
    and the same values in all runs has none, nor has one with the name of answers and no good value.
    """
    likely = []
    for column in columns:
        if (option := option_of_column(tables, column)) is None:
            continue
        found = [values_of(table.head(FIRST_ROWS), column).counts for table in tables]
        is_equal = len(found) > 1 and all(each == found[0] for each in found)
        is_open = option.endswith(f"={PLACEHOLDER}")
        if not (is_equal and names_categories(column)) and not (is_open and _ANSWERS.search(column)):
            likely.append((is_equal, is_open, option))
    return min(likely, key=lambda each: each[:2])[2] if likely else None


def _summed(found: Iterable[Mapping[Any, int]]) -> Counter[Any]:
    counts = Counter[Any]()
    for each in found:
        counts.update(each)
    return counts


def true_of_column(tables: Sequence[ExampleTable], column: str) -> str | None:
    """Return how a column of text writes true, such as ``True``, if it says true or false, or yes or no."""
    if not have(tables, [column]):
        return None
    try:
        found = [values_of(table, column) for table in tables]
    except InputTypeError:
        return None
    texts = {value for each in found for value in each.counts}
    if not all(each.is_all and each.type is ColumnType.TEXT for each in found):
        return None
    words = {text.casefold() for text in texts}
    true = [text for text in texts if text.casefold() in ("true", "yes")]
    return true[0] if len(true) == 1 and any(words <= pair for pair in TRUTHS) else None


def values_of(table: ExampleTable, column: str) -> DistinctValues:
    """Return the distinct values of a column; refuse lists."""
    values = DistinctValues.of([table], column)
    if values is None or values.type in LISTS:
        raise InputTypeError(f"`{column}` of `{table.origin}` holds lists; expected words or numbers")
    return values
