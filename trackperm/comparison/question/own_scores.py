"""Choice between accuracy and a score that the log has beside predictions and labels."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from typing import NamedTuple

import polars as pl

from trackperm.comparison.question.same_in_runs import differing_columns, is_of_data
from trackperm.errors import InputError, TrackpermError
from trackperm.messages import amount, listed
from trackperm.pairing.checks.differences import shown
from trackperm.tables.columns.label_shares import are_classes, share_of_labels
from trackperm.tables.columns.names import ATTEMPT, IDS, PASSED, SCORE, names_id, words_of
from trackperm.tables.columns.nested_fields import fields_of, named_fields
from trackperm.tables.columns.types import ColumnType, is_number, typed_columns
from trackperm.tables.table import ExampleTable, have, shared_columns

_BLOCK = 100_000
"""Number of first rows that are read of each run."""

_REPEATED = 0.8
"""Largest share of distinct labels in classifiers' logs, where labels repeat; in answers they rarely do."""

_TRUE, _FALSE = ("true", "yes"), ("false", "no")

# fmt: off
_METRICS = frozenset((
    "score", "scores", "accuracy", "acc", "correct", "correctness", "incorrect", "match", "matches", "em",
    "passed", "success", "solved", "rating", "ratings", "quality", "judge", "judgement", "judgment",
    "verdict", "faithfulness", "factuality", "relevance", "relevancy", "groundedness", "helpfulness",
    "coherence", "fluency", "completeness", "conciseness", "harmlessness", "toxicity", "hallucination",
    "similarity",
    "bleu", "sacrebleu", "gleu", "chr", "chrf", "rouge", "meteor", "ter", "hter", "comet", "bleurt",
    "bertscore", "moverscore", "wer", "cer", "mer", "wil", "wip", "levenshtein", "edit", "precision",
    "recall",
))
"""Words in names of metrics of answers."""

_NOT_METRICS = frozenset((
    "confidence", "prob", "probs", "probability", "logprob", "logprobs", "logit", "logits", "log", "latency",
    "time", "duration", "cost", "tokens", "token", "length", "len", "count", "n", "num", "number", "rank",
    "index", "idx", "option", "choice", "position", "label",
))
"""Words in names of columns of numbers that do not measure the quality of an answer."""
# fmt: on


_F_SCORE = re.compile(
    r"(?:(?<![A-Za-z])[fF]|(?<=[a-z])F)(?:[0-9](?![0-9])|[ _-]?(?:[bB]eta|[sS]core|[mM]easure))"
)
"""Pattern of names of F-scores: ``f1``, ``macroF1``, ``f_beta``; a column ``f`` may hold anything."""

OF_CALLS = ("success", "pass")
"""Usual names of scores that may only mean that a call succeeded."""

_NEARLY_ALL = 0.9
"""Share of answers unlike their label that a judge hardly accepts, and a call that went through has."""

_CORRECT = ("correct", "is_correct", "acc", "accuracy", "exact_match")
"""Usual names of scores that mean that the answer is right."""


class OwnScore(NamedTuple):
    """Column of scores that is compared in place of accuracy, with notes on the choice."""

    name: str
    notes: tuple[str, ...] = ()


class _Answers(NamedTuple):
    """First rows of a run with prediction and label; `equal` is whether they are equal, null without both.

    `has_classes` is whether labels repeat and half of the predictions are labels: a decimal `score` beside
    them is rather the confidence of a classifier.
    """

    table: ExampleTable
    texts: pl.DataFrame
    equal: pl.Series
    is_free: bool
    has_classes: bool


class _Score(NamedTuple):
    """Values of a score in the first rows of each run, 1 for true; empty if they cannot be read."""

    name: str
    values: tuple[pl.Series, ...]

    @property
    def is_binary(self) -> bool:
        return bool(self.values) and all(each.drop_nulls().is_in([0.0, 1.0]).all() for each in self.values)

    @property
    def constant(self) -> float | None:
        """The only value in all runs, NaN without any; None if there are several."""
        found = {value for each in self.values for value in each.drop_nulls().unique().to_list()}
        return None if len(found) > 1 or not self.values else found.pop() if found else float("nan")

    def equals(self, other: _Score) -> bool:
        """Whether another score has the same values in all rows."""
        return bool(self.values) and all(map(pl.Series.equals, self.values, other.values))


