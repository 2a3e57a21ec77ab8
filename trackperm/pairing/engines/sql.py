"""Base class of the engines that understand SQL."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from trackperm.pairing.engines.base import HALVES, NULL_WORD, Engine, Frame, hash_factor


class SqlEngine(Engine):
    """Engine that computes columns by SQL, which takes fewer operations than expressions of narwhals.

    Names in SQL are those of :mod:`~trackperm.pairing.internal_names` and need no quotes.
    """

    @abstractmethod
    def with_sql(self, frame: Frame, *steps: Mapping[str, str]) -> Frame:
        """Add columns of SQL expressions by name; a step reads the columns of the steps before it."""

    @abstractmethod
    def is_integer_text(self, name: str) -> str:
        """Return the condition that a text matches :data:`~trackperm.pairing.engines.base.INTEGER_TEXT`."""

    @abstractmethod
    def text_hash(self, name: str) -> str:
        """Return the SQL of the first bits of the MD5 of a column of text."""

    def with_text_words(self, frame: Frame, words: Mapping[str, str]) -> Frame:
        """Add the words of columns of text."""
        return self.with_sql(
            frame,
            {
                word: f"CASE WHEN {name} IS NULL THEN {NULL_WORD}"
                f" WHEN {self.is_integer_text(name)} THEN TRY_CAST({name} AS BIGINT)"
                f" ELSE {self.text_hash(name)} END"
                for word, name in words.items()
            },
        )

    def with_row_hash(self, frame: Frame, words: Sequence[str], name: str, rounds: int = 2) -> Frame:
        """Add the hashes of rows."""
        halves = {half: f"{name}_{half}" for half in HALVES}
        steps = [{f"{column}_0": _combined(words, half) for half, column in halves.items()}]
        for i in range(rounds):
            squares, powers = dict[str, str](), dict[str, str]()
            for half, column in halves.items():
                p, x, square = HALVES[half], f"{column}_{i}", f"{column}_{i}_squared"
                squares[square] = f"{x} * {x} % {p}"
                powers[f"{column}_{i + 1}"] = f"({square} * {square} % {p} * {x} + 1) % {p}"
            steps += [squares, powers]
        steps.append({column: f"{column}_{rounds}" for column in halves.values()})
        return self.with_sql(frame, *steps).select([*frame.collect_schema(), *halves.values()])


def _combined(words: Sequence[str], half: str) -> str:
    """Return the SQL of the linear combination; in SQL, a remainder has the sign of the dividend."""
    p = HALVES[half]
    terms = [f"CAST({hash_factor(half, -1)} AS BIGINT)"]
    terms += [f"{word} % {p} * {hash_factor(half, i)} % {p}" for i, word in enumerate(words)]
    return f"(({' + '.join(terms)}) % {p} + {p}) % {p}"
