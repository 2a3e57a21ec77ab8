"""Detection of logs of attacks on a model, in which a success or a great score may be bad."""

from __future__ import annotations

from collections.abc import Sequence

from trackperm.comparison.question.metric_directions import known_direction
from trackperm.comparison.question.own_scores import OF_CALLS
from trackperm.comparison.question.stated_direction import spec_of_lower
from trackperm.errors import InputError
from trackperm.tables.columns.names import SCORE, words_of
from trackperm.tables.table import ExampleTable, shared_columns

_ATTACKS = frozenset((
    "attack", "attacks", "attacked", "attacker", "jailbreak", "jailbreaks", "jailbroken", "jailbreaking",
    "injection", "injections", "forbidden", "harmful", "redteam", "redteaming",
))  # fmt: skip
"""Words in names of columns of attacks: `attack_type`, `jailbreak_prompt`."""

_FORBIDDEN = frozenset(("forbidden",))
_CONSTRAINTS = frozenset(("word", "words", "keyword", "keywords", "phrase", "phrases", "letter", "letters"))
"""Words in names of columns of instructions: `forbidden_words` of IFEval, which an answer should avoid."""


def require_no_attacks(tables: Sequence[ExampleTable], score: str) -> None:
    """Refuse a default score that may be greater where an attack succeeds.

    Raises
    ------
    InputError
        If the log has `score`, `success` or `pass` and a column of attacks, and states no direction.
    """
    if (column := _column_of_attacks(tables, score)) is None:
        return
    raise InputError(
        f"`{score}` of `{tables[0].origin}` may say how well an attack succeeds: the log has a column"
        f" `{column}`, so that it is unclear whether greater values are better",
        hint=f"`--metric {score}` takes greater values as better; for lower ones {spec_of_lower(score)}.",
    )


def note_on_attacks(tables: Sequence[ExampleTable], score: str) -> tuple[str, ...]:
    """Return a note if a named score may be greater where an attack succeeds."""
    if (column := _column_of_attacks(tables, score)) is None:
        return ()
    return (
        f"look: greater values of `{score}` are taken as better; if they say that an attack succeeds, as the"
        f" column `{column}` suggests, {spec_of_lower(score)}",
    )


def _column_of_attacks(tables: Sequence[ExampleTable], score: str) -> str | None:
    """Return a column of attacks beside a score that may be theirs; None if logs say what is better."""
    if score not in (SCORE, *OF_CALLS):
        return None
    column = next(filter(_names_attack, shared_columns(tables)), None)
    if column is None or known_direction(score, score, tables)[0] is not None:
        return None
    return column


def _names_attack(name: str) -> bool:
    words = {*words_of(name)}
    return not _ATTACKS.isdisjoint(words - _FORBIDDEN if words & _CONSTRAINTS else words)