def names_metric(name: str) -> bool:
    """Whether the name of a column means a metric of answers: ``wer``, ``answer_correctness``, ``rougeL``."""
    words = {*words_of(name)}
    return _F_SCORE.search(name) is not None or (bool(words & _METRICS) and not names_quantity(name))


def names_quantity(name: str) -> bool:
    """Whether the name of a column means numbers of no quality: ``latency_ms``, ``n_tokens``."""
    return not _NOT_METRICS.isdisjoint(words_of(name))


def measures_answers(name: str, tables: Sequence[ExampleTable]) -> bool:
    """Whether a column of numbers has the name of a metric of answers, and not that of an id."""
    is_id = names_id(name) or ATTEMPT.fullmatch(name) is not None
    return names_metric(name) and not is_id and is_number(name, tables)


def other_metrics(tables: Sequence[ExampleTable], taken: Collection[str | None]) -> list[str]:
    """Return the columns of metrics of answers other than those in `taken`, without those of the data."""
    names = [name for name in shared_columns(tables) if name not in taken]
    return differing_columns(tables, [name for name in names if measures_answers(name, tables)])


def own_score(
    tables: Sequence[ExampleTable], prediction: str, label: str, usual: Collection[str]
) -> OwnScore | None:
    """Return the column of scores that is compared in place of accuracy; None for accuracy.

    Predictions are classes if most are labels of the run and labels repeat; else they are free text. A score
    says no more than accuracy if it is 1 where the prediction equals its label and 0 elsewhere, if it has
    one value in all runs, or if it repeats another score. A `correct` that is true everywhere says that all
    answers are right, in other words than those of the labels.

    Parameters
    ----------
    tables : sequence of ExampleTable
        The runs.
    prediction, label : str
        Columns of predictions and labels, some of which are equal.
    usual : collection of str
        Columns with usual names of scores.

    Raises
    ------
    InputError
        If classes have a score of 0 and 1 that says otherwise, or free text has a score that may not be the
        question, or several.
    """
    if prediction == label or not have(tables, [prediction, label]):
        return None  # the pairing reports the error
    known = [name for name in shared_columns(tables) if name not in (prediction, label, *IDS)]
    names = [name for name in known if name in usual or measures_answers(name, tables)]
    read = [_answers(table, prediction, label, names) for table in tables]
    answers = [each for each in read if each is not None]
    if len(answers) < len(read):
        return None
    is_free = any(each.is_free for each in answers)
    scores = [_score(answers, name) for name in names if name in usual or is_free]
    varying = [
        each
        for each in scores
        if each.constant is None or (is_free and each.name in _CORRECT and each.constant == 1.0)
    ]
    more = _distinct([each for each in varying if not _is_equality(answers, each)], usual)
    kept = {each.name for each in more}
    left = [each.name for each in varying if each.name not in kept and each.name in usual]
    notes = (f"not compared, because it says no more: {listed(left)}",) if left else ()
    if not is_free:
        return _beside_classes(answers, more, (prediction, label), notes)
    if all(each.has_classes for each in answers):
        more = [each for each in more if each.name != SCORE or each.is_binary]
    own = [each for each in more if each.name in usual or not is_of_data(tables, each.name, label)]
    nested = [name for name in known if _has_metrics(tables[0], name) and not is_of_data(tables, name, label)]
    if not (own or nested):
        return None
    if len(own) == 1 and not nested and _is_clear(own[0], usual):
        return OwnScore(own[0].name, (*_notes_on_calls(answers, own[0], label), *notes))
    free = next(each for each in answers if each.is_free)
    fields = named_fields(tables[0], nested)
    raise _unclear_scores(free, (prediction, label), [*(each.name for each in own), *nested], fields)


def _beside_classes(
    answers: Sequence[_Answers], scores: Sequence[_Score], columns: tuple[str, str], notes: tuple[str, ...]
) -> OwnScore | None:
    """Return the score of 0 and 1 that accepts more than equality; None without one; refuse others."""
    found = [each for each in scores if each.is_binary and each.name not in OF_CALLS]
    for place, each in enumerate(found):
        note = _note_on_extended(answers, each, *columns)
        if note is None or place:
            raise _contradicted(each.name, *columns, *_first_differing(answers, each))
        notes = (note, *notes)
    return OwnScore(found[0].name, notes) if found else None


