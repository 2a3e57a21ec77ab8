"""Of the layout that Universal Dependencies documents, and as the package conllu reads it."""

from __future__ import annotations

from pathlib import Path

import conllu
import pytest
from support.cli_comparison import compared

from trackperm.errors import SourceError
from trackperm.tables import References, read_examples


def line(*fields: object) -> str:
    place, form, head, relation = fields
    return "\t".join([str(place), str(form), "_", "_", "_", "_", str(head), str(relation), "_", "_"])


TEXT = "\n".join([
    "# newdoc id = d", "# sent_id = s-1", "# text = vámonos al mar",
    line("1-2", "vámonos", "_", "_"), line(1, "vamos", 0, "root"), line(2, "nos", 1, "obj"),
    line("3-4", "al", "_", "_"), line(3, "a", 5, "case"), line(4, "el", 5, "det"),
    line(5, "mar", 1, "obl:arg"),
    "", "# sent_id = s-2",
    line(1, "Sue", 2, "nsubj"), line(2, "likes", 0, "root"), line("2.1", "likes", "_", "_"),
    line(3, "#", 2, "obj"),
    "", "",
])  # fmt: skip


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.dat"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_as_the_package_reads_it(gold: Path, end: str) -> None:
    gold.write_bytes(TEXT.replace("\n", end).encode())
    sentences = [
        [word for word in sentence if isinstance(word["id"], int)] for sentence in conllu.parse(TEXT)
    ]
    table = read_examples(gold)
    assert table.identity == ("tokens",)
    assert table.frame.to_dict(as_series=False) == {
        "id": ["s-1", "s-2"],
        "tokens": [[word["form"] for word in sentence] for sentence in sentences],
        "prediction": [[f"{word['head']}:{word['deprel']}" for word in sentence] for sentence in sentences],
    }
    assert table.frame["prediction"].to_list()[0] == ["0:root", "1:obj", "5:case", "5:det", "1:obl:arg"]


def test_attachment_scores(gold: Path, tmp_path: Path) -> None:
    run = tmp_path / "run.dat"
    run.write_text(TEXT.replace("5\tdet", "1\tdet").replace("2\tnsubj", "2\tobj"))
    for statistic, score in (("uas", 7 / 8), ("las", 6 / 8)):
        found = compared(run, gold, "--labels", gold, "-s", statistic)
        assert (found["baseline_score"], found["candidate_score"]) == (score, 1)
        assert found["pairing"]["inputs_checked"] == ["tokens"]


def test_other_words_are_refused(gold: Path, tmp_path: Path) -> None:
    run = tmp_path / "run.dat"
    run.write_text(TEXT.replace("\tSue\t", "\tSu\t"))
    with pytest.raises(SourceError, match=r"`tokens` differs .* first in example 's-2'"):
        read_examples(run, references=References(gold))


def test_sentences_without_ids_are_numbered(gold: Path) -> None:
    gold.write_text(TEXT.replace("# sent_id = s-1\n", "").replace("# sent_id = s-2\n", ""))
    assert read_examples(gold).frame["id"].to_list() == [1, 2]
    gold.write_text(TEXT.replace("# sent_id = s-2\n", ""))
    with pytest.raises(SourceError, match="1 of 2 sentences have no `sent_id`, first sentence 2"):
        read_examples(gold)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0\troot\t_\t_\n2\tnos", "_\troot\t_\t_\n2\tnos", "line 5: word 1 has the head '_'"),
        ("1\tobj\t_", "1\t_\t_", "line 6: word 2 has .* the relation '_'"),
        ("\tobl:arg\t_\t_", "\tobl:arg\t_", "line 10: 9 columns that begin with '5'"),
        ("5\tmar", "6\tmar", "line 10: word 6 follows word 4"),
        ("2\tlikes", "x\tlikes", "line 14: 10 columns that begin with 'x'"),
    ],
)
def test_broken_lines_are_named(gold: Path, old: str, new: str, message: str) -> None:
    assert TEXT.count(old) == 1
    gold.write_text(TEXT.replace(old, new))
    with pytest.raises(SourceError, match=message):
        read_examples(gold)
