"""Tables that a W&B run logged: which one is meant, and whether all its rows are there.

These rules are the same for a run in a folder (:mod:`trackperm.tables.wandb.run_folder`) and on a server
(:mod:`trackperm.trackers.wandb.artifacts`), which differ in how files are fetched. W&B stores at most 200,000
rows of a table, and 10,000 in the copy for its pages; the only sign of truncation is the number of rows that
it records. A table with such a number is refused unless all rows are there.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from shutil import copyfile
from typing import Any

from trackperm.errors import SourceError
from trackperm.messages import did_you_mean, listed, listing
from trackperm.tables.formats.log_table import columns_and_rows, table_of_rows
from trackperm.tables.formats.parquet import tables_in_parts
from trackperm.tables.json_values import parsed
from trackperm.tables.likely_names import likeliest
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.systems import of_system
from trackperm.tables.table import ExampleTable

Detect = Callable[[SourceFile], Source]
"""Function that returns the format of a file, as :func:`trackperm.tables.registry.detect_format`."""

TABLE_SUFFIX = ".table.json"
_PARTITIONED_SUFFIX = ".partitioned-table.json"
JOINED_SUFFIX = ".joined-table.json"

_NOT_PREDICTIONS = ("code", "job", "model", "run_table", "wandb-events", "wandb-history")
"""Types of artifacts that wandb creates itself, or that contain no examples."""

_FILES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".eval", TABLE_SUFFIX)
_MOST_ROWS = 200_000
_AS_FILE = (
    "`trackperm.log_predictions(run, frame)`, or "
    "`artifact = wandb.Artifact('predictions', 'predictions')`, `artifact.add_file('predictions.parquet')`, "
    "`run.log_artifact(artifact)`."
)


class Likelihood(enum.IntEnum):
    """How likely a file contains predictions, judged by its name."""

    CHART = 0
    PERHAPS = 1
    TABLE = 2


@dataclass(frozen=True)
class LoggedTable:
    """A table that a run logged.

    Attributes
    ----------
    name : str
        Name that selects it: the key under which it was logged, or ``<artifact>/<file>``.
    fetch : callable
        Fetches its files, in order, to a folder or leaves them where they are, and returns their paths.
        Raises :class:`~trackperm.errors.SourceError` or :class:`~trackperm.errors.TrackerError`.
    n_rows : int, optional
        Number of rows that W&B recorded.
    is_own_format : bool
        Whether the files are in wandb's own format, in which a table can have several.
    likelihood : Likelihood
        Whether it is considered where no table is named.
    n_versions : int
        Number of tables that were logged under this name; this is the last one.
    parts : tuple of str
        Names of its Parquet files, which are not tables by themselves.
    """

    name: str
    fetch: Callable[[Path], Sequence[Path]]
    n_rows: int | None = None
    is_own_format: bool = True
    likelihood: Likelihood = Likelihood.TABLE
    n_versions: int = 1
    parts: tuple[str, ...] = ()

    @property
    def artifact(self) -> str:
        """Name of the artifact that contains it, for a file of an artifact."""
        return self.name.partition("/")[0]


def _likelihood_of_file(path: str) -> Likelihood | None:
    """Judge by its name whether a file in an artifact can contain predictions; None if it cannot."""
    name = PurePosixPath(path).name.lower().removesuffix(".gz")
    if name.endswith(_FILES):
        return Likelihood.TABLE
    is_special = name.endswith((_PARTITIONED_SUFFIX, JOINED_SUFFIX))
    return Likelihood.PERHAPS if name.endswith(".json") and not is_special else None


def likelihood_of_key(key: str, config: Mapping[str, Any]) -> Likelihood:
    """Distinguish a logged table from the data of a chart, which the run's config names."""
    own = config.get("_wandb")
    charts = own.get("visualize") if isinstance(own, dict) else None
    is_chart = isinstance(charts, dict) and key.endswith("_table") and key.removesuffix("_table") in charts
    return Likelihood.CHART if is_chart else Likelihood.TABLE


def holds_predictions(artifact_type: str) -> bool:
    """Whether artifacts of this type can contain predictions, that is, whether people log them."""
    return artifact_type not in _NOT_PREDICTIONS and not artifact_type.startswith("wandb-run-")


