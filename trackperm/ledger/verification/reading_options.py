"""Options with which the runs of a logged comparison are read again: those given, else those logged."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trackperm.comparison import reference_answers
from trackperm.errors import InputError
from trackperm.ledger.verification.files import columns_of_spec, read_result
from trackperm.messages import listed
from trackperm.tables import References, split_part

_Columns = tuple[Mapping[str, str], Mapping[str, str]]


@dataclass(frozen=True)
class ReadingOptions:
    """Artifacts, columns and reference answers of the two runs.

    Attributes
    ----------
    artifact : str or tuple of str or None
        Artifact of both runs, or one for each.
    references : References or None
        Reference answers that are not in the runs.
    own_columns : tuple of mapping
        Names of columns of baseline and candidate, by those in the comparison, where they differ.
    as_logged : tuple of str
        The options that are as logged, as the command line has them.
    """

    artifact: str | tuple[str | None, str | None]
    references: References | None
    own_columns: _Columns
    as_logged: tuple[str, ...]

    @classmethod
    def of(
        cls,
        files: Mapping[str, bytes],
        artifact: str | tuple[str, str] | None,
        labels: Any,
        own_columns: _Columns,
    ) -> ReadingOptions:
        """Complete the given options by those in ``comparison.json``, in which older logs have none.

        Raises
        ------
        InputError
            If no labels are given, and those of the comparison were in no file, or the file is gone.
        """
        data, of_spec = read_result(files), columns_of_spec(files)
        chosen, logged_columns, logged_labels = _artifacts(data), _own_columns(data), _labels(data)
        baseline, candidate = (
            {of_spec.get(name, name): own for name, own in given.items()} or logged
            for given, logged in zip(own_columns, logged_columns, strict=True)
        )
        file = _file(logged_labels) if labels is None else None
        if logged_labels is not None:
            roles, by_position = logged_labels, logged_labels.get("by_position") is True
        else:
            roles, by_position = of_spec, data["pairing"].get("by") == "position"
        columns = {role: str(roles[role]) for role in ("id", "label", "prediction") if role in roles}
        return cls(
            artifact or chosen,
            reference_answers(file if labels is None else labels, columns, by_position=by_position),
            (baseline, candidate),
            (
                *(() if artifact else _artifact_option(chosen)),
                *(() if file is None else (f"--labels {shlex.quote(file)}",)),
                *_column_options(own_columns, logged_columns),
            ),
        )

    def notes(self) -> Iterator[str]:
        """Name the options that are as logged, if there are any."""
        if self.as_logged:
            yield f"taken as logged: {listed(self.as_logged)}, with which the runs were read"


def _artifacts(data: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the artifacts that were chosen in baseline and candidate."""
    baseline, candidate = (each if isinstance(each, str) else None for each in _both(data.get("artifacts")))
    return baseline, candidate


def _own_columns(data: Mapping[str, Any]) -> _Columns:
    """Return the names of columns of baseline and candidate that differ from those in the comparison."""
    baseline, candidate = (
        {str(name): str(own) for name, own in each.items()} if isinstance(each, Mapping) else {}
        for each in _both(data.get("run_columns"))
    )
    return baseline, candidate


def _both(logged: object) -> list[Any]:
    return logged if isinstance(logged, list) and len(logged) == 2 else [None, None]


def _labels(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return where the reference answers were, and their columns; None without separate ones."""
    found = data.get("labels")
    return found if isinstance(found, Mapping) else None


def _file(labels: Mapping[str, Any] | None) -> str | None:
    """Return the logged file of reference answers; refuse labels in memory, and a file that is gone."""
    if labels is None:
        return None
    if not isinstance(file := labels.get("file"), str):
        raise InputError(
            "the labels of the comparison were a table in memory, which logs do not contain",
            hint="`--labels FILE` names a file with these labels.",
        )
    path, _ = split_part(file)
    if isinstance(path, Path) and not path.exists():
        place = "" if path.is_absolute() else f" in `{Path.cwd()}`"
        raise InputError(
            f"the file `{file}` with the labels of the comparison does not exist{place}",
            hint="`--labels FILE` names a file with these labels.",
        )
    return file


def _artifact_option(chosen: tuple[str | None, str | None]) -> Iterator[str]:
    if paths := dict.fromkeys(path for path in chosen if path is not None):
        yield f"--artifact {shlex.quote(','.join(paths))}"


def _column_options(given: _Columns, logged: _Columns) -> Iterator[str]:
    for role, others, columns in zip(("baseline", "candidate"), given, logged, strict=True):
        if not others:
            yield from (f"--{role}-column {shlex.quote(f'{name}={own}')}" for name, own in columns.items())
