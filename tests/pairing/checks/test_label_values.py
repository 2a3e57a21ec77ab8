"""Which labels and predictions are refused before anything is paired, and what the hints lead to."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.command_line import call_trackperm
from support.engines import ENGINES, native
from support.specs import load

import trackperm
from trackperm.cli.arguments import assignments
from trackperm.comparison import compare_runs, load_run
from trackperm.errors import InputError, InputTypeError, PairingError, SpecError
from trackperm.pairing.checks import label_values
from trackperm.pairing.checks.label_values import require_label_values
from trackperm.statistic import Statistic, builtin_names, load_statistic
from trackperm.statistic.written_spec import written_spec
from trackperm.tables import scan
from trackperm.tables.scan import Scan
from trackperm.tables.table import ExampleTable

OF_ONE_CLASS = tuple(
    name
    for name in builtin_names()
    if load_statistic(name).has_positive and "prediction" in load_statistic(name).used_columns
)
N = 120
TEN = np.random.default_rng(1).integers(0, 10, N)


def run(labels: Any, right: float, seed: int = 0, **columns: Any) -> pl.DataFrame:
    """A run that says one of the labels, the right one with probability `right` at least."""
    rng = np.random.default_rng([seed, int(100 * right)])
    labels = list(labels)
    is_right = rng.random(len(labels)) < right
    guesses = rng.permutation(labels).tolist()
    predictions = [label if r else guess for label, r, guess in zip(labels, is_right, guesses, strict=True)]
    ids = [f"q{i}" for i in range(len(labels))]
    return pl.DataFrame({"id": ids, "prediction": predictions, "label": labels, **columns}, strict=False)


def two_runs(labels: Any) -> Any:
    return run(labels, 0.3), run(labels, 0.9)


def renamed(frames: Any, names: dict[Any, Any]) -> Any:
    both = pl.col("prediction", "label").replace_strict(names)
    return [frame.with_columns(both) for frame in frames]


def compared(frames: Any, statistic: Any, **options: Any) -> Any:
    baseline, candidate = frames
    return trackperm.compare(baseline, candidate, statistic, **options)


def refusal(frames: Any, statistic: Any, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        compared(frames, statistic, **options)
    assert not isinstance(caught.value, SpecError | PairingError)
    return caught.value


def settings(error: InputError) -> list[dict[str, object]]:
    """The values that a hint would have one choose, as a shell and the command line read them."""
    options = re.findall(r"`(--set [^`]*)`", error.hint or "")
    assert options
    return [assignments([shlex.split(option)[1]]) for option in options]


def checked(frames: Sequence[Any], statistic: str | Statistic, **options: Any) -> Statistic:
    tables = [ExampleTable.from_native(frame, f"run {i}") for i, frame in enumerate(frames)]
    return require_label_values(tables, load_statistic(statistic), **options)


class TestOneClassOfMany:
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


class TestUnseenLabels:
    def test_probabilities(self) -> None:
        labels = [i % 2 for i in range(60)]
        scores = run(labels, 0.9, prediction=[round(0.13 + 0.011 * i, 3) for i in range(60)])
        error = refusal((run(labels, 0.9), scores), "accuracy")
        assert error.message == (
            "`accuracy` compares predictions with labels, but none of the 60 predictions of `candidate` is"
            " a label\n\n"
            "    `prediction`   `label`\n"
            "    0.13 (1)       0 (30)\n"
            "    0.141 (1)      1 (30)\n"
            "    0.152 (1)\n"
            "    0.163 (1)\n"
            "    0.174 (1)\n"
            "    and 55 more"
        )
        assert "convert probabilities or logits to classes" in str(error.hint)
        assert "`--allow-unseen`" in str(error.hint)
        assert "of `baseline`" in refusal((scores, run(labels, 0.9)), "accuracy").message

    def test_another_spelling(self) -> None:
        labels = ["cat", "dog"] * 10
        other = run(labels, 0.9).with_columns(pl.col("prediction").str.to_titlecase())
        error = refusal((run(labels, 0.9), other), "accuracy")
        assert "\n    'Cat' (" in error.message
        assert error.message.endswith("\n\n2 of them differ only in upper and lower case.")
        assert "in the same way" in str(error.hint)

    FORMS = (
        "accuracy",
        "error_rate",
        "exact_match",
        "balanced_accuracy",
        "macro_f1",
        *((name, {"positive": "dog"}) for name in OF_ONE_CLASS),
    )

    @pytest.mark.parametrize("form", FORMS, ids=str)
    def test_every_statistic_that_compares_them(self, form: Any) -> None:
        name, parameters = (form, None) if isinstance(form, str) else form
        labels = ["cat", "dog"] * 10
        other = run(labels, 0.9).with_columns(pl.col("prediction").str.to_uppercase())
        error = refusal((run(labels, 0.9), other), name, parameters=parameters)
        assert "none of the 20 predictions of `candidate`" in error.message

    @pytest.mark.parametrize(
        ("spec", "is_refused"),
        [
            ("counts: {n: prediction == label}\nscore: n\n", True),
            ("counts: {a: prediction != label}\ng: {x: u.a, y: v.a}\nh: x - y\n", True),
            ("counts: {a: (prediction == 'dog') & (label == 'dog')}\nscore: a\n", True),
            (
                "counts: {a: (prediction == class) & (label == class), n: label == class}\nscore: a / n\n"
                "classes: [cat, dog]\n",
                True,
            ),
            (
                "counts:\n  a: where(prediction == label, 2, token_matches(prediction, label))\nscore: a\n",
                False,
            ),
            ("counts: {a: prediction == 'dog'}\nscore: a\n", False),
            ("counts:\n  a: character_edit_operations(prediction, label)\nscore: a\n", False),
        ],
    )
    def test_specs(self, tmp_path: Path, spec: str, is_refused: bool) -> None:
        labels = ["cat", "dog"] * 10
        frames = [run(labels, 0.9).with_columns(pl.col("prediction").str.to_uppercase()) for _ in range(2)]
        statistic = load(tmp_path, spec)
        if is_refused:
            refusal(frames, statistic)
        else:
            assert checked(frames, statistic) is statistic

    @pytest.mark.parametrize("engine", ENGINES)
    def test_in_every_library(self, engine: str) -> None:
        labels = [i % 2 for i in range(20)]
        frame = run(labels, 0.5, prediction=[0.25 + i / 40 for i in range(20)])
        frames = [native(engine, frame.to_dict(as_series=False)) for _ in range(2)]
        assert "none of the 20 predictions of `baseline`" in refusal(frames, "accuracy").message

    def test_csv(self, tmp_path: Path) -> None:
        labels = [i % 2 for i in range(20)]
        scores = run(labels, 0.5, prediction=[0.25 + i / 40 for i in range(20)])
        run(labels, 0.5).write_csv(tmp_path / "good.csv")
        scores.write_csv(tmp_path / "scores.csv")
        error = refusal((tmp_path / "good.csv", tmp_path / "scores.csv"), "accuracy")
        assert f"predictions of `{tmp_path / 'scores.csv'}`" in error.message

    @pytest.mark.parametrize("n", [3, 10_000])
    def test_answers_that_are_all_different_are_not_classes(self, n: int) -> None:
        frames = [
            pl.DataFrame(
                {
                    "id": range(n),
                    "prediction": [f"{side} {i}" for i in range(n)],
                    "label": [f"answer {i}" for i in range(n)],
                }
            )
            for side in "ab"
        ]
        assert compared(frames, "exact_match").pvalue == 1.0

    def test_three_examples_suffice(self) -> None:
        frame = pl.DataFrame({"id": range(3), "prediction": ["c", "d", "e"], "label": ["a", "a", "b"]})
        assert "none of the 3" in refusal((frame, frame), "exact_match").message

    def test_rows_of_one_example_do_not_repeat_a_label(self, tmp_path: Path) -> None:
        spec = "counts: {right: prediction == label, n: 1}\nscore: right / n\nrepeats: sum\n"
        frame = pl.DataFrame(
            {
                "id": ["q", "q", "r", "r"],
                "epoch": [1, 2, 1, 2],
                "prediction": ["c", "d", "e", "f"],
                "label": ["a", "a", "b", "b"],
            }
        )
        assert trackperm.compare(frame, frame, load(tmp_path, spec)).pvalue == 1.0
        assert trackperm.compare(frame, frame, "accuracy", columns={"id": "id,epoch"}).pvalue == 1.0
        both = [frame.with_columns(label=pl.Series(["a", "a", "b", "a"])) for _ in range(2)]
        refusal(both, load(tmp_path, spec))

    def test_by_position_rows_are_examples(self) -> None:
        frame = pl.DataFrame({"prediction": ["c", "d", "e"], "label": ["a", "a", "b"]})
        with pytest.raises(InputError, match="none of the 3"):
            trackperm.compare(frame, frame, by_position=True)

    @pytest.mark.parametrize(
        ("label", "prediction", "is_refused"),
        [("yes", "no", False), ("yes", "Yes", True), (1, 0, False), (1, 0.93, True), (1, 2.0, False)],
    )
    def test_a_class_alone(self, label: Any, prediction: Any, is_refused: bool) -> None:
        """A run may get all examples of a single class wrong; a value that is not a class is refused."""
        frame = pl.DataFrame({"id": range(9), "prediction": [prediction] * 9, "label": [label] * 9})
        right = frame.with_columns(prediction="label")
        if is_refused:
            refusal((right, frame), "accuracy")
        else:
            assert trackperm.compare(right, frame).verdict == "worse"

    def test_missing_predictions_are_none(self) -> None:
        frame = run(["a", "b"] * 9, 0.5).with_columns(prediction=pl.lit(None, pl.String))
        checked([frame, frame], "accuracy")
        with pytest.raises(PairingError, match="have no value in `prediction`"):
            trackperm.compare(frame, frame)

    @pytest.mark.parametrize("place", [0, 5_000, 9_999])
    def test_one_predicted_label_suffices(
        self, place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(label_values, "_SLICE", 3_000)
        predictions = ["?"] * 10_000
        frame = run(["a", "b"] * 5_000, 0.5, prediction=predictions)
        seen = run(["a", "b"] * 5_000, 0.5, prediction=[*predictions[:place], "a", *predictions[place + 1 :]])
        for tables in (
            [ExampleTable.from_native(f, "x") for f in (seen, frame)],
            scans(tmp_path, (seen, frame)),
        ):
            require_label_values(tables[:1], load_statistic("accuracy"))
            with pytest.raises(InputError, match="none of the 10000 predictions") as caught:
                require_label_values(tables, load_statistic("accuracy"))
            assert f"of `{tables[1].origin}` is a label" in caught.value.message
            require_label_values(tables, load_statistic("accuracy"), allow_unseen=True)

    def test_more_labels_than_classes_are_answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        frame = run([f"a{i // 2}" for i in range(40)], 0.5).with_columns(prediction=pl.lit("?"))
        with pytest.raises(InputError, match="none of the 40"):
            checked([frame], "exact_match")
        monkeypatch.setattr(label_values, "MOST_CLASSES", 19)
        checked([frame], "exact_match")

    def test_pairing_refuses_lists(self) -> None:
        frame = pl.DataFrame({"id": range(4), "prediction": [["a"]] * 4, "label": [["b"]] * 4})
        with pytest.raises(SpecError, match="can only be read by a counter"):
            trackperm.compare(frame, frame, "accuracy")


def test_ids_that_identify_no_examples_are_refused_first() -> None:
    """Predictions that no label is are not reported where nothing says which rows are one example."""
    frame = pl.DataFrame(
        {"id": [[i] for i in range(6)], "prediction": ["a", "b"] * 3, "label": ["c", "d"] * 3}
    )
    with pytest.raises(PairingError, match="`id` is list of integers"):
        trackperm.compare(frame, frame, "accuracy")


class TestSlices:
    def test_of_labels_that_a_slice_has_not(self) -> None:
        """The whole is checked: a slice may lack a class, or be wrong everywhere."""
        languages = ["en"] * 60 + ["de"] * 60
        frames = [
            run(["no", "yes", "maybe"] * 20 + ["no", "maybe"] * 30, right, language=languages)
            for right in (0.6, 0.95)
        ]
        wrong = pl.when(pl.col("language") == "de").then(pl.lit("yes")).otherwise("prediction")
        frames[0] = frames[0].with_columns(prediction=wrong)
        found = compared(frames, "precision", parameters={"positive": "yes"}, slices=["language"])
        assert [str(each.slice) for each in found[1:]] == ["language = de", "language = en"]
        assert compared(frames, "accuracy", slices=["language"])[1].verdict == "better"

    def test_the_text_is_that_of_the_whole(self) -> None:
        languages = ["en"] * 60 + ["de"] * 60
        frames = [
            run(["0", "1"] * 30 + ["0"] * 60, right, language=languages).with_columns(
                prediction=pl.when(pl.col("language") == "de").then(pl.lit(extra)).otherwise("prediction")
            )
            for right, extra in ((0.6, "1"), (0.95, "0"))
        ]
        found = compared(frames, "specificity", slices=["language"])
        assert [each.statistic.parameters["positive"] for each in found] == ["1"] * 3


class TestComparedBefore:
    def test_a_compared_statistic_is_used_unchanged(self) -> None:
        """As verification does, for which the rules of another version are none."""
        frame = run(["a", "b"] * 9, 0.5).with_columns(prediction=pl.lit("?"))
        runs = load_run(frame, "baseline"), load_run(frame, "candidate")
        with pytest.raises(InputError, match="none of the 18"):
            trackperm.compare(frame, frame, "accuracy")
        assert trackperm.compare(frame, frame, "accuracy", allow_unseen=True).pvalue == 1.0
        assert compare_runs(*runs, load_statistic("accuracy")).pvalue == 1.0


def scans(folder: Path, frames: Sequence[pl.DataFrame]) -> list[ExampleTable]:
    """Files whose columns are read when they are used."""
    tables = []
    for i, frame in enumerate(frames):
        frame.write_parquet(folder / f"{i}.parquet")
        scan = Scan(pl.scan_parquet(folder / f"{i}.parquet"), lambda error: pytest.fail(str(error)))
        tables.append(ExampleTable.from_scan(scan, f"{i}.parquet"))
    return tables
