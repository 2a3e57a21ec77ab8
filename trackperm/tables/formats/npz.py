"""NumPy archives, as ``numpy.savez`` writes them: one column per array."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import polars as pl

from trackperm.errors import SourceError
from trackperm.tables.expansion import TEXT_BYTES, Expansion
from trackperm.tables.named_frame import named_frame
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.table import ExampleTable

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
    notes = (f"left out, as they are not columns of numbers or text: {', '.join(others)}",) if others else ()
    table = ExampleTable.from_native(named_frame(series), file.origin)
    return ExampleTable(table.frame, table.origin, notes=notes)


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
