"""Which format reads a file: one sample of each, told by its content alone."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support import eval_logs
from support.example_tables import columns

from trackperm.errors import SourceError
from trackperm.tables import SourceFile, read_examples
from trackperm.tables.registry import detect_format, sources

Maker = Callable[[Path], object]


def text(content: str) -> Maker:
    return lambda path: path.write_text(content, encoding="utf-8")


def document(value: Any, indent: int | None = None) -> Maker:
    return text(json.dumps(value, indent=indent))


def lines(*rows: Any) -> Maker:
    return text("".join(json.dumps(row) + "\n" for row in rows))


def parquet(frame: pl.DataFrame) -> Maker:
    return lambda path: frame.write_parquet(path)


def parquet_parts(frame: pl.DataFrame) -> Maker:
    def make(path: Path) -> None:
        path.mkdir()
        (path / "_SUCCESS").write_bytes(b"")
        for i in range(len(frame)):
            frame[i : i + 1].write_parquet(path / f"part-{i}.parquet")

    return make


def saved_dataset(frame: pl.DataFrame) -> Maker:
    def make(path: Path) -> None:
        path.mkdir()
        names = [f"data-{i:05}-of-{len(frame):05}.arrow" for i in range(len(frame))]
        for i, name in enumerate(names):
            frame[i : i + 1].write_ipc_stream(path / name)
        state = {"_data_files": [{"filename": name} for name in names]}
        (path / "state.json").write_text(json.dumps(state))

    return make


def npz(frame: pl.DataFrame) -> Maker:
    def make(path: Path) -> None:
        arrays = {name: np.array(frame[name].to_list()) for name in frame.columns}
        with path.open("wb") as file:
            np.savez(file, **arrays)

    return make


TABLE = pl.DataFrame({"id": ["q1", "q2"], "prediction": ["a", "b"], "label": ["a", "a"]})
ROWS = TABLE.rows(named=True)
METRICS = [{"em": 1.0}, {"em": 0.0}]
SPLIT = {"columns": TABLE.columns, "data": TABLE.rows()}

QUESTION = {"id": "q1", "question": "Who?", "answers": [{"text": "Denver", "answer_start": 0}]}
EVALB = """\
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
============================================================================
   1    4    0  100.00 100.00     4      4    4      0      4     4   100.00
============================================================================
                100.00 100.00      4      4    4      1      4     4   100.00
