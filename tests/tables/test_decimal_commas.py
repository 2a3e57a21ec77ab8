"""Numbers with decimal commas are neither classes nor free text."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import trackperm
from trackperm.errors import InputError
from trackperm.tables import read_examples
from trackperm.tables.decimal_commas import decimal_comma
from trackperm.tables.table import ExampleTable


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["4,7", "5"], "4,7"),
        (["1,234", "-0,5"], "-0,5"),
        (["0,483"], "0,483"),
        (["1,234", "12,000"], None),
        (["1,2,3", "1,2"], None),
        (["4,7", "n/a"], None),
        (["4.7", "5"], None),
        ([None], None),
    ],
)
def test_texts(texts: list[str | None], found: str | None) -> None:
    table = ExampleTable.from_native(pl.DataFrame({"x": pl.Series(texts, dtype=pl.String)}), "run")
    assert decimal_comma(table, "x") == found
    assert decimal_comma(table, "y") is None
    numbers = ExampleTable.from_native(pl.DataFrame({"x": [4.7]}), "run")
    assert decimal_comma(numbers, "x") is None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    path.write_text("id;y_true;y_pred\n" + "".join(f"{i};{i},5;{i},{5 + i % 2}\n" for i in range(20)))
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"statistic": "mae"},
        {"statistic": "pearson"},
        {"metric": "y_pred"},
        {"statistic": "roc_auc", "columns": {"score": "y_pred", "label": "y_true"}},
    ],
)
def test_they_are_refused_with_the_way_to_read_them(path: Path, options: dict[str, object]) -> None:
    """Regression: accuracy compared such decimals as text, and `mae` said that `-` takes numbers."""
    with pytest.raises(InputError, match=r"such as '.*,5', and no numbers: its decimals") as caught:
        trackperm.compare(path, path, **options)
    code = f'pl.read_csv("{path}", separator=";", decimal_comma=True)'
    assert f"`{code}` of polars" in str(caught.value.hint)
    frame = eval(code, {"pl": pl})
    assert trackperm.compare(frame, frame, "mae").baseline_score == pytest.approx(0.05)


def test_text_may_still_be_compared_as_it_is(path: Path) -> None:
    assert trackperm.compare(path, path, "accuracy").baseline_score == 0.5
    assert read_examples(path).columns == ["id", "y_true", "y_pred"]


def test_a_score_with_decimal_commas() -> None:
    frame = pl.DataFrame({"id": [1, 2], "score": ["0,4829", "1"]})
    for options in ({}, {"metric": "score"}):
        with pytest.raises(InputError, match="such as '0,4829', and no numbers: its decimals have") as caught:
            trackperm.compare(frame, frame, **options)
    code = 'frame.with_columns(pl.col("score").str.replace(",", ".").cast(pl.Float64))'
    assert f"`{code}` of polars" in str(caught.value.hint)
    assert eval(code, {"pl": pl, "frame": frame})["score"].to_list() == [0.4829, 1.0]
