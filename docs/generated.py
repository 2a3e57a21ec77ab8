"""Parts of pages that are made from the code, so that they cannot fall behind it.

What follows a line ``<!-- generated: NAME -->``, up to ``<!-- end -->``, is what the function of that name
makes of the page; ``tests/house/test_generated_parts.py`` writes it. A line ``<!-- built: NAME -->`` is
replaced when the site is built: the definitions of statistics are files of this repository already.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import typer
from markdown.extensions.toc import slugify
from typer.core import TyperArgument, TyperGroup, TyperOption

from trackperm import errors
from trackperm.automation.policy.policy import json_schema as policy_schema
from trackperm.cli.commands import app
from trackperm.statistic import builtin_names, load_statistic
from trackperm.statistic.counters.base import Counter
from trackperm.statistic.counters.registry import COUNTERS
from trackperm.statistic.schema import json_schema as statistic_schema
from trackperm.statistic.written_spec import written_spec
from trackperm.tables.columns.types import ColumnType

WRITTEN = re.compile(r"(?<=^<!-- generated: )([a-z-]+) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
BUILT = re.compile(r"^<!-- built: ([a-z-]+) -->$", re.MULTILINE)

PRINTED = re.compile(
    r"^```console\n(?:(?!^```).)*^ *(?:rank|column|begun)\b .*?^```$", re.MULTILINE | re.DOTALL
)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in what is built, and keep the lines of printed tables; called by MkDocs for every page."""
    made = BUILT.sub(lambda match: PARTS[match[1]](markdown), markdown)
    return PRINTED.sub(lambda match: match[0].replace("console", "{.console .table}", 1), made)


def with_written_parts(page: str) -> str:
    """Return a page whose generated parts are as the code says."""
    return WRITTEN.sub(
        lambda match: f"{match[1]} -->\n\n{PARTS[match[1]](page).strip()}\n\n<!-- end -->", page
    )


def command_line(_: str) -> str:
    """Return a section for every command: its usage, its help and its parameters."""
    root = typer.main.get_command(app)
    return "\n".join(_commands(root, "trackperm", None, "##"))


def _commands(command: Any, name: str, parent: Any, heading: str) -> Iterator[str]:
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    if parent is not None:
        yield f"{heading} `{name}`\n"
    usage = re.sub(
        r"\{(\w+)\}", lambda match: match[1].upper(), " ".join([name, *command.collect_usage_pieces(context)])
    )
    yield f"{_prose(command.help or '')}\n"
    if not isinstance(command, TyperGroup):
        yield f"```text\n{usage}\n```\n"
        yield from _parameters(command)
        return
    for child in command.list_commands(context):
        yield from _commands(command.get_command(context, child), f"{name} {child}", context, heading)


def _parameters(command: Any) -> Iterator[str]:
    rows = []
    for parameter in command.params:
        if isinstance(parameter, TyperArgument):
            # a bar would end the cell of a table
            names = (parameter.metavar or parameter.name.upper()).replace("|", "` or `")
            rows.append((f"`{names}`", parameter.help or ""))
        elif isinstance(parameter, TyperOption) and not parameter.hidden:
            names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
            rows.append((names, f"{_sentence(parameter.help or '')}{_values(parameter)}"))
    if rows:
        yield "| parameter | meaning |\n|---|---|"
        yield "\n".join(f"| {names} | {_cell(text)} |" for names, text in rows) + "\n"


def _values(option: TyperOption) -> str:
    """Return the values that an option takes, and the one by default, where there are any."""
    default = option.default
    choices = [each for each in _choices(option.type_descriptor.annotation) if isinstance(each, str)]
    found = f" One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else ""
    if default is True:
        return f"{found} Default: `{option.opts[0]}`."
    if default in (None, False, (), []) or callable(default):
        return found
    return f"{found} Default: `{default}`."


def _choices(annotation: Any) -> Iterator[Any]:
    """Yield the values of literals, also in unions and lists."""
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for part in get_args(annotation):
            yield from _choices(part)


def built_in_statistics(_: str) -> str:
    """Return a section for every built-in statistic, with its definition."""
    parts = []
    for name in builtin_names():
        statistic = load_statistic(name)
        parts.append(
            f"## `{name}`\n\n{statistic.description}\n\n```yaml\n{written_spec(statistic).rstrip()}\n```\n"
        )
    return "\n".join(parts)


def statistic_keys(_: str) -> str:
    """Return the table of the keys of a statistic's file."""
    return _keys(statistic_schema())


def policy_keys(_: str) -> str:
    """Return the tables of the keys of a policy's file, part by part."""
    return _keys(policy_schema())


def _keys(schema: Mapping[str, Any]) -> str:
    named = schema.get("$defs", {})
    titles = {name: part.get("title", name) for name, part in named.items()}
    return "\n".join(
        f"## {part['title']}\n\n{_prose(part.get('description', ''))}\n\n{_properties(part, titles)}\n"
        for part in [schema, *named.values()]
        if part.get("properties")
    )


