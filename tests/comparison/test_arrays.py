"""`trackperm.compare` of arrays: the same numbers as of files, and refusals of what cannot be paired."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.processes import python

import trackperm
from trackperm.errors import InputError, InputTypeError, PairingError, SourceError

Array = npt.NDArray[Any]

N = 200
RNG = np.random.default_rng(7)
Y_TRUE = RNG.integers(0, 2, N)
OLD = np.where(RNG.random(N) < 0.70, Y_TRUE, 1 - Y_TRUE)
NEW = np.where(RNG.random(N) < 0.82, Y_TRUE, 1 - Y_TRUE)
IDS = [f"q{i:03}" for i in RNG.permutation(N)]

SHAPES: dict[str, Callable[[Array], Any]] = {
    "numpy": np.asarray,
    "list": lambda array: array.tolist(),
    "tuple": lambda array: tuple(array.tolist()),
    "polars": pl.Series,
    "pyarrow": lambda array: pa.chunked_array([array[:50], array[50:]]),
    "pyarrow in one piece": pa.array,
    "pandas": pd.Series,
    "object array": lambda array: array.astype(object),
}


def numbers(comparison: trackperm.Comparison) -> list[Any]:
    """All that a comparison says in numbers, to the last digit."""
    found = comparison.to_dict()
    return [
        found[name]
        for name in ("pvalue", "difference", "baseline_score", "interval", "n_discordant", "method")
    ]


def files(folder: Path, *, ids: bool) -> list[Path]:
    """The two runs in CSV files."""
    paths = []
    for name, values in (("old", OLD), ("new", NEW)):
        frame = pl.DataFrame({"id": IDS, "prediction": values, "label": Y_TRUE})
        paths.append(folder / f"{name}.csv")
        (frame if ids else frame.drop("id")).write_csv(paths[-1])
    return paths


# --- by position ---------------------------------------------------------------------------------------


@pytest.mark.sample(4)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("statistic", ["f1", "accuracy", "macro_f1"])
def test_arrays_have_the_numbers_of_files(shape: str, statistic: str, tmp_path: Path):
    given = [SHAPES[shape](array) for array in (Y_TRUE, OLD, NEW)]
    found = trackperm.compare(*given, statistic=statistic)
    expected = trackperm.compare(*files(tmp_path, ids=False), statistic, by_position=True)
    assert numbers(found) == numbers(expected)
    assert found.key == expected.key
    assert found.pairing.by == "position"
    assert found.pvalue < 0.05


def test_the_statistic_is_accuracy_by_default():
    assert trackperm.compare(Y_TRUE, OLD, NEW).statistic.name == "accuracy"


def test_several_statistics_are_one_family():
    both = trackperm.compare(Y_TRUE, OLD, NEW, statistic=["f1", "accuracy"], correction="bonferroni")
    assert [each.corrected.n_tests for each in both if each.corrected] == [2, 2]


def test_text_and_parameters():
    words = np.array(["no", "yes"])
    found = trackperm.compare(
        words[Y_TRUE], words[OLD], words[NEW], statistic="f1", parameters={"positive": "yes"}
    )
    assert found.pvalue == trackperm.compare(Y_TRUE, OLD, NEW, statistic="f1").pvalue


def test_a_range_is_a_list():
    later = [i + i % 3 for i in range(12)]
    found = trackperm.compare(range(12), later, statistic="mean")
    assert numbers(found) == numbers(trackperm.compare(list(range(12)), later, statistic="mean"))


def test_two_arrays_are_scores(tmp_path: Path):
    scores = RNG.integers(0, 11, (2, N)) / 10
    for name, column in zip("ab", scores, strict=True):
        pl.DataFrame({"id": IDS, "score": column}).write_parquet(tmp_path / f"{name}.parquet")
    found = trackperm.compare(*scores, statistic="mean")
    expected = trackperm.compare(tmp_path / "a.parquet", tmp_path / "b.parquet", "mean")
    assert numbers(found) == numbers(expected)


def test_arguments_by_name():
    expected = trackperm.compare(Y_TRUE, OLD, NEW, statistic="f1").pvalue
    by_name = trackperm.compare(y_true=Y_TRUE, y_baseline=OLD, y_candidate=NEW, statistic="f1")
    assert by_name.pvalue == trackperm.compare(Y_TRUE, y_baseline=OLD, y_candidate=NEW, statistic="f1").pvalue
    assert by_name.pvalue == expected


def test_lists_of_words_are_values_of_one_example():
    tags = [["B", "I"], ["O"], ["B"]] * 4
    other = [["B", "O"], ["O"], ["O"]] * 4
    assert trackperm.compare(tags, other, tags, statistic="token_accuracy").verdict == "better"


# --- by id ---------------------------------------------------------------------------------------------


def shuffled(values: Array, how: Callable[[list[str], list[Any]], Any]) -> Any:
    order = np.random.default_rng(values.sum()).permutation(N)
    return how([IDS[i] for i in order], values[order].tolist())


@pytest.mark.parametrize(
    "how",
    [
        lambda ids, values: dict(zip(ids, values, strict=True)),
        lambda ids, values: pd.Series(values, index=ids),
    ],
    ids=["mapping", "index"],
)
def test_ids_pair_values_in_any_order(how: Callable[[list[str], list[Any]], Any], tmp_path: Path):
    found = trackperm.compare(*(shuffled(each, how) for each in (Y_TRUE, OLD, NEW)), statistic="f1")
    expected = trackperm.compare(*files(tmp_path, ids=True), "f1")
    assert numbers(found) == numbers(expected)
    assert found.key == expected.key
    assert found.pairing.by == "id"


def test_an_index_that_is_shuffled_is_an_id():
    order = RNG.permutation(N)
    series = [pd.Series(Y_TRUE), pd.Series(OLD)[order], pd.Series(NEW)]
    found = trackperm.compare(*series, statistic="f1")
    assert found.pairing.by == "id"
    assert found.pvalue == trackperm.compare(Y_TRUE, OLD, NEW, statistic="f1").pvalue


def test_arrays_beside_one_index_are_in_its_order():
    y_test = pd.Series(Y_TRUE, index=RNG.permutation(N) + 1000)
    found = trackperm.compare(y_test, OLD, NEW, statistic="f1")
    assert found.pairing.by == "position"
    assert found.pvalue == trackperm.compare(Y_TRUE, OLD, NEW, statistic="f1").pvalue


def test_other_ids_are_refused():
    y_test = pd.Series(Y_TRUE, index=np.arange(N) + 1000)
    with pytest.raises(SourceError, match="`y_true` has no label"):
        trackperm.compare(y_test, pd.Series(OLD), pd.Series(NEW), statistic="f1")
    with pytest.raises(
        PairingError, match=r"indexes of `y_true` and `y_baseline` differ, and `y_candidate` has none"
    ):
        trackperm.compare(y_test, pd.Series(OLD), NEW, statistic="f1")
    first, *others = (dict(zip(IDS, each, strict=True)) for each in (Y_TRUE, OLD, NEW))
    with pytest.raises(PairingError, match="`y_true` has ids and `y_candidate` has none"):
        trackperm.compare(first, others[0], NEW, statistic="f1")
    del others[1][IDS[3]]
    with pytest.raises(PairingError, match=r"(?s)1 of 200 examples of `candidate`.*missing=\"drop\""):
        trackperm.compare(first, *others, statistic="f1")
    assert trackperm.compare(first, *others, statistic="f1", missing="drop").n_examples == N - 1


def test_ids_that_repeat_are_refused():
    series = [pd.Series(each, index=["q"] * N) for each in (Y_TRUE, OLD, NEW)]
    with pytest.raises(SourceError, match="ids of `y_true` are missing or repeated"):
        trackperm.compare(*series, statistic="f1")
    with pytest.raises(PairingError, match="q"):
        trackperm.compare(*series[1:], statistic="mean")


# --- refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: trackperm.compare(Y_TRUE, OLD, "f1"), InputTypeError, "statistic without its name"),
        (lambda: trackperm.compare(Y_TRUE, OLD, NEW, "f1"), InputTypeError, "4 arguments by position"),
        (lambda: trackperm.compare(Y_TRUE, "a.csv", "b.csv"), InputTypeError, "statistic without its name"),
        (lambda: trackperm.compare(Y_TRUE, "a.csv"), InputTypeError, r"`y_candidate` is of another kind"),
        (lambda: trackperm.compare("a.csv", OLD), InputTypeError, r"`candidate` is an array \(`ndarray`\)"),
        (lambda: trackperm.compare(Y_TRUE, OLD, candidate="a.csv"), InputTypeError, "name runs and arrays"),
        (lambda: trackperm.compare("a.csv", "b.csv", "f1", statistic="f1"), InputTypeError, "too many"),
        (lambda: trackperm.compare("a.csv"), InputTypeError, "`candidate` is missing"),
        (lambda: trackperm.compare(), InputTypeError, "`baseline` is missing"),
        (lambda: trackperm.compare(OLD, NEW), InputError, "two arrays are given without a statistic"),
        (lambda: trackperm.compare(OLD, NEW, statistic="f1"), InputError, "two arrays are given; exp"),
        (lambda: trackperm.compare(Y_TRUE, OLD, NEW, statistic="mean"), InputError, "three arrays are given"),
        (lambda: trackperm.compare(OLD, NEW, statistic="pooled_f1"), InputError, "reads the columns `tp`"),
        (lambda: trackperm.compare(OLD, NEW, statistic="pass_at_1"), InputError, "needs ids"),
        (lambda: trackperm.compare(Y_TRUE, OLD, NEW[1:], statistic="f1"), InputError, "200 values and"),
        (lambda: trackperm.compare(Y_TRUE[:, None], OLD, NEW), InputError, r"shape \(200, 1\)"),
        (lambda: trackperm.compare(Y_TRUE, OLD, NEW, slices=["x"]), InputError, "`slices` cannot be used"),
        (lambda: trackperm.compare([1, "a"], [1, 2], [1, 2]), InputTypeError, "`y_true` mixes values"),
        (lambda: trackperm.compare([{1}, {2}], [1, 2], [1, 2]), InputTypeError, "values of type `set`"),
    ],
)  # fmt: skip
def test_refusals_are_short_and_name_the_next_step(
    call: Callable[[], object], error: type[Exception], said: str
):
    with pytest.raises(error, match=said) as found:
        call()
    assert len(str(found.value)) < 400
    assert "--" not in str(found.value)


def test_masked_values_are_missing():
    masked = np.ma.masked_array(NEW, mask=np.arange(N) == 4)
    with pytest.raises(PairingError, match="1 of 200"):
        trackperm.compare(Y_TRUE, OLD, masked, statistic="f1")
    assert trackperm.compare(Y_TRUE, OLD, masked, statistic="f1", missing="drop").n_examples == N - 1


# --- pandas without PyArrow ----------------------------------------------------------------------------

WITHOUT_PYARROW = """\
import sys
sys.modules["pyarrow"] = None  # as if it were not installed
import pandas as pd
import polars as pl
import trackperm

