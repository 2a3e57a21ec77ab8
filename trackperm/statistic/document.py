"""Strict YAML: a document knows the place of every value, and errors show it.

The scalars are those of YAML 1.2 (``yes``, ``on``, ``1_000`` and ``12:30:00`` are text). Duplicate keys,
anchors, aliases, merge keys, tags and several documents are refused. Every mistake, in the YAML, in the shape
that a pydantic model requires or inside an expression, is one :class:`~trackperm.errors.SpecError` with file,
line and column.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from trackperm.errors import SpecError
from trackperm.messages import kind, masked, printable, without_credentials
from trackperm.ordinary_files import HINT, special_kind
from trackperm.statistic.misfits import in_words

# A spec has a few dozen lines; these limits bound the time and memory that any text can take.
MAX_BYTES = 256 * 1024
MAX_NESTING = 20
MAX_NODES = 10_000
MAX_DIGITS = 100
_WIDTH = 120  # characters of a line that is shown, which fits a terminal

DocumentPath = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)
_NODES: dict[type[yaml.Node], str] = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}

_TAG = "tag:yaml.org,2002:"
_CORE_SCALARS = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    ),
}


class _Refused(yaml.MarkedYAMLError):
    """A construct that YAML allows and trackperm does not."""


class _TooManyError(yaml.MarkedYAMLError):
    """A document with more keys and values than :data:`MAX_NODES`."""


class _CoreLoader(yaml.SafeLoader):
    """Loader with the scalars of YAML 1.2 and without anchors, tags and deep nesting."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}  # type: ignore[misc]
    _depth = 0
    _n_nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        problem = None
        if isinstance(event, yaml.AliasEvent):
            problem = "aliases are not supported"
        elif event.anchor is not None:
            problem = "anchors are not supported"
        elif event.tag is not None:
            problem = "tags are not supported"
        elif self._depth >= MAX_NESTING:
            problem = f"nested more than {MAX_NESTING} levels deep"
        elif self._n_nodes >= MAX_NODES:
            problem = f"more than {MAX_NODES:,} keys and values"
            raise _TooManyError(problem=problem, problem_mark=event.start_mark)
        if problem is not None:
            raise _Refused(problem=problem, problem_mark=event.start_mark)
        self._depth += 1
        self._n_nodes += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _CoreDumper(yaml.SafeDumper):
    """Dumper that quotes text which the scalars of YAML 1.2 would read otherwise."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}  # type: ignore[misc]


for _name, _pattern in _CORE_SCALARS.items():
    for _class in (_CoreLoader, _CoreDumper):
        _class.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})\Z"), None)  # type: ignore[no-untyped-call, unused-ignore]


def dump(data: dict[str, Any]) -> str:
    """Encode plain data as YAML that :meth:`Document.parse` reads back unchanged."""
    text = yaml.dump(data, Dumper=_CoreDumper, sort_keys=False, allow_unicode=True, width=2**31)
    return str(text)


def scalar(text: str) -> int | float | str | bool | None:
    """Parse `text` as a scalar of YAML 1.2: ``1`` is an integer, ``yes`` and ``'1'`` are text.

    It refuses a number of more than 100 characters.
    """
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    tag = next((name for name, form in _CORE_SCALARS.items() if re.fullmatch(form, text)), "str")
    return _value(tag, text)


def _value(tag: str, text: str) -> int | float | str | bool | None:
    if tag == "null":
        return None
    if tag == "bool":
        return text.lower() == "true"
    if tag in ("int", "float") and len(text) > MAX_DIGITS:
        raise SpecError(f"a number of {len(text)} characters; the limit is {MAX_DIGITS}")
    if tag == "int":
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if tag == "float":
        return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
    return text


@dataclass(frozen=True)
class _Source:
    """Text of a document, with newlines as line ends, and its name in messages."""

    origin: str
    text: str

    @cached_property
    def line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("[\n\x85\u2028\u2029]", self.text))]

    def line_end(self, line: int) -> int:
        return self.line_starts[line + 1] - 1 if line + 1 < len(self.line_starts) else len(self.text)

    def error(self, message: str, start: int, end: int, *, hint: str | None = None) -> SpecError:
        """Return an error about the characters from `start` to `end`, with their line.

        Credentials are removed before anything is truncated, as they could not be recognised afterwards.
        """
        start = min(start, len(self.text))
        line = bisect_right(self.line_starts, start) - 1
        begin, stop = self.line_starts[line], self.line_end(line)
        excerpt = _excerpt(masked(self.text[begin:stop]), start - begin, min(end, stop) - start)
        where = f"{self.origin}:{line + 1}:{start - begin + 1}"
        message = re.sub(r"`([^`]{60})[^`]{60,}([^`]{30})`", r"`\1…\2`", without_credentials(message))
        return SpecError(f"{where}: {message}\n\n{excerpt}", hint=hint)

    def error_at(self, node: yaml.Node, message: str, *, hint: str | None = None) -> SpecError:
        return self.error(message, node.start_mark.index, node.end_mark.index, hint=hint)

    def syntax_error(self, error: yaml.MarkedYAMLError) -> SpecError:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or "unreadable"
        at = len(self.text) if mark is None else mark.index
        if isinstance(error, _Refused):
            return self.error(problem, at, at + 1, hint="repeat the value where it is needed.")
        if isinstance(error, _TooManyError):
            return self.error(problem, at, at + 1)
        if error.context == "expected a single document in the stream":
            return self.error("more than one YAML document", at, at + 3, hint="write one file for each.")
        hint = "quote text that contains `: ` or ` #` or that starts with one of `*&!%@{[|>'\"`."
        return self.error(f"not valid YAML: {problem}", at, at + 1, hint=hint)

    def plain(self, node: yaml.Node, path: DocumentPath) -> Any:
        """Convert a node to plain Python."""
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item, (*path, i)) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        try:
            node.value.encode()
            return _value(node.tag.removeprefix(_TAG), node.value)
        except UnicodeEncodeError:
            raise self.error_at(node, f"half of a surrogate pair at `{_json_path(path)}`") from None
        except SpecError as error:
            raise self.error_at(node, f"{error.message} at `{_json_path(path)}`") from None

    def mapping(self, node: yaml.MappingNode, path: DocumentPath) -> dict[str, Any]:
        """Convert a mapping to a dict; refuse duplicate keys and keys that are not text."""
        lines: dict[str, int] = {}
        data = {}
        for key, value in node.value:
            name = self.plain(key, path)
            if not isinstance(name, str):
                problem = f"a key must be a name, not {kind(name)}, at `{_json_path(path)}`"
                raise self.error_at(key, problem, hint="quote it if it is text.")
            if name == "<<":
                raise self.error_at(key, "merge keys are not supported", hint="write the keys out.")
            if name in lines:
                raise self.error_at(key, f"the key `{name}` is already in line {lines[name]}")
            lines[name] = key.start_mark.line + 1
            data[name] = self.plain(value, (*path, name))
        return data


@dataclass(frozen=True)
class Passage:
    """Text of one scalar of a document, with the place of each of its characters.

    Attributes
    ----------
    text : str
        Value of the scalar.
    path : tuple of str and int
        Keys and indices that lead to it.
    """

    text: str
    path: DocumentPath
    _source: _Source = field(repr=False)
    _offsets: tuple[int, ...] | None = field(repr=False)
    _start: int = field(repr=False)
    _end: int = field(repr=False)

    def error(self, message: str, start: int, end: int, *, hint: str | None = None) -> SpecError:
        """Return an error about the characters from `start` to `end` (exclusive).

        The error shows the whole scalar where it is written with escapes, so that its characters cannot be
        located in the file.
        """
        offsets = self._offsets
        if not offsets:
            first, last = self._start, self._end
        else:
            first = offsets[start] if start < len(offsets) else offsets[-1] + 1
            last = offsets[min(max(end, start + 1), len(offsets)) - 1] + 1
        return self._source.error(f"{message} at `{_json_path(self.path)}`", first, last, hint=hint)


@dataclass(frozen=True)
class Document:
    """A YAML mapping with the place of every key and value.

    Attributes
    ----------
    data : dict
        The values as plain Python objects.
    """

    data: dict[str, Any]
    _source: _Source = field(repr=False)
    _root: yaml.Node = field(repr=False)
    _by_key: dict[int, dict[str | int, tuple[yaml.Node, yaml.Node]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def read(cls, path: Path, origin: str | None = None) -> Document:
        """Read and parse a file; raise SpecError if it cannot be read or is not strict YAML."""
        origin = printable(path if origin is None else origin)
        if special := special_kind(path):
            raise SpecError(f"`{origin}` is {special}; expected an ordinary file", hint=HINT)
        try:
            with path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            raise SpecError(f"there is no file `{origin}`") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SpecError(f"`{origin}` cannot be read: {reason}") from error
        return cls.parse(content, origin)

    @classmethod
    def parse(cls, content: str | bytes, origin: str) -> Document:
        """Parse `content`, one YAML mapping; the SpecError of a mistake shows its place."""
        if len(content) > MAX_BYTES:
            raise SpecError(f"{origin}: more than {MAX_BYTES // 1024} KiB; expected a spec")
        if isinstance(content, bytes):
            content = _decoded(content, origin)
        text = content.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        source = _Source(origin, text)
        try:
            root = yaml.compose(text, Loader=_CoreLoader)
        except yaml.reader.ReaderError as error:
            at = error.position
            raise source.error("a character that YAML does not allow", at, at + 1) from None
        except yaml.MarkedYAMLError as error:
            raise source.syntax_error(error) from None
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            raise SpecError(f"{origin}: not valid YAML: {error}") from None
        if root is None:
            raise SpecError(f"{origin}: the file is empty")
        if not isinstance(root, yaml.MappingNode):
            raise source.error_at(root, "expected keys and values, found another kind of document")
        return cls(source.mapping(root, ()), source, root)

    @property
    def origin(self) -> str:
        """Name of the document in messages, usually its path."""
        return self._source.origin

    def error(
        self, message: str, path: DocumentPath, *, key: bool = False, hint: str | None = None
    ) -> SpecError:
        """Return an error about the value at `path`, or about its key.

        If the document lacks the end of the path, the error is about the part that exists.
        """
        name, node, depth = self._find(path)
        node = name if key and name is not None else node
        return self._source.error_at(node, f"{message} at `{_json_path(path[:depth])}`", hint=hint)

    def passage(self, path: DocumentPath) -> Passage:
        """Return the text of the scalar at `path`; refuse a folded block, whose characters have no place."""
        _, node, _ = self._find(path)
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(f"expected one value, found {_NODES[type(node)]}", path)
        if node.style == ">":
            raise self.error("a folded block", path, hint="write `|` for an expression of several lines.")
        text = str(node.value)
        offsets = _offsets(node, self._source)
        return Passage(text, path, self._source, offsets, node.start_mark.index, node.end_mark.index)

    def validate(self, model: type[Model]) -> Model:
        """Check the shape of the document against a pydantic model; raise the first mistake in its order."""
        try:
            return model.model_validate(self.data)
        except ValidationError:
            raise self.misfits(model)[0] from None

    def misfits(self, model: type[Model]) -> list[SpecError]:
        """Return an error for each mistake against a pydantic model, in the order of the document."""
        try:
            model.model_validate(self.data)
        except ValidationError as error:
            problems = sorted(error.errors(include_url=False), key=self._rank)
            return [self._misfit(problem, _keys(model, problem["loc"])) for problem in problems]
        return []

    def _find(self, path: Sequence[str | int]) -> tuple[yaml.Node | None, yaml.Node, int]:
        """Follow `path` as far as it exists; return the last key, the value and the number of steps."""
        key: yaml.Node | None = None
        node = self._root
        entry: tuple[yaml.Node | None, yaml.Node] | None
        for depth, step in enumerate(path):
            if isinstance(node, yaml.MappingNode):
                entry = self._entries(node).get(step)
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                entry = (key, node.value[step])
            else:
                entry = None
            if entry is None:
                return key, node, depth
            key, node = entry
        return key, node, len(path)

    def _entries(self, node: yaml.MappingNode) -> dict[str | int, tuple[yaml.Node, yaml.Node]]:
        """Return keys and values of a mapping of this document, by the text of the key."""
        mark = node.start_mark.index
        if mark not in self._by_key:
            self._by_key[mark] = {key.value: (key, value) for key, value in node.value}
        return self._by_key[mark]

    def _rank(self, problem: Any) -> tuple[bool, int]:
        """Order mistakes by place, with missing keys last: they may be present under a wrong name."""
        return problem["type"] == "missing", self._find(problem["loc"])[1].start_mark.index

    def _misfit(self, problem: Any, keys: list[str]) -> SpecError:
        """Convert a mistake that pydantic found to an error in our wording."""
        message, hint = in_words(problem, keys)
        return self.error(message, problem["loc"], key=problem["type"] == "extra_forbidden", hint=hint)


def _keys(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """Return the keys that are allowed in the mapping that contains the last step of `path`."""
    for step in path[:-1]:
        if step in model.model_fields:
            model = next(_models(model.model_fields[str(step)].annotation), model)
    return list(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in a type, such as ``tuple[Model, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _decoded(content: bytes, origin: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = len(content[: error.start].rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
        raise SpecError(f"{origin}:{line}:{column}: not UTF-8 text", hint="save the file as UTF-8.") from None


def _json_path(path: DocumentPath) -> str:
    steps = (
        f".{step}" if isinstance(step, str) and re.fullmatch(r"\w+", step) else f"[{step!r}]" for step in path
    )
    return "$" + "".join(steps)


def _excerpt(line: str, column: int, length: int) -> str:
    """Return the line with carets below the place, truncated to a readable width around it."""
    begin = max(0, column - _WIDTH // 2) if len(line) > _WIDTH else 0
    shown = line[begin : begin + _WIDTH]
    column -= begin
    length = min(length, max(1, len(shown) - column))
    printable = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in shown)
    margin = "".join("\t" if c == "\t" else " " * _columns(c) for c in printable[:column])
    underline = "^" * max(1, sum(map(_columns, printable[column : column + length])))
    return f"    {printable}\n    {margin}{underline}"


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _offsets(node: yaml.ScalarNode, source: _Source) -> tuple[int, ...] | None:
    """Return the position of each character of a scalar in the text; None if that is not exactly known."""
    start, end = node.start_mark.index, node.end_mark.index
    if node.style == "|":
        return _block_offsets(node, source)
    if node.style == '"':
        start, end = start + 1, end - 1
        return tuple(range(start, end)) if source.text[start:end] == node.value else None
    pieces = r"[ \t\n]+|[^ \t\n]"  # adjacent blanks are one piece, for time linear in the length
    if node.style == "'":
        start, end, pieces = start + 1, end - 1, f"''|{pieces}"
    characters: list[str] = []
    offsets: list[int] = []
    for match in re.finditer(pieces, source.text[start:end]):
        piece, at = match[0], start + match.start()
        if "\n" in piece:  # one line end is folded to a space, n + 1 line ends to n
            piece = "\n" * (piece.count("\n") - 1) or " "
            offsets += [at] * len(piece)
        elif piece == "''":
            piece = "'"
            offsets.append(at)
        else:
            offsets += range(at, at + len(piece))
        characters.append(piece)
    return tuple(offsets) if "".join(characters) == node.value else None


def _block_offsets(node: yaml.ScalarNode, source: _Source) -> tuple[int, ...] | None:
    offsets: list[int] = []
    first = node.start_mark.line + 1
    lines = range(first, len(source.line_starts))
    for number, line in zip(lines, node.value.split("\n"), strict=False):
        stop = source.line_end(number)
        begin = max(source.line_starts[number], stop - len(line))
        if source.text[begin:stop] != line:
            return None
        offsets += [*range(begin, stop), stop]
    return tuple(offsets[: len(node.value)])
