from __future__ import annotations

from pathlib import Path

import pytest
from support import reference_data
from support.broken_files import check_refused
from support.cli_comparison import compared

from trackperm.errors import InputError, PairingError, SourceError
from trackperm.tables import SourceFile, read_examples
from trackperm.tables.registry import detect_format

EVALB = reference_data.DATA / "structured_counts/evalb"

# As evalb prints it (the layout of its own sample), with an error among three sentences.
OUTPUT = """\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
============================================================================
   1    4    0   75.00  75.00     3      4    4      0      4     3    75.00
2 : Length unmatch (4|5)
   2    4    1    0.00   0.00     0      0    0      0      4     0     0.00
   3    5    0   40.00  66.67     2      5    3      1      5     5   100.00
============================================================================
                 55.56  71.43      5      9    7      1      9     8    88.89
=== Summary ===

-- All --
Number of sentence        =      3
Number of Error sentence  =      1
Number of Skip  sentence  =      0
Number of Valid sentence  =      2
Bracketing Recall         =  55.56

-- len<=40 --
Number of sentence        =      2
"""


@pytest.fixture
def output(tmp_path: Path) -> Path:
    path = tmp_path / "x.dat"
    path.write_text(OUTPUT)
    return path


def test_columns(output: Path) -> None:
    table = read_examples(output)
    assert table.frame.to_dict(as_series=False) == {
        "id": [1, 2, 3],
        "length": [4, 4, 5],
        "status": [0, 1, 0],
        "matched": [3, None, 2],
        "gold": [4, None, 5],
        "test": [4, None, 3],
        "crossing": [0, None, 1],
        "words": [4, None, 5],
        "correct_tags": [3, None, 5],
    }
    (note,) = table.notes
    assert note.startswith("1 of 3 sentences are errors or skipped")
    assert note.endswith("(id 2)")


def test_other_sentences_under_the_same_numbers_are_refused(output: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text(
        OUTPUT.replace("     2      5    3", "     2      6    3").replace("5      9    7", "5     10    7")
    )
    with pytest.raises(PairingError, match="`gold` differs between the runs on 1 of 3 examples"):
        compared(output, other, "-s", "bracket_f1", "--missing", "drop")
    found = compared(output, output, "-s", "bracket_f1", "--missing", "drop")
    assert not [note for note in found["pairing"]["notes"] if "share their" in note]


def test_messages_may_come_first(output: Path) -> None:
    message = "2 : Length unmatch (4|5)\n"
    output.write_text(message + OUTPUT.replace(message, ""))
    assert read_examples(output).frame["matched"].to_list() == [3, None, 2]


@pytest.mark.parametrize("status", [1, 2])
def test_a_sentence_that_one_run_lacks_is_missing(output: Path, tmp_path: Path, status: int) -> None:
    other = tmp_path / "other.rsl"
    other.write_text(OUTPUT.replace("   2    4    1", f"   2    4    {status}"))
    if status == 2:
        other.write_text(
            other.read_text()
            .replace("Error sentence  =      1", "Error sentence  =      0")
            .replace("Skip  sentence  =      0", "Skip  sentence  =      1")
        )
    with pytest.raises(InputError, match=r"1 of 3 examples of .* has no value in `matched`"):
        compared(output, other, "-s", "bracket_f1")
    found = compared(output, other, "-s", "bracket_f1", "--missing", "drop")
    assert found["n_examples"] == 2
    assert found["baseline_score"] == pytest.approx(2 * 5 / 16)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "     3      4    4      0      4     3    75.00",
            "     3      4",
            r"line 4: 7 fields; expected evalb's 12",
        ),
        ("    4    0   75.00", "    4    x   75.00", r"line 4: .* is not a row of counts"),
        ("    4    0   75.00", "    4    7   75.00", r"line 4: status 7"),
        ("      5      9    7", "      6      9    7", r"line 9: the total of `matched` is 6, .* sum to 5"),
        ("     9     8    88.89", "     9     7    88.89", r"line 9: the total of `correct_tags` is 7"),
        ("sentence        =      3", "sentence        =      4", r"the total of `Number of sentence` is 4"),
        (
            "Error sentence  =      1",
            "Error sentence  =      0",
            r"the total of `Number of Error sentence` is 0",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(output: Path, old: str, new: str, message: str) -> None:
    check_refused(output, OUTPUT, old, new, message)


@pytest.mark.parametrize(
    ("n_lines", "lacking"),
    [(2, "the rule that begins"), (5, "the rule that ends"), (8, "the totals below"), (9, None)],
)
def test_cut_off(output: Path, n_lines: int, lacking: str | None) -> None:
    output.write_text("".join(OUTPUT.splitlines(keepends=True)[:n_lines]))
    if lacking is None:
        assert len(read_examples(output)) == 3
        return
    with pytest.raises(SourceError, match=lacking):
        read_examples(output)


def test_no_sentence(output: Path) -> None:
    lines = OUTPUT.splitlines(keepends=True)
    output.write_text("".join(lines[:3] + lines[7:]))
    with pytest.raises(SourceError, match="without a sentence"):
        read_examples(output)


@reference_data.needs_data
class TestPublished:
    @pytest.mark.parametrize(("name", "n_null"), [("sample.rsl", 7), ("bug.rsl-new", 0), ("bug.rsl-old", 5)])
    def test_rows(self, name: str, n_null: int) -> None:
        rows = [line.split() for line in (EVALB / name).read_text().splitlines()]
        expected = [
            [None if row[2] != "0" else int(row[place]) for place in (5, 6, 7, 8, 9, 10)]
            for row in rows
            if len(row) == 12 and row[0].isdigit()
        ]
        frame = read_examples(EVALB / name).frame
        names = ("matched", "gold", "test", "crossing", "words", "correct_tags")
        assert [list(row) for row in frame.select(names).iter_rows()] == expected
        assert frame["matched"].null_count() == n_null

    def test_scores_of_the_sample(self) -> None:
        """87.76 and 90.53 per cent in evalb's own summary."""
        files = (EVALB / "sample.rsl", EVALB / "sample.rsl")
        for statistic, percent in (("bracket_recall", 87.76), ("bracket_precision", 90.53)):
            found = compared(*files, "-s", statistic, "--missing", "drop")
            assert round(100 * found["candidate_score"], 2) == percent
            assert found["pvalue"] == 1

    def test_documentation_that_shows_a_table_is_not_a_table(self) -> None:
        assert detect_format(SourceFile(EVALB / "README")).name != "evalb"
