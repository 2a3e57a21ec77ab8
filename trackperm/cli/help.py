"""Layout of help: upper-case arguments without types, options in sections, the width of the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand

from trackperm.cli.output import is_coloured

WIDEST = 120
"""Widest lines of help: longer ones are hard to read."""

OTHERS = "Options"
"""Section of options without one."""


def context_settings() -> dict[str, Any]:
    """Return the settings of all commands: `-h`, the width of the terminal, and colours."""
    return {
        "help_option_names": ["-h", "--help"],
        "max_content_width": min(shutil.get_terminal_size().columns, WIDEST),
        "color": is_coloured(),
    }


class Command(TyperCommand):
    """Command whose help has its arguments by name, and its options in the sections that they declare."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line; optional arguments are in brackets."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return [
            *([self.options_metavar] if self.options_metavar else []),
            *(_name(each) if each.required else f"[{_name(each)}]" for each in arguments),
        ]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each section with its heading."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for each in self.get_params(ctx):
            if each.param_type_name == "argument":
                sections["Arguments"].append((_name(each), getattr(each, "help", None) or ""))
            elif (record := each.get_help_record(ctx)) is not None:
                sections.setdefault(getattr(each, "rich_help_panel", None) or OTHERS, []).append(record)
        # The section of options without one is the last, because it contains `--help`.
        last = sections.pop(OTHERS, [])
        write_sections(formatter, {**sections, OTHERS: last})


class Commands(typer.Typer):
    """Typer whose commands have the help of :class:`Command`."""

    def __init__(self, **options: Any) -> None:
        plain = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}
        super().__init__(**{**plain, **options})

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Register a function as a command."""
        return super().command(name, cls=Command, **options)


def write_sections(formatter: Any, sections: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Write sections of names and descriptions, aligned with each other; empty ones are left out."""
    widest = _widest_name([name for rows in sections.values() for name, _ in rows])
    for heading, rows in sections.items():
        if rows:
            with formatter.section(typer.style(heading, bold=True)):
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])


def _widest_name(names: Iterable[str]) -> int:
    """Return the width of the column of names; click writes longer names on lines of their own."""
    return max((len(name) for name in names if len(name) <= 30), default=0)


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())