def _is_clear(score: _Score, usual: Collection[str]) -> bool:
    """Whether a score of free text has a usual name, and can only say how good an answer is."""
    return score.name in usual and score.name not in OF_CALLS and (score.name != SCORE or score.is_binary)


def _has_metrics(table: ExampleTable, column: str) -> bool:
    """Whether a column of objects holds metrics: its name or a field's name is one of a metric."""
    fields = fields_of(table, column)
    return bool(fields) and (names_metric(column) or any(map(names_metric, fields)))


def _distinct(scores: Sequence[_Score], usual: Collection[str]) -> list[_Score]:
    """Keep one of several equal scores, the one with a usual name, in the order of the columns."""
    found: list[_Score] = []
    for each in sorted(scores, key=lambda score: (score.name not in usual, score.name in OF_CALLS)):
        if not any(each.equals(other) for other in found):
            found.append(each)
    kept = {each.name for each in found}
    return [each for each in scores if each.name in kept]


def _answers(table: ExampleTable, prediction: str, label: str, scores: Sequence[str]) -> _Answers | None:
    """Read predictions, labels and scores of the same first rows; None if they cannot be compared."""
    try:
        head = table.head(_BLOCK).only((prediction, label, *scores))
        both = head.only((prediction, label))
        typed, _, types = typed_columns(both, both, [prediction, label])
    except TrackpermError:
        return None
    first, second = (typed.frame.get_column(name).to_polars() for name in (prediction, label))
    is_text = ColumnType.TEXT in (types[prediction], types[label])
    if is_text:
        first, second = first.cast(pl.String, strict=False), second.cast(pl.String, strict=False)
    texts = pl.DataFrame({"prediction": first, "label": second})
    equal = (first == second).alias("equal")
    if not is_text:
        return _Answers(head, texts, equal, False, True)
    plain = _plain(texts).drop_nulls()
    is_free = len(plain) > 0 and not are_classes(plain)
    repeats = plain["label"].n_unique() <= _REPEATED * len(plain)
    return _Answers(head, texts, equal, is_free, repeats and share_of_labels(plain) >= 0.5)


def _plain(texts: pl.DataFrame) -> pl.DataFrame:
    return texts.select(pl.all().cast(pl.String).str.strip_chars().str.to_lowercase())


def _score(answers: Sequence[_Answers], name: str) -> _Score:
    read = [_values(each, name) for each in answers]
    values = tuple(each for each in read if each is not None)
    return _Score(name, values if len(values) == len(read) else ())


def _values(answers: _Answers, name: str) -> pl.Series | None:
    """Return the values of a score as numbers, and of true and false as 1 and 0; None for other columns."""
    try:
        head = answers.table.only((name,))
        typed, _, types = typed_columns(head, head, [name])
    except TrackpermError:
        return None
    values = typed.frame.get_column(name).to_polars()
    if types[name] is ColumnType.TEXT:
        values = values.str.strip_chars().str.to_lowercase()
        if not values.drop_nulls().is_in((*_TRUE, *_FALSE)).all():
            return None
        values = values.is_in(_TRUE)
    elif types[name] not in (ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.BOOLEAN):
        return None
    return values.cast(pl.Float64)


def _is_equality(answers: Sequence[_Answers], score: _Score) -> bool:
    """Whether a score is 1 where prediction and label are equal, and 0 elsewhere."""
    return score.is_binary and not any(
        len(_differing(each, values)) for each, values in zip(answers, score.values, strict=True)
    )


def _differing(answers: _Answers, values: pl.Series) -> pl.DataFrame:
    """Return the rows in which a score of 0 and 1 is not the equality of prediction and label."""
    rows = answers.texts.with_columns(equal=answers.equal, outcome=values == 1.0)
    return rows.filter(pl.col("equal") != pl.col("outcome"))


