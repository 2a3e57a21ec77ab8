"""Measures of each query, as trec_eval and ir_measures print them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.example_tables import columns

import trackperm
from trackperm.errors import SourceError
from trackperm.tables import read_examples

VALUES = {"map": {"q1": 0.5, "q2": 0.25}, "P_5": {"q1": 0.2}, "num_ret": {"q1": 20, "q2": 10}}


def trec_eval(values: dict[str, dict[str, float]], all_: float | None = 0.375) -> str:
    """`printf ("%-22s\\t%s\\t%s\\n", ...)` of trec_eval, with its lines of all queries."""
    lines = [(name, query, value) for name, own in values.items() for query, value in own.items()]
    if all_ is not None:
        lines += [("runid", "all", "bm25"), ("num_q", "all", 2), *((name, "all", all_) for name in values)]
    return "".join(f"{name:22s}\t{query}\t{value}\n" for name, query, value in lines)


def ir_measures(values: dict[str, dict[str, float]]) -> str:
    lines = [f"{query}\t{name}\t{value}\n" for name, own in values.items() for query, value in own.items()]
    return "".join(lines)


def written(folder: Path, text: str, name: str = "run.txt") -> Path:
    (path := folder / name).write_text(text)
    return path


def test_a_column_for_each_measure(tmp_path: Path) -> None:
    """The lines of all queries are no examples: they ended the comparison, or counted as one."""
    expected = {"id": ["q1", "q2"], "map": [0.5, 0.25], "P_5": [0.2, None], "num_ret": [20, 10]}
    for text in (trec_eval(VALUES), trec_eval({**VALUES, "relstring": {}}).replace(" ", "").strip()):
        assert columns(read_examples(written(tmp_path, text))) == expected
    own = {"AP": VALUES["map"], "P@5": VALUES["P_5"], "SetF(beta=2.0)": VALUES["num_ret"]}
    found = columns(read_examples(written(tmp_path, ir_measures(own) + "all\tAP\t0.375\n")))
    assert found == {"id": ["q1", "q2"], "AP": [0.5, 0.25], "P@5": [0.2, None], "SetF(beta=2.0)": [20, 10]}


def test_one_measure_is_compared_and_several_by_name(tmp_path: Path) -> None:
    one = ir_measures({"ERR@10": {f"q{i}": i / 10 for i in range(9)}})
    paths = [written(tmp_path, text, name) for name, text in (("a", one), ("b", one.replace("0.1", "0.9")))]
    found = trackperm.compare(*paths)
    assert (found.n_examples, found.difference > 0, found.statistic.greater_is_better) == (9, True, True)
    several = written(tmp_path, trec_eval(VALUES))
    assert trackperm.compare(several, several, metric="map").n_examples == 2
    assert columns(read_examples(several, part="map")) == {"id": ["q1", "q2"], "map": [0.5, 0.25]}
    with pytest.raises(SourceError, match="has no measure `P_10`"):
        read_examples(several, part="P_10")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (trec_eval({}), "has values of all queries together alone"),
        (trec_eval(VALUES) * 2, "line 11: `map` of query `q1` is there twice"),
    ],
    ids=("all", "twice"),
)
def test_other_files_are_refused(text: str, error: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=error):
        read_examples(written(tmp_path, text))


def test_a_line_that_is_cut_is_named(tmp_path: Path) -> None:
    long = trec_eval({"map": {f"q{i}": 0.5 for i in range(4000)}}, all_=None)
    with pytest.raises(SourceError, match="line 4001: 2 fields; expected 3"):
        read_examples(written(tmp_path, long + "map\tq5"))
