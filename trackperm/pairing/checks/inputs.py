"""Check of inputs: rows that are paired have to hold the same question, prompt, image or recording.

Ids that number the rows of each run, as `enumerate` does, agree even if the runs have other questions, or the
same ones in another order. Two runs whose inputs differ are told apart by three observations:

- inputs of one run that the other has under another id: the ids were given anew;
- inputs that share more words with their partners than with the partners of neighbouring rows: the same
  inputs in other words, such as another template of a prompt, which may be compared;
- another column whose values are different texts and agree, such as the reference answers.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import narwhals as nw
import polars as pl

from trackperm.errors import InputTypeError, PairingError
from trackperm.messages import amount, side_by_side
from trackperm.pairing.checks.differences import Cases
from trackperm.pairing.columns.roles import REWORDED, PairedColumns, input_name, names_input
from trackperm.pairing.joined import KEY
from trackperm.statistic import Statistic
from trackperm.tables.columns.names import ANSWERS, LABELS, MEDIA, SCORES, TEXTS, names_id
from trackperm.tables.lazy.table import LazyTable
from trackperm.tables.table import ExampleTable, rows_repeat, shared_columns, to_polars

_MOST = 2**14
"""Most rows whose inputs are compared, a bound on the time and memory for large runs."""

_PARTS = 16
"""Stretches of a large run that are compared, at regular distances."""

_MATCHED = 0.9
"""Share of rows that have to be in the same stretches of the other run; otherwise they are searched."""

_MOST_OF_QUERY = 2**11
"""Most rows of a query, which has to find their ids in its other rows."""

_SLICE = 2**16
"""Rows that are read at once."""

_FEWEST = 10
"""Fewest examples of which the inputs can be said to have nothing in common."""

_DISTINCT = 0.5
"""Least share of different values in a column of inputs; with fewer it holds templates or categories."""

_FEW = 0.05
"""Largest share of inputs that may differ between runs on the same examples, as after corrections."""

_MANY_LABELS = 20
"""Fewest different labels whose agreement proves that the examples are the same, in whatever order."""

_MOST_PROOFS = 8
"""Most further columns that are compared."""

_JUDGED = 200
"""Rows whose words are compared."""

_NEIGHBOURS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
"""Rows, relative to a pair, with which it is compared: lists of questions are often sorted by topic."""

_COMMON = 0.2
"""Share of the rows of a run from which on a word belongs to the template."""

_ALIKE = 0.3
"""Share of rows that have to be closest to their partner; by chance it is one in eleven."""

_NEARLY_ALL = 0.8
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

_HASH = r"(?:[0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]{6,}|^tmp"
"""Names of files that are made anew in each run."""

_BEFORE_FILE = r"^[^?#]*[/\\]"
_QUERY = r"[?#].*$"
_VECTOR = r"^\[[-0-9.e+,\s\[\]]*\]$"
_NUMBER = r"^\s*-?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*$"

Tables = tuple[ExampleTable, ExampleTable]


@dataclass(frozen=True, eq=False)
class _Compared:
    """A column of inputs, compared between rows that are paired.

    Attributes
    ----------
    name : str
        Name of the column.
    differing : DataFrame
        Key and both texts, ``a`` and ``b``, of the pairs that differ.
    n : int
        Number of pairs.
    proves : bool
        Whether its agreement proves that the examples are the same.
    n_moved : int
        Number of differing inputs of the baseline that the candidate has in another row.
    share_alike : float or None
        Share of the inputs that differ which are closest to their partner; None if no words tell.
    """

    name: str
    differing: pl.DataFrame
    n: int
    proves: bool
    n_moved: int = 0
    share_alike: float | None = None

    @property
    def alike(self) -> bool | None:
        """Whether the inputs that differ are the same ones in other words; None if no words tell."""
        return None if self.share_alike is None else self.share_alike >= _ALIKE

    @property
    def is_permuted(self) -> bool:
        """Whether inputs have other ids in the candidate."""
        return not self.alike and self.n_moved >= max(2, _FEW * self.n)

    @property
    def is_other(self) -> bool:
        """Whether most inputs have nothing in common with their partners."""
        return self.alike is False and self.n >= _FEWEST and 2 * len(self.differing) > self.n


def input_notes(tables: Tables, statistic: Statistic, columns: PairedColumns) -> tuple[str, ...]:
    """Compare the inputs of paired rows; return lines on those that differ, with ``look:`` if in doubt.

    Inputs that identify themselves in a log, by their hashes, are compared by the pairing. A text beside
    another input that agrees is what a model wrote, or read in an image.

    Raises
    ------
    PairingError
        If the runs have the same inputs under other ids, or other inputs under the same ids, and the user
        did not name the id; the message shows the first of them.
    """
    if columns.identity or tables[0].data is tables[1].data:
        return ()
    found = []
    is_asked = any(map(names_input, columns.ids))
    for name in columns.inputs:
        if is_asked and input_name(name) in TEXTS:
            continue
        compared = _compared(tables, name, columns)
        if compared is None:
            continue
        is_asked |= compared.differing.is_empty()
        if compared.proves:
            return () if compared.differing.is_empty() else (_line(compared, tables, columns),)
        if not compared.differing.is_empty():
            found.append(compared)
    # A text may be the output of each run, but outputs do not move to other rows.
    doubtful = [
        each for each in found if each.is_permuted or (each.is_other and input_name(each.name) not in TEXTS)
    ]
    proof = _proof(tables, columns, {each.name for each in found}) if doubtful else None
    if doubtful and proof is None and (columns.id is None or not statistic.id_is_named):
        raise _refusal(doubtful[0], tables, columns)
    return tuple(_line(each, tables, columns, proof) for each in found)


def _compared(tables: Tables, name: str, columns: PairedColumns) -> _Compared | None:
    """Compare a column between paired rows; None if it has no different texts, or no rows are paired."""
    pairs = _paired_texts(tables, name, columns)
    if pairs is None or pairs.is_empty():
        return None
    pairs = _with_plain(pairs, is_path=input_name(name) in MEDIA)
    n = len(pairs)
    if min(pairs["plain_a"].n_unique(), pairs["plain_b"].n_unique()) < _DISTINCT * n:
        return None
    differing = pairs.filter(pl.col("plain_a") != pl.col("plain_b"))
    without_digits = pairs["plain_a"].str.replace_all(r"[0-9]", "")
    is_proof = without_digits.n_unique() >= _DISTINCT * n and len(differing) <= _FEW * n
    if differing.is_empty():
        return _Compared(name, differing, n, is_proof)
    n_moved = _n_moved(tables[1], name, differing, pairs)
    share = _share_alike(differing["plain_a"].to_list(), differing["plain_b"].to_list(), name)
    if share is not None and share < _ALIKE and _tell_nothing(differing, name):
        share = None
    return _Compared(name, differing, n, is_proof and n_moved < 2, n_moved, share)


# Reading of rows.


def _paired_texts(tables: Tables, name: str, columns: PairedColumns) -> pl.DataFrame | None:
    """Return key and text, ``a`` and ``b``, of paired rows; None if they cannot be read as text.

    An example of several rows is one row if all of them have the same text, and is left out otherwise.
    """
    baseline, candidate = tables
    ids = columns.ids
    most = _MOST_OF_QUERY if any(map(_is_query, tables)) else _MOST
    try:
        first = _rows(baseline, (*ids, name), most)
        second = _rows(candidate, (*ids, name), most)
        if ids and len(candidate) > most:
            wanted = first[ids[0]].cast(second[ids[0]].dtype, strict=False).drop_nulls().unique()
            n_matched = int(wanted.is_in(second[ids[0]].implode()).sum())
            if n_matched < _MATCHED * len(wanted):
                second = _rows(candidate.among(ids[0], wanted), (*ids, name), None)
    except (InputTypeError, pl.exceptions.PolarsError):
        return None
    if not all(each[name].dtype == pl.String for each in (first, second)):
        return None
    sides = [
        _one_row_of_each(pl.DataFrame({KEY: _keys(each, ids), side: each[name]}))
        for side, each in (("a", first), ("b", second))
    ]
    if sides[0][KEY].equals(sides[1][KEY]):  # as they mostly are: a join would copy the texts
        pairs = sides[0].with_columns(sides[1]["b"])
    else:
        pairs = sides[0].join(sides[1], on=KEY, how="inner", maintain_order="left")
    are_numbers = pairs["a"].head(1000).str.contains(_NUMBER).all()
    return None if are_numbers else pairs.drop_nulls()


def _is_query(table: ExampleTable) -> bool:
    return isinstance(table.data, LazyTable) and table.data.is_query


def _rows(table: ExampleTable, names: Sequence[str], most: int | None) -> pl.DataFrame:
    """Read columns of at most `most` rows, in stretches at regular distances; any rows of a query."""
    n = len(table)
    size, starts = n, [0]
    if most is not None and n > most:
        size = max(1, most // _PARTS)
        starts = [part * (n - size) // (_PARTS - 1) for part in range(_PARTS)]
    if isinstance(table.data, LazyTable):
        if table.data.is_query:
            read = table.data.head(most) if size < n and most is not None else table.data
            return _texts(read.read(names).to_polars())
        parts = table.data.slices(names, _SLICE) if most is None else table.data.parts(names, starts, size)
        found = list(parts)
        return _texts(pl.concat(found) if found else table.data.read(names).to_polars())
    data = table.data.select(list(names))
    if size < n:
        data = nw.concat([data[start : start + size] for start in starts])
    columns = []
    for name in names:
        values = data.get_column(name)
        if name in table.unusable:  # objects of a JSON file
            columns.append(pl.Series(name, list(map(_as_json, values.to_list())), pl.String))
        else:
            columns.append(to_polars(values, f"column `{name}` of `{table.origin}`").alias(name))
    return _texts(pl.DataFrame(columns))


def _texts(rows: pl.DataFrame) -> pl.DataFrame:
    """Write categories as text, and lists and objects as JSON."""
    columns = []
    for values in rows.get_columns():
        if values.dtype in (pl.Categorical, pl.Enum):
            values = values.cast(pl.String)
        elif values.dtype.is_nested() or values.dtype == pl.Object:
            values = pl.Series(values.name, list(map(_as_json, values.to_list())), pl.String)
        columns.append(values)
    return pl.DataFrame(columns)


def _as_json(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("sha256"), str):
        return str(value["sha256"])  # a file in a table of W&B, beside boxes or masks that a model predicted
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _keys(rows: pl.DataFrame, ids: Sequence[str]) -> pl.Series:
    """Return the ids of rows as text, which is the same for integers and whole decimals; null without id."""
    if not ids:
        return pl.int_range(len(rows), dtype=pl.Int64, eager=True).cast(pl.String)
    parts = []
    for name in ids:
        whole = rows[name].dtype.is_float() and bool((rows[name] % 1 == 0).all())
        parts.append((rows[name].cast(pl.Int64) if whole else rows[name]).cast(pl.String))
    return pl.DataFrame(parts).select(pl.concat_str(pl.all(), separator=", ").alias(KEY))[KEY]


def _one_row_of_each(rows: pl.DataFrame) -> pl.DataFrame:
    rows = rows.drop_nulls(KEY)
    if not rows[KEY].is_duplicated().any():
        return rows
    text = pl.col(rows.columns[1])
    texts = rows.group_by(KEY, maintain_order=True).agg(text.first(), n=text.n_unique())
    return texts.filter(pl.col("n") == 1).drop("n")


# Comparison of texts.


def _with_plain(pairs: pl.DataFrame, *, is_path: bool) -> pl.DataFrame:
    """Add the texts in plain form, ``plain_a`` and ``plain_b``, of paths without folders."""
    if pairs["a"].equals(pairs["b"]):  # as they mostly are, so that no form hides a difference
        return pairs.with_columns(plain_a="a", plain_b="b")
    pairs = pairs.with_columns(_plain(pairs[side]).alias(f"plain_{side}") for side in ("a", "b"))
    if not is_path:
        return pairs
    files = pairs.with_columns(
        pl.col("plain_a", "plain_b").str.replace(_BEFORE_FILE, "").str.replace(_QUERY, "")
    )
    return files if files["plain_a"].n_unique() >= _DISTINCT * len(files) else pairs


def _plain(texts: pl.Series) -> pl.Series:
    """Return texts without case, Unicode form, and white space that is repeated or at an end."""
    texts = texts.str.normalize("NFKC").str.to_lowercase()
    return texts.str.replace_all(r"\s+", " ").str.strip_chars()


def _n_moved(candidate: ExampleTable, name: str, differing: pl.DataFrame, pairs: pl.DataFrame) -> int:
    """Count the inputs of the baseline that the candidate has in another row, paired or not."""
    is_whole = len(candidate) <= _MOST and not _is_query(candidate)
    try:
        read = candidate if is_whole else candidate.among(name, differing["a"].unique())
        others = _rows(read, [name], None)[name]
    except (InputTypeError, pl.exceptions.PolarsError):
        return 0
    own, paired = differing["plain_a"], pairs["plain_b"]
    if input_name(name) in MEDIA:  # their plain form has no folders
        own, paired = _plain(differing["a"]), _plain(pairs["b"])
    unpaired = _plain(others.filter(~others.is_in(pairs["b"].implode())))
    return int(own.is_in(pl.concat([paired, unpaired]).implode()).sum())


def _share_alike(first: Sequence[str], second: Sequence[str], name: str) -> float | None:
    """Return the share of texts that have most in common with their partners, in a column of this name.

    They are the same words, the same parts of words, which typing errors, stems and inflections leave, or
    the same words at an end, where a prompt has its question beside other passages or examples. None if most
    texts have no words that tell them apart.
    """
    if input_name(name) in MEDIA:
        return _closest_by_words(first, second, lambda text: {*_PART.findall(text)}, _SAME_WORDS)
    is_reworded = input_name(name) in REWORDED
    by_words = _closest_by_words(first, second, _words, 0.0 if is_reworded else _SAME_WORDS)
    if by_words is not None and by_words >= _NEARLY_ALL:
        return by_words
    by_ends = _closest_by_ends(first, second) if is_reworded else 0.0
    if by_words is None or by_ends >= _NEARLY_ALL:
        return by_ends if by_ends >= _ALIKE else None
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


def _tell_nothing(differing: pl.DataFrame, name: str) -> bool:
    """Whether most inputs of a run are made anew in each run, as files and ids are, or vectors of numbers."""
    is_made = pl.col("plain_a", "plain_b").str.contains(_HASH)
    if input_name(name) not in MEDIA:
        is_made &= ~pl.col("plain_a", "plain_b").str.contains(" ")
    is_vector = pl.col("plain_a", "plain_b").str.contains(_VECTOR)
    shares = differing.select((is_made | is_vector).mean()).row(0)
    return bool(max(shares) >= 0.5)


def _proof(tables: Tables, columns: PairedColumns, inputs: set[str]) -> str | None:
    """Return labels or another column of different texts that agree, so that the examples are the same."""
    label = columns.label
    if label is not None:
        values = _rows(tables[0], [label], _MOST)[label]
        if values.n_unique() >= max(_MANY_LABELS, _FEW * len(values)):
            return label
    taken = {*columns.names, *inputs, *ANSWERS, *LABELS, *SCORES}
    others = [name for name in shared_columns(tables) if name not in taken and not names_id(name)]
    compared = (_compared(tables, name, columns) for name in others[:_MOST_PROOFS])
    return next((each.name for each in compared if each is not None and each.proves), None)


# Messages.


def _line(found: _Compared, tables: Tables, columns: PairedColumns, proof: str | None = None) -> str:
    """Return a line on inputs that differ, which is no warning if they are known to be the same ones."""
    said = _difference(found, tables, columns)
    if proof is not None:
        return f"{'look: ' if found.is_permuted else ''}{said}; `{proof}` agrees"
    if found.is_permuted:
        return f"look: {said}; the rows may be paired wrongly{_better_id(found, tables, columns, ': ')}"
    if found.is_other:
        return f"look: {said}; the runs may have other examples"
    if found.share_alike is None or not found.alike:
        return f"look: {said}"
    if found.share_alike >= _NEARLY_ALL:
        return f"{said}; most of them are alike"
    return f"look: {said}; about {found.share_alike:.0%} of them are alike".replace("%", " %")


def _difference(found: _Compared, tables: Tables, columns: PairedColumns) -> str:
    n_differing = len(found.differing)
    same = "in the same row" if columns.id is None else f"with the same `{columns.id}`"
    said = (
        f"`{found.name}` differs between the runs on {n_differing:,} of {amount(found.n, 'example')} {same}"
    )
    if found.n_moved and not found.alike:
        is_one = found.n_moved == 1
        other = f"{'has' if is_one else 'have'} another `{columns.id}`"
        if columns.id is None:
            other = f"{'is' if is_one else 'are'} in another row"
        return f"{said}; {found.n_moved:,} of these inputs {other} in `{tables[1].origin}`"
    return said


def _refusal(found: _Compared, tables: Tables, columns: PairedColumns) -> PairingError:
    rows = Cases.of(*found.differing.select(KEY, "a", "b").head(5)).first
    header = ("example", *(f"`{table.origin}`" for table in tables))
    why = "" if found.is_permuted else ", and the texts have little in common"
    accepted = (
        f"`--id {shlex.quote(columns.id)}` compares these pairs nevertheless"
        if columns.id is not None
        else f"rows are compared nevertheless if one run has no `{found.name}`"
    )
    if found.is_permuted:
        hint = "The ids were given anew" if columns.id is not None else "The rows are in another order"
        hint += f"{_better_id(found, tables, columns, ': ')}. {accepted[0].upper()}{accepted[1:]}."
    else:
        hint = "The inputs differ: evaluate both runs on the same data."
        hint += f" If they are the same ones in another form, such as translations, {accepted}."
    return PairingError(f"{_difference(found, tables, columns)}{why}{side_by_side(header, rows)}", hint=hint)


def _better_id(found: _Compared, tables: Tables, columns: PairedColumns, before: str) -> str:
    """Return the option that pairs the same inputs; empty if they identify no example."""
    if found.name in tables[0].unusable or (
        not columns.repeats and rows_repeat(tables, [found.name], if_unknown=True)
    ):
        return ""
    return f"{before}`--id {shlex.quote(found.name)}` pairs the same inputs"
