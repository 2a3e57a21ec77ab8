"""Base class of the engines that understand SQL."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from trackperm.pairing.engines.base import Engine, Frame
from trackperm.pairing.row_hashes import NULL_WORD, hash_names, row_hash_sql


class SqlEngine(Engine):
    """Engine that computes columns by SQL, which takes fewer operations than expressions of narwhals.

    Names in SQL are those of :mod:`~trackperm.pairing.internal_names` and need no quotes.
    """

    @abstractmethod
    def with_sql(self, frame: Frame, *steps: Mapping[str, str]) -> Frame:
        """Add columns of SQL expressions by name; a step reads the columns of the steps before it."""

    @abstractmethod
    def is_integer_text(self, name: str) -> str:
        """Return the condition that a text matches :data:`~trackperm.pairing.row_hashes.INTEGER_TEXT`."""

    @abstractmethod
    def text_hash(self, name: str) -> str:
        """Return the SQL of :func:`~trackperm.pairing.row_hashes.text_word` of a column of text."""

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
        columns = [*frame.collect_schema(), *hash_names(name)]
        return self.with_sql(frame, *row_hash_sql(words, name, rounds)).select(columns)
