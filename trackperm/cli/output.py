"""Output of every command: ``--format`` for printing and ``-o FILE`` for files."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import typer

from trackperm.errors import InputError, StorageError
from trackperm.messages import listed, printable, printable_lines
from trackperm.storage import standard_output, write_whole

_VERDICTS = {
    "▲ better": typer.colors.GREEN,
    "▼ worse": typer.colors.RED,
    "≡ equivalent": typer.colors.CYAN,
    "≈ undecided": typer.colors.YELLOW,
}
"""Colours of verdicts on a terminal."""

_VERDICT = re.compile("|".join(_VERDICTS))

Renderers = Mapping[str, Callable[[], str | bytes]]
"""Functions that render the result, by format; a missing newline at the end is added."""

NARROWEST = 40
"""Narrowest lines of text, on narrower terminals too."""

SUFFIXES = {
    ".txt": "text",
    ".md": "markdown",
    ".html": "html",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
    ".xml": "junit",
    ".png": "png",
    ".svg": "svg",
}
"""Formats by the suffix of a file."""

FORMAT = typer.Option("--format", help="Format of the printed result.")
"""Option ``--format``; ``Annotated[Literal["text", "json"], FORMAT]`` declares the formats of a command."""

TextOrJson = Annotated[Literal["text", "json"], FORMAT]
"""Option ``--format`` of commands with text and JSON."""

RUNS, LABELS = "one of the runs that are compared", "the file of labels"
"""What files are that a command reads, in messages."""

OutputFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the result also to a file, in the format of its suffix; repeatable.",
    ),
]


def require_formats(
    files: Iterable[Path] | None, formats: Collection[str], *, check_folders: bool = True
) -> None:
    """Refuse files of ``-o`` whose suffix is not a format of this command, before the tests run.

    Without `check_folders`, a missing folder is an error only after the result is printed.
    """
    for file in files or ():
        if SUFFIXES.get(file.suffix.lower()) not in formats:
            known = [suffix for suffix, name in SUFFIXES.items() if name in formats]
            raise InputError(
                f"the suffix of `{printable(file)}` is not a format of this command",
                hint=f"use one of {listed(known)}.",
            )
        if check_folders and not file.parent.is_dir():
            raise InputError(f"the folder of `{printable(file)}` does not exist", hint="create it first.")


def require_other_files(
    files: Iterable[Path] | None, read: Mapping[str, Iterable[str | Path | None]]
) -> None:
    """Refuse files of ``-o`` that the command reads, before the tests run.

    `read` has the files and references of a command, by what they are.
    """
    for file in files or ():
        for role, references in read.items():
            for reference in references:
                if any(_is_same_file(file, each) for each in _possible_files(reference)):
                    raise InputError(
                        f"`{printable(file)}` is {role}; expected another file for `-o`",
                        hint="the result would replace what the file has.",
                    )


def _possible_files(reference: str | Path | None) -> list[Path]:
    """Return the paths that a reference may stand for: of ``FILE::PART``, each beginning."""
    text = "" if reference is None else str(reference)
    places = [match.start() for match in re.finditer("::", text)]
    return [Path(text[:place]) for place in (*places, len(text)) if place]


def _is_same_file(file: Path, other: Path) -> bool:
    try:
        return file.samefile(other.expanduser())
    except (OSError, RuntimeError, ValueError):  # a path does not exist, or is not valid
        return False


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; one that was closed before the start is None."""
    return stream is not None and stream.isatty()


def is_coloured(stream: TextIO | None = None) -> bool:
    """Whether text on `stream` (standard output by default) has colours.

    It has on a terminal, or if the environment has FORCE_COLOR; never if it has NO_COLOR. An empty value
    counts as none.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    stream = sys.stdout if stream is None else stream
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def _for_terminal(text: str, *, is_prose: bool) -> str:
    """Wrap sentences at the width of a terminal, and colour verdicts where colours are wanted."""
    if is_prose and is_terminal(sys.stdout):
        text = wrapped(text, shutil.get_terminal_size().columns)
    if not is_coloured():
        return text
    return _VERDICT.sub(lambda found: typer.style(found[0], fg=_VERDICTS[found[0]], bold=True), text)


def wrapped(text: str, width: int) -> str:
    """Wrap long lines, with a margin; parts between wide spaces stay whole if they fit."""
    return "\n".join(_wrapped_line(line, max(width, NARROWEST)) for line in text.split("\n"))


def _wrapped_line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    lines = [""]
    for part in line.split("   "):
        joined = f"{lines[-1]}   {part}" if lines[-1].strip() else f"{lines[-1]}{part}"
        if len(joined) > width and lines[-1].strip():
            lines.append(f"  {part}")
        else:
            lines[-1] = joined
    how: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False, "drop_whitespace": True}
    return "\n".join(
        textwrap.fill(each, width, subsequent_indent="  ", replace_whitespace=False, **how) for each in lines
    )


def echo_error(text: str) -> None:
    """Print an error to standard error, with colours where they are wanted."""
    if is_coloured(sys.stderr):
        text = text.replace("error:", typer.style("error:", fg=typer.colors.RED, bold=True), 1)
        text = re.sub("^Hint:", typer.style("Hint:", bold=True), text, flags=re.MULTILINE)
    typer.echo(text, err=True, color=is_coloured(sys.stderr))


def emit(
    renderers: Renderers,
    format_: str,
    files: Iterable[Path] | None = None,
    *,
    is_prose: bool = False,
    fitted: Callable[[int], str] | None = None,
) -> None:
    """Print a result in one format, and write it to `files` in theirs; raise the first failure at the end.

    Text that `is_prose`, and not a table, is wrapped at the width of a terminal; `fitted` renders text with
    tables for a terminal of some width.
    """
    if format_ == "text" and fitted is not None and sys.stdout.isatty():
        content: str | bytes = fitted(max(shutil.get_terminal_size().columns, NARROWEST))
        is_prose = True
    else:
        content = renderers[format_]()
    if format_ == "text" and isinstance(content, str):
        content = _for_terminal(printable_lines(content), is_prose=is_prose)
    echo(content)
    for failure in write_files(renderers, files):
        raise failure


@dataclass(frozen=True)
class Block:
    """Result of checking one file, as text; problems are printed to standard error."""

    text: str
    is_error: bool = False


def emit_checks(
    blocks: Sequence[Block], data: object, format_: Literal["text", "json"], files: Iterable[Path] | None
) -> None:
    """Print the results of checking several files, write them to `files`, and exit with 2 for a problem."""
    renderers: Renderers = {
        "text": lambda: "\n".join(block.text for block in blocks),
        "json": lambda: as_json(data),
    }
    if format_ == "json":
        echo(as_json(data))
    for block in blocks if format_ == "text" else ():
        if block.is_error:
            typer.echo(printable_lines(block.text), err=True)
        else:
            echo(printable_lines(block.text))
    for failure in write_files(renderers, files):
        raise failure
    if any(block.is_error for block in blocks):
        raise typer.Exit(2)


def echo(content: str | bytes) -> None:
    """Print rendered content, with a newline at the end."""
    with standard_output():
        typer.echo(_bytes(content), nl=False)


def write_files(renderers: Renderers, files: Iterable[Path] | None) -> list[StorageError]:
    """Write all files, and return the errors of those that cannot be written."""
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
    """Render JSON values in the style of all commands."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)


def _bytes(content: str | bytes) -> bytes:
    """Encode text with a newline at the end; lone surrogates, as in undecodable paths, are escaped."""
    if isinstance(content, bytes):
        return content
    return (content if content.endswith("\n") else f"{content}\n").encode(errors="backslashreplace")
