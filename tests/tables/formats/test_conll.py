from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import reference_data
from support.cli_comparison import check_reference, compared

from trackperm.errors import SourceError
from trackperm.tables import References, read_examples

WNUT = reference_data.DATA / "structured_counts/wnut17"
GOLD = WNUT / "emerging.test.annotated"

SENTENCES = [[("EU", "B-ORG"), ("rejects", "O")], [("Peter", "B-PER"), ("Blackburn", "I-PER"), (".", "O")]]


def write(path: Path, sentences: Any, separator: str = " ", end: str = "\n", last: str = "\n") -> Path:
    blocks = (end.join(separator.join(row) for row in sentence) for sentence in sentences)
    path.write_bytes(((end + end).join(blocks) + last).encode())
    return path


@pytest.mark.parametrize("separator", [" ", "\t", "   "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n", "\n \n\t\r\n"])
def test_columns(tmp_path: Path, separator: str, end: str, last: str) -> None:
    table = read_examples(write(tmp_path / "x.dat", SENTENCES, separator, end, last))
    assert table.frame.to_dict(as_series=False) == {
        "id": [1, 2],
        "tokens": [["EU", "rejects"], ["Peter", "Blackburn", "."]],
        "prediction": [["B-ORG", "O"], ["B-PER", "I-PER", "O"]],
    }
    assert table.identity == ("tokens",)


def test_a_byte_order_mark_is_not_a_token(tmp_path: Path) -> None:
    path = write(tmp_path / "x.dat", SENTENCES)
    path.write_bytes(b"\xef\xbb\xbf-DOCSTART- O\n\n" + path.read_bytes())
    assert read_examples(path).frame["tokens"].to_list()[0] == ["EU", "rejects"]


def test_documents_and_comments_are_not_sentences(tmp_path: Path) -> None:
    path = tmp_path / "x.dat"
    path.write_text(
        "-DOCSTART- -X- O O\n\n# id 7\nEU NNP I-NP B-ORG\n# NN I-NP O\n\n-DOCSTART- O\n\n# id 8\n. . O O\n"
    )
    frame = read_examples(path).frame
    assert frame["tokens"].to_list() == [["EU", "#"], ["."]]
    assert frame["prediction"].to_list() == [["B-ORG", "O"], ["O"]]


def test_odd_characters_end_no_line(tmp_path: Path) -> None:
    sentences = [[("a\u2028b", "O"), ("c\x85", "B-X"), ("\u00a0", "O")]]
    frame = read_examples(write(tmp_path / "x.dat", sentences)).frame
    assert frame["tokens"].to_list() == [["a\u2028b", "c\x85", "\u00a0"]]


class TestTwoColumnsOfTags:
    ROWS = (
        [("EU", "NNP", "B-ORG", "O"), ("rejects", "VBZ", "O", "O")],
        [("Peter", "NNP", "B-PER", "B-PER")],
    )

    def test_are_refused_until_one_is_chosen(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.dat", self.ROWS)
        with pytest.raises(SourceError, match=r"same types in columns 3 and 4 \(such as `PER`") as caught:
            read_examples(path)
        assert f"`{path}::3,4` reads labels from column 3" in str(caught.value.hint)
        assert read_examples(path, part="4").columns == ["id", "tokens", "prediction"]
        frame = read_examples(path, part="3,4").frame
        assert frame["label"].to_list() == [["B-ORG", "O"], ["B-PER"]]
        assert frame["prediction"].to_list() == [["O", "O"], ["B-PER"]]

    def test_are_label_and_prediction_on_the_command_line(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.dat", self.ROWS)
        found = compared(f"{path}::3,4", f"{path}::3,3", "-s", "span_f1")
        assert found["baseline_score"] == pytest.approx(2 / 3)
        assert found["candidate_score"] == 1

    def test_tags_of_other_types_need_no_choice(self, tmp_path: Path) -> None:
        rows = [[("EU", "B-NP", "B-ORG"), ("rejects", "B-VP", "O")]]
        assert read_examples(write(tmp_path / "x.dat", rows)).frame["prediction"].to_list() == [
            ["B-ORG", "O"]
        ]

    @pytest.mark.parametrize("part", ["1", "5", "0", "2,3,4", "x", "3,", "-1"])
    def test_other_choices_are_refused(self, tmp_path: Path, part: str) -> None:
        with pytest.raises(SourceError, match="does not select one or two columns of tags"):
            read_examples(write(tmp_path / "x.dat", self.ROWS), part=part)

    def test_a_column_of_something_else(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match="line 1: 'NNP' in column 2 is not a tag"):
            read_examples(write(tmp_path / "x.dat", self.ROWS), part="2")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x y O", "line 21: 3 columns, where the first token has 2"),
        ("x", "line 21: 1 columns"),
        ("x NN", "line 21: 'NN' in column 2 is not a tag"),
    ],
)
def test_broken_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "x.dat"
    path.write_text("a O\n" * 20 + line + "\n")
    with pytest.raises(SourceError, match=message):
        read_examples(path)


def test_other_tokens_than_those_of_the_labels(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold", SENTENCES)
    other = [SENTENCES[0], [("Peter", "B-PER"), ("Black", "I-PER"), ("burn.", "O")]]
    with pytest.raises(SourceError, match=r"`tokens` differs .* first in example 2"):
        read_examples(write(tmp_path / "run", other), references=References(gold))
    table = read_examples(write(tmp_path / "run", other[:1]), references=References(gold))
    assert table.frame["prediction"].to_list() == [["B-ORG", "O"], None]
    with pytest.raises(SourceError, match="no label for 1 of 3 examples"):
        read_examples(write(tmp_path / "run", [*SENTENCES, SENTENCES[0]]), references=References(gold))


@reference_data.needs_data
class TestPublished:
    @pytest.mark.parametrize("path", [GOLD, *sorted((WNUT / "submissions").glob("*"))], ids=lambda p: p.stem)
    def test_tags(self, path: Path) -> None:
        """Gold has LF and tabs; submissions have CRLF, one of them spaces."""
        tags = read_examples(path).frame["prediction"].to_list()
        assert tags == reference_data._tags(str(path.relative_to(WNUT)))
        assert sum(map(len, tags)) == 23_394

    @pytest.mark.extended
    @pytest.mark.parametrize(
        "identifier",
        reference_data.spread((name for name in reference_data.ids() if name.startswith("wnut17/")), 3),
    )
    def test_reference_pvalues(self, identifier: str) -> None:
        _, kind, names = identifier.split("/")
        candidate, _, baseline = names.partition("__vs__")
        files = [next((WNUT / "submissions").glob(f"{system}*")) for system in (baseline, candidate)]
        statistic = kind if kind == "token_accuracy" else f"span_{kind.lower()}"
        found = check_reference(identifier, *files, "--labels", GOLD, "-s", statistic)
        assert found["pairing"]["inputs_checked"] == ["tokens"]
