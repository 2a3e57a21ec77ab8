from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.cli_comparison import compared
from support.eval_logs import lighteval, lighteval_before_0_10

from trackperm.comparison import Question
from trackperm.errors import PairingError, SourceError
from trackperm.tables import read_examples

METRICS = [{"em": 1.0}, {"em": 0.0}, {"em": 1.0}]


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(frame: pl.DataFrame, name: str = "details") -> Path:
        path = tmp_path / f"{name}.parquet"
        frame.write_parquet(path)
        return path

    return write


def test_columns(write: Any) -> None:
    table = read_examples(write(lighteval(METRICS)))
    found = {name: table.frame[name].to_list() for name in table.columns}
    assert len(set(found.pop("input_hash"))) == 3
    assert found == {
        "id": ["0", "1", "2"],
        "task": ["lighteval|sums"] * 3,
        "prediction": ["4", "4", "4"],
        "label": ["4", "5", "4"],
        "em": [1.0, 0.0, 1.0],
        "score": [1.0, 0.0, 1.0],
    }
    assert (table.identity, table.facts) == (("input_hash",), {"task": "lighteval|sums"})


def test_several_metrics_give_no_score(write: Any) -> None:
    columns = read_examples(write(lighteval([{"em": 1.0, "f1": 0.5}]))).columns
    assert ("em" in columns, "f1" in columns, "score" in columns) == (True, True, False)


def test_metrics_of_the_log(write: Any) -> None:
    """Those that score every sample by a number; texts and lists are columns alone."""
    metrics = [
        {"em": 1.0, "acc": True, "extracted": "4", "none": None},
        {"em": 0.0, "acc": None, "extracted": "5"},
    ]
    first, second = (write(lighteval(metrics)), write(lighteval(metrics)))
    assert read_examples(first).metrics == {"em": "em", "acc": "acc"}
    found = Question(metrics=("em",)).statistics_of([read_examples(path) for path in (first, second)])
    assert [statistic.name for statistic in found] == ["em"]
    assert {each.name for each in Question().statistics_of([read_examples(first)] * 2)} == {"em", "acc"}


def test_several_samples_give_no_prediction(write: Any) -> None:
    frame = lighteval(METRICS).with_columns(
        pl.struct(pl.lit(["4", "5"]).alias("text"), pl.lit(None).alias("text_post_processed")).alias(
            "model_response"
        )
    )
    assert "prediction" not in read_examples(write(frame)).columns


@pytest.mark.parametrize("as_text", [True, False])
def test_layouts_before_0_10(write: Any, as_text: bool) -> None:
    path = write(lighteval_before_0_10(METRICS, as_text=as_text))
    table = read_examples(path)
    assert table.columns == ["prediction", "label", "input_hash", "em", "score"]
    assert table.frame["score"].to_list() == [1.0, 0.0, 1.0]
    assert table.frame["prediction"].to_list() == ["4"] * 3
    for option in (["--id", "input_hash"], ["--by-position"]):
        assert compared(path, path, "-s", "mean", *option)["n_examples"] == 3


def test_floats_of_numpy_in_text(write: Any) -> None:
    frame = lighteval_before_0_10(METRICS, as_text=True)
    metrics = frame["metrics"].str.replace(r"(\d\.\d)", r"np.float64($1)")
    assert read_examples(write(frame.with_columns(metrics))).frame["em"].to_list() == [1.0, 0.0, 1.0]


def test_other_queries_are_refused_when_paired(write: Any) -> None:
    other = lighteval_before_0_10(METRICS, as_text=False).with_columns(pl.lit("7+7?").alias("example"))
    paths = write(lighteval_before_0_10(METRICS, as_text=False)), write(other, "other")
    with pytest.raises(PairingError, match="`input_hash` differs between the runs on 3 of 3"):
        compared(*paths, "-s", "mean", "--by-position")


def test_invalid_metrics(write: Any) -> None:
    frame = lighteval_before_0_10(METRICS, as_text=True).with_columns(pl.lit("{'em': x}").alias("metrics"))
    with pytest.raises(SourceError, match=r"row 0: the metrics .* are not a mapping of names to values"):
        read_examples(write(frame))


@pytest.mark.parametrize("column", ["doc", "model_response"])
def test_a_row_that_lacks_a_part(write: Any, column: str) -> None:
    """Regression: that was an AttributeError."""
    frame = lighteval(METRICS)
    lacking = frame.with_columns(pl.when(pl.int_range(3) != 1).then(column).alias(column))
    with pytest.raises(SourceError, match=f"row 1: no `{column}`"):
        read_examples(write(lacking))


def test_choices_outside_a_list_give_no_label(write: Any) -> None:
    """Regression: numbers were a TypeError, and of a text the label was one character."""
    frame = lighteval(METRICS)
    for choices in (pl.lit(7), pl.lit("no"), pl.struct(pl.lit(7))):
        changed = frame.with_columns(pl.col("doc").struct.with_fields(choices.alias("choices")))
        assert "label" not in read_examples(write(changed)).columns


def test_names_of_metrics_that_are_not_text(write: Any) -> None:
    """Regression: that was a TypeError."""
    frame = lighteval_before_0_10(METRICS, as_text=True).with_columns(pl.lit("{1: 0.5}").alias("metrics"))
    with pytest.raises(SourceError, match=r"row 0: the metrics '\{1: 0\.5\}' are not a mapping"):
        read_examples(write(frame))


@pytest.mark.parametrize(
    ("value", "reason"),
    [("{'a'}", "holds values of type `set`"), ("b'a'", "holds values of type `bytes`")],
)
def test_metrics_of_types_that_json_lacks(write: Any, value: str, reason: str) -> None:
    """Regression: that was a KeyError."""
    metrics = pl.lit(f"{{'em': {value}}}").alias("metrics")
    table = read_examples(write(lighteval_before_0_10(METRICS, as_text=True).with_columns(metrics)))
    assert table.unusable["em"] == reason


def test_metrics_of_a_number_and_of_a_type_that_json_lacks(write: Any) -> None:
    frame = lighteval_before_0_10(METRICS, as_text=True)
    metrics = pl.Series("metrics", ["{'em': 1.5}", "{'em': 2j}", "{'em': None}"])
    table = read_examples(write(frame.with_columns(metrics)))
    assert table.unusable["em"] == "mixes decimals (row 0) and values of type `complex` (row 1)"


def test_cut_short(write: Any) -> None:
    path = write(lighteval(METRICS))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SourceError, match="is not a readable Parquet file"):
        read_examples(path)


def test_other_parquet_files_stay_tables(write: Any) -> None:
    path = write(pl.DataFrame({"doc": ["a"], "metric": [1], "model_response": ["x"]}))
    assert read_examples(path).columns == ["doc", "metric", "model_response"]
