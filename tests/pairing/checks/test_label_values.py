"""Predictions that never equal a label are refused before anything is paired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.comparisons import numbered
from support.engines import ENGINES, native
from support.labelled_runs import OF_ONE_CLASS, checked, compared, refusal, run, scans
from support.specs import load

import trackperm
from trackperm.comparison import compare_runs, load_run
from trackperm.errors import InputError, PairingError, SpecError
from trackperm.pairing.checks import label_values
from trackperm.pairing.checks.label_values import require_label_values
from trackperm.statistic import load_statistic
from trackperm.tables.table import ExampleTable


class TestUnseenLabels:
    def test_probabilities(self) -> None:
        labels = [i % 2 for i in range(60)]
        scores = run(labels, 0.9, prediction=[round(0.13 + 0.011 * i, 3) for i in range(60)])
        error = refusal((run(labels, 0.9), scores), "accuracy")
        assert error.message == (
            "`accuracy` compares predictions with labels, but `prediction` of `candidate` holds decimals, and"
            " `label` does not\n\n"
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

    @pytest.mark.parametrize("words", ["label", "prediction"])
    @pytest.mark.parametrize("truths", [("False", "true"), ("no", "Yes"), (False, True)])
    def test_words_beside_numbers(self, words: str, truths: tuple[Any, Any], tmp_path: Path) -> None:
        """Regression: the error about true and 1 had no way to compare them."""
        (numbers,) = {"label", "prediction"} - {words}
        label = [0, 1] * 12
        frames = [
            pl.DataFrame(
                {"id": range(24), "label": label, "prediction": [*label[:n], *[0] * (24 - n)]}
            ).with_columns(pl.col(words).map_elements(lambda bit: truths[bit], return_dtype=kind))
            for n in (24, 12)
            for kind in [pl.Boolean if truths[1] is True else pl.String]
        ]
        if truths[1] is True:
            frames = [frame.with_columns(pl.col(numbers).cast(pl.String)) for frame in frames]
        error = refusal(frames, "accuracy")
        assert f"but `{words}` of `baseline` says true and false, or yes and no" in error.message
        code = str(error.hint).split("`")[1]
        changed = [eval(code, {"pl": pl, "frame": frame}) for frame in frames]
        assert trackperm.compare(*changed).baseline_score == 1.0
        for path, frame in zip(("a.csv", "b.csv"), frames, strict=True):
            frame.write_csv(tmp_path / path)
        with pytest.raises(InputError, match="says true and false") as caught:
            trackperm.compare(tmp_path / "a.csv", tmp_path / "b.csv")
        assert f"""write_csv("{tmp_path}/a-numbers.csv")""" in str(caught.value.hint)

    @pytest.mark.parametrize("name", ["accuracy", "f1", "balanced_accuracy", "cohen_kappa"])
    def test_probabilities_of_which_some_are_0_or_1(self, name: str) -> None:
        """Probabilities of confident models round to exactly 0 and 1, which equal labels."""
        labels = [i % 2 for i in range(60)]
        right = run(labels, 0.9)
        saturated = run(labels, 0.9, prediction=[i % 2 if i < 50 else i / 60 for i in range(60)])
        for labels_of in (pl.Int64, pl.Float64, pl.Boolean):
            frames = [frame.with_columns(pl.col("label").cast(labels_of)) for frame in (right, saturated)]
            if labels_of is pl.Boolean:
                frames[0] = frames[0].with_columns(prediction="label")
            error = refusal(frames, name)
            assert "`prediction` of `candidate` holds decimals" in error.message
            assert "1.0 (25)" in error.message
            checked(frames, name, allow_unseen=True)

    @pytest.mark.parametrize(("n", "scale", "way"), [(30, 1, "mae"), (5, 1, "argmax"), (30, 0.01, "argmax")])
    def test_whole_numbers_as_labels_of_a_regression(self, n: int, scale: float, way: str) -> None:
        """Regression: predictions of scikit-learn's diabetes were to be converted to classes."""
        labels = [1 + i % n for i in range(60)]
        frame = run(labels, 1.0, prediction=[scale * (each + 0.25) for each in labels])
        assert way in str(refusal((frame, frame), "accuracy").hint)

    def test_ratings_by_a_regression(self) -> None:
        labels = [1 + i % 5 for i in range(60)]
        decimals = [float(each) if i % 3 else each + i / 100 for i, each in enumerate(labels)]
        frame = run(labels, 1.0, prediction=decimals)
        assert "holds decimals" in refusal((frame, frame), "accuracy").message

    @pytest.mark.parametrize(
        ("labels", "decimals"),
        [
            ([i % 2 for i in range(60)], [0.5] * 30),  # no answer
            ([i % 2 for i in range(60)], [0.3, 0.6, 0.7]),  # few
            ([i // 2 for i in range(60)], [i + 0.25 for i in range(20)]),  # sums, of which a third are wrong
        ],
    )
    def test_decimals_among_classes(self, labels: list[int], decimals: list[float]) -> None:
        predictions = [*decimals, *map(float, labels[len(decimals) :])]
        frame = run(labels, 1.0, prediction=predictions)
        assert compared((frame, frame), "accuracy").baseline_score == (60 - len(decimals)) / 60

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
        assert "`prediction` of `baseline` holds decimals" in refusal(frames, "accuracy").message

    def test_csv(self, tmp_path: Path) -> None:
        labels = [i % 2 for i in range(20)]
        scores = run(labels, 0.5, prediction=[0.25 + i / 40 for i in range(20)])
        run(labels, 0.5).write_csv(tmp_path / "good.csv")
        scores.write_csv(tmp_path / "scores.csv")
        error = refusal((tmp_path / "good.csv", tmp_path / "scores.csv"), "accuracy")
        assert f"`prediction` of `{tmp_path / 'scores.csv'}` holds decimals" in error.message

    @pytest.mark.parametrize("n", [3, 10_000])
    def test_answers_that_are_all_different_are_not_classes(self, n: int) -> None:
        frames = [
            numbered(prediction=[f"{side} {i}" for i in range(n)], label=[f"answer {i}" for i in range(n)])
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
            with pytest.raises(InputError, match="none of the 10,000 predictions") as caught:
                require_label_values(tables, load_statistic("accuracy"))
            assert f"of `{tables[1].origin}` is a label" in caught.value.message
            require_label_values(tables, load_statistic("accuracy"), allow_unseen=True)

    def test_one_column_for_both_is_refused(self) -> None:
        frame = run(["a", "b"] * 20, 0.5)
        with pytest.raises(InputError, match="labels, but both are the column `label`"):
            trackperm.compare(frame, frame, "accuracy", columns={"prediction": "label"})
        with pytest.raises(InputError, match="but both are the column `label`"):
            trackperm.compare(frame, frame, "squad_em", columns={"prediction": "label"})

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