words = ["yes", "no", None, "no"] * 10
other = ["yes", "yes", "no", "no"] * 10
frames = [
    pd.DataFrame(
        {
            "id": [f"q{i}" for i in range(40)],
            "prediction": values,
            "label": pd.Categorical(other),
            "n": pd.array([1, None] * 20, dtype="Int64"),
            "mixed": [1, "a"] * 20,
        }
    )
    for values in (words, other)
]
found = trackperm.compare(*frames, "accuracy", missing="wrong")
print(found.n_better, found.n_worse, found.pvalue)
series = [pd.Series(values, index=frames[0]["id"]) for values in (other, words, other)]
print(trackperm.compare(*series, statistic="accuracy", missing="wrong").pvalue)
try:
    trackperm.compare(*frames, columns={"prediction": "mixed"})
except trackperm.TrackpermError as error:
    print(error)
"""


@pytest.mark.extended
def test_text_of_pandas_without_pyarrow():
    first, second, *refusal = python(WITHOUT_PYARROW).splitlines()
    assert first == f"20 0 {second}"
    assert float(second) == 2.0**-19
    assert "column `mixed` of `baseline` mixes values of several types" in refusal[0]


def test_unclear_arrays_have_no_columns_to_name() -> None:
    """Before, the hint named a column and `trackperm inspect baseline`."""
    labels, old, new = [0.5, 1.25, 2.5], [0.25, 1.0, 2.5], [0.5, 1.0, 2.0]
    with pytest.raises(InputError, match="holds decimals") as caught:
        trackperm.compare(labels, old, new)
    said = str(caught.value)
    assert 'compare errors of numbers by `statistic="mae"` or `statistic="rmse"`, or name a statistic' in said
    assert "inspect" not in said
    assert "metric=" not in said
    frames = [pl.DataFrame({"id": range(3), "prediction": each, "label": labels}) for each in (old, new)]
    with pytest.raises(InputError, match="holds decimals") as caught:
        trackperm.compare(*(each.with_columns(seconds=pl.col("prediction") * 2) for each in frames))
    assert 'name a column of scores by `metric="COLUMN"` (`seconds`), or a statistic' in str(caught.value)
    assert "inspect" not in str(caught.value)
