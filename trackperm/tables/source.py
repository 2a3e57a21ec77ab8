"""Formats of per-example files, and the file that they recognise and read.

Each format is one :class:`Source` in its own module. The built-in formats are listed in
:mod:`trackperm.tables.registry`; others are found through the entry point group ``trackperm.sources``, whose
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
from trackperm.tables.lazy.scan import Scan
from trackperm.tables.table import ExampleTable

_HEAD = 2**16
_GZIP = b"\x1f\x8b"
BROKEN_ARCHIVE = (zipfile.BadZipFile, OSError, ValueError, RuntimeError, struct.error)
"""Exceptions that `zipfile` raises for the directory of a broken archive."""


class SourceFile:
    """A file or folder whose beginning is read only once for all formats.

    Parameters
    ----------
    path : Path
        Path of the file or folder.
    origin : str, optional
        Name of the file in messages; by default the path.
    part : str, optional
        The part that ``FILE::PART`` names, for a format that has parts.
    references : SourceFile, optional
        The file of reference answers, for a format that cannot be read without them.

    Raises
    ------
    SourceError
        If the path is a pipe or a device.
    """

    def __init__(
        self,
        path: Path,
        origin: str | None = None,
        part: str | None = None,
        references: SourceFile | None = None,
    ) -> None:
        self.path = path
        self.folder = path.parent  # of the file itself, also while a decompressed copy is read
        self.origin = printable(path if origin is None else origin)
        self.part = part
        self.references = references
        self._is_inflated = False
        if special := special_kind(path):
            raise SourceError(f"`{self.origin}` is {special}; expected an ordinary file", hint=HINT)

    @classmethod
    def opened(cls, path: Path, origin: str | None = None, part: str | None = None) -> SourceFile:
        """Open a file; if its content is compressed by gzip, decompress it, whatever the file's name.

        The decompressed file is in a temporary folder, which is deleted together with this object.

        Raises
        ------
        SourceError
            If the file is compressed, and broken or too large.
        StorageError
            If the disk has no room for the decompressed file.
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
                f"`{self.origin}` is a broken gzip file: {error}",
                hint="was it written or downloaded completely?",
            ) from error
        self.path, self._is_inflated = inside, True

    def keep_for(self, table: ExampleTable) -> ExampleTable:
        """Return `table` with a reference to the decompressed file, so that this is kept while it is read."""
        if not self._is_inflated or not isinstance(table.data, Scan):
            return table
        return replace(table, data=replace(table.data, folder=(table.data.folder, self)))

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB of a file; empty for a folder."""
        if self.path.is_dir():
            return b""
        with self.path.open("rb") as file:
            return file.read(_HEAD)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Lines of the head without line ends; the last may be cut. Bytes that are not UTF-8 are replaced."""
        return tuple(self.head.decode("utf-8-sig", errors="replace").splitlines())

    @property
    def first_line(self) -> str:
        """The first line of the head that is not blank, or else an empty text."""
        return next((line for line in self.lines if line.strip()), "")

    @cached_property
    def text(self) -> str:
        """The text of the whole file.

        Raises
        ------
        SourceError
            If it is not UTF-8.
        """
        return decoded(self.path.read_bytes(), self.origin)

    @property
    def is_json(self) -> bool:
        """Whether the file starts like a JSON object or array."""
        return self.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")

    @cached_property
    def first_record(self) -> dict[str, Any] | None:
        """The JSON object on the first line, as in JSON Lines; None if that line is not an object."""
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
        """The value of the file as a JSON document; None if it is not JSON, or is JSON Lines.

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
        """Names of the members of a ZIP archive; empty if the file is not a ZIP archive."""
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

    Its tables have the columns ``id``, ``prediction`` and ``label`` if the format has them, ``score`` if it
    has exactly one score, and, under the format's own names, all other columns that can be counted.

    Attributes
    ----------
    name : str
        Short and unique name, such as ``lm-eval``.
    title : str
        Name for messages, such as ``lm-evaluation-harness samples``.
    recognises : callable
        Function that returns whether a file is of this format, judged by its content. It is cheap, and does
        not raise for files of other formats.
    read : callable
        Function that reads a file of this format, or raises :class:`~trackperm.errors.SourceError`.
    part : str, optional
        The kind of part that ``FILE::PART`` names, such as ``filter``; `read` finds the chosen part in
        :attr:`SourceFile.part`. If it is None, a part is a column, which is taken from the table afterwards.
    needs_references : bool
        Whether `read` needs reference answers, whose file is :attr:`SourceFile.references`.
    """

    name: str
    title: str
    recognises: Callable[[SourceFile], bool]
    read: Callable[[SourceFile], ExampleTable]
    part: str | None = None
    needs_references: bool = False


def chosen_part(file: SourceFile, there: Sequence[str], what: str) -> str:
    """Return the chosen part of a file, or the only one; `what` is the noun for a part, such as ``filter``.

    Raise SourceError if the file does not have the chosen part, or has several and none was chosen.
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
    """Decode `data` as UTF-8, without a byte order mark.

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
