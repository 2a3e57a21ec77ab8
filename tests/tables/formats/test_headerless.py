"""Numbers without a header: count files of two systems, with whatever stands between the numbers."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from support.cli_comparison import compared

from trackperm.errors import SourceError
from trackperm.tables import read_examples
from trackperm.tables.formats import headerless

# The examples of the paper's own program, https://github.com/rycolab/paired-perm-test
TWO = "8,6\n3,5\n7,7\n"
FOUR = "8,2,6,1\n3,3,5,2\n7,1,7,1\n"
SEPARATORS = {
    "commas": ",",
    "tabs": "\t",
    "semicolons": ";",
    "a blank": " ",
    "blanks": "   ",
    "comma, blank": ", ",
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("separator", SEPARATORS.values(), ids=SEPARATORS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_two_systems_side_by_side(separator: str, end: str, tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_bytes(TWO.replace(",", separator).replace("\n", end).encode())
    found = compared(f"{path}::2", f"{path}::1", "-s", "mean", "--by-position")
    # +2 -2 0: the sums of swaps are -4, 0, 0, 4, and 0 was observed
    assert (found["n_examples"], found["n_discordant"], found["pvalue"]) == (3, 2, 1)
    assert found["difference"] == 0


@pytest.mark.parametrize("separator", SEPARATORS.values(), ids=SEPARATORS)
def test_true_positives_and_incorrect_of_two_systems(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_text(FOUR.replace(",", separator))
    found = compared(f"{path}::A", f"{path}::B", "-s", "pooled_f1", "--by-position")
    u, v = np.array([[6, 1], [5, 2], [7, 1]]), np.array([[8, 2], [3, 3], [7, 1]])

    def f1(counts: np.ndarray) -> float:
        tp, incorrect = counts.sum(axis=0)
        return float(tp / (tp + incorrect / 2))

    swaps = np.array([[i & 1, i >> 1 & 1, i >> 2] for i in range(8)])[:, :, None]
    effects = [abs(f1(np.where(s, v, u)) - f1(np.where(s, u, v))) for s in swaps]
    assert found["pvalue"] == np.mean(np.array(effects) >= abs(f1(u) - f1(v)) - 1e-12)
    assert found["candidate_score"] == pytest.approx(f1(u))


def test_columns_are_numbered_and_a_note_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("\ufeff1\t0.5\t-2e3\n\n2\t1\t\n")
    table = read_examples(tmp_path / "a")
    assert table.untyped
    assert table.frame.to_polars().to_dict(as_series=False) == {
        "1": ["1", "2"],
        "2": ["0.5", "1"],
        "3": ["-2e3", None],
    }
    assert table.notes == (
        "the table has no header, as the first row consists of numbers; the columns were named `1`, `2`, `3`,"
        " from left to right",
    )


def test_quoted_numbers_are_names(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('"1980","1990"\n1,2\n')
    assert read_examples(tmp_path / "a").columns == ["1980", "1990"]


REFUSED = {
    "row too short": (FOUR + "1,2,3\n", "", r", line 4: 3 fields after a first row of 4"),
    "no such column": (TWO, "::3", r"has no column `3`\n\nHint: it has no header; choose one of `1`, `2`"),
    "systems of two columns": (TWO, "::A", r"has no column `A`"),
    "systems of decimals": (FOUR + "0.5,2,3,4\n", "::B", r"'0.5' in column `1` of .* is not a count"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(case: tuple[str, str, str], tmp_path: Path) -> None:
    content, part, message = case
    (tmp_path / "a").write_text(content)
    with pytest.raises(SourceError, match=message):
        read_examples(tmp_path / "a", part=part.removeprefix("::") or None)


@pytest.mark.parametrize("separator", ["\t", "  "])
def test_large_files_are_read_by_polars(
    separator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headerless, "exact", Mock(side_effect=AssertionError))
    (tmp_path / "a").write_text(f"1{separator}0\n" * 10**5)
    assert len(read_examples(tmp_path / "a")) == 10**5


UNCLEAR = {
    "columns from 0 on": "0,1\n5,6\n0,7\n",
    "columns from 1 on": "1 2 3\n1 2 3\n",
    "years": "2019,2020\n1,0\n0,1\n",
    "a year": "2019\n1\n0\n1\n",
    "an integer above decimals": "0\n0.5\n0.25\n",
    "nothing above an index": ",0,1\n0,5,6\n1,7,8\n",
    "unlike all below": "7,99\n" + "3,5\n2,6\n" * 10,
}


@pytest.mark.parametrize("content", UNCLEAR.values(), ids=UNCLEAR)
def test_what_may_be_a_header_of_numbers_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(content)
    with pytest.raises(SourceError, match=r"may be a header or an example(.|\n)*add a header line above it"):
        read_examples(tmp_path / "a")


@pytest.mark.parametrize("content", ["lake,1980\n1,2\n", "1980,1990\nfoo,bar\n", '"0","1"\n3,4\n'])
def test_a_header_of_numbers_above_other_things_is_one(content: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(content)
    table = read_examples(tmp_path / "a")
    assert len(table) == 1
    noted = "the first row consists of numbers, and was read as the header" in table.notes
    assert noted == ("lake" not in content)


@pytest.mark.parametrize("row", ["nan,1", "inf,1", "3,", '"3","1"'])
def test_numbers_however_written_are_examples(row: str, tmp_path: Path) -> None:
    below = '"5","2"\n"1","0"\n' if '"' in row else "5,2\n1,0\n"
    (tmp_path / "a").write_text(f"{row}\n{below}")
    assert len(read_examples(tmp_path / "a")) == 3


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("id;score, mean\nq1;0.5\n", ["id", "score, mean"]),
        ('id,"a\tb"\nq1,0.5\n', ["id", "a\tb"]),
        ("text, more\tid\nx\tq1\n", ["text, more", "id"]),
        ("a;b\n1,5;2,5\n", ["a", "b"]),
    ],
)
def test_the_separator_is_the_one_of_all_lines(content: str, names: list[str], tmp_path: Path) -> None:
    (tmp_path / "a").write_text(content)
    assert read_examples(tmp_path / "a").columns == names


@pytest.mark.parametrize("value", ["x", '"x"'], ids=["by polars", "record by record"])
def test_a_column_without_a_name_is_called_by_its_place(value: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f",b\n0,{value}\n1,y\n")
    table = read_examples(tmp_path / "a")
    assert table.columns == ["column_1", "b"]
    assert table.notes == ("the column without a name was named `column_1`",)
    (tmp_path / "a").write_text(f",,b\n0,1,{value}\n")
    with pytest.raises(SourceError, match="several columns without a name"):
        read_examples(tmp_path / "a")
