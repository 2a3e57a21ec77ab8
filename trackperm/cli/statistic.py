"""``trackperm statistic``: list, show, check and create statistics."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackperm.cli.help import Commands
from trackperm.cli.output import (
    Block,
    OutputFiles,
    TextOrJson,
    echo,
    emit_checks,
    require_formats,
    require_other_files,
)
from trackperm.errors import InputError, TrackpermError
from trackperm.messages import printable
from trackperm.storage import write_whole

if TYPE_CHECKING:
    from trackperm.statistic import Statistic
    from trackperm.statistic.problems import Problem

WIDTH = 80

app = Commands(no_args_is_help=True)


@app.callback()
def root() -> None:
    """List, show, check and write statistics."""


@app.command("list")
def list_() -> None:
    """List the built-in statistics, with their counts and columns."""
    from trackperm.statistic import builtin_names, load_statistic

    for name in builtin_names():
        statistic = load_statistic(name)
        summary = re.split(r"[:;.](?=\s|$)", statistic.description, maxsplit=1)[0]
        echo(name)
        echo(_wrapped(summary, "    "))
        echo(_wrapped(_needs(statistic), "    "))


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A built-in statistic or a file.")],
) -> None:
    """Show a statistic as a spec in its long form, with its columns and its engine."""
    from trackperm.statistic import load_statistic
    from trackperm.statistic.written_spec import written_spec

    statistic = load_statistic(name)
    echo(_wrapped(statistic.description, "# "))
    echo(written_spec(statistic))
    echo(_wrapped(_needs(statistic), "# "))
    echo(_wrapped(f"engine: {_engine(statistic)}", "# "))


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Specs in YAML.")],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Predictions, FILE or FILE::PART; the specs are checked against their columns.",
        ),
    ] = None,
    format_: TextOrJson = "text",
    output: OutputFiles = None,
) -> None:
    """Check specs, and print all errors with line and column; exit code 2 if there are any."""
    from trackperm.statistic.problems import problems
    from trackperm.tables import read_examples, split_part

    require_formats(output, ("text", "json"))
    require_other_files(output, {"one of the specs": files, "the file of predictions": (data,)})
    columns = None
    if data is not None:
        part_of = split_part(data)
        columns = read_examples(part_of[0], part=part_of[1]).columns
    found = {path: problems(path, columns) for path in files}
    results = [
        {"file": str(path), "ok": not wrong, "problems": [vars(problem) for problem in wrong]}
        for path, wrong in found.items()
    ]
    blocks = [Block(_checked(path, wrong), is_error=bool(wrong)) for path, wrong in found.items()]
    emit_checks(blocks, results, format_, output)


def _checked(path: Path, wrong: Sequence[Problem]) -> str:
    """Describe the problems of a spec, or report that it is valid."""
    if not wrong:
        return f"{printable(path)}: ok"
    number = "1 problem" if len(wrong) == 1 else f"{len(wrong)} problems"
    return "\n\n".join([*(_written(path, problem) for problem in wrong), f"{printable(path)}: {number}"])


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the statistic.")],
) -> None:
    """Write NAME.yaml, a commented template that is a valid spec."""
    from trackperm.statistic.direction import direction_word, lower_is_better_by_name
    from trackperm.statistic.load import TEMPLATE

    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise InputError(
            f"`{name}` is not a name of a statistic; expected up to 64 letters, digits, `_` and `-`",
            hint="choose a name such as `my_score`.",
        )
    path = Path(f"{name}.yaml")
    template = TEMPLATE.read_text(encoding="utf-8")
    if direction_word(name) is not None:
        greater = "false" if lower_is_better_by_name(name) else "true"
        template = template.replace("# greater_is_better: false ", f"greater_is_better: {greater:5}   ")
    if path.exists():
        raise InputError(f"`{path}` already exists", hint="choose another name, or remove the file.")
    write_whole(path, template.encode())
    echo(f"{path} written; `trackperm statistic check {path}` checks it")


def _needs(statistic: Statistic) -> str:
    from trackperm.statistic.definition import class_text

    groups = [
        f"{use} {statistic.columns[column]}"
        for use, column in (
            ("cluster", statistic.cluster),
            ("strata", statistic.strata),
            ("classes", statistic.class_column),
        )
        if column is not None
    ]
    parameters = [f"{name}={value}" for name, value in statistic.parameters.items()]
    parts = {
        "counts": statistic.count_names,
        "columns": statistic.used_columns,
        "parameters": parameters,
        "groups": groups,
        "classes": [] if statistic.class_column else [class_text(value) for value in statistic.classes],
    }
    return "; ".join(f"{part}: {_joined(names)}" for part, names in parts.items() if names)


def _joined(names: Iterable[str]) -> str:
    return ", ".join(names)


def _engine(statistic: Statistic) -> str:
    from trackperm.statistic.forecast import forecast_engine

    try:
        return forecast_engine(statistic).engine
    except TrackpermError:
        return "depends on the data"


def _written(path: Path, problem: Problem) -> str:
    place = f"{printable(path)}:{problem.line}:{problem.column}: " if problem.line else ""
    hint = f"\n\nHint: {problem.hint}" if problem.hint else ""
    return f"{place}{problem.message}{hint}"


def _wrapped(text: str, margin: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
