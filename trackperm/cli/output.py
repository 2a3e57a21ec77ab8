"""``--format`` and ``-o FILE`` of every command: what is printed, and what is written to files as well."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from trackperm.errors import InputError, StorageError
from trackperm.messages import listed, printable, printable_lines
from trackperm.storage import standard_output, write_whole

Renderers = Mapping[str, Callable[[], str | bytes]]
"""By format, a function that renders the result; a last line end is added where there is none."""

SUFFIXES = {
    ".txt": "text",
    ".md": "markdown",
    ".html": "html",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
    ".xml": "junit",
    ".png": "png",
}
"""Formats of files, by the suffix of their names."""

FORMAT = typer.Option("--format", help="Format of what is printed.")
"""The option ``--format``: ``Annotated[Literal["text", "json"], FORMAT]`` names the formats of a command."""

TextOrJson = Annotated[Literal["text", "json"], FORMAT]
"""``--format`` of commands that print for people or for programs."""

OutputFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write a file as well, in the format of its suffix. Repeatable.",
    ),
]


def require_formats(
    files: Iterable[Path] | None, formats: Collection[str], *, check_folders: bool = True
) -> None:
    """Refuse files whose suffix names no format of this command, before anything is computed.

    Parameters
    ----------
    files : iterable of Path, optional
        What ``-o`` names.
    formats : collection of str
        Formats that the command can write.
    check_folders : bool
        Whether the folders have to exist already; where the answer matters more than its files, a missing
        folder is an error after the answer.

    Raises
    ------
    InputError
        If there is one, or the folder of one does not exist.
    """
    for file in files or ():
        if SUFFIXES.get(file.suffix.lower()) not in formats:
            known = [suffix for suffix, name in SUFFIXES.items() if name in formats]
            raise InputError(
                f"`{printable(file)}` does not say its format",
                hint=f"its name ends in one of {listed(known)}.",
            )
        if check_folders and not file.parent.is_dir():
            raise InputError(f"`{printable(file)}` is in a folder that does not exist", hint="make it first.")


def emit(renderers: Renderers, format_: str, files: Iterable[Path] | None = None) -> None:
    """Print a result in one format, and write it to `files` in theirs.

    Raises
    ------
    StorageError
        If a file cannot be written: the first one, after all others have been written.
    """
    content = renderers[format_]()
    echo(printable_lines(content) if format_ == "text" and isinstance(content, str) else content)
    failure = next(iter(write_files(renderers, files)), None)
    if failure is not None:
        raise failure


@dataclass(frozen=True)
class Block:
    """Text about one file that was checked; problems are printed to standard error."""

    text: str
    is_error: bool = False


def emit_checks(
    blocks: Sequence[Block], data: object, format_: Literal["text", "json"], files: Iterable[Path] | None
) -> None:
    """Print what checks of several files found, write it to `files`, and end with code 2 for a problem.

    Raises
    ------
    StorageError
        If a file cannot be written.
    """
    renderers: Renderers = {
        "text": lambda: "\n".join(block.text for block in blocks),
        "json": lambda: as_json(data),
    }
    if format_ == "text":
        for block in blocks:
            if block.is_error:
                typer.echo(printable_lines(block.text), err=True)
            else:
                echo(printable_lines(block.text))
    else:
        echo(renderers[format_]())
    failure = next(iter(write_files(renderers, files)), None)
    if failure is not None:
        raise failure
    if any(block.is_error for block in blocks):
        raise typer.Exit(2)


def echo(content: str | bytes) -> None:
    """Print rendered content, with one line end at its end."""
    with standard_output():
        typer.echo(_bytes(content), nl=False)


def write_files(renderers: Renderers, files: Iterable[Path] | None) -> list[StorageError]:
    """Write every file that can be written, and return the errors of the others."""
    failures = []
    for file in files or ():
        content = _bytes(renderers[SUFFIXES[file.suffix.lower()]]())
        try:
            write_whole(file, content)
        except StorageError as error:
            failures.append(error)
        else:
            typer.echo(f"written: {printable(file)}", err=True)
    return failures


def as_json(data: object) -> str:
    """Render plain values as JSON, as every command prints them."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)


def _bytes(content: str | bytes) -> bytes:
    """Encode text, in which a path may have half of a surrogate pair, with one line end at its end."""
    if isinstance(content, bytes):
        return content
    return (content if content.endswith("\n") else f"{content}\n").encode(errors="backslashreplace")