def _properties(part: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    rows = [
        f"| `{name}` | {_type(given, titles)} | {_cell(_sentence(given.get('description', '')))}"
        f"{_range(given)}{_default(given)} |"
        for name, given in part["properties"].items()
    ]
    return "\n".join(["| key | value | meaning |", "|---|---|---|", *rows])


def _range(given: Mapping[str, Any]) -> str:
    """Return the bounds of a number as a sentence, where there are any."""
    for part in [given, *given.get("anyOf", [])]:
        bounds = {"above": part.get("exclusiveMinimum"), "below": part.get("exclusiveMaximum")}
        found = [f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None]
        if found:
            return f" {' and '.join(found).capitalize()}."
    return ""


def _default(given: Mapping[str, Any]) -> str:
    """Return the value of a key that is left out, unless it is empty."""
    default = given.get("default")
    if default is None or default == "" or isinstance(default, dict | list):
        return ""
    return f" Default: `{default if isinstance(default, str) else json.dumps(default)}`."


def _type(given: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    if "$ref" in given:
        name = given["$ref"].rpartition("/")[2]
        return f"[{titles[name]}](#{slugify(titles[name], '-')})" if name[0].isupper() else name
    if "enum" in given or "const" in given:
        return ", ".join(f"`{value}`" for value in given.get("enum", [given.get("const")]))
    for key in ("anyOf", "oneOf"):
        if key in given:
            return ", ".join(
                dict.fromkeys(_type(each, titles) for each in given[key] if each.get("type") != "null")
            )
    if given.get("type") == "array":
        return f"list of {_type(given.get('items', {}), titles) or 'values'}"
    types = given.get("type", "")
    return types if isinstance(types, str) else ", ".join(types)


_TYPES = {
    ColumnType.TEXT: "text",
    ColumnType.INTEGER: "integers",
    ColumnType.DECIMAL: "decimals",
    ColumnType.BOOLEAN: "true and false",
    ColumnType.TEXT_LIST: "lists of text",
    ColumnType.INTEGER_LIST: "lists of integers",
    ColumnType.DECIMAL_LIST: "lists of decimals",
}


def counters(_: str) -> str:
    """Return the table of the functions that count within an example."""
    rows = [
        f"| `{name}({', '.join(_arguments(counter))})` | {_cell(_summary(counter.function))}"
        f"{_optional(counter)} | {_columns(counter)} |"
        for name, counter in COUNTERS.items()
    ]
    return "\n".join(["| counter | value | columns |", "|---|---|---|", *rows])


def _arguments(counter: Counter) -> list[str]:
    """Return the names of a counter's arguments, as users know them."""
    known = {"class_": "class", "labels": "label", **({"order": "n"} if counter.choices else {})}
    return [known.get(name, name) for name in inspect.signature(counter.function).parameters]


def _columns(counter: Counter) -> str:
    """Return the types of the columns that a counter reads, by name where they differ."""
    types = [", ".join(text for each, text in _TYPES.items() if each in found) for found in counter.columns]
    if len({*types}) == 1:
        return types[0]
    return "; ".join(f"`{name}`: {text}" for name, text in zip(_arguments(counter), types, strict=False))


def _optional(counter: Counter) -> str:
    """Return the defaults and the values of a counter's optional arguments."""
    names, found = _arguments(counter)[len(counter.columns) :], ""
    for name, default in zip(names, counter.defaults(), strict=True):
        choices = counter.choices if name == names[-1] else ()
        shown = ", ".join(f"`{choice!r}`" for choice in choices)
        found += f" `{name}` is {'one of ' * bool(shown)}{shown or f'`{default!r}`'}"
        found += f"; by default `{default!r}`." if shown else " by default."
    return found


_NOUNS = {
    "Count the ": "number of ",
    "Sum the ": "sum of the ",
    "Compute the ": "the ",
    "Return ": "",
    "Test ": "",
}
"""Nouns in place of the verbs that begin the docstrings of counters."""


def _summary(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a docstring, with a noun in place of the verb."""
    text = (inspect.getdoc(function) or "").split("\n\n")[0]
    for verb, noun in _NOUNS.items():
        if text.startswith(verb):
            text = noun + text.removeprefix(verb)
    return text[:1].upper() + text[1:]


def errors_from_a_to_z(_: str) -> str:
    """Return the exceptions in alphabetical order, with what each is about and its exit code."""
    rows = []
    for name, found in sorted(vars(errors).items()):
        if not (inspect.isclass(found) and issubclass(found, errors.TrackpermError)):
            continue
        bases = ", ".join(f"`{base.__name__}`" for base in found.__bases__)
        summary = (inspect.getdoc(found) or "").split("\n\n")[0]
        rows.append(f"| `{name}` | {bases} | {found.exit_code} | {_cell(_prose(summary))} |")
    return "\n".join(["| exception | is a | exit code | raised for |", "|---|---|---|---|", *rows])


def _prose(text: str) -> str:
    """Convert the roles of docstrings to code; keep the rest."""
    text = re.sub(r":\w+:`~?([^`]+)`", lambda match: f"`{match[1].rpartition('.')[2]}`", text)
    return textwrap.dedent(text).replace("``", "`").replace("\b\n", "").strip()


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text.endswith((".", "?")) else f"{text}."


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|").replace("\n", " ")


SHARES = re.compile(
    r"^## ([^\n]+)\n(?:(?!^## ).)*?^>>> wrong_stars\([^\n]*\n\((0\.\d+), (0\.\d+)\)$",
    re.MULTILINE | re.DOTALL,
)


def wrong_stars(page: str) -> str:
    """Return the table of the shares that the blocks of the page print, heading by heading."""
    rows = [
        f"| [{title}](#{slugify(title, '-')}) | {_percent(wrong)} | {_percent(right)} |"
        for title, wrong, right in SHARES.findall(page)
    ]
    head = "| way | wrong stars | with trackperm |\n|---|--:|--:|"
    return "\n".join([head, *rows])


def _percent(share: str) -> str:
    return f"{100 * float(share):.0f} %"


PARTS: dict[str, Callable[[str], str]] = {
    "command-line": command_line,
    "built-in-statistics": built_in_statistics,
    "statistic-keys": statistic_keys,
    "policy-keys": policy_keys,
    "counters": counters,
    "errors": errors_from_a_to_z,
    "wrong-stars": wrong_stars,
}
