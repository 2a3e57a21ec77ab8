"""NumPy archives, as ``numpy.savez`` writes them: one column per array."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from trackperm.errors import SourceError
from trackperm.tables.columns.names import PREDICTIONS
from trackperm.tables.expansion import TEXT_BYTES, Expansion
from trackperm.tables.named_frame import named_frame
from trackperm.tables.polars_code import text_of
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

_LEFT_OUT = "left out, as they are not columns of numbers or text: "
_KINDS = "biufU"
_LAST_CHARACTER = 0x10FFFF


def read_npz(file: SourceFile) -> ExampleTable:
    """Read the one-dimensional arrays of an archive; a note lists the others, which are left out.

    Raise SourceError if the archive is truncated, an array holds Python objects, or arrays differ in length.
    """
    arrays = _arrays(file)
    columns = {
        name: array for name, array in arrays.items() if array.ndim == 1 and array.dtype.kind in _KINDS
    }
    others = [
        f"`{name}` ({array.dtype}, shape {array.shape})"
        for name, array in arrays.items()
        if name not in columns
    ]
    if not columns:
        raise SourceError(
            f"`{file.origin}` has no one-dimensional array of numbers or text: {', '.join(others)}",
            hint="`numpy.savez(path, id=ids, prediction=predictions, label=labels)` writes a table.",
        )
    _require_one_length(columns, file.origin)
    series = [_series(name, array, file.origin) for name, array in columns.items()]
    notes = (f"{_LEFT_OUT}{', '.join(others)}{_classes(arrays, columns, file.origin)}",) if others else ()
    table = ExampleTable.from_native(named_frame(series), file.origin)
    return ExampleTable(table.frame, table.origin, notes=notes)


def left_out(tables: Sequence[ExampleTable]) -> str | None:
    """Name the arrays that the first incomplete archive left out, without a full stop; None if none did."""
    notes = ((table, note) for table in tables for note in table.notes if note.startswith(_LEFT_OUT))
    return next((f"`{table.origin}`: {note}" for table, note in notes), None)


def _classes(arrays: Mapping[str, np.ndarray], columns: Mapping[str, np.ndarray], origin: str) -> str:
    """Return the code that writes predicted classes in place of the only array of scores of classes.

    It is empty if a column has the usual name of predictions. An array with one column has predictions.
    """
    n = len(next(iter(columns.values())))
    tables = [
        name
        for name, array in arrays.items()
        if array.ndim == 2 and array.dtype.kind in "iuf" and len(array) == n and array.size
    ]
    if len(tables) != 1 or any(name.lower() in PREDICTIONS for name in columns):
        return ""
    is_column = arrays[tables[0]].shape[1] == 1
    chosen = f"a[{text_of(tables[0])}]" + ("[:, 0]" if is_column else ".argmax(-1)")
    others = "".join(f", {name}=a[{text_of(name)}]" for name in columns if name.isidentifier())
    code = f'a = np.load({text_of(origin)}); np.savez("run.npz", prediction={chosen}{others})'
    what = "predictions" if is_column else "predicted classes, if these are scores of classes"
    return f"; `{code}` writes the {what}, as a column"


def _arrays(file: SourceFile) -> dict[str, np.ndarray]:
    limit, arrays = Expansion.of(file.origin), dict[str, np.ndarray]()
    try:
        with zipfile.ZipFile(file.path) as archive:
            limit.require(sum(member.file_size for member in archive.infolist()))
            for member in dict.fromkeys(archive.namelist()):
                name, content = member.removesuffix(".npy"), io.BytesIO(limit.member(archive, member))
                try:
                    arrays[name] = np.lib.format.read_array(content, allow_pickle=False)
                except (ValueError, MemoryError) as error:
                    raise SourceError(
                        f"array `{name}` of `{file.origin}` cannot be read: {error}",
                        hint="arrays hold numbers, booleans or text: `array.astype(str)`, for example.",
                    ) from error
                if arrays[name].dtype.kind == "U":
                    limit.require(arrays[name].size * TEXT_BYTES)
    except SourceError:
        raise
    except Exception as error:  # each compression has its own library and errors
        raise SourceError(
            f"`{file.origin}` is not a readable NumPy archive: {error}", hint="was it written completely?"
        ) from error
    return arrays


def _series(name: str, array: np.ndarray, origin: str) -> pl.Series:
    if array.dtype.kind == "U":
        native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
        codes = native.view(np.uint32) if native.nbytes else np.zeros(0, dtype=np.uint32)
        if ((codes > _LAST_CHARACTER) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise SourceError(
                f"array `{name}` of `{origin}` contains code points that are not characters",
                hint="was it written by `numpy.savez`, and not changed afterwards?",
            )
        return pl.Series(name, array.tolist(), dtype=pl.String)
    wide = array.astype(np.float64) if array.dtype.kind == "f" else array
    return pl.Series(name, wide.astype(wide.dtype.newbyteorder("=")))


def _require_one_length(columns: dict[str, np.ndarray], origin: str) -> None:
    lengths = {name: len(array) for name, array in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"`{name}` {length:,}" for name, length in lengths.items())
        raise SourceError(
            f"the arrays of `{origin}` differ in length: {found}", hint="each needs one value per example."
        )


def _recognises(file: SourceFile) -> bool:
    return bool(file.members) and all(name.endswith(".npy") for name in file.members)


NPZ = Source("npz", "NumPy archives", _recognises, read_npz)
