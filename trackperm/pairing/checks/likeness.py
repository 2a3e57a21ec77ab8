"""Likeness of paired texts: whether they hold the same question in other words.

A text that shares more words with its partner than with the partners of neighbouring rows is the same one,
with another template of a prompt, say. Other texts about the same topic share as many with neighbours.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import takewhile

from trackperm.pairing.columns.roles import REWORDED
from trackperm.tables.columns.names import MEDIA, input_name

_JUDGED = 200
"""Rows whose words are compared."""

_NEIGHBOURS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
"""Rows, relative to a pair, with which it is compared: lists of questions are often sorted by topic."""

_COMMON = 0.2
"""Share of the rows of a run from which on a word belongs to the template."""

ALIKE = 0.3
"""Share of rows that have to be closest to their partner; by chance it is one in eleven."""

NEARLY_ALL = 0.8
"""Such a share that leaves no doubt; other questions about the same passages reach 0.45."""

_SAME_WORDS = 0.6
"""Share of the rarer words that a question has to have in common with its partner."""

_CUT = 16
"""Fewest characters of a text that was cut."""

_WORD = re.compile(r"[぀-ヿ㐀-鿿가-힯]|[^\W぀-ヿ㐀-鿿가-힯]+")
"""A word, or a character of a script that is written without spaces."""

_PART = re.compile(r"[^\W\d_]+|[0-9]+")
"""A part of the name of a file: letters or digits."""

_DIGITS = re.compile(r"[0-9]+")

_END = 50
"""Words at the beginning and end of a text of which the common ones are counted."""

_LENGTH = 1000
"""Characters at the beginning and the end of a text whose words are compared: those of a longer one tell
enough."""

_FEWEST_WORDS = 3
"""Fewest common words at the ends of two texts that hold the same question."""


def share_alike(first: Sequence[str], second: Sequence[str], name: str) -> float | None:
    """Return the share of texts that have most in common with their partners, in a column of this name.

    They are the same words, the same parts of words, which typing errors, stems and inflections leave, or
    the same words at an end, where a prompt has its question beside other passages or examples. None if most
    texts have no words that tell them apart.
    """
    if input_name(name) in MEDIA:
        return _closest_by_words(first, second, lambda text: {*_PART.findall(text)}, _SAME_WORDS)
    is_reworded = input_name(name) in REWORDED
    by_words = _closest_by_words(first, second, _words, 0.0 if is_reworded else _SAME_WORDS)
    if by_words is not None and by_words >= NEARLY_ALL:
        return by_words
    by_ends = _closest_by_ends(first, second) if is_reworded else 0.0
    if by_words is None or by_ends >= NEARLY_ALL:
        return by_ends if by_ends >= ALIKE else None
    return max(by_words, by_ends, _closest_by_words(first, second, _parts_of_words, _SAME_WORDS) or 0.0)


def _closest_by_words(
    first: Sequence[str], second: Sequence[str], split: Callable[[str], set[str]], least: float
) -> float | None:
    """Return the share of texts that have most words in common with their partner, and at least `least`.

    Words of the template do not count; nor do numbers beside other words if any share is enough, since rows
    may be numbered in the text.
    """
    n = len(first)
    judged = _judged(n)
    rows = _judged_rows(n)
    words = [{i: split(side[i]) for i in rows} for side in (first, second)]
    sizes = [Counter(word for found in side.values() for word in found) for side in words]
    most = max(1, _COMMON * len(rows))
    weights = {
        word: math.log(2 * len(rows) / (sizes[0][word] + sizes[1][word]))
        for word in sizes[0].keys() | sizes[1].keys()
        if max(sizes[0][word], sizes[1][word]) <= most
    }

    def rare(*, numbers: bool) -> list[dict[int, set[str]]]:
        kept = {word for word in weights if numbers or not word.isdecimal()}
        return [{i: found & kept for i, found in side.items()} for side in words]

    def telling(own: dict[int, set[str]], partner: dict[int, set[str]]) -> list[int]:
        return [i for i in judged if own[i] and partner[i]]

    own, partner = rare(numbers=least > 0.0)
    if least == 0.0 and 2 * len(telling(own, partner)) < len(judged):
        own, partner = rare(numbers=True)
    told = telling(own, partner)
    if 2 * len(told) < len(judged):
        return None

    def weight(found: set[str]) -> float:
        return sum(weights[word] for word in found)

    wholes = [{i: weight(found) for i, found in side.items()} for side in (own, partner)]

    def share(i: int, j: int) -> float:
        if _begins(first[i], second[j]):
            return 1.0
        whole = min(wholes[0][i], wholes[1][j])
        return weight(own[i] & partner[j]) / whole if whole else 0.0

    return _closest(told, n, share, least)


def _closest_by_ends(first: Sequence[str], second: Sequence[str]) -> float:
    """Return the share of texts whose ends have most words in common with those of their partner.

    What all texts of a run begin or end with does not count. All numbers are the same word, since rows may be
    numbered in the text.
    """
    n = len(first)
    rows = _judged_rows(n)
    sides = [_ends([_DIGITS.sub("0", side[i]) for i in rows]) for side in (first, second)]
    own, partner = (dict(zip(rows, side, strict=True)) for side in sides)

    def n_common(i: int, j: int) -> float:
        return sum(_n_common(a, b) for a, b in zip(own[i], partner[j], strict=True))

    return _closest(_judged(n), n, n_common, _FEWEST_WORDS)


def _closest(rows: Sequence[int], n: int, near: Callable[[int, int], float], least: float) -> float:
    """Return the share of rows that are nearer to their partner than to the partners of neighbouring rows."""
    n_closest = 0
    for i in rows:
        others = {(i + step) % n for step in _NEIGHBOURS} - {i}
        mine = near(i, i)
        n_closest += mine > 0 and mine >= least and all(mine > near(i, j) for j in others)
    return n_closest / len(rows)


def _judged(n: int) -> range:
    return range(0, n, max(1, n // _JUDGED))


def _judged_rows(n: int) -> list[int]:
    """Return the rows that are judged, and those with which they are compared."""
    return sorted({(i + step) % n for i in _judged(n) for step in (0, *_NEIGHBOURS)})


def _words(text: str) -> set[str]:
    """Return the words at the beginning and the end of a text."""
    return {*_WORD.findall(text if len(text) <= 2 * _LENGTH else f"{text[:_LENGTH]} {text[-_LENGTH:]}")}


def _parts_of_words(text: str) -> set[str]:
    """Return the three letters from each place of the first words, and words with digits as they are."""
    found = set()
    for word in _WORD.findall(text[:_LENGTH]):
        if any(map(str.isdigit, word)):
            found.add(word)
        else:
            found |= {f" {word} "[i : i + 3] for i in range(len(word))}
    return found


def _ends(texts: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """Return the first words of each text, and the last ones backwards, after those of all texts."""
    backwards = [text[::-1] for text in texts]
    forward, back = (_after_common(side) for side in (texts, backwards))
    last = [[word[::-1] for word in words] for words in back]
    return list(zip(forward, last, strict=True))


def _after_common(texts: Sequence[str]) -> list[list[str]]:
    """Return the first words of each text after those with which all of them begin."""
    start = _n_common(min(texts), max(texts))
    *_, last = ("", *_WORD.findall(texts[0][max(0, start - _LENGTH) : start]))
    if texts[0].endswith(last, 0, start):  # it may go on in other texts
        start -= len(last)
    return [_WORD.findall(text[start : start + _LENGTH])[:_END] for text in texts]


def _n_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the words that two lists begin with, or the characters of two texts."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def _begins(first: str, second: str) -> bool:
    """Whether one text is the beginning of the other, as one that was cut."""
    a, b = sorted((first.rstrip(".… "), second.rstrip(".… ")), key=len)
    return len(a) >= _CUT and b.startswith(a)
