"""Names of columns inside pairing, which every engine takes as they are.

Engines differ in which names they tell apart and which they read as expressions: SQL knows no upper and lower
case, and a name with a dot may be a column of a table.
"""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=2**12)
def internal(*parts: str) -> str:
    """Return the name of a column that belongs to a run, a count or a hash, of small letters and digits.

    Examples
    --------
    >>> internal("baseline", "Answer.text")
    'baseline__x41_nswer_x2e_text'
    """
    return "_".join("".join(map(_escaped, part)) for part in parts)


def _escaped(character: str) -> str:
    is_plain = character.isascii() and (character.isdigit() or character.islower())
    return character if is_plain else f"_x{ord(character):x}_"