def tables_of_artifact(
    prefix: str,
    entries: Collection[str],
    parts: Callable[[str], Sequence[str] | None],
    fetch: Callable[[Sequence[str], Path], list[Path]],
    n_versions: int = 1,
) -> list[LoggedTable]:
    """List the tables among the files of an artifact; files that are parts of one table count as one.

    Given the path of a partitioned table, `parts` returns the paths to which it points; None if it cannot be
    read. Given paths, `fetch` fetches the files to a folder or leaves them in place, and returns their
    places.
    """
    partitions = {
        path: pointed_at
        for path in entries
        if path.endswith(_PARTITIONED_SUFFIX) and (pointed_at := parts(path)) is not None
    }
    sharded = _parquet_parts(entries)
    in_parts = {part for paths in partitions.values() for part in paths}
    in_parts |= {part for tables in sharded.values() for paths in tables for part in paths}
    found = [
        LoggedTable(
            prefix + path,
            partial(fetch, partitions.get(path, [path])),
            is_own_format=path in partitions or path.endswith(TABLE_SUFFIX),
            likelihood=likelihood or Likelihood.TABLE,
            n_versions=n_versions,
        )
        for path, likelihood in ((path, _likelihood_of_file(path)) for path in entries)
        if path in partitions or (likelihood is not None and path not in in_parts)
    ]
    for folder, tables in sharded.items():
        if len(tables) == 1:
            together = partial(_fetch_together, fetch, tables[0])
            names = tuple(prefix + part for part in tables[0])
            found.append(
                LoggedTable(
                    prefix + folder, together, is_own_format=False, n_versions=n_versions, parts=names
                )
            )
    return found


def _parquet_parts(entries: Iterable[str]) -> dict[str, list[tuple[str, ...]]]:
    """Group the parts of Parquet tables in an artifact by folder; ``.`` is the outermost."""
    folders: dict[str, list[str]] = {}
    for path in entries:
        folders.setdefault(str(PurePosixPath(path).parent), []).append(PurePosixPath(path).name)
    return {
        folder: [tuple(str(PurePosixPath(folder, name)) for name in parts) for parts in tables]
        for folder, names in folders.items()
        if (tables := tables_in_parts(names))
    }


def _fetch_together(
    fetch: Callable[[Sequence[str], Path], list[Path]], paths: Sequence[str], folder: Path
) -> list[Path]:
    """Fetch the parts of a table and copy them to a folder that contains nothing else."""
    target = folder / "parts"
    target.mkdir()
    for path, file in zip(paths, fetch(paths, folder), strict=True):
        copyfile(file, target / PurePosixPath(path).name)
    return [target]


def parts_of(pointer: Path, entries: Iterable[str]) -> list[str]:
    """List the tables, among the `entries` of an artifact, to which a partitioned table points."""
    document = SourceFile(pointer).document
    folder = str(document.get("parts_path", "")).strip("/") if isinstance(document, dict) else ""
    return sorted(path for path in entries if path.startswith(f"{folder}/") and path.endswith(TABLE_SUFFIX))


def choose(
    tables: Sequence[LoggedTable],
    wanted: str | None,
    called: str,
    choice: Callable[[str], str],
    others: Sequence[str] = (),
) -> tuple[LoggedTable, str | None]:
    """Choose the table that `wanted` names, ``NAME`` or ``NAME::PART``, or the only one; return its part too.

    The name of an artifact is enough if it contains one table. `called` is the run in messages, `choice`
    returns how a user selects a name, and `others` are logged objects that are not tables. Raise SourceError
    if the run has no such table, or has several and none was named.
    """
    if wanted is not None:
        return _named(tables, wanted, called)
    for likelihood in (Likelihood.TABLE, Likelihood.PERHAPS):
        found = [table for table in tables if table.likelihood is likelihood]
        if len(found) == 1:
            return found[0], None
        if found:
            raise SourceError(
                f"{called} has {len(found)} tables that could hold its predictions:\n\n"
                + listing([f"{table.name}{_rows(table.n_rows)}" for table in found]),
                hint=f"choose one: {choice(likeliest(table.name for table in found))}.",
            )
    names = [*(f"{table.name} (of a chart)" for table in tables), *others]
    raise SourceError(
        f"{called} has no table that could hold per-example predictions "
        f"({'only ' + listed(names) if names else 'no tables at all'})",
        hint=f"log one row per example, with the columns `id`, `prediction` and `label`: {_AS_FILE}",
    )


