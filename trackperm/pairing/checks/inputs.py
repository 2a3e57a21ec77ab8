"""Check of inputs: rows that are paired have to hold the same question, prompt, image or recording.

Ids that number the rows of each run, as `enumerate` does, agree even if the runs have other questions, or the
same ones in another order. Two runs whose inputs differ are told apart by three observations:

- inputs of one run that the other has under another id: the ids were given anew;
- inputs that share more words with their partners than with the partners of neighbouring rows: the same
  inputs in other words, such as another template of a prompt, which may be compared;
- another column whose values are different texts and agree, such as the reference answers.

Other ids tell it as well, also two columns that identify the rows together: those that the candidate has in
other rows, where no input and no such column agrees.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from trackperm.errors import InputTypeError, PairingError
from trackperm.messages import amount, side_by_side
from trackperm.pairing.checks.differences import Cases
from trackperm.pairing.checks.likeness import ALIKE, NEARLY_ALL, share_alike
from trackperm.pairing.checks.paired_texts import MOST_ROWS, is_query, paired_texts, read_rows
from trackperm.pairing.checks.rival_ids import Trust, agree_only_by, moved_ids, moved_key
from trackperm.pairing.columns.roles import PairedColumns
from trackperm.pairing.joined import KEY
from trackperm.statistic import Statistic
from trackperm.tables.columns.names import (
    ANSWERS,
    LABELS,
    MEDIA,
    SCORES,
    TEXTS,
    input_name,
    is_of_examples,
    names_id,
    names_individuals,
    names_input,
)
from trackperm.tables.columns.types import may_be_ids
from trackperm.tables.table import ExampleTable, id_columns, rows_repeat, shared_columns

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

_MOST_IDS = 8
"""Most other ids that are compared."""

_HASH = r"(?:[0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]{6,}|^tmp"
"""Names of files that are made anew in each run."""

_BEFORE_FILE = r"^[^?#]*[/\\]"
_QUERY = r"[?#].*$"
_VECTOR = r"^\[[-0-9.e+,\s\[\]]*\]$"

Tables = tuple[ExampleTable, ExampleTable]


@dataclass(frozen=True, eq=False)
class _Compared:
    """A column of inputs or other ids, compared between rows that are paired.

    Attributes
    ----------
    name : str
        Name of the column; or of two, separated by a comma.
    differing : DataFrame
        Key and both texts, ``a`` and ``b``, of the pairs that differ.
    n : int
        Number of pairs.
    proves : bool
        Whether its agreement proves that the examples are the same.
    n_moved : int
        Number of differing values of one run that the other has in another row.
    origin : str
        The run that has them in another row.
    share_alike : float or None
        Share of the inputs that differ which are closest to their partner; None if no words tell.
    """

    name: str
    differing: pl.DataFrame
    n: int
    proves: bool
    n_moved: int = 0
    origin: str = ""
    share_alike: float | None = None

    @property
    def alike(self) -> bool | None:
        """Whether the inputs that differ are the same ones in other words; None if no words tell."""
        return None if self.share_alike is None else self.share_alike >= ALIKE

    @property
    def is_permuted(self) -> bool:
        """Whether a run has many of the values of the other in other rows."""
        return not self.alike and self.n_moved >= max(2, _FEW * self.n)

    @property
    def is_other(self) -> bool:
        """Whether most inputs have nothing in common with their partners."""
        return self.alike is False and self.n >= _FEWEST and 2 * len(self.differing) > self.n


def input_notes(tables: Tables, statistic: Statistic, columns: PairedColumns) -> tuple[str, ...]:
    """Compare the inputs and ids of paired rows; return lines on those that differ, ``look:`` if in doubt.

    Inputs that identify themselves in a log, by their hashes, are compared by the pairing. A text beside
    another input that agrees is what a model wrote, or read in an image.

    Raises
    ------
    PairingError
        If the runs have the same inputs or other ids under other ids, or other inputs under the same ids, and
        the user did not name the id; the message shows the first of them.
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
    is_sure = is_asked or any(each.alike for each in found)
    moved = [] if is_sure else _moved_ids(tables, statistic, columns)
    if not is_sure and not doubtful and not moved:
        moved = _moved_key(tables, statistic, columns)
    is_doubted = bool(doubtful or moved)
    proof = _proof(tables, columns, {each.name for each in found}) if is_doubted else None
    if is_doubted and proof is None and (columns.id is None or not statistic.id_is_named):
        raise _refusal([*doubtful, *moved][0], tables, columns)
    if proof is None:
        found += moved
    return tuple(_line(each, tables, columns, proof) for each in found)


