"""Internal names of columns, which every engine reads literally.

Engines differ in how they read names: SQL ignores case, and reads a name with a dot as the column of a table.
"""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=2**12)
def internal(*parts: str) -> str:
    """Return an internal column name, made of lower-case letters, digits and underscores.

    Examples
    --------
    >>> internal("baseline", "Answer.text")
    'baseline__x41_nswer_x2e_text'
    """
    return "_".join("".join(map(_escaped, part)) for part in parts)


def _escaped(character: str) -> str:
    is_plain = character.isascii() and (character.isdigit() or character.islower())
    return character if is_plain else f"_x{ord(character):x}_"