def _named(tables: Sequence[LoggedTable], wanted: str, called: str) -> tuple[LoggedTable, str | None]:
    names = [table.name for table in tables]
    for name, part in ((wanted, None), wanted.rpartition("::")[::2]):
        exact = [table for table in tables if table.name == name]
        inside = [table for table in tables if table.artifact == name and table.name != name]
        for found in (exact, inside):
            if len(found) == 1:
                return found[0], part or None
        if inside:
            raise SourceError(
                f"artifact `{name}` of {called} has {len(inside)} files that could be meant",
                hint=f"choose one: {listed(table.name for table in inside)}.",
            )
    whole = next((table for table in tables if wanted.partition("::")[0] in table.parts), None)
    if whole is not None and len(whole.parts) == 1:
        return whole, wanted.partition("::")[2] or None
    if whole is not None:
        raise SourceError(
            f"`{wanted}` of {called} is one of {len(whole.parts)} parts of a table",
            hint=f"`{whole.name}` names the whole table.",
        )
    hint = f"it has {listed(names)}.{did_you_mean(wanted, names)}" if names else f"log one: {_AS_FILE}"
    raise SourceError(f"{called} has no table `{wanted}`", hint=hint)


def read_table(
    logged: LoggedTable, folder: Path, origin: str, detect: Detect, part: str | None = None
) -> ExampleTable:
    """Fetch the files of a table to an empty folder and read them as one table.

    `detect` returns the format of a file that is not in wandb's own format. Raise SourceError if the files
    are not tables or rows are missing, and TrackerError if they cannot be fetched.
    """
    files = [SourceFile.opened(path, origin, part) for path in logged.fetch(folder)]
    if logged.is_own_format:
        read = _read_own_format(files, origin)
        _require_all_rows(read, logged)
        read = read if part is None else of_system(read, part)
    else:
        read = _read_any_format(files[0], detect)
    notes = list(read.notes)
    if logged.n_versions > 1:
        notes.append(f"the last of {logged.n_versions} tables that were logged as `{logged.name}`")
    if logged.is_own_format and logged.n_rows is None and len(read) == _MOST_ROWS:
        notes.append(f"`{logged.name}` has {_MOST_ROWS:,} rows, at which W&B truncates; were there more?")
    return replace(read, notes=tuple(notes))


def _read_any_format(file: SourceFile, detect: Detect) -> ExampleTable:
    source = detect(file)
    if source.needs_references:
        raise SourceError(
            f"`{file.origin}` ({source.title}) needs reference answers to make a table",
            hint="log the answers with the predictions, in a column `label`.",
        )
    read = file.keep_for(source.read(file))
    return of_system(read, file.part) if file.part is not None and source.part is None else read


def _read_own_format(files: Sequence[SourceFile], origin: str) -> ExampleTable:
    """Concatenate the rows of tables in wandb's own format, which have the same columns."""
    names: list[str] = []
    rows: list[list[Any]] = []
    for number, file in enumerate(files):
        columns, data = columns_and_rows(_document(file, origin), origin)
        if number and columns != names:
            raise SourceError(
                f"`{origin}`: part {number + 1} of {len(files)} of the table has the columns"
                f" {listed(columns)}, those before it {listed(names)}"
            )
        names = columns
        rows += data
    return table_of_rows(names, rows, origin)


def _document(file: SourceFile, origin: str) -> Any:
    """Parse a table; wandb allows integers as names of columns."""
    try:
        document = parsed(file.text)
    except ValueError as error:
        raise SourceError(f"`{origin}` is not JSON: {error}") from error
    if isinstance(document, dict) and isinstance(document.get("columns"), list):
        document["columns"] = [str(name) for name in document["columns"]]
    return document


def _require_all_rows(read: ExampleTable, logged: LoggedTable) -> None:
    if logged.n_rows is None or len(read) == logged.n_rows:
        return
    kept, noted = f"{len(read):,}", f"{logged.n_rows:,}"
    if len(read) > logged.n_rows:
        raise SourceError(
            f"table `{logged.name}` of `{read.origin}` has {kept} rows, not {noted} as its run says"
        )
    raise SourceError(
        f"W&B stored {kept} of the {noted} rows of table `{logged.name}` of `{read.origin}`",
        hint=f"it truncates tables to {_MOST_ROWS:,} rows, and does not log a table again that has grown; it"
        f" stores files completely: {_AS_FILE}",
    )


def _rows(n_rows: int | None) -> str:
    return "" if n_rows is None else f"  ({n_rows:,} rows)"
