"""Error about columns that a statistic needs and runs lack, with the options that name them."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence

from trackperm.errors import InputError
from trackperm.messages import listed
from trackperm.pairing.columns.id_hint import id_hint
from trackperm.pairing.columns.shared_values import agreeing_ids, share_values
from trackperm.statistic import Statistic
from trackperm.tables.columns.names import INPUTS, LABELS, PREDICTIONS
from trackperm.tables.columns.nested_fields import named_fields
from trackperm.tables.first_line import example_as_header
from trackperm.tables.formats.npz import left_out
from trackperm.tables.table import ExampleTable, rows_repeat

_OPTIONS = {"prediction": "--prediction", "label": "--label"}
_USUAL = {"prediction": PREDICTIONS, "label": LABELS}
_NOT_COUNTED = {*PREDICTIONS, *LABELS, *INPUTS}

_UNKNOWN = "NAME"
"""Placeholder of a column that the user has to name."""

Tables = tuple[ExampleTable, ...]


def lacking_columns(
    needed: Sequence[str], tables: Tables, statistic: Statistic, ids: tuple[str, ...]
) -> InputError:
    """Return the error about columns `needed` that not all runs have; `ids` are those of the id."""
    lacking = dict[str, list[ExampleTable]]()
    lines = []
    for table in tables:
        absent = [name for name in needed if name not in table.columns]
        for name in absent:
            lacking.setdefault(name, []).append(table)
        lacks = f" lacks {listed(absent)} and" if absent else ""
        lines.append(f"    `{table.origin}`{lacks} has {listed(table.columns)}")
    found = "\n".join(dict.fromkeys(lines))
    if (first := example_as_header(tables)) is not None:
        return InputError(_needs(statistic, needed, found), hint=f"{first}.")
    hint = "; ".join((*_nested(lacking, tables, ids), *_named(needed, lacking, tables, statistic, ids)))
    for name in lacking:
        role = _roles(statistic, ids)[name]
        if role in statistic.names_by_class and role not in statistic.class_columns:
            hint += (
                f"; `{name}` has a list with the probability of every class on each example, or there is a"
                " column for each class, such as `probability_cat`"
            )
    return InputError(_needs(statistic, needed, found), hint=hint + ".")


def _needs(statistic: Statistic, needed: Sequence[str], found: str) -> str:
    return f"the statistic `{statistic.name}` needs columns {listed(needed)}\n\n{found}"


def _roles(statistic: Statistic, ids: Sequence[str]) -> dict[str, str]:
    """Return what each column is read as."""
    roles = {column: role for role, column in statistic.columns.items()} | dict.fromkeys(ids, "id")
    return roles | {column: role for role, own in statistic.class_columns.items() for column in own.values()}


def _nested(
    lacking: Mapping[str, list[ExampleTable]], tables: Tables, ids: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the hint at fields of objects, or at arrays, that may be what runs lack."""
    for lackers in lacking.values():
        if fields := named_fields(lackers[0], lacking):
            return (fields,)
    arrays = left_out(tables) if any(name not in ids for name in lacking) else ""
    return (arrays,) if arrays else ()


def _named(
    needed: Sequence[str],
    lacking: Mapping[str, list[ExampleTable]],
    tables: Tables,
    statistic: Statistic,
    ids: tuple[str, ...],
) -> list[str]:
    """Return the hints at options that name the columns, or another file."""
    roles = _roles(statistic, ids)
    guesses = {
        name: _UNKNOWN
        if roles[name] in statistic.names_by_class
        else _guess(name, roles[name], lackers, taken=needed)
        for name, lackers in lacking.items()
    }
    is_one_id = len(ids) == 1 and len(lacking.get(ids[0], tables)) == 1
    lacks_id = any(name in lacking for name in ids)
    of_id = id_hint(tables) if lacks_id else None
    is_in_none = [name for name in lacking if roles[name] == "label" and len(lacking[name]) == len(tables)]
    label = next((name for name in is_in_none if guesses[name] == _UNKNOWN), None)
    others = {name for table in tables for name in table.columns if name not in (*needed, *table.identity)}

    options = []
    if lacks_id and not is_one_id and of_id is None:
        options.append(f"`--id {shlex.quote(','.join(guesses.get(name, name) for name in ids))}`")
    for name, guess in guesses.items():
        is_named_above = roles[name] == "id" and (not is_one_id or of_id is not None)
        is_elsewhere = name == label and not others
        if not is_named_above and not is_elsewhere:
            options.append(_option(roles[name], guess, lacking[name], tables, statistic))
    parts = []
    if options:
        parts.append(", ".join(options) + (" names the column" if len(options) == 1 else " name the columns"))
    if of_id is not None:
        parts.append(of_id)
    elif lacks_id:
        parts.append("`--by-position` pairs rows in their order")
    if label is not None:
        such_as = ", such as SQuAD's `dev-v2.0.json`" if "squad_em" in tables[0].statistics else ""
        parts.append(f"`--labels FILE` reads the reference answers from a file of their own{such_as}")
    return parts


def _option(
    role: str, column: str, lackers: Sequence[ExampleTable], tables: Tables, statistic: Statistic
) -> str:
    """Return the option that reads a column as the role, in the one run that lacks it or in all."""
    if len(lackers) == 1 and role not in statistic.names_by_class:
        side = "baseline" if lackers[0] is tables[0] else "candidate"
        return f"`--{side}-column {shlex.quote(f'{role}={column}')}`"
    if role in _OPTIONS:
        return f"`{_OPTIONS[role]} {shlex.quote(column)}`"
    return f"`--column {shlex.quote(f'{role}={column}')}`"


def _guess(name: str, role: str, tables: list[ExampleTable], taken: Sequence[str]) -> str:
    """Return a column of all `tables` that `name` may have meant, or else the placeholder `NAME`.

    For predictions and labels only their usual names are tried: a merely similar name may be that of another
    run's predictions, or of the prompt. The runs share values of an id, unlike those of ``uuid``. If the user
    named no column of ids, the values are also different in every row.
    """
    free = {
        column.lower(): column
        for column in tables[0].columns
        if column not in taken and all(column in table.columns for table in tables)
    }
    if role in _USUAL:
        usual = [column for column in free if column in _USUAL[role]]
        return free[usual[0]] if len(usual) == 1 else _UNKNOWN
    others = [column for column in free if column not in _NOT_COUNTED]
    is_default = role == "id" and name == "id"
    if role == "id" and len(tables) > 1:
        others = [column for column in others if share_values(tables, free[column])]
    if is_default:
        others = [column for column in others if not rows_repeat(tables, [free[column]], if_unknown=True)]
    found = difflib.get_close_matches(name.lower(), others, n=1, cutoff=0.5)
    if is_default and not found:
        return next(iter(agreeing_ids(tables, [*taken])), _UNKNOWN)
    return free[found[0]] if found else _UNKNOWN
