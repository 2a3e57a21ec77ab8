"""Refuse counts that compare a column of text with a text that no run has, before anything is paired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from trackperm.errors import InputError, InputTypeError
from trackperm.pairing.checks.differences import folded
from trackperm.pairing.checks.label_values import DistinctValues
from trackperm.statistic import Statistic
from trackperm.tables.columns.types import ColumnType
from trackperm.tables.table import ExampleTable

_WIN = "win"
"""Parameter without whose value nothing is won; ties may be absent."""

_CLOSE = 0.8
"""Similarity, as `difflib` measures it, from which a class looks like a misspelt value."""


def require_compared_texts(
    tables: Sequence[ExampleTable], statistic: Statistic, *, allow_unseen: bool = False
) -> Statistic:
    """Refuse counts that compare a column of text with texts that no run has; note those of which some are.

    A misspelt text would count no example, or every example.

    Raises
    ------
    InputError
        If none of the texts occurs, or not the value of the parameter `win`, if a text differs from a value
        only in case, spaces or punctuation, if a listed class is nearly a value that is not listed, or if a
        text is the name of a column with several values.
    """
    compared = {name: _texts(tables, statistic.columns.get(name, name)) for name in statistic.compared_texts}
    present = {value for found in compared.values() for each in found for value in each.counts}
    unlisted = present.difference(statistic.classes)
    noted: set[str] = set()
    notes = []
    for name, known in compared.items():
        texts, column = statistic.compared_texts[name], statistic.columns.get(name, name)
        if not allow_unseen:
            _require_one_meaning(tables, column, [text for text, _ in texts])
        absent = [(text, parameter) for text, parameter in texts if text not in present]
        if not absent or not known or noted.issuperset(text for text, _ in absent):
            continue
        text, parameter = absent[0]
        said = (
            f"no run has the value {text!r} in `{column}`: `{column}` of `{tables[0].origin}` has"
            f" {', '.join(known[0].shown())}"
        )
        is_needed = len(absent) == len(texts) or any(each == _WIN for _, each in absent)
        is_misspelt = not {folded(each) for each, _ in absent}.isdisjoint(map(folded, present)) or any(
            each in statistic.classes and get_close_matches(each, unlisted, n=1, cutoff=_CLOSE)
            for each, _ in absent
        )
        if (is_needed or is_misspelt) and not allow_unseen:
            fix = "correct the spec" if parameter is None else f"`--set {parameter}=VALUE` names the value"
            raise InputError(
                f"`{statistic.name}` counts a value that never occurs: {said}",
                hint=f"{fix}; `--allow-unseen` accepts values that never occur.",
            )
        notes.append(f"look: {said}")
        noted.update(text for text, _ in absent)
    return replace(statistic, found=(*statistic.found, *notes)) if notes else statistic


def _require_one_meaning(tables: Sequence[ExampleTable], column: str, texts: Sequence[str]) -> None:
    """Refuse a text that is the name of one of several columns of systems, as in ``winner == 'model_a'``.

    The values of `column` are then names of columns that share values, such as ``model_a`` and ``model_b``.
    """
    for table, found in zip(tables, _texts(tables, column), strict=False):
        named = {name: _texts([table], name) for name in found.counts if name != column}
        systems = {name: {*values[0].counts} for name, values in named.items() if values}
        for text in texts:
            others = set().union(*(own for name, own in systems.items() if name != text))
            if len(own := systems.get(text, set())) > 1 and own & others:
                shown = ", ".join(named[text][0].shown())
                raise InputError(
                    f"{text!r} in `{column}` means something else from row to row: the column `{text}` of"
                    f" `{table.origin}` has {shown}",
                    hint="log a column that says whether the run itself wins; `--allow-unseen` counts the"
                    " value as it is.",
                )


def _texts(tables: Sequence[ExampleTable], column: str) -> list[DistinctValues]:
    """Return the values of a column of text in each run; none if it is another column or has too many."""
    if any(column not in table.columns for table in tables):
        return []
    try:
        found = [DistinctValues.of([table], column) for table in tables]
    except InputTypeError:
        return []
    known = [each for each in found if each is not None and each.is_all and each.type is ColumnType.TEXT]
    return known if len(known) == len(tables) else []
