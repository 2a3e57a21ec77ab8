"""Every command by its name, and what becomes of its errors.

A command's module is imported when the command is called, or when the help shows it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from trackperm.cli.output import echo
from trackperm.errors import FaultError, TrackpermError
from trackperm.messages import did_you_mean, printable, printable_lines, without_secrets
from trackperm.storage import is_full, no_room_for_temporary_files
from trackperm.version import __version__

_COMMANDS = {
    "compare": "compare:compare",
    "gate": "gate:gate",
    "watch": "watch:watch",
    "receive": "receive:receive",
    "inspect": "inspect:inspect",
    "leaderboard": "leaderboard:leaderboard",
    "family": "family:family",
    "verify": "verify:verify",
    "power": "power:power",
    "install-chart": "log:install_chart",
    "statistic": "statistic:app",
    "report": "report:app",
    "mlflow": "mlflow:app",
    "policy": "policy:app",
}
"""Module in this package, and name in it, of each command and group of commands, in the order of the help."""

_STYLE: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


class _Imported(Mapping[str, Any]):
    """Commands and groups by name, each imported and built when it is first looked up."""

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            module, _, attribute = _COMMANDS[name].partition(":")
            command = getattr(import_module(f"trackperm.cli.{module}"), attribute)
            alone = typer.Typer(**_STYLE)
            if isinstance(command, typer.Typer):
                alone.add_typer(command, name=name)
            else:
                alone.command(name)(command)
            self._built[name] = get_group(alone).commands[name]
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Commands(TyperGroup):
    """Commands that are imported when needed, whose options say in our words what does not fit."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Imported()

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _misfit(error)
            raise


def _misfit(error: typer.BadParameter) -> str:
    from pydantic import ValidationError

    from trackperm.statistic.misfits import in_words

    said = error.message
    if isinstance(error.__cause__, ValidationError):
        said, _ = in_words(error.__cause__.errors(include_url=False)[0], ())
    choices = re.fullmatch(r"'(.*)' is not one of ('.*')\.?", said)
    return said + did_you_mean(choices[1], re.findall("'([^']*)'", choices[2])) if choices else said


app = typer.Typer(
    cls=_Commands,
    name="trackperm",
    help="Exact paired-permutation tests for logged runs: is that difference real?",
    no_args_is_help=True,
    **_STYLE,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"trackperm {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ask of two logged runs whether their difference is real, by exact paired-permutation tests."""


def _print_error(text: str) -> None:
    typer.echo(f"error: {printable_lines(without_secrets(text))}", err=True)


def _failed(error: OSError) -> str:
    """Say which file failed: a file that is opened has a name, temporary ones are written to by libraries."""
    if is_full(error) and error.filename is None:
        return no_room_for_temporary_files(error).on_command_line()
    place = "" if error.filename is None else f"`{printable(error.filename)}`: "
    return f"{place}{error.strerror or error}"


def run() -> None:
    """Run the command that the arguments of the process name, and turn its error into an exit code."""
    try:
        app()
    except TrackpermError as error:
        _print_error(error.on_command_line())
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except UnicodeError as error:
        _print_error(f"the result could not be written: {error}")
        sys.exit(2)
    except OSError as error:
        _print_error(_failed(error))
        sys.exit(2)
    except Exception as error:
        if os.environ.get("TRACKPERM_DEBUG"):
            raise
        _print_error(FaultError.of(error).on_command_line())
        sys.exit(FaultError.exit_code)
