"""What files of columns say that they hold, beside what PyArrow, another reader, makes of them."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from trackperm.errors import SourceError
from trackperm.tables import read_examples
from trackperm.tables.formats import arrow_messages, parquet_metadata

ROWS = 1000
TABLE = pa.table(
    {
        "id": list(range(ROWS)),
        "category": pa.array(["x", "y"] * (ROWS // 2)).dictionary_encode(),
        "object": [{"a": 1, "b": "text"}] * ROWS,
        "list": [[1, 2], None] * (ROWS // 2),
        "flag": [True, None] * (ROWS // 2),
    }
)


@pytest.mark.parametrize("version", ["1.0", "2.6"])
@pytest.mark.parametrize("group", [100, ROWS])
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_the_footer_is_read_as_by_pyarrow(version: str, group: int, page: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(
        TABLE.replace_schema_metadata({"k" * 300: "v" * 300}),
        path,
        row_group_size=group,
        version=version,
        data_page_version=page,
    )
    expected: Counter[str] = Counter()
    metadata = parquet.read_metadata(path)
    for i in range(metadata.num_row_groups):
        n_values: Counter[str] = Counter()
        for j in range(metadata.num_columns):
            column = metadata.row_group(i).column(j)
            name = column.path_in_schema.partition(".")[0]
            expected[name] += column.total_uncompressed_size
            n_values[name] += column.num_values
        expected += Counter({name: 16 * (n - metadata.row_group(i).num_rows) for name, n in n_values.items()})
    groups = parquet_metadata.row_groups(path)
    held = {name: parquet_metadata.held_bytes(path, groups, [name]) for name in TABLE.column_names}
    assert held == expected
    assert parquet_metadata.held_bytes(path, groups, TABLE.column_names) == expected.total()


def test_a_footer_that_is_cut_is_refused_at_each_byte(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(TABLE.slice(0, 1), path)
    whole = path.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    footer = whole[-8 - length : -8]
    for kept in range(0, length - 1, 7):
        path.write_bytes(whole[: -8 - length] + footer[:kept] + kept.to_bytes(4, "little") + b"PAR1")
        with pytest.raises(ValueError, match="the footer"):
            parquet_metadata.row_groups(path)


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_messages_say_what_batches_hold(compression: str | None, tmp_path: Path) -> None:
    file, stream = tmp_path / "x.arrow", tmp_path / "x.stream"
    options = ipc.IpcWriteOptions(compression=compression)
    for path, new in ((file, ipc.new_file), (stream, ipc.new_stream)):
        with new(path, TABLE.schema, options=options) as writer:
            writer.write_table(TABLE, max_chunksize=100)
        held = arrow_messages.held_bytes(path)
        assert TABLE.nbytes <= held < 1.1 * TABLE.nbytes
        whole = path.read_bytes()
        for kept in range(8, len(whole), 1009):
            path.write_bytes(whole[:kept])
            with suppress(ValueError):
                assert arrow_messages.held_bytes(path) <= held


def test_an_invalid_length_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.stream"
    path.write_bytes(b"\xff\xff\xff\xff\xf8\xff\xff\x7f" + bytes(100))
    with pytest.raises(ValueError, match="a message is longer than the file"):
        arrow_messages.held_bytes(path)


def test_a_page_of_less_than_no_values_is_refused(tmp_path: Path) -> None:
    """Regression: polars allocated 2^61 bytes, which ended the process."""
    path = tmp_path / "x.parquet"
    pl.DataFrame({"id": ["q1"], "prediction": ["a"], "label": ["a"]}).write_parquet(path)
    whole = path.read_bytes()
    column = parquet_metadata.row_groups(path)[0][1][0][3]
    start = column[9]
    header = whole[start : start + 20]
    place = start + header.index(b"\x15\x02", 6)
    path.write_bytes(whole[: place + 1] + b"\x03" + whole[place + 2 :])
    with pytest.raises(SourceError, match="the header of a page has invalid numbers"):
        read_examples(path).polars_column("id")
