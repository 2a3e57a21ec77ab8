"""Validation that collects all errors of a spec instead of stopping at the first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trackperm.errors import SpecError, TrackpermError
from trackperm.messages import did_you_mean, listed, printable
from trackperm.statistic.compile import _Compiler
from trackperm.statistic.definition import ParameterValue, Statistic
from trackperm.statistic.document import Document
from trackperm.statistic.expressions.tree import Expression
from trackperm.statistic.load import load_statistic, name_of_file
from trackperm.statistic.schema import form, validate


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
        Columns of the data, among which the columns that the spec names have to be.

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
    errors = _Errors([])
    with errors.caught():
        errors.found.extend(document.misfits(form(document)))
    if not errors.found:
        errors.read(document, name_of_file(path))
        with errors.caught():
            statistic = load_statistic(str(path))
            if columns is not None:
                errors.found.extend(_lacking(statistic, document, columns))
    distinct = {error.message: _located(error, document.origin) for error in errors.found}
    return sorted(distinct.values(), key=lambda problem: (problem.line or 0, problem.column or 0))


@dataclass(frozen=True)
class _Errors:
    found: list[TrackpermError]

    @contextmanager
    def caught(self) -> Iterator[None]:
        try:
            yield
        except TrackpermError as error:
            self.found.append(error)

    def read(self, document: Document, name: str) -> None:
        """Collect the errors of each entry of a spec that has the right shape.

        `name` is the name of its file, which a spec without a name has.
        """
        data, spec = document.data, validate(document)
        compiler = _Compiler(document, {}, {})
        for section in ("counts", "g", "missing", "worst", "best"):
            try:
                compiler.entries(section)
            except SpecError as error:
                self.found.append(error)
                return
        with self.caught():
            compiler.check_direction(spec.name or name)
        parameters: dict[str, ParameterValue] = {}
        with self.caught():
            parameters = compiler.parameters(spec, "")
        # A refused parameter counts as defined, so that expressions that read it are not refused as well.
        parameters = dict.fromkeys(spec.parameters, 1) | parameters

        def parsed(*paths: tuple[str, ...]) -> dict[str, Expression]:
            expressions = {}
            for path in paths:
                with self.caught():
                    expressions[path[-1]] = compiler.expression(path, parameters)
            return expressions

        def entries(section: str) -> dict[str, Expression]:
            return parsed(*((section, key) for key in data.get(section, {})))

        names = dict(data.get("counts", {}))
        for key in names:
            with self.caught():
                compiler.check_name(key, ("counts", key))
        for key, expression in entries("counts").items():
            with self.caught():
                compiler.check_counts({key: expression})
        for section in ("missing", "worst", "best"):
            substitute = entries(section)
            for key, expression in substitute.items():
                with self.caught():
                    compiler.check_substitute(section, {key: expression}, [key] if key in names else names)
            if len(substitute) == len(data.get(section, {})):
                with self.caught():
                    compiler.check_substitute(section, substitute, names)
        for key, expression in entries("g").items() if names else ():
            with self.caught():
                compiler.check_g({key: expression}, names, declared=True)
        for score in parsed(("score",)).values() if "score" in data else ():
            with self.caught():
                compiler.check_score(score, names)
        for h in parsed(("h",)).values() if "h" in data else ():
            with self.caught():
                compiler.check_h(h, data["g"])
        for check in (compiler.undefined, lambda: compiler.resolution(names, "")):
            with self.caught():
                check()


def _lacking(statistic: Statistic, document: Document, columns: Sequence[str]) -> Iterator[SpecError]:
    """Return an error for each column that a spec names and the data lack."""
    yield from statistic.lacking(columns)
    groups = {"cluster": statistic.cluster, "strata": statistic.strata, "classes": statistic.class_column}
    for key, name in groups.items():
        column = None if name is None else statistic.columns[name]
        if column is not None and column not in columns:
            hint = f"the columns are {listed(columns)}.{did_you_mean(column, columns)}"
            yield document.error(f"the data has no column `{column}`", (key,), hint=hint)


def _located(error: TrackpermError, origin: str) -> Problem:
    found = re.match(rf"{re.escape(origin)}:(\d+):(\d+): ", error.message)
    if found is None:
        return Problem(None, None, error.message, error.hint)
    return Problem(int(found[1]), int(found[2]), error.message[found.end() :], error.hint)