def _moved_ids(tables: Tables, statistic: Statistic, columns: PairedColumns) -> list[_Compared]:
    """Find other ids of the examples that the candidate has in other rows.

    Those that may number the rows prove nothing against better ids, nor against one that the user named.
    """
    names: Sequence[str] = columns.other_ids[:_MOST_IDS]
    if not columns.ids or not names:
        return []
    if statistic.id_is_named and any(map(is_of_examples, columns.ids)):
        names = [*filter(is_of_examples, names)]
    moved = (
        _Compared(each.name, each.differing, each.n, False, each.n_moved, each.origin)
        for each in moved_ids(tables, names, columns.ids)
    )
    # What systems retrieve may be ids that they also find for other examples.
    found = [each for each in moved if each.is_permuted and 2 * each.n_moved >= len(each.differing)]
    trust = max(Trust.of(tables, id_) for id_ in columns.ids) if found else None
    return [
        each
        for each in found
        if trust is not None
        and Trust.of(tables, each.name) >= trust
        and not agree_only_by(tables, columns.ids, [each.name])
    ]


def _moved_key(tables: Tables, statistic: Statistic, columns: PairedColumns) -> list[_Compared]:
    """Find columns that identify the examples, alone or in a pair, and contradict numbers of rows."""
    key = moved_key(tables, columns.ids, {*columns.names, *statistic.columns.values()})
    found = [] if key is None else [_Compared(key.name, key.differing, key.n, False, key.n_moved, key.origin)]
    return [each for each in found if each.is_permuted]


def _compared(tables: Tables, name: str, columns: PairedColumns) -> _Compared | None:
    """Compare a column between paired rows; None if it has no different texts, or no rows are paired."""
    pairs = paired_texts(tables, name, columns.ids)
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
    share = share_alike(differing["plain_a"].to_list(), differing["plain_b"].to_list(), name)
    if share is not None and share < ALIKE and _tell_nothing(differing, name):
        share = None
    return _Compared(name, differing, n, is_proof and n_moved < 2, n_moved, tables[1].origin, share)


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
    is_whole = len(candidate) <= MOST_ROWS and not is_query(candidate)
    try:
        read = candidate if is_whole else candidate.among(name, differing["a"].unique())
        others = read_rows(read, [name], None)[name]
    except (InputTypeError, pl.exceptions.PolarsError):
        return 0
    own, paired = differing["plain_a"], pairs["plain_b"]
    if input_name(name) in MEDIA:  # their plain form has no folders
        own, paired = _plain(differing["a"]), _plain(pairs["b"])
    unpaired = _plain(others.filter(~others.is_in(pairs["b"].implode())))
    return int(own.is_in(pl.concat([paired, unpaired]).implode()).sum())


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
        values = read_rows(tables[0], [label], MOST_ROWS)[label]
        if values.n_unique() >= max(_MANY_LABELS, _FEW * len(values)):
            return label
    taken = {*columns.names, *inputs, *ANSWERS, *LABELS, *SCORES}
    others = [name for name in shared_columns(tables) if name not in taken and not names_id(name)]
    compared = (_compared(tables, name, columns) for name in others[:_MOST_PROOFS])
    return next((each.name for each in compared if each is not None and each.proves), None)


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
    if found.share_alike >= NEARLY_ALL:
        return f"{said}; most of them are alike"
    return f"look: {said}; about {found.share_alike:.0%} of them are alike".replace("%", " %")


def _difference(found: _Compared, tables: Tables, columns: PairedColumns) -> str:
    n_differing = len(found.differing)
    same = "in the same row" if columns.id is None else f"with the same `{columns.id}`"
    said = (
        f"`{found.name}` differs between the runs on {n_differing:,} of {amount(found.n, 'example')} {same}"
    )
    if found.n_moved and not found.alike:
        is_one, kind = found.n_moved == 1, _kind(found, tables)
        other = f"{'has' if is_one else 'have'} another `{columns.id}`"
        if columns.id is None:
            other = f"{'is' if is_one else 'are'} in another row"
        return f"{said}; {found.n_moved:,} of these {kind} {other} in `{found.origin}`"
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
        better = _better_id(found, tables, columns, ": ")
        if not better and columns.id is not None:
            better = ": log the id that each example has in the data set"
        elif better and any(table.has_joined_labels for table in tables):
            better += f", if the labels have `{found.name}`"
        hint += f"{better}. {accepted[0].upper()}{accepted[1:]}."
    else:
        hint = "The inputs differ: evaluate both runs on the same data."
        hint += f" If they are the same ones in another form, such as translations, {accepted}."
    return PairingError(f"{_difference(found, tables, columns)}{why}{side_by_side(header, rows)}", hint=hint)


def _better_id(found: _Compared, tables: Tables, columns: PairedColumns, before: str) -> str:
    """Return the option that pairs the same inputs; empty if they identify no example."""
    names = id_columns(found.name, tables)
    if not all(may_be_ids(name, tables) for name in names) or (
        not columns.repeats and rows_repeat(tables, names, if_unknown=True)
    ):
        return ""
    return f"{before}`--id {shlex.quote(found.name)}` pairs the same {_kind(found, tables)}"


def _kind(found: _Compared, tables: Tables) -> str:
    if names_input(found.name):
        return "inputs"
    return "ids" if all(map(names_individuals, id_columns(found.name, tables))) else "values"
