"""What reads a format, and the file that it is asked about.

A format is one :class:`Source` in a module of its own. Those of trackperm stand in
:mod:`trackperm.tables.registry`; others are found by the entry point group ``trackperm.sources``, whose
entries name a :class:`Source`.
"""

from __future__ import annotations

import gzip
import shutil
import struct
import weakref
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from trackperm.errors import ChoiceError, SourceError
from trackperm.messages import did_you_mean, listed, printable
from trackperm.ordinary_files import HINT, special_kind
from trackperm.storage import temporary_files
from trackperm.tables.expansion import Expansion
from trackperm.tables.json_values import parsed
from trackperm.tables.scan import Scan
from trackperm.tables.table import ExampleTable

_HEAD = 2**16
_GZIP = b"\x1f\x8b"
BROKEN_ARCHIVE = (zipfile.BadZipFile, OSError, ValueError, RuntimeError, struct.error)
"""What `zipfile` raises of the directory of a broken archive."""


class SourceFile:
    """A file or folder, looked at once for all formats.

    Parameters
    ----------
    path : Path
        Where it is.
    origin : str, optional
        What messages call it; by default the path.
    part : str, optional
        What ``FILE::PART`` chose, for a format that has parts.
    gold : SourceFile, optional
        The file of the reference answers, for a format that makes no table without them.

    Raises
    ------
    SourceError
        If it is a pipe or a device.
    """

    def __init__(
        self, path: Path, origin: str | None = None, part: str | None = None, gold: SourceFile | None = None
    ) -> None:
        self.path = path
        self.origin = printable(path if origin is None else origin)
        self.part = part
        self.gold = gold
        self._is_inflated = False
        if special := special_kind(path):
            raise SourceError(f"`{self.origin}` is {special}; expected an ordinary file", hint=HINT)

    @classmethod
    def opened(cls, path: Path, origin: str | None = None, part: str | None = None) -> SourceFile:
        """Take a file as it is, or what is in it if gzip has compressed it, whatever it is called.

        What is in it lies in a temporary folder, for as long as this object is there.

        Raises
        ------
        SourceError
            If it is compressed, and broken or too large.
        StorageError
            If there is no room for what is in it.
        """
        file = cls(path, origin, part)
        if file.path.is_file():
            with file.path.open("rb") as start:
                if start.read(len(_GZIP)) == _GZIP:
                    file._inflate()
        return file

    def _inflate(self) -> None:
        folder = mkdtemp(prefix="trackperm-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        inside = Path(folder, self.path.name.removesuffix(".gz") or "inflated")
        try:
            with temporary_files(), self.path.open("rb") as compressed, inside.open("wb") as written:
                for chunk in Expansion.of(self.origin).inflated(compressed):
                    written.write(chunk)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise SourceError(
                f"`{self.origin}` is compressed by gzip, and broken: {error}",
                hint="was it written, or fetched, to its end?",
            ) from error
        self.path, self._is_inflated = inside, True

    def keep_for(self, table: ExampleTable) -> ExampleTable:
        """Keep what was decompressed for as long as `table` is read from it."""
        if not self._is_inflated or not isinstance(table.data, Scan):
            return table
        return replace(table, data=replace(table.data, folder=(table.data.folder, self)))

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB; of a folder nothing."""
        if self.path.is_dir():
            return b""
        with self.path.open("rb") as file:
            return file.read(_HEAD)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Lines of the head without their ends; the last may be cut. Bytes that are no UTF-8 are replaced."""
        return tuple(self.head.decode("utf-8-sig", errors="replace").splitlines())

    @property
    def first_line(self) -> str:
        """The first line of the head that is not blank, or nothing."""
        return next((line for line in self.lines if line.strip()), "")

    @cached_property
    def text(self) -> str:
        """The whole file.

        Raises
        ------
        SourceError
            If it is not UTF-8.
        """
        return decoded(self.path.read_bytes(), self.origin)

    @property
    def is_json(self) -> bool:
        """Whether it starts as a JSON object or array does."""
        return self.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")

    @cached_property
    def first_record(self) -> dict[str, Any] | None:
        """The object on the first line, or None where there is none: JSON Lines begin with one."""
        if not self.is_json:
            return None
        with self.path.open("rb") as file:
            line = next((line for line in file if line.strip()), b"")
        try:
            value = parsed(line.decode("utf-8-sig"))
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    @cached_property
    def document(self) -> Any:
        """The JSON document that the file is, or None where it is no such or of several lines of JSON.

        Raises
        ------
        SourceError
            If it is not UTF-8.
        """
        if not self.is_json or (self.first_record is not None and not self._is_one_line):
            return None
        try:
            return parsed(self.text)
        except ValueError:
            return None

    @property
    def _is_one_line(self) -> bool:
        with self.path.open("rb") as file:
            return sum(1 for line, _ in zip(filter(bytes.strip, file), range(2), strict=False)) < 2

    @cached_property
    def members(self) -> frozenset[str]:
        """Names in the ZIP archive that the file is; empty where it is none."""
        if not self.head.startswith(b"PK"):
            return frozenset()
        try:
            with zipfile.ZipFile(self.path) as archive:
                return frozenset(archive.namelist())
        except BROKEN_ARCHIVE:
            return frozenset()


@dataclass(frozen=True)
class Source:
    """A format of per-example files.

    Its tables have the columns ``id``, ``prediction`` and ``label`` where the format knows such, ``score``
    where it knows exactly one, and whatever else can be counted under the format's own names.

    Attributes
    ----------
    name : str
        Short and unique, such as ``lm-eval``.
    title : str
        For people, such as ``lm-evaluation-harness samples``.
    recognises : callable
        Whether a file is of this format, by its content; cheap, and never raises for another's file.
    read : callable
        Reads a file of this format. Raises :class:`~trackperm.errors.SourceError`.
    part : str, optional
        What ``FILE::PART`` chooses, such as ``filter``; `read` finds it in :attr:`SourceFile.part`. Where a
        format says nothing, it is a column, taken from the table afterwards.
    needs_gold : bool
        Whether `read` makes no table without reference answers, whose file is :attr:`SourceFile.gold`.
    """

    name: str
    title: str
    recognises: Callable[[SourceFile], bool]
    read: Callable[[SourceFile], ExampleTable]
    part: str | None = None
    needs_gold: bool = False


def chosen_part(file: SourceFile, there: Sequence[str], what: str) -> str:
    """Return which of the parts of a file is meant: the one there is, or the one that was chosen.

    Parameters
    ----------
    file : SourceFile
        Says what was chosen.
    there : sequence of str
        Names of the parts.
    what : str
        What a part is called, such as ``filter``.

    Raises
    ------
    SourceError
        If there is no such part, or there are several and none was chosen.
    """
    if file.part is None and len(there) == 1:
        return there[0]
    if file.part is None:
        raise ChoiceError(
            f"`{file.origin}` has {len(there)} {what}s, which must not be mixed: {listed(there)}",
            what=what,
            parts=there,
            hint=f"choose one: `{file.origin}::{there[0]}`." if there else None,
        )
    if file.part not in there:
        hint = f"it has {listed(there)}.{did_you_mean(file.part, there)}"
        raise SourceError(f"`{file.origin}` has no {what} `{file.part}`", hint=hint)
    return file.part


def decoded(data: bytes, origin: str) -> str:
    """Text of `data`, without a byte order mark.

    Raises
    ------
    SourceError
        If `data` is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(
            f"`{origin}`, line {line}: byte 0x{data[error.start]:02x} is not UTF-8",
            hint="save the file as UTF-8.",
        ) from error
