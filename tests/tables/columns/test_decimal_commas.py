"""Numbers with decimal commas are neither classes nor free text."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import trackperm
from trackperm.errors import InputError
from trackperm.tables import read_examples
from trackperm.tables.columns.decimal_commas import decimal_comma
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


@pytest.mark.parametrize(
    ("labels", "is_accuracy"),
    [
        (["1", "1,3", "2,4", "3"], True),
        (["3,4", "1,2", "2,1", "4,3"], True),
        (["4,7", "3,2", "4"], False),
        (["4,0", "3,2", "2,5"], False),
        (["1,5", "2", "2,5", "3"], False),
        (["0,5", "0,7"], False),
    ],
)
def test_choices_of_several_options(labels: list[str], is_accuracy: bool) -> None:
    """Regression: answers such as `1,3` were refused as decimals, though most predictions are labels."""
    texts = (labels * 20)[:40]
    said = [text if i % 5 else labels[i % 2] for i, text in enumerate(texts)]
    frame = pl.DataFrame({"id": range(40), "prediction": said, "label": texts})
    if is_accuracy:
        result = trackperm.compare(frame, frame)
        assert result.statistic.name == "accuracy"
        return
    with pytest.raises(InputError, match="its decimals have commas") as caught:
        trackperm.compare(frame, frame)
    assert "; `--statistic accuracy` compares them as they are." in str(caught.value.hint)


@pytest.mark.parametrize(("name", "separator"), [("a.csv", ","), ("a.tsv", "\t"), ("a.txt", ";")])
def test_the_code_reads_the_file(tmp_path: Path, name: str, separator: str) -> None:
    """Regression: the code took semicolons for the separator of all files, and read one column of text."""
    path = tmp_path / name
    rows = pl.DataFrame({"id": range(9), "y_true": [f"{i},19" for i in range(9)]})
    rows.with_columns(y_pred="y_true").write_csv(path, separator=separator)
    with pytest.raises(InputError, match="its decimals have commas") as caught:
        trackperm.compare(path, path, "mae")
    code = str(caught.value.hint).partition("; `")[2].partition("` of polars")[0]
    frame = eval(code, {"pl": pl})
    assert pl.Float64 in frame.schema.values()
    assert frame.columns == ["id", "y_true", "y_pred"]
