"""The command line: parse, call, print, exit code.

Exit codes: 0 done, 2 bad input, 3 the tracker failed, 4 what was verified does not match. (70 is a fault of
trackperm itself.) Those of `trackperm gate` are in its own module.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from trackperm.cli import compare as compare_command
from trackperm.cli import family as family_command
from trackperm.cli import gate as gate_command
from trackperm.cli import inspect as inspect_command
from trackperm.cli import leaderboard as leaderboard_command
from trackperm.cli import log as log_command
from trackperm.cli import mlflow as mlflow_commands
from trackperm.cli import policy as policy_commands
from trackperm.cli import power as power_command
from trackperm.cli import receive as receive_command
from trackperm.cli import report as report_commands
from trackperm.cli import statistic as statistic_commands
from trackperm.cli import verify as verify_command
from trackperm.cli import watch as watch_command
from trackperm.cli.output import echo
from trackperm.errors import FaultError, TrackpermError
from trackperm.messages import did_you_mean, printable, printable_lines, without_secrets
from trackperm.storage import is_full, no_room_for_temporary_files
from trackperm.version import __version__


class _Commands(TyperGroup):
    """Commands whose options say in our words what does not fit, and which choice may be meant."""

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
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(statistic_commands.app, name="statistic")
app.add_typer(report_commands.app, name="report")
app.add_typer(mlflow_commands.app, name="mlflow")
app.add_typer(policy_commands.app, name="policy")
app.command("compare")(compare_command.compare)
app.command("gate")(gate_command.gate)
app.command("watch")(watch_command.watch)
app.command("receive")(receive_command.receive)
app.command("inspect")(inspect_command.inspect)
app.command("leaderboard")(leaderboard_command.leaderboard)
app.command("family")(family_command.family)
app.command("verify")(verify_command.verify)
app.command("power")(power_command.power)
app.command("install-chart")(log_command.install_chart)


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


def main() -> None:
    """Run the command line; the console script's entry point."""
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
