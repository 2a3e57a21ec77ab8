"""Statistics that count one class need one that is clear: which are refused, and what the hints lead to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.command_line import call_trackperm
from support.engines import ENGINES, native
from support.labelled_runs import OF_ONE_CLASS, checked, compared, refusal, renamed, scans, settings, two_runs
from support.specs import load

import trackperm
from trackperm.errors import InputError, InputTypeError, SpecError
from trackperm.pairing.checks import label_values
from trackperm.pairing.checks.label_values import require_label_values
from trackperm.statistic import load_statistic
from trackperm.statistic.written_spec import written_spec
from trackperm.tables.lazy import scan
from trackperm.tables.lazy.scan import Scan
from trackperm.tables.table import ExampleTable

N = 120
TEN = np.random.default_rng(1).integers(0, 10, N)


class TestOneClassOfMany:
    @pytest.mark.sample(5)
    @pytest.mark.parametrize("name", OF_ONE_CLASS)
    @pytest.mark.parametrize("values", [range(10), "abcdefghij"], ids=["numbers", "text"])
    def test_ten_classes_are_refused_with_the_choices(self, name: str, values: Sequence[Any]) -> None:
        frames = two_runs([values[i] for i in TEN])
        error = refusal(frames, name)
        assert error.message.startswith(
            f"`{name}` counts one class against all others, but `label` of `baseline` has 10 classes: "
        )
        assert error.message.endswith(", and 5 more")
        assert "`macro_f1`, `balanced_accuracy`, `accuracy` count all classes" in str(error.hint)
        (chosen,) = settings(error)
        assert compared(frames, name, parameters=chosen).verdict in ("better", "undecided")

    @pytest.mark.parametrize("engine", ENGINES)
    def test_in_every_library(self, engine: str) -> None:
        frames = [native(engine, frame.to_dict(as_series=False)) for frame in two_runs([int(i) for i in TEN])]
        assert "10 classes" in refusal(frames, "f1").message

    @pytest.mark.sample(5)
    @pytest.mark.parametrize("positive", [3, 1])
    @pytest.mark.parametrize("name", OF_ONE_CLASS)
    def test_a_class_that_was_chosen_is_tested_against_the_rest(self, name: str, positive: int) -> None:
        """Also the default value, if it is given explicitly."""
        frames = two_runs([int(i) for i in TEN])
        binary = [
            frame.with_columns((pl.col("prediction", "label") == positive).cast(pl.Int64)) for frame in frames
        ]
        found = compared(frames, name, parameters={"positive": positive})
        expected = compared(binary, name)
        assert found.difference == expected.difference
        assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-12)

    def test_the_default_of_a_users_spec_is_a_choice_if_it_is_a_label(self, tmp_path: Path) -> None:
        spec = "counts: {hits: (prediction == positive) & (label == positive), n: label == positive}\n"
        spec += "score: hits / n\nundefined: 0\nparameters: {positive: VALUE}\n"
        frames = two_runs([int(i) for i in TEN])
        found = compared(frames, load(tmp_path, spec.replace("VALUE", "7")))
        expected = compared(frames, "recall", parameters={"positive": 7})
        assert found.pvalue == expected.pvalue
        error = refusal(frames, load(tmp_path, spec.replace("VALUE", "77")))
        assert "is 77, which is not a label" in error.message
        assert "positive=" in str(error.hint)

    def test_refused_before_pairing(self, tmp_path: Path) -> None:
        frames = [frame.with_columns(id=pl.lit("q")) for frame in two_runs([int(i) for i in TEN])]
        assert "10 classes" in refusal(frames, "f1").message
        paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
        for frame, path in zip(frames, paths, strict=True):
            frame.write_parquet(path)
        result = call_trackperm(tmp_path, "compare", "a.parquet", "b.parquet", "-s", "f1", "--no-log")
        assert result.returncode == 2
        assert "`f1` counts one class against all others, but `label` of `a.parquet` has" in result.stderr
        assert "Hint: `--set positive=" in result.stderr

    def test_only_the_labels_of_a_file_are_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tables, read = scans(tmp_path, two_runs([int(i) for i in TEN])), []
        slices = Scan.slices

        def noted(self: Scan, names: Any, size: int) -> Any:
            read.append(tuple(names))
            return slices(self, names, size)

        monkeypatch.setattr(Scan, "slices", noted)
        with pytest.raises(InputError, match="10 classes"):
            require_label_values(tables, load_statistic("f1"))
        assert read == [("label",)]

    def test_more_labels_than_are_counted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(label_values, "MOST_CLASSES", 5)
        monkeypatch.setattr(scan, "_COUNTED", 7)
        frames = two_runs([int(i) for i in TEN])
        for tables in (scans(tmp_path, frames), [ExampleTable.from_native(f, "x") for f in frames]):
            with pytest.raises(InputError, match="has more than 5 classes"):
                require_label_values(tables, load_statistic("f1"))
            chosen = load_statistic("f1", parameters={"positive": 77})
            assert require_label_values(tables, chosen) is chosen, "nobody knows"


class TestTwoClasses:
    NAMES = (
        ("yes", "no"),
        ("malignant", "benign"),
        ("not entailed", "entailed"),
        ("null", "it's"),
        ("'a'", 'b"c'),
        ("02", "1.50"),
        ("", "~"),
        ("true", "True"),
        ("9" * 120, "x"),
        (2, 4),
        (0.5, 1.5),
        ("$HOME", "`id`'s"),
    )

    @pytest.mark.parametrize("names", NAMES, ids=str)
    def test_two_classes_without_1_are_refused_and_either_can_be_chosen(self, names: tuple[Any, Any]) -> None:
        frames = renamed(two_runs([int(i % 2) for i in TEN]), dict(enumerate(names)))
        error = refusal(frames, "f1")
        assert "is 1 by default, which is not a label: `label` of `b" in error.message
        if "`" in str(names):
            return  # what a hint names stands between backticks
        chosen = settings(error)
        assert len(chosen) == 2
        of_names = [checked(frames, load_statistic("f1", parameters=each)).parameters for each in chosen]
        assert {parameters["positive"] for parameters in of_names} == set(names)

    def test_the_rarer_class_is_proposed_first(self) -> None:
        frames = two_runs(["no"] * 30 + ["yes"] * 5)
        error = refusal(frames, "recall")
        assert error.message.endswith(" has 'no' (30), 'yes' (5)")
        assert error.hint == "`--set positive=yes` or `--set positive=no` chooses the class."

    @pytest.mark.sample(7)
    @pytest.mark.parametrize("name", OF_ONE_CLASS)
    @pytest.mark.parametrize("given", [{}, {"positive": 1}, {"positive": "1"}], ids=str)
    def test_text_0_and_1_are_0_and_1(self, name: str, given: dict[str, Any]) -> None:
        numbers = two_runs([int(i % 2) for i in TEN])
        texts = renamed(numbers, {0: "0", 1: "1"})
        found = compared(texts, name, parameters=given)
        assert found.pvalue == compared(numbers, name).pvalue
        assert found.statistic.parameters["positive"] == "1"
        assert "positive: '1'" in written_spec(found.statistic)

    @pytest.mark.parametrize(
        ("values", "given", "meant"),
        [
            (("no", "1"), 1, "1"),
            (("0", "1"), 0, "0"),
            (("False", "True"), True, "True"),
            (("false", "true"), True, "true"),
            (("-1", "+1"), 1, "+1"),
            (("0.5", "1.0"), 1.0, "1.0"),
        ],
        ids=str,
    )
    def test_a_value_selects_the_text_that_is_read_as_it(self, values: Any, given: Any, meant: str) -> None:
        frames = renamed(two_runs([int(i % 2) for i in TEN]), dict(enumerate(values)))
        found = compared(frames, "f1", parameters={"positive": given})
        expected = compared(frames, "f1", parameters={"positive": meant})
        assert (found.pvalue, found.difference) == (expected.pvalue, expected.difference)
        assert found.statistic.parameters["positive"] == meant

    def test_a_text_beside_untyped_numbers(self, tmp_path: Path) -> None:
        """CSV has no types: what its labels are, those of the other run tell."""
        frames = renamed(two_runs([int(i % 2) for i in TEN]), {0: "0", 1: "1"})
        paths = [tmp_path / "a.csv", tmp_path / "b.parquet"]
        frames[0].write_csv(paths[0])
        frames[1].write_parquet(paths[1])
        assert compared(paths, "f1").statistic.parameters["positive"] == "1"
        assert compared(paths[::-1], "f1").statistic.parameters["positive"] == "1"
        assert trackperm.compare(paths[0], paths[0], "f1").statistic.parameters["positive"] == 1

    def test_two_texts_that_are_read_as_one_value(self) -> None:
        frames = two_runs(["1", "01", "0"] * 12)
        error = refusal(frames, "f1", parameters={"positive": 1})
        assert (
            error.message
            == "`positive` of `f1` is 1, and 2 labels are read as this value: `'01'`, `'1'`; expected one"
        )
        chosen = settings(error)
        assert chosen == [{"positive": "01"}, {"positive": "1"}]
        for each in chosen:
            assert compared(frames, "f1", parameters=each).statistic.parameters == each

    def test_booleans_are_0_and_1(self) -> None:
        numbers = two_runs([int(i % 2) for i in TEN])
        found = compared([f.with_columns(pl.col("label", "prediction") == 1) for f in numbers], "f1")
        assert found.pvalue == compared(numbers, "f1").pvalue

    @pytest.mark.parametrize("positive", ["malign", "1", True, 7])
    def test_a_choice_that_is_not_a_label(self, positive: Any) -> None:
        frames = two_runs(["malignant", "benign"] * 20)
        error = refusal(frames, "specificity", parameters={"positive": positive})
        assert f"is {positive!r}, which is not a label" in error.message
        assert {"positive": "malignant"} in settings(error)
        if isinstance(positive, str):
            chosen = load_statistic("specificity", parameters={"positive": positive})
            assert checked(frames, chosen, allow_unseen=True) is chosen

    def test_a_text_where_labels_are_numbers(self) -> None:
        error = refusal(two_runs([0, 1] * 20), "f1", parameters={"positive": "1"})
        assert "is '1', which is not a label: `label` of `baseline` has 0" in error.message

    def test_one_class_alone_may_be_the_negative_one(self) -> None:
        """How often is a harmless prompt refused?"""
        frames = [
            pl.DataFrame({"id": range(30), "prediction": [int(i < n) for i in range(30)], "label": [0] * 30})
            for n in (12, 2)
        ]
        assert compared(frames, "specificity").verdict == "better"
        texts = renamed((frames[0], frames[1]), {0: "no", 1: "yes"})
        assert compared(texts, "specificity", parameters={"positive": "yes"}).verdict == "better"
        assert "1 by default, which is not a label" in refusal(texts, "specificity").message

    def test_pairing_refuses_labels_of_other_types(self) -> None:
        numbers = two_runs([int(i % 2) for i in TEN])
        texts = renamed(numbers, {0: "0", 1: "1"})
        with pytest.raises(InputTypeError, match="column `label` is integer in `baseline`"):
            trackperm.compare(numbers[0], texts[1], "f1")
        mixed = [texts[0].with_columns(numbers[0]["prediction"]) for _ in range(2)]
        with pytest.raises(SpecError, match="All values that it is compared with need one type"):
            compared(mixed, "f1")

    @pytest.mark.parametrize("absent", ["label", "prediction"])
    def test_pairing_refuses_absent_columns(self, absent: str) -> None:
        with pytest.raises(InputError, match="needs columns"):
            compared([frame.drop(absent) for frame in two_runs([0, 1] * 9)], "f1")


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["log_loss", "brier"])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_probabilities_of_labels_1_and_2_need_the_positive_class(name: str, engine: str) -> None:
    """Regression: class 1 was taken as the positive one, although class 2 may be: the verdict reversed."""
    rng = np.random.default_rng(48)
    happens = rng.integers(0, 2, N)
    noise = [rng.uniform(0, size, N) for size in (0.5, 0.3)]
    runs = [{"id": list(range(N)), "probability": np.abs(happens - each), "label": happens} for each in noise]

    def frames(low: Any, high: Any) -> list[pl.DataFrame]:
        return [pl.DataFrame({**run, "label": [high if each else low for each in happens]}) for run in runs]

    usual = trackperm.compare(*frames(0, 1), name, engine=engine)
    assert usual.verdict == "better"
    for low, high in ((1, 2), ("1", "2"), (1, 7)):
        with pytest.raises(InputError, match=f"`{name}` needs the positive class of labels other than 0"):
            trackperm.compare(*frames(low, high), name, engine=engine)
        found = trackperm.compare(*frames(low, high), name, engine=engine, parameters={"positive": high})
        assert found.difference == usual.difference
    for low, high in ((-1, 1), (False, True)):
        assert trackperm.compare(*frames(low, high), name, engine=engine).difference == usual.difference


def test_predictions_of_labels_1_and_2_have_the_positive_class_1() -> None:
    frames = two_runs([1 + int(i > 4) for i in TEN])
    assert compared(frames, "f1").verdict == compared(frames, "f1", parameters={"positive": 1}).verdict
