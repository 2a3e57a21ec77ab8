"""First lines that were read as headers but are examples: the error says so, and how to name the columns."""

from __future__ import annotations

import subprocess
from pathlib import Path

import polars as pl
import pytest
from support.command_line import invoke

import trackperm
from trackperm.errors import InputError, SourceError
from trackperm.tables import read_examples

LOOKS = "looks like an example and not like a header: write "


@pytest.mark.parametrize(
    ("line", "way"),
    [
        ("mine\tq{i}\t0.4{i}", "the names of the columns above it, such as `id` and `score`"),
        ("q{i},nan,1e-5,0.{i}", "the names of the columns above it, such as `id` and `score`"),
        ("q{i},0.{i},0.5,1.5", "the names of the columns above it, such as `id` and `score`"),
        ("q{i},nDCG@10,-.5", "the names of the columns above it, such as `id` and `score`"),
        ("Mercury_{i},B", "the names of the columns above it, such as `id` and `prediction`"),
        ("{i} q{i}\tB", "the names of the columns above it, such as `id` and `prediction`"),
        (
            "__label__neg 0.{i}",
            "a tab between the columns, and their names above them, such as `id` and `score`",
        ),
        ("{pet}", "the name of the column above it, such as `prediction`"),
        ("the cat sat on a mat {i}", "the name of the column above it, such as `prediction`"),
        ("spk0-utt{i} the cat sat", "a tab after each id, and the names `id` and `prediction` above them"),
    ],
)
def test_files_without_a_header(line: str, way: str, tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("".join(f"{line.format(i=i, pet='catdog'[: 3 + 3 * (i % 2)])}\n" for i in range(30)))
    with pytest.raises(InputError, match="is unclear") as caught:
        trackperm.compare(path, path)
    assert str(caught.value.hint).startswith(f"the first line of `{path}` {LOOKS}{way}")


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("I think it is 0.", "It is value 7, kind 1."),
        ("Well, I think so.", "No."),
        ("He said so, twice.", '"No" was what he said, twice.'),
        ("我觉得是这样。", "不, 不是"),
    ],
)
def test_sentences_become_a_table_by_the_line_of_the_error(
    first: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = {"old.txt": [first, other] * 6, "new.txt": [first, "", other] * 4, "gold.txt": [first, other] * 6}
    for name, own in lines.items():
        Path(name).write_text("".join(f"{line}\n" for line in own), encoding="utf-8")
        with pytest.raises(SourceError, match=f"`{name}` is text without columns") as caught:
            trackperm.compare(name, "new.txt")
        code = str(caught.value.hint).split("`")[1]
        exec(code.replace('"prediction"', '"label"') if name == "gold.txt" else code, {"pl": pl})
    table = read_examples(Path("new.jsonl"))
    assert table.frame["prediction"].to_list() == lines["new.txt"]
    found = trackperm.compare("old.jsonl", "new.jsonl", "exact_match", labels="gold.jsonl")
    assert found.baseline_score == 1.0


@pytest.mark.parametrize("header", ["id,question,is it correct?", "id, prediction, label, score"])
def test_headers_of_words_are_no_sentences(header: str, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text(f"{header}\na,b\n")
    with pytest.raises(SourceError, match="2 fields under a header of"):
        read_examples(path)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("x,y,0", "a,b,c"),
        ("first word,the name of a column,c", "a,b,c"),
        ("item_id,timestamp,target,mean,0.1,0.9", "S0,2024-01-01,10.7,9.1,8.3,11.2"),
        ("series,y_mean,0.1", "S0,9.1,8.3"),
        ("series,timestamp,0.1,0.5,0.9", "S0,2024-01-01,8.3,9.1,11.2"),
        ("country,y2019,y2020", "A1,20,21"),
        ("prediction,A", "B,A"),
        ("img1,img2,similarity", "img{i},img1{i},0.{i}"),
        ("speaker1,speaker2", "speaker{i},speaker1{i}"),
        ("comment_id,toxic,insult", "c{i},{toxic},clean\nd{i},{toxic},insult"),
        ("unit,model,human", "unit{i},model,human\nunits{i},human,model"),
    ],
)
def test_headers(header: str, row: str, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    rows = (row.format(i=i, toxic=["toxic", "clean"][i % 2]) for i in range(30))
    path.write_text("".join(f"{line}\n" for line in (header, *rows)))
    with pytest.raises(InputError, match="is unclear") as caught:
        trackperm.compare(path, path)
    assert LOOKS not in str(caught.value.hint)


def test_a_first_example_that_the_options_lead_to(tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.csv" for name in ("old", "new", "gold")}
    for place, path in enumerate(files.values()):
        path.write_text("".join(f"Mercury_{i},{'ABCD'[i * (place + 1) % 4]}\n" for i in range(12)))
    old, new, gold = files.values()
    with pytest.raises(SourceError, match="has no column `label`") as of_gold:
        trackperm.compare(old, new, labels=gold)
    assert f"the first line of `{gold}` {LOOKS}" in str(of_gold.value.hint)
    assert str(of_gold.value.hint).endswith("such as `id` and `label`.")
    with pytest.raises(InputError, match="needs columns") as of_runs:
        trackperm.compare(old, new, "accuracy")
    assert f"the first line of `{old}` {LOOKS}" in str(of_runs.value.hint)
    columns = {"id": "Mercury_0", "prediction": "A"}
    for options in ({"labels": gold, "columns": columns}, {"metric": "A=B", "columns": {"id": "Mercury_0"}}):
        notes = trackperm.compare(old, new, **options).pairing.notes
        looks = [note for note in notes if f"look: the first line of `{old}` looks like an example" in note]
        assert len(looks) == 1
    assert "cannot be compared as it is: the first line of" in invoke("inspect", str(old))


@pytest.mark.parametrize(
    ("above", "removed"),
    [
        ('#{"t_start": 1.5, "env": "CartPole"}\nr,l,t\n', "the first line, which begins"),
        ("# model: a long name.\n# today\nid,correct,n\n", "the first 2 lines, which begin"),
        ("##INFO=<ID=1,length=249>\n#id\tcorrect\tn\n", "the first line, which begins"),
    ],
)
def test_comments_above_the_header(above: str, removed: str, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    row = above.splitlines()[-1].replace("#", "")
    path.write_text(f"{above}{row}\n" * 2)
    with pytest.raises(SourceError, match=r"line [23]: . fields? under a header of ") as caught:
        read_examples(path)
    assert caught.value.hint == f"remove {removed} with `#`, so that the names of the columns come first."


@pytest.mark.parametrize("first", ['q,"a, b",x', "q,a, b,x"])
def test_a_header_that_begins_with_a_number_sign(first: str, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text(f"#id,prediction,label\n{first}\n" + 'q,"a, b",x\n' * 5 + "q,a, b,x\n")
    with pytest.raises(SourceError, match="4 fields under a header of 3") as caught:
        read_examples(path)
    assert "in double quotes" in str(caught.value.hint)


def test_columns_that_stand_below_each_other(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text(
        "       precision    recall  f1-score   support\n   c0       0.71      0.64      0.67        56\n" * 2
    )
    with pytest.raises(InputError, match="is unclear") as caught:
        trackperm.compare(path, path)
    assert caught.value.hint == f"write a tab in place of the blanks between the columns of `{path}`."


@pytest.mark.parametrize(
    "lines",
    [
        ["I see it.  It is item {i}.  That is all."],
        ['"No!"  It is {i}, he said.  (I think so.)  Yes.'],
        ["token,gold_pos,pred_pos", "text,NN,VB", "the,DT,DT"],
        ["field,pred_value,gold_value", "id,text,id", "name,A,B"],
        ["field_id,pred_value,gold_value", "id,text,score", "name,A,B"],
    ],
)
def test_lines_that_are_no_names_of_columns(lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    *first, last = lines
    path.write_text("".join(f"{line}\n" for line in (*first, *(last.format(i=i) for i in range(9)))))
    with pytest.raises(InputError) as caught:
        trackperm.compare(path, path, by_position=True)
    assert "names of the columns of" not in str(caught.value.hint)
    assert "in place of the blanks" not in str(caught.value.hint)


def test_a_title_above_the_header(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("# model: x, seed 3\nid,correct\n1,1\n2,0\n")
    with pytest.raises(InputError, match="is unclear") as caught:
        trackperm.compare(path, path)
    assert caught.value.hint == f"remove the lines above the names of the columns of `{path}`."


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        (
            ("u{i} ref a b c", "u{i} hyp a x ***", "u{i} op C S D", "u{i} #csid 1 1 0 1"),
            {"id": ["u0", "u1"], "errors": ["2", "2"], "words": ["3", "3"]},
        ),
        (
            (
                "%WER 5.00 [ 3 / 60, 1 ins, 1 del, 1 sub ]",
                "====",
                "u-{i}, %WER 10.00 [ 3 / 30, 1 ins, 1 del, 1 sub ]",
            ),
            {"id": ["u-0", "u-1"], "errors": ["3", "3"], "words": ["30", "30"]},
        ),
        (
            ("S-{i}\ta b", "T-{i}\tc", "H-{i}\t-0.5\tc .", "D-{i}\t-0.5\tc.", "P-{i}\t-0.5 -0.5"),
            {"id": ["0", "1"], "log_probability": ["-0.5", "-0.5"], "prediction": ["c.", "c."]},
        ),
    ],
)
def test_texts_of_programs_become_tables_by_the_command_of_the_error(
    lines: tuple[str, ...], columns: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.txt").write_text("".join(f"{line.format(i=i)}\n" for i in range(2) for line in lines))
    with pytest.raises(InputError) as caught:
        trackperm.compare("run.txt", "run.txt")
    subprocess.run(["sh", "-c", str(caught.value.hint).split("`")[3]], check=True)
    (made,) = (path for path in tmp_path.iterdir() if path.suffix != ".txt")
    assert read_examples(made).frame.to_dict(as_series=False) == columns


def test_the_separator_that_excel_reads(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("sep=;\nid;score\n" + "".join(f"{i};0.{i}\n" for i in range(30)))
    with pytest.raises(InputError) as caught:
        trackperm.compare(path, path)
    assert caught.value.hint == f"remove the first line of `{path}`, which tells Excel the separator."


def test_lines_of_another_length(tmp_path: Path) -> None:
    """COMET prints the score of the system in a last line of its own."""
    path = tmp_path / "run.txt"
    path.write_text("id\tsegment\tscore\n" + "a\tb\t0.5\n" * 30 + "a\tscore: 0.5\n")
    with pytest.raises(SourceError, match="line 32: 2 fields under a header of 3") as caught:
        read_examples(path)
    assert "remove lines that are not rows, such as a total at the end" in str(caught.value.hint)
