"""Usual names of columns in other spellings, such as ``Prediction``, ``isCorrect`` and ``Question ID``.

What is inferred from the columns looks at the usual names; the statistic then gets the names of the runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from trackperm.errors import InputError
from trackperm.messages import listed
from trackperm.statistic import Statistic, load_statistic
from trackperm.tables.columns.names import LABELS, PREDICTIONS, SCORES, usual_spelling, words_of
from trackperm.tables.columns.renamed import by_spelling, with_renamed_columns
from trackperm.tables.table import ExampleTable, shared_columns

_CODE = re.compile("(?<!statistic )`([^`]+)`")
_OPTION = re.compile(
    r"(--(?:id|label|metric|prediction|cluster|(?:baseline-|candidate-)?column \w+)[ =])('[^']+'|[^\s']+)"
)
_QUOTED = re.compile('"([^"]+)"')


def written_names(tables: Sequence[ExampleTable], named: Collection[str]) -> dict[str, str]:
    """Return the columns of the runs whose names are usual ones in other spellings, by the usual name.

    A kind of columns of which a run has an exact name is left out, and so are columns in `named`, and two
    that differ only in their spelling. If a column is found, all others that begin with capitals or have
    several words are there too: what is inferred from the columns depends on all of them.
    """
    found: dict[str, str] = {}
    for names in (PREDICTIONS, LABELS, SCORES):
        if not any(name in table.columns for table in tables for name in names):
            alike = _alike(shared_columns(tables), names)
            found |= {usual: own[0] for usual, own in alike.items() if len(own) == 1 and own[0] not in named}
    if not found or any("*" in name for name in named):
        return found
    there = dict.fromkeys(name for table in tables for name in table.columns)
    others = [name for name in there if name not in found.values()]
    for usual, own in _alike(others, None).items():
        if len(own) == 1 and usual not in {*there, *found} and own[0] not in named and _may_be_spelt(own[0]):
            found[usual] = own[0]
    return found


def with_usual_names(table: ExampleTable, names: Mapping[str, str]) -> ExampleTable:
    """Rename the columns of a run that :func:`written_names` found."""
    own = {usual: name for usual, name in names.items() if name in table.columns}
    return with_renamed_columns(table, own, "column") if own else table


def names_alike(tables: Sequence[ExampleTable]) -> str | None:
    """Say which columns have the same usual name in different spellings; None without any."""
    for usual, own in _alike(shared_columns(tables), {*PREDICTIONS, *LABELS, *SCORES}).items():
        if len(own) > 1 and usual not in own:
            return f"each of {listed(own)} could be the column `{usual}`"
    return None


def with_written_names(statistic: Statistic, names: Mapping[str, str]) -> Statistic:
    """Give a statistic, and what it says, the columns of the runs in place of usual names."""
    columns = {role: _written(name, names) for role, name in statistic.columns.items()}
    columns = {role: name for role, name in columns.items() if name != statistic.columns[role]}
    if not columns:
        return statistic

    notes = [_rewritten(note, names) for note in statistic.found]
    for role, name in columns.items():
        if not any(note.startswith(f"{role}: column ") for note in notes):
            notes.append(f"{role}: column `{name}`")
    written = load_statistic(statistic, columns=columns)
    return replace(written, chosen=_rewritten(statistic.chosen, names), found=tuple(notes))


@contextmanager
def errors_in_written_names(names: Mapping[str, str]) -> Iterator[None]:
    """Name the columns of the runs in errors about usual names, and in the options of their hints."""
    try:
        yield
    except InputError as error:
        error.message = _rewritten(error.message, names)
        error.args = (error.message,)
        error.hint = None if error.hint is None else _rewritten(error.hint, names)
        raise


def _rewritten(text: str, names: Mapping[str, str]) -> str:
    """Write the columns of the runs for usual names in backticks, in options and in code."""

    def one(code: re.Match[str]) -> str:
        if (written := _written(code[1], names)) != code[1]:
            return f"`{written}`"
        return f"`{_QUOTED.sub(quoted, _OPTION.sub(option, code[1]))}`"

    def option(found: re.Match[str]) -> str:
        name, *value = re.split("(!?=)", found[2].strip("'"), maxsplit=1)
        return found[1] + shlex.quote("".join((_written(name, names), *value)))

    def quoted(found: re.Match[str]) -> str:
        return f'"{_written(found[1], names)}"'

    return _CODE.sub(one, text)


def _written(name: str, names: Mapping[str, str]) -> str:
    """Return the column of the runs for a usual name, or the columns for several that are an id together."""
    return names.get(name) or ",".join(names.get(part, part) for part in name.split(","))


def _alike(columns: Sequence[str], names: Collection[str] | None) -> dict[str, list[str]]:
    """Return columns by the usual spelling of their name, if it is in `names`."""
    found = by_spelling(columns)
    return found if names is None else {spelt: own for spelt, own in found.items() if spelt in names}


def _may_be_spelt(name: str) -> bool:
    """Whether a name is written in capitals or several words, which its usual spelling has too."""
    words = [word for word in re.split(r"[\W_]+", name) if word]
    is_capital = all(not word[0].islower() for word in words)
    is_other = is_capital or usual_spelling(name) != name.strip().lower()
    return is_other and words_of(name) == words_of(usual_spelling(name))