"""
SGML = """\
<SYSTEM title="a" ref_fname="r" hyp_fname="h">
<SPEAKER id="a">
<PATH id="(a-1)" labels="<o>">
C,"a","a"
</PATH>
</SPEAKER>
</SYSTEM>
"""

# A sample maker for every shape of every format, and the name of the format.
SAMPLES: dict[str, tuple[Maker, str]] = {
    "csv": (text(TABLE.write_csv()), "delimited"),
    "tsv": (text(TABLE.write_csv(separator="\t")), "delimited"),
    "jsonl": (lines(*ROWS), "jsonl"),
    "jsonl of one line": (lines(ROWS[0]), "jsonl"),
    "json": (document(ROWS), "json"),
    "json of nested objects": (document([{"doc_id": 1, "results": {"results": []}}]), "json"),
    "json of objects by id": (document({f"q{i}": row for i, row in enumerate(ROWS)}), "json-object"),
    "json of columns by row": (
        document({name: {str(i): row[name] for i, row in enumerate(ROWS)} for name in ROWS[0]}),
        "json-object",
    ),
    "log_table": (document(SPLIT), "log-table"),
    "parquet": (parquet(TABLE), "parquet"),
    "folder of parquet": (parquet_parts(TABLE), "parquet-parts"),
    "folder of shards": (saved_dataset(TABLE), "saved-dataset"),
    "arrow": (lambda path: TABLE.write_ipc(path), "arrow"),
    "arrow stream": (lambda path: TABLE.write_ipc_stream(path), "arrow"),
    "npz": (npz(TABLE), "npz"),
    "junit": (text('<testsuite>\n<testcase classname="a" name="b"/>\n</testsuite>\n'), "junit"),
    "junit on one line": (
        text('<testsuites><testsuite><testcase name="b"/></testsuite></testsuites>'),
        "junit",
    ),
    "wandb table": (document({"_type": "table", **SPLIT, "ncols": 3, "nrows": 2}), "wandb-table"),
    "counts of two systems": (text("8,6\n3,5\n7,7\n"), "headerless"),
    "counts with tabs": (text("8\t2\t6\t1\n3\t3\t5\t2\n"), "headerless"),
    "counts with blanks": (text("8 2 6 1\n3 3 5 2\n"), "headerless"),
    "a score a line": (text("0.5\n1\n"), "headerless"),
    "years for a header": (text("lake,1980\n1,2\n"), "delimited"),
    "ten columns of numbers": (text("1\t2\t3\t4\t5\t6\t7\t8\t9\t10.5\n" * 3), "headerless"),
    "six columns of numbers": (text("3 0 4 1 2.5 7\n2 1 5 2 1.5 8\n"), "headerless"),
    "blood groups": (text("blood\tO\nann\tO\nbob\tO\n"), "delimited"),
    "jsonl of one line of texts": (lines({"id1": "x", "pred2": "y"}), "jsonl"),
    "a bracket in a header": (text("[id],score\nq1,1\nq2,0\n"), "delimited"),
    "a brace in a header": (text("{x}\tscore\nq1\t1\nq2\t0\n"), "delimited"),
    "counts that are not finite": (text("nan,1\n2,inf\n0.5,0\n"), "headerless"),
    "numbers in quotes": (text('"3"\t"2"\n"5"\t"1"\n"1"\t"4"\n'), "headerless"),
    "lm-eval": (lines(*eval_logs.LM_EVAL), "lm-eval"),
    "lm-eval of one sample": (lines(eval_logs.LM_EVAL[0]), "lm-eval"),
    "lm-eval as an array": (document(eval_logs.LM_EVAL, indent=2), "lm-eval"),
    "inspect": (document(eval_logs.INSPECT), "inspect"),
    "inspect, indented": (document(eval_logs.INSPECT, indent=2), "inspect"),
    "inspect archive": (lambda path: eval_logs.write_eval(path, eval_logs.INSPECT), "inspect"),
    "helm": (document(eval_logs.HELM, indent=2), "helm"),
    "lighteval": (parquet(eval_logs.lighteval(METRICS)), "lighteval"),
    "lighteval 0.8": (parquet(eval_logs.lighteval_before_0_10(METRICS, as_text=False)), "lighteval"),
    "lighteval 0.6": (parquet(eval_logs.lighteval_before_0_10(METRICS, as_text=True)), "lighteval"),
    "promptfoo": (document(eval_logs.PROMPTFOO, indent=2), "promptfoo"),
    "terminal-bench": (document(eval_logs.terminal_bench({"x": [True, False]})), "terminal-bench"),
    "swe-bench": (document(eval_logs.SWE_BENCH, indent=4), "swe-bench"),
    "swe-bench list": (document({"no_logs": [], "resolved": ["a__a-1"]}), "swe-bench"),
    "squad": (
        document({"version": "1.1", "data": [{"title": "t", "paragraphs": [{"qas": [QUESTION]}]}]}),
        "squad",
    ),
    "squad predictions": (
        document({"56be4db0acb8001400a502ec": "Denver", "56be4db0acb8001400a502ed": ""}),
        "squad-predictions",
    ),
    "evalb": (text(EVALB), "evalb"),
    "sclite sgml": (text(SGML), "sclite"),
    "sclite pra": (text("id: (a-1)\nScores: (#C #S #D #I) 1 0 0 0\nREF:  a\nHYP:  a\n"), "sclite-pra"),
    "trn": (text("at three (s1-u1)\nso (s1-u2)\n"), "trn"),
    "conll": (text("EU B-ORG\nrejects O\n\nPeter B-PER\n"), "conll"),
    "conll with tabs": (text("-DOCSTART-\t-X-\tO\n\nEU\tNNP\tB-ORG\n"), "conll"),
    "tokens under a header": (text("token\ttag\n" + "EU\tB-ORG\n" * 20), "delimited"),
    "conllu": (text("# sent_id = a\n1\tEU\t_\tPROPN\t_\t_\t0\troot\t_\t_\n"), "conllu"),
    "trec": (text("301 Q0 FR1 1 2.5 bm25\n301 Q0 FR2 2 1.5 bm25\n"), "trec"),
    "trec_eval": (text("".join(f"map{' ' * 19}\t{q}\t0.5\n" for q in ("1", "2", "all"))), "trec-eval"),
    "ir_measures": (text("1\tnDCG@10\t0.5\n2\tnDCG@10\t0.25\n"), "trec-eval"),
    "names, tags and numbers": (text("ann\tP\t0.5\nbob\tR\t0.25\n"), "delimited"),
    "swe-bench instances": (document({"a__a-1": {"resolved": True}}), "swe-bench"),
}


@pytest.mark.parametrize("case", SAMPLES.values(), ids=SAMPLES)
def test_one_format_reads_it_whatever_it_is_called(case: tuple[Maker, str], tmp_path: Path) -> None:
    make, name = case
    path = tmp_path / "x.dat"
    make(path)
    source = detect_format(SourceFile(path))
    assert source.name == name
    if source.needs_references:
        with pytest.raises(SourceError, match="needs reference answers to make a table"):
            read_examples(path)
    else:
        assert len(read_examples(path)) > 0


@pytest.mark.parametrize("case", SAMPLES.values(), ids=SAMPLES)
def test_compressed_it_reads_the_same(case: tuple[Maker, str], tmp_path: Path) -> None:
    make, name = case
    path, compressed = tmp_path / "x.dat", tmp_path / "y.dat"
    make(path)
    if path.is_dir():
        return
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    source = detect_format(SourceFile.opened(compressed))
    assert source.name == name
    if not source.needs_references:
        assert columns(read_examples(compressed)) == columns(read_examples(path))


@pytest.mark.parametrize("case", SAMPLES.values(), ids=SAMPLES)
def test_no_particular_format_claims_another(case: tuple[Maker, str], tmp_path: Path) -> None:
    """Only the general ones, at the end of the order, may recognise what a particular one reads."""
    make, name = case
    path = tmp_path / "x.dat"
    make(path)
    general = ("parquet", "log-table", "json", "jsonl", "headerless", "delimited")
    claimed = [source.name for source in sources() if source.recognises(SourceFile(path))]
    assert [found for found in claimed if found not in general] == ([] if name in general else [name])


def archive(**members: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return data.getvalue()


STRANGERS = {
    "bytes": bytes(range(256)),
    "an archive": archive(readme="x"),
    "an archive that is none": b"PK\x03\x04 and no more",
    "parquet that is none": b"PAR1 and no more",
    "a JSON object": b'{\n"results": 1, "resolved": 2, "eval": 3, "plan": 4, "status": 5}',
    "a JSON array of numbers": b"[1, 2]",
    "a JSON object of objects": b'{\n"a": {"resolved": 1}}',
    "JSON that breaks off": b'{"results": {"results": [',
    "nothing but space": b" \n ",
}


@pytest.mark.parametrize("data", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_makes_no_format_raise_and_one_clear_refusal(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.dat"
    path.write_bytes(data)
    for source in sources():
        source.recognises(SourceFile(path))
    with pytest.raises(SourceError, match=rf"^`{path}`"):
        read_examples(path)


def test_a_folder_makes_no_format_raise(tmp_path: Path) -> None:
    assert not any(source.recognises(SourceFile(tmp_path)) for source in sources())


def test_names_are_unique() -> None:
    names = [source.name for source in sources()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("data", "way"),
    [
        ("id,score\n1,2\n".encode("utf-16"), "convert it by `iconv -f UTF-16 -t UTF-8`"),
        (archive(**{"xl/workbook.xml": "x"}), "save its sheet as `CSV UTF-8`, or by `pl.read_excel("),
        (b"\x93NUMPY\x01\x00v\x00", 'np.savez("run.npz", prediction=np.load('),
        (archive(readme="x"), "known formats: "),
        (b"PK\x03\x04 and no more", "known formats: "),
    ],
    ids=("utf-16", "workbook", "array", "other archive", "no archive"),
)
def test_a_file_of_another_program_has_a_way_on(data: bytes, way: str, tmp_path: Path) -> None:
    path = tmp_path / "x.xlsx"
    path.write_bytes(data)
    with pytest.raises(SourceError, match="is not in a known format") as caught:
        read_examples(path)
    assert way in str(caught.value.hint)


@pytest.mark.parametrize(
    ("value", "way"),
    [
        (
            {"results": [{"name": f"case {i}", "success": True} for i in range(3)], "run": "a"},
            r"`results` of the only row holds a list of 3 objects, .* `d = json.loads\(Path\(",
        ),
        ({"run": {"lr": 0.1}, "predictions": ["a", "b"], "labels": ["a", "a"]}, "hold 2 values each"),
        ({"model": {"lr": 0.1}}, "known formats: "),
    ],
    ids=("list", "columns", "settings"),
)
def test_an_indented_object_says_where_its_examples_are(value: Any, way: str, tmp_path: Path) -> None:
    """As one on a single line, which is a row of JSON Lines."""
    document(value, indent=2)(path := tmp_path / "run.json")
    with pytest.raises(SourceError, match="which would be one row") as caught:
        read_examples(path)
    assert re.search(way, str(caught.value.hint))
