"""Error about runs whose columns leave the statistic unclear, with the options that name it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import product

from trackperm.comparison.question.default_statistics import other_prediction
from trackperm.comparison.question.same_in_runs import differing_columns, is_of_data
from trackperm.comparison.question.share_of_value import likely_option
from trackperm.errors import InputError
from trackperm.messages import listed
from trackperm.tables.columns.names import (
    ATTEMPT,
    CLUSTERS,
    IDS,
    INPUTS,
    LABELS,
    PREDICTIONS,
    SCORES,
    names_clusters,
    names_id,
    names_number_of_row,
)
from trackperm.tables.columns.nested_fields import known_fields
from trackperm.tables.columns.tags import columns_of_tags, roles_of_tags
from trackperm.tables.columns.types import FIRST_ROWS, are_decimals, are_integers, is_number
from trackperm.tables.first_line import example_as_header
from trackperm.tables.formats.npz import left_out
from trackperm.tables.row_meaning import why_no_examples
from trackperm.tables.table import ExampleTable, shared_columns

ROLES = {"prediction": PREDICTIONS, "label": LABELS}
"""Usual names of the columns that accuracy reads."""

_MOST_KINDS = 3  # runs with different columns that an error lists

_MOST_CLASSES = 50
"""Most distinct values of a column that is suggested as labels."""


def unclear_statistic(
    tables: Sequence[ExampleTable],
    found: str | None,
    scores: Sequence[str],
    roles: Mapping[str, str | None],
) -> InputError:
    """Return the error for runs without a clear statistic.

    Parameters
    ----------
    tables : sequence of ExampleTable
        The runs.
    found : str or None
        Why the statistic is unclear; by default, which columns the runs have.
    scores : sequence of str
        Columns that could be the score.
    roles : mapping of str to str or None
        Column of predictions and of labels; None if it is unclear.
    """
    runs = listed(dict.fromkeys(table.origin for table in tables[:2]))
    if (reason := why_no_examples(tables) or example_as_header(tables)) is not None:
        hint = f"{reason}."
    elif (other := other_prediction(tables, roles["prediction"], roles["label"])) is not None:
        hint = (
            f"`--prediction {other}` compares `{other}` with `{roles['label']}`, of which some are equal; or"
            " name a column of scores by `--metric COLUMN`, or a statistic of `trackperm statistic list` by"
            " `--statistic NAME`."
        )
    elif len(tables) > 2 and found is None and not shared_columns(tables):
        hint = (
            "leaderboards read columns of the same names from all runs: log them again under the same names,"
            " or rank runs with the same columns; `trackperm compare` with `--candidate-column NAME=COLUMN`"
            " compares two others."
        )
    else:
        ways, nested = _ways(tables, scores, roles), known_fields(tables[0])
        hint = "; or ".join(part for part in (left_out(tables), nested, ways) if part is not None)
    return InputError(f"the statistic of {runs} is unclear: {found or _columns_of(tables)}", hint=hint)


def _ways(tables: Sequence[ExampleTable], scores: Sequence[str], roles: Mapping[str, str | None]) -> str:
    """Build the hint that explains how to name a statistic or columns."""
    numbers = scores or [name for name in shared_columns(tables) if is_number(name, tables)]
    usual = (*IDS, *PREDICTIONS, *LABELS)
    numbers = [
        name for name in numbers if name not in usual and not names_id(name) and not ATTEMPT.fullmatch(name)
    ]
    numbers = differing_columns(tables, numbers)
    numbered = [name for name in numbers if names_number_of_row(name) and are_integers(name, tables)]
    numbers = [name for name in numbers if name not in numbered] or numbers
    if not scores and (spans := _statistic_of_tags(tables)) is not None:
        lists = "`trackperm statistic list` names other statistics of lists"
        return f"{spans} compares the entity spans of the tags; {lists}."
    is_in_program = tables[0].is_in_program
    inspected = "" if is_in_program else f"; `trackperm inspect {tables[0].origin}` describes the columns"
    label = roles["label"] if roles["prediction"] is None and not scores else None
    if label is not None and numbers and are_decimals(label, tables):
        option = f"`--prediction {shlex.quote(numbers[0]) if len(numbers) == 1 else 'COLUMN'}`"
        return (
            f"name the predictions of `{label}` by {option}, with a statistic of numbers such as `--statistic"
            f" mae`, or a column of scores by `--metric COLUMN`{inspected}."
        )
    metric = f" ({listed(numbers)})" if numbers else ""
    names = [
        name for name in shared_columns(tables) if name not in (*usual, *CLUSTERS) and not names_id(name)
    ]
    likely = _likely(tables, roles, names)
    others = [name for name in names if name not in likely.get("label", ())]
    verdict = likely_option(tables, differing_columns(tables, others))
    value = f", a good value whose share is compared by `--metric {shlex.quote(verdict)}`" if verdict else ""
    unclear = [role for role, column in roles.items() if column is None]
    options = [option for role in unclear for option in _of_role(tables, role, likely.get(role, ()))]
    named = f"name the columns of accuracy by {' and '.join(options)}, " if options else ""
    n_labelled = len(_with_role(tables, "label"))
    if "label" in unclear and (n_labelled == 1 or (unclear == ["label"] and not n_labelled and not likely)):
        named += f"{'or ' * bool(options)}give the labels of both runs by `--labels FILE`, "
    if all(column is not None and is_number(column, tables) for column in roles.values()):
        named += "compare errors of numbers by `--statistic mae` or `--statistic rmse`, "
    if is_in_program and set(shared_columns(tables)) <= {"id", *roles.values()}:
        named += "or name " if named else "name "
    else:
        named += f"name a column of scores by `--metric COLUMN`{metric}{value}, or "
    return f"{named}a statistic of `trackperm statistic list` by `--statistic NAME`{inspected}."


def _statistic_of_tags(tables: Sequence[ExampleTable]) -> str | None:
    """Return the options of the statistic of two columns of tags; None if no two columns hold tags."""
    found = [columns_of_tags(table) for table in tables]
    names = [name for name in shared_columns(tables) if all(name in columns for columns in found)]
    if (roles := roles_of_tags(names)) is None:
        return None
    named = zip(("label", "prediction"), reversed(roles), strict=True)
    options = [f"--{role} {shlex.quote(name)}" for role, name in named if name != role]
    return f"`{' '.join(['--statistic span_f1', *options])}`"


def are_predicted_numbers(tables: Sequence[ExampleTable], prediction: str | None, label: str | None) -> bool:
    """Whether both columns hold numbers, the labels with decimals, as in regression."""
    if prediction is None or label is None:
        return False
    return are_decimals(label, tables) and is_number(prediction, tables)


def _likely(
    tables: Sequence[ExampleTable], roles: Mapping[str, str | None], names: Sequence[str]
) -> dict[str, list[str]]:
    """Return columns of `names` that may have the unclear roles: predictions and labels share a few values.

    Labels come with the data, and predictions do not. There are none if a column has a usual name of an
    unclear role, and for a single run.
    """
    unclear = [role for role, column in roles.items() if column is None]
    if any(_with_role(tables, role) for role in unclear) or all(table is tables[0] for table in tables):
        return {}
    known = [column for column in roles.values() if column is not None]
    taken = (*known, *INPUTS, *SCORES)
    others = [name for name in names if name not in taken and not ATTEMPT.fullmatch(name)]
    values = {name: own for name in (*known, *others) if len(own := _values(tables, name)) > 1}
    of_data = {name: is_of_data(tables, name, name) for name in values}
    may_be = [
        [column]
        if column in values
        else [name for name in values if name not in known and of_data[name] == (role == "label")]
        for role, column in roles.items()
    ]
    pairs = [pair for pair in product(*may_be) if _are_alike(*(values[name] for name in pair))]
    found = dict(zip(roles, zip(*pairs, strict=True), strict=True)) if pairs else {}
    return {role: list(dict.fromkeys(found[role])) for role in unclear if role in found}


def _are_alike(first: set[str], second: set[str]) -> bool:
    """Whether two sets of values share more than one value, and at least half of all."""
    n_shared = len(first & second)
    return n_shared > 1 and 2 * n_shared >= len(first | second)


def _values(tables: Sequence[ExampleTable], name: str) -> set[str]:
    """Return the distinct values of the first rows of a column as text; none if there are many."""
    counts = [table.head(FIRST_ROWS).counts_of_few(name, _MOST_CLASSES) for table in tables]
    return {
        str(value) for found in counts if found is not None for value in found[name].drop_nulls().to_list()
    }


def _of_role(tables: Sequence[ExampleTable], role: str, likely: Sequence[str]) -> list[str]:
    """Return options that name the columns of a role; by run if their names differ or only one is unusual.

    `likely` are columns that may have the role, if none has a usual name. No option is returned if only one
    run has labels, and the other has no column that may be labels.
    """
    found = _with_role(tables, role)
    if len(likely) == 1:
        return [f"`--{role} {shlex.quote(likely[0])}`"]
    if len(tables) != 2 or not found or any(len(names) > 1 for names in found.values()):
        return [f"`--{role} COLUMN`"]
    if len(found) == 2 and found[0] == found[1]:
        return [f"`--{role} {found[0][0]}`"]
    options = []
    for place, side in enumerate(("baseline", "candidate")):
        names = found.get(place) or _other_texts(tables[place], tables[1 - place])
        if not names:
            return [] if role == "label" else [f"`--{role} COLUMN`"]
        if names[0] != role:
            options.append(f"`--{side}-column {role}={names[0] if len(names) == 1 else 'COLUMN'}`")
    return options


def _with_role(tables: Sequence[ExampleTable], role: str) -> dict[int, list[str]]:
    """Return the columns with a usual name of the role in any case, by the place of each run that has any."""
    usual = {role, *ROLES[role]}
    found = {
        place: [name for name in table.columns if name.lower() in usual] for place, table in enumerate(tables)
    }
    return {place: names for place, names in found.items() if names}


def _other_texts(table: ExampleTable, other: ExampleTable) -> list[str]:
    """Return columns of text that only `table` has, and whose names have no other meaning."""
    usual = {*PREDICTIONS, *LABELS, *INPUTS, *SCORES, *other.columns}
    return [
        name
        for name in table.columns
        if not (name in usual or names_id(name) or ATTEMPT.fullmatch(name) or names_clusters(name))
        and not is_number(name, [table])
    ]


def _columns_of(tables: Sequence[ExampleTable]) -> str:
    """Say which columns the runs have; of many runs with different ones, which they share."""
    shared = shared_columns(tables)
    if all(len(table.columns) == len(shared) for table in tables):
        whose = "its" if len({table.origin for table in tables}) == 1 else "their"
        return f"{whose} columns are {listed(shared)}"
    if len(tables) == 2:
        return " and ".join(
            f"`{table.origin}` has {listed(table.columns) or 'no columns'}" for table in tables
        )
    if shared:
        return f"the columns that all runs have are {listed(shared)}"
    kinds = {frozenset(table.columns): table for table in reversed(tables)}
    own = [f"`{table.origin}` has {listed(table.columns) or 'no columns'}" for table in kinds.values()]
    return f"the runs share no column: {'; '.join(own[::-1][:_MOST_KINDS])}"
