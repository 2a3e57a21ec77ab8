"""Registry of commands, and conversion of their errors to messages and exit codes.

The module of a command is imported only when the command is called, or when the help lists it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from trackperm.cli.help import OTHERS, Commands, context_settings, write_sections
from trackperm.cli.output import echo, echo_error
from trackperm.errors import FaultError, StorageError, TrackpermError
from trackperm.messages import did_you_mean, printable, printable_lines, without_secrets
from trackperm.storage import is_full, no_room_for_temporary_files
from trackperm.version import __version__

_SECTIONS = {
    "Every day": {
        "compare": "compare:compare",
        "leaderboard": "leaderboard:leaderboard",
        "inspect": "inspect:inspect",
    },
    "Planning and checking": {
        "power": "power:power",
        "statistic": "statistic:app",
        "family": "family:family",
        "verify": "verify:verify",
    },
    "Automation": {
        "gate": "gate:gate",
        "policy": "policy:app",
        "watch": "watch:watch",
        "receive": "receive:receive",
    },
    "Set-up": {
        "doctor": "doctor:doctor",
        "mlflow": "mlflow:app",
        "report": "report:app",
        "install-chart": "log:install_chart",
    },
}
"""Sections of the help: commands and groups, as ``module:attribute`` in this package."""

_COMMANDS = {name: place for section in _SECTIONS.values() for name, place in section.items()}


class _LazyCommands(Mapping[str, Any]):
    """Mapping of names to commands and groups, which are imported and built on first access."""

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            module, _, attribute = _COMMANDS[name].partition(":")
            command = getattr(import_module(f"trackperm.cli.{module}"), attribute)
            alone = Commands()
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


class _CommandGroup(TyperGroup):
    """Group of lazily imported commands in sections, with trackperm's own messages for invalid options."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _LazyCommands()

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Create the context, with settings that depend on the terminal."""
        return super().make_context(info_name, args, parent, **{**context_settings(), **extra})

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in sections, each with the first paragraph of its help, and then the options."""
        rows = {
            heading: [(name, _summary(self.commands[name].help)) for name in names]
            for heading, names in _SECTIONS.items()
        }
        records = [each.get_help_record(ctx) for each in self.get_params(ctx)]
        write_sections(formatter, {**rows, OTHERS: [record for record in records if record is not None]})

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _option_message(error)
            raise


def _summary(text: str | None) -> str:
    """Return the first paragraph of a help text, in one line."""
    return " ".join((text or "").partition("\n\n")[0].split())


def _option_message(error: typer.BadParameter) -> str:
    from pydantic import ValidationError

    from trackperm.statistic.misfits import in_words

    message = error.message
    if isinstance(error.__cause__, ValidationError):
        message, _ = in_words(error.__cause__.errors(include_url=False)[0], ())
    choices = re.fullmatch(r"'(.*)' is not one of ('.*')\.?", message)
    return message + did_you_mean(choices[1], re.findall("'([^']*)'", choices[2])) if choices else message


app = Commands(
    cls=_CommandGroup,
    name="trackperm",
    no_args_is_help=True,
    add_completion=True,
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
    """Test whether the difference of two runs on the same examples is real.

    `trackperm compare old.csv new.csv` compares two files; `trackperm COMMAND --help` explains a command.
    """


_NO_WORKING_DIRECTORY = "the working directory does not exist any more"


def _print_error(text: str) -> None:
    echo_error(f"error: {printable_lines(without_secrets(text))}")


def _file_system_message(error: OSError) -> str:
    """Describe an error of the file system, with the file if it is known.

    If no file is named, the full disk is that of temporary files, which libraries write.
    """
    if is_full(error) and error.filename is None:
        return no_room_for_temporary_files(error).on_command_line()
    if error.filename is None and not _has_working_directory():
        return f"{_NO_WORKING_DIRECTORY}\n\nHint: change to another one."
    place = "" if error.filename is None else f"`{printable(error.filename)}`: "
    return f"{place}{error.strerror or error}"


def _has_working_directory() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def run() -> None:
    """Run the command in the arguments of the process, and convert its errors to exit codes."""
    try:
        app(prog_name="trackperm")
    except TrackpermError as error:
        if (error.hint is None or isinstance(error, StorageError)) and not _has_working_directory():
            error.hint = f"{_NO_WORKING_DIRECTORY}; change to another one."
        _print_error(error.on_command_line())
        sys.exit(error.exit_code)
    except UnicodeError as error:
        _print_error(f"the result cannot be written: {error}")
        sys.exit(2)
    except OSError as error:
        _print_error(_file_system_message(error))
        sys.exit(2)
    except Exception as error:
        if os.environ.get("TRACKPERM_DEBUG"):
            raise
        _print_error(FaultError.of(error).on_command_line())
        sys.exit(FaultError.exit_code)