def _first_differing(answers: Sequence[_Answers], score: _Score) -> tuple[_Answers, pl.DataFrame]:
    """Return the first run in which a score is not the equality of prediction and label, and these rows."""
    found = ((each, _differing(each, own)) for each, own in zip(answers, score.values, strict=True))
    return next((each, rows) for each, rows in found if len(rows))


def _note_on_extended(answers: Sequence[_Answers], score: _Score, prediction: str, label: str) -> str | None:
    """Return a note on a score that accepts other spellings or forms of the label; None for other scores.

    Such a score equals the equality but for case and spaces, or is a `correct` that is never false where
    prediction and label are equal, as if answers had been extracted from the predictions.
    """
    differing = [_differing(each, own) for each, own in zip(answers, score.values, strict=True)]
    first, rows = _first_differing(answers, score)
    said, meant = rows.row(0)[:2]
    example = f"such as {shown(said)} for {shown(meant)} in `{first.table.origin}`"
    plain = (
        _differing(each._replace(equal=texts["prediction"] == texts["label"]), own)
        for each, own in zip(answers, score.values, strict=True)
        for texts in [_plain(each.texts)]
    )
    if not any(map(len, plain)):
        return (
            f"`{score.name}` is true where `{prediction}` equals `{label}` but for case and spaces, {example}"
        )
    if score.name in _CORRECT and not any(each["equal"].any() for each in differing):
        n = sum(map(len, differing))
        return (
            f"look: `{score.name}` is compared and not accuracy: in {amount(n, 'row')} it is true where"
            f" `{prediction}` does not equal `{label}`, {example}"
        )
    return None


def _notes_on_calls(answers: Sequence[_Answers], score: _Score, label: str) -> tuple[str, ...]:
    """Return a note if `passed` may say that calls went through, whatever they answered.

    So it may be if it is true for nearly all answers that are not their label, or false only where there is
    no answer.
    """
    if score.name != PASSED:
        return ()
    others = [_differing(each, own) for each, own in zip(answers, score.values, strict=True)]
    wrong = [each.texts.filter(~each.equal) for each in answers]
    accepts = all(
        len(rows.filter(pl.col("outcome"))) >= _NEARLY_ALL * max(1, len(own))
        for rows, own in zip(others, wrong, strict=True)
    )
    failed = pl.concat(
        each.texts["prediction"].cast(pl.String).fill_null("").str.strip_chars().filter(own == 0.0)
        for each, own in zip(answers, score.values, strict=True)
    )
    if not accepts and not (len(failed) and (failed == "").all()):
        return ()
    accepted = "nearly every answer that is not its" if accepts else "every answer, whatever its"
    return (
        f"look: `{score.name}` is true for {accepted} `{label}`: it may say that calls went through;"
        f" `--statistic exact_match` compares answers with `{label}`, `--metric {score.name}` says that it is"
        " the score",
    )


def _contradicted(
    name: str, prediction: str, label: str, answers: _Answers, rows: pl.DataFrame
) -> InputError:
    said, meant, equal = rows.row(0)[:3]
    return InputError(
        f"`{name}` of `{answers.table.origin}` is {'false' if equal else 'true'} where `{prediction}` is"
        f" {shown(said)} and `{label}` {shown(meant)}: in {amount(len(rows), 'row')} it is not whether these"
        " are equal, which accuracy tests",
        hint=f"`--metric {shlex.quote(name)}` compares the scores of the log, `--statistic accuracy` the"
        f" shares of predictions that equal `{label}`.",
    )


def _unclear_scores(
    answers: _Answers, columns: tuple[str, str], scores: Sequence[str], fields: str | None
) -> InputError:
    """Return the error for free text whose scores are unclear; `fields` says how objects become columns."""
    texts = answers.texts.drop_nulls()
    differing = texts.filter(pl.col("prediction") != pl.col("label"))
    example = " and ".join(map(shown, (differing if len(differing) else texts).row(0)))
    prediction, label = columns
    metric = f"`--metric {shlex.quote(scores[0])}` compares a score of the log" if fields is None else fields
    return InputError(
        f"`{prediction}` and `{label}` of `{answers.table.origin}` are free text, such as {example}, and the"
        f" log has scores of its own: {listed(scores)}",
        hint=f"{metric}; `--statistic exact_match` compares the shares of answers that are identical to"
        f" `{label}`.",
    )
