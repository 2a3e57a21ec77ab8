"""Validation that collects all errors of a spec instead of stopping at the first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trackperm.errors import SpecError, TrackpermError
from trackperm.messages import did_you_mean, listed, printable
from trackperm.statistic.class_columns import has_class_columns
from trackperm.statistic.compiler.compile import compile_statistic
from trackperm.statistic.compiler.entries import Entries, collected
from trackperm.statistic.definition import CLASS_COLUMN, Statistic
from trackperm.statistic.document import Document
from trackperm.statistic.expressions.types import no_column
from trackperm.statistic.load import name_of_file
from trackperm.statistic.schema import form


@dataclass(frozen=True)
class Problem:
    """An error in a spec.

    Attributes
    ----------
    line, column : int or None
        Line and column from 1; None where the error is about the whole file.
    message : str
        The error, with the line that it shows.
    hint : str or None
        The next step.
    """

    line: int | None
    column: int | None
    message: str
    hint: str | None


def problems(path: Path, columns: Sequence[str] | None = None) -> list[Problem]:
    r"""Return all errors that keep a spec from being loaded, in the order of the file.

    Unreadable YAML hides all other errors, and a wrong shape hides errors within expressions; expressions
    hide no errors from each other. :func:`~trackperm.statistic.load_statistic` raises the first error
    instead.

    Parameters
    ----------
    path : Path
        The spec.
    columns : sequence of str, optional
        Columns of the data, which have to include those that the spec names.

    Examples
    --------
    >>> from trackperm.statistic.problems import problems
    >>> _ = Path("f1.yaml").write_text("counts: {tp: 1}\nscore: tp / fp")
    >>> problems(Path("f1.yaml"))[0].message.partition("\n")[0]
    'unknown name `fp` at `$.score`'
    """
    try:
        document = Document.read(path)
    except SpecError as error:
        return [_located(error, printable(path))]
    errors: list[TrackpermError] = []
    with collected(errors):
        errors.extend(document.misfits(form(document)))
    if not errors:
        with collected(errors):
            statistic = compile_statistic(Entries(document, {}, {}, errors=errors), name_of_file(path))
            if columns is not None:
                errors.extend(_lacking(statistic, document, columns))
    distinct = {error.message: _located(error, document.origin) for error in errors}
    return sorted(distinct.values(), key=lambda problem: (problem.line or 0, problem.column or 0))


def _lacking(statistic: Statistic, document: Document, columns: Sequence[str]) -> Iterator[SpecError]:
    """Return an error for each column that a spec names and the data lack."""
    expressions, read_columns = statistic.expressions, statistic.read_columns
    if statistic.pair_term is not None:
        expressions = tuple(statistic.pair_term.expressions)
        nodes = [node for each in expressions for node in each.names]
        # The class, and the score where it is computed, have no columns.
        read_columns = {node.full: statistic.columns.get(node.name, CLASS_COLUMN) for node in nodes}
    for expression in expressions:
        for node in expression.names:
            column = read_columns.get(node.full, CLASS_COLUMN)
            if node.full in statistic.names_by_class and has_class_columns(node.full, column, columns):
                continue
            if column not in (CLASS_COLUMN, *columns):
                yield no_column(expression, node, column, columns)
    groups = {"cluster": statistic.cluster, "strata": statistic.strata, "classes": statistic.class_column}
    for key, name in groups.items():
        if name is not None and (own := statistic.columns[name]) not in columns:
            hint = f"the columns are {listed(columns)}.{did_you_mean(own, columns)}"
            yield document.error(f"the data has no column `{own}`", (key,), hint=hint)


def _located(error: TrackpermError, origin: str) -> Problem:
    found = re.match(rf"{re.escape(origin)}:(\d+):(\d+): ", error.message)
    if found is None:
        return Problem(None, None, error.message, error.hint)
    return Problem(int(found[1]), int(found[2]), error.message[found.end() :], error.hint)
