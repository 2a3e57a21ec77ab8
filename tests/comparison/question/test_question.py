"""Statistic, columns and unit that are inferred if the user names none or only some."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support import eval_logs
from support.builtin_definitions import DEFINITIONS, random_runs
from support.questions import PLAIN, asked, the_one

import trackperm
from trackperm.comparison import Question
from trackperm.errors import InputError, PairingError
from trackperm.pairing.pair import pair_in_memory as pair
from trackperm.statistic import load_statistic
from trackperm.tables import read_examples
from trackperm.tables.table import ExampleTable


class TestMetricsOfLogs:
    def lm_eval(self, folder: Path, name: str = "log", **more: Any) -> Path:
        path = folder / name
        path.write_text("".join(json.dumps({**row, **more}) + "\n" for row in eval_logs.LM_EVAL))
        return path

    def test_metrics_of_logs_precede_accuracy(self, tmp_path: Path) -> None:
        """By accuracy, "4" against "2 + 2 makes 4" is 0 in both runs, unlike by the metric of the log."""
        first = self.lm_eval(tmp_path, "a", target="#### 4")
        second = self.lm_eval(tmp_path, "b", target="#### 4", exact_match=1.0)
        found = trackperm.compare(first, second)
        assert (found.statistic.name, found.statistic.chosen) == ("mean_exact_match", "the metric of the log")
        assert (found.baseline_score, found.candidate_score) == (0.25, 1.0)
        assert found.to_dict()["chosen"] == "the metric of the log"

    def test_all_of_them_are_one_family(self, tmp_path: Path) -> None:
        paths = [self.lm_eval(tmp_path, name, acc=i / 2, acc_norm=1.0) for i, name in enumerate("ab")]
        names = ["mean_exact_match", "acc", "acc_norm"]
        assert [each.name for each in asked(*paths)] == names
        found = trackperm.compare(*paths, slices=[])
        assert [each.statistic.name for each in found] == names
        assert {each.corrected.n_tests for each in found if each.corrected} == {3}
        with pytest.raises(InputError, match="the runs have 3 metrics; expected one"):
            trackperm.compare(*paths)

    def test_one_that_some_runs_lack(self, tmp_path: Path) -> None:
        paths = self.lm_eval(tmp_path, "a", acc=1.0), self.lm_eval(tmp_path, "b")
        statistic = the_one(*paths)
        assert statistic.name == "mean_exact_match"
        assert statistic.found == ("look: not in all runs, and not compared: `acc`",)
        with pytest.raises(InputError, match=r"`.*b` has no metric `acc`"):
            asked(*paths, metrics=("acc",))

    def test_one_that_a_table_lacks(self, tmp_path: Path) -> None:
        """Regression: reading the first values of `passed` from the other run crashed."""
        path = tmp_path / "swe_bench.json"
        path.write_text(json.dumps({name: {"resolved": name == "a", "patch": "x"} for name in "abc"}))
        for runs in ([path, PLAIN], [PLAIN, path]):
            with pytest.raises(InputError, match="the statistic `pass_at_1` needs columns `id`, `passed`"):
                trackperm.compare(*runs)

    def test_logs_without_a_common_metric(self, tmp_path: Path) -> None:
        path = tmp_path / "inspect.json"
        path.write_text(json.dumps(eval_logs.INSPECT))
        with pytest.raises(InputError, match="have no metric in common") as caught:
            asked(self.lm_eval(tmp_path), path)
        assert "`exact_match`" in str(caught.value)

    def test_direction_by_name(self, tmp_path: Path) -> None:
        path = self.lm_eval(tmp_path, word_perplexity=2.0)
        by_name = {each.name: each.greater_is_better for each in asked(path, path)}
        assert by_name == {"mean_exact_match": True, "word_perplexity": False}

    def test_scorers_of_inspect(self, tmp_path: Path) -> None:
        samples = [eval_logs.inspect_sample(i, 1, match="C", model_graded_qa="I") for i in (1, 2)]
        path = tmp_path / "log.json"
        path.write_text(json.dumps(eval_logs.inspect_log(samples)))
        assert [each.name for each in asked(path, path)] == ["match", "model_graded_qa"]
        table = read_examples(path, part="match")
        assert (table.metrics, "score" in table.columns) == ({"match": "score"}, True)

    def test_epochs_are_one_unit(self, tmp_path: Path) -> None:
        samples = [
            eval_logs.inspect_sample(i, epoch, match="CI"[(i + epoch) % 2])
            for i in (1, 2)
            for epoch in (1, 2)
        ]
        path = tmp_path / "log.json"
        path.write_text(json.dumps(eval_logs.inspect_log(samples)))
        statistic = the_one(path, path)
        assert (statistic.columns["id"], statistic.repeats) == ("id", "sum")


class TestColumns:
    def test_predictions_against_labels(self) -> None:
        statistic = the_one(PLAIN, PLAIN)
        assert (statistic.name, statistic.chosen) == ("accuracy", "by default")
        assert statistic.found == ()

    def test_other_names(self) -> None:
        frame = PLAIN.rename({"id": "question_id", "prediction": "y_pred", "label": "gold"})
        statistic = the_one(frame, frame)
        assert statistic.found == (
            "label: column `gold`",
            "prediction: column `y_pred`",
            "id: column `question_id`",
        )
        assert trackperm.compare(frame, frame).n_examples == 20

    @pytest.mark.parametrize(
        ("prediction", "label"),
        [("prediction", "true_answer"), ("predict", "actual"), ("prediction_label", "target")],
    )
    def test_names_of_gaia_h2o_and_pycaret(self, prediction: str, label: str) -> None:
        frame = PLAIN.rename({"prediction": prediction, "label": label})
        assert f"label: column `{label}`" in the_one(frame, frame).found
        assert trackperm.compare(frame, frame).n_examples == 20

    def test_short_names_beside_longer_ones(self) -> None:
        """`y` may be a coordinate, and `label_ids` the numbers of the labels."""
        frame = PLAIN.rename({"prediction": "yhat", "label": "y"})
        assert the_one(frame, frame).found == ("label: column `y`", "prediction: column `yhat`")
        more = frame.with_columns(pl.lit(1.5).alias("label_ids"), pred="yhat", target="y", predict="y")
        assert the_one(more, more).found == ("label: column `target`", "prediction: column `pred`")

    def test_two_that_could_be_the_prediction(self) -> None:
        frame = PLAIN.rename({"prediction": "output"}).with_columns(response=pl.lit("cat"))
        with pytest.raises(InputError, match="is unclear: "):
            asked(frame, frame)
        assert the_one(frame, frame, columns={"prediction": "output"}).name == "accuracy"

    def test_columns_of_other_systems_are_not_predictions(self) -> None:
        """Neither the prompt, nor the label, nor the column of another system is offered."""
        frame = PLAIN.rename({"prediction": "system_a"}).with_columns(prompt=pl.lit("?"))
        for other in ("prediction_of_b", "b_prediction", "predictor"):
            with pytest.raises(InputError) as caught:
                trackperm.compare(*[frame.with_columns(pl.lit("cat").alias(other))] * 2, "accuracy")
            assert "`--prediction NAME`" in str(caught.value.hint)
        two = frame.rename({"system_a": "pred"}).with_columns(output=pl.lit("cat"))
        with pytest.raises(InputError) as caught:
            trackperm.compare(two, two, "accuracy")
        assert "`--prediction NAME`" in str(caught.value.hint)

    def test_scores(self) -> None:
        frame = pl.DataFrame({"id": [1, 2], "is_correct": [True, False], "tokens": [5, 6]})
        statistic = the_one(frame, frame)
        assert (statistic.name, statistic.chosen) == ("is_correct", "the only score, `is_correct`")
        assert trackperm.compare(frame, frame).baseline_score == 0.5
        more = frame.with_columns(reward=pl.lit(0.5))
        with pytest.raises(InputError, match="each of `is_correct`, `reward` could be the score") as caught:
            asked(more, more)
        assert "`--metric COLUMN`" in str(caught.value.hint)

    SCORED = (
        ([0, 1] * 10, [i / 20 for i in range(20)], True),
        (["no", "yes"] * 10, [i / 20 for i in range(20)], True),
        ([i / 7 for i in range(20)], [i / 8 for i in range(20)], True),
        ([1, 2, 3, 4] * 5, [2, 2, 3, 3] * 5, True),
        ([0, 1] * 10, [0, 1, 1, 1] * 5, True),
        ([False, True] * 10, [0.0, 1.0, 1.0, 1.0] * 5, True),
        (["no", "yes"] * 10, [0, 1, 1, 1] * 5, False),
        ([17, 4, 230, 8] * 5, [0, 1, 1, 1] * 5, False),
        (["cat", "dog", "cow", "hen"] * 5, [i / 20 for i in range(20)], False),
        ([["cat"], ["dog"]] * 10, [i / 20 for i in range(20)], False),
    )

    @pytest.mark.parametrize(("labels", "scores", "is_refused"), SCORED)
    def test_a_score_beside_labels(self, labels: list[Any], scores: list[Any], is_refused: bool) -> None:
        """It is what a classifier computed for the label, or says how good the answer is."""
        frame = pl.DataFrame({"id": range(20), "label": labels, "score": scores})
        if is_refused:
            with pytest.raises(
                InputError, match="may be the score of each answer, or what a model"
            ) as caught:
                asked(frame, frame)
            assert "`--metric score`" in str(caught.value.hint)
        else:
            assert the_one(frame, frame).chosen == "the only score, `score`"
        assert the_one(frame, frame, metrics=("score",)).columns["score"] == "score"
        reward = frame.rename({"score": "reward"})
        assert the_one(reward, reward).chosen == "the only score, `reward`"
        answered = frame.with_columns(prediction=pl.lit("?"))
        assert the_one(answered, answered).chosen == "the only score, `score`"

    def test_the_name_of_the_reference_is_no_label(self) -> None:
        """WMT's segment scores have `refA` in all rows; one class may be that of a test for false alarms."""
        frame = pl.DataFrame({"id": range(20), "reference": "refA", "score": [i / 20 for i in range(20)]})
        assert the_one(frame, frame).chosen == "the only score, `score`"
        for columns in ({"reference": 0}, {"label": "legit"}, {"target": "spam"}, {"reference": "refund"}):
            with pytest.raises(InputError, match="may be the score of each answer, or what a model"):
                asked(
                    *2 * [frame.drop("reference").with_columns(**{k: pl.lit(v) for k, v in columns.items()})]
                )

    def test_a_few_texts_are_no_classes(self) -> None:
        frame = pl.DataFrame({"id": [1, 2], "label": ["It is 4.", "It is 5."], "score": [0.5, 0.9]})
        assert the_one(frame, frame).name == "score"

    @pytest.mark.parametrize(
        ("passed", "name"),
        [
            ([True, False, None, True], "pass_at_1"),
            ([1.0, 0.0, 1.0, 1.0], "pass_at_1"),
            ([Decimal("1.0"), Decimal("0.0"), None, None], "pass_at_1"),
            ([1, 0, 3, 1], "passed"),
            ([0.5, 0.0, 1.0, 1.0], "passed"),
        ],
    )
    def test_attempts_that_pass_or_numbers_of_tests(self, passed: list[Any], name: str) -> None:
        """Regression: three passed tests of a problem counted as three attempts that passed."""
        plain = pl.DataFrame({"id": range(4), "passed": [1, 1, 0, 0]})
        frame = pl.DataFrame({"id": range(4), "passed": passed})
        for frames in ([plain, frame], [frame, plain]):
            assert the_one(*frames).name == name
            assert the_one(*frames, metrics=("passed",)).name == name

    def test_answers_that_never_equal_their_labels(self) -> None:
        """Free text is compared by its score; without one, the comparison is refused."""
        frame = pl.DataFrame({"id": [1, 2], "prediction": ["It is 4.", "It is 5."], "label": ["4", "6"]})
        said = r"no `prediction` equals its `label`, as 'It is 4.' and '4', so the accuracy of each run"
        with pytest.raises(InputError, match=said):
            asked(frame, frame)
        assert the_one(frame, frame, statistics=("accuracy",)).name == "accuracy"
        assert the_one(frame, frame, allow_unseen=True).name == "accuracy"
        judged = frame.with_columns(score=pl.Series([0.5, 1.0]))
        assert the_one(judged, judged).name == "score"

    def test_decimals_are_not_classes(self) -> None:
        frame = pl.DataFrame({"id": [1, 2], "prediction": [0.5, 1.5], "label": [0.5, 2.5]})
        with pytest.raises(InputError, match="`label` of `run 0` holds decimals"):
            asked(frame, frame)

    def test_one_number_written_in_two_ways(self, tmp_path: Path) -> None:
        """Classifiers in pandas predict `1.0` where the label is `1`."""
        path = tmp_path / "a.csv"
        path.write_text("id,prediction,label\n1,1.0,1\n2,0.0,1\n3,1.0,1\n")
        assert trackperm.compare(path, path).baseline_score == pytest.approx(2 / 3)

    def test_counts(self) -> None:
        frame = pl.DataFrame({"id": [1, 2], "tp": [1, 2], "incorrect": [0, 1]})
        assert the_one(frame, frame).name == "pooled_f1"

    def test_the_input_is_the_id(self) -> None:
        frame = pl.DataFrame({"question": ["a?", "b?"], "correct": [0, 1]})
        statistic = the_one(frame, frame)
        assert statistic.found == ("id: column `question`, the input, which is different in every example",)
        twice = pl.concat([frame, frame])
        with pytest.raises(InputError, match="needs columns `id`"):
            trackperm.compare(twice, twice)

    @pytest.mark.parametrize(
        ("name", "other", "is_id"),
        [
            ("question", "abc", True),
            ("question", "ab", True),
            ("question", "abd", False),
            ("user_input", "abc", True),
            ("text", "abc", True),
            ("text", "ab", False),
            ("text", "abd", False),
            ("audio_filepath", "abc", True),
            ("audio_filepath", "ab", False),
        ],
    )
    def test_an_input_that_the_runs_share_is_the_id(self, name: str, other: str, is_id: bool) -> None:
        """Texts may be what a recogniser read: those that agree pair the examples that it read alike."""
        runs = [pl.DataFrame({name: [*texts], "correct": [1] * len(texts)}) for texts in ("abc", other)]
        for tables in (runs, runs[::-1]):
            assert the_one(*tables).columns["id"] == (name if is_id else "id")

    def test_an_image_is_rather_the_id_than_a_text(self) -> None:
        frame = pl.DataFrame({"text": ["a", "b"], "image": ["1.png", "2.png"], "correct": [0, 1]})
        assert the_one(frame, frame).columns["id"] == "image"
        pixels = frame.with_columns(image=pl.Series([0.5, 0.7]))
        assert the_one(pixels, pixels).columns["id"] == "text"

    def test_an_id_with_trials(self) -> None:
        frame = pl.DataFrame({"task_id": [0, 0, 1, 1], "trial": [0, 1, 0, 1], "reward": [1.0, 0.0, 1.0, 1.0]})
        statistic = the_one(frame, frame)
        assert (statistic.name, statistic.columns["id"], statistic.repeats) == ("reward", "task_id", "sum")


class TestNamedMetrics:
    FRAME = pl.DataFrame({"id": [1, 2], "f1": [0.5, 1.0], "rmse": [0.2, 0.1], "name": ["a", "b"]})

    def test_mean_of_a_column(self) -> None:
        found = trackperm.compare(self.FRAME, self.FRAME, metric="rmse")
        assert (found.statistic.name, found.statistic.greater_is_better) == ("mean_rmse", False)
        assert found.baseline_score == pytest.approx(0.15)
        assert found.statistic.chosen == ""

    def test_a_name_that_leaves_the_direction_open(self) -> None:
        frame = self.FRAME.rename({"f1": "toxicity"})
        with pytest.raises(InputError, match="`toxicity` does not show whether greater values are better"):
            asked(frame, frame, metrics=("toxicity",))
        scores = frame.rename({"toxicity": "score.toxicity", "rmse": "score.rmse"})
        statistic = the_one(scores, scores)
        assert (statistic.name, statistic.greater_is_better) == ("mean_rmse", False)
        assert "whether greater values are better: `toxicity`" in statistic.found[0]

    def test_the_mean_of_an_error(self) -> None:
        with pytest.raises(InputError, match="`rmse` has the name of an error") as caught:
            trackperm.compare(self.FRAME, self.FRAME, "mean", columns={"score": "rmse"})
        assert caught.value.hint == "use `--metric rmse`, for which smaller values are better."

    def test_the_name_of_a_built_in_statistic(self) -> None:
        assert the_one(self.FRAME, self.FRAME, metrics=("f1",)).name == "mean_f1"

    def test_several(self) -> None:
        found = trackperm.compare(self.FRAME, self.FRAME, metric=["f1", "rmse"])
        assert [each.statistic.name for each in found] == ["mean_f1", "mean_rmse"]

    @pytest.mark.parametrize(
        ("metric", "problem"),
        [("f2", "`run 0` has no metric `f2`"), ("name", "has values that are not numbers")],
    )
    def test_refused(self, metric: str, problem: str) -> None:
        with pytest.raises(InputError, match=problem):
            asked(self.FRAME, self.FRAME, metrics=(metric,))

    def test_a_metric_with_a_statistic_is_its_score(self) -> None:
        frame = pl.DataFrame(
            {"id": [1, 1, 2, 2], "trial": [0, 1, 0, 1], "reward": [1, 0, 1, 1], "score": [0, 0, 0, 0]}
        )
        said = {"statistics": ("pass_at_k",), "parameters": {"k": 2}}
        statistic = the_one(frame, frame, metrics=("reward",), **said)
        assert statistic.columns["passed"] == "reward"
        with pytest.raises(InputError, match="2 metrics are given with a statistic"):
            Question(metrics=("reward", "score"), **said)

    def test_of_a_leaderboard(self) -> None:
        runs = {"a": self.FRAME, "b": self.FRAME.with_columns(rmse=pl.Series([0.3, 0.3]))}
        board = trackperm.leaderboard(runs, metric="rmse")
        assert [row.name for row in board.rows] == ["a", "b"]
        with pytest.raises(InputError, match="is unclear: "):
            trackperm.leaderboard(runs)


class TestUnit:
    FRAME = pl.DataFrame(
        {"id": [1, 1, 2, 2], "seed": [0, 1, 0, 1], "prediction": list("abba"), "label": list("aabb")}
    )

    @pytest.mark.parametrize("unit", ["row", "attempt"])
    def test_contradictions(self, unit: Any) -> None:
        with pytest.raises(InputError, match=f"`unit=.{unit}.` and `repeats=.mean.` contradict each other"):
            Question(unit=unit, repeats="mean")

    @pytest.mark.sample(10)
    @pytest.mark.parametrize("name", DEFINITIONS)
    def test_epochs_are_one_unit_for_every_built_in_statistic(self, name: str) -> None:
        definition = DEFINITIONS[name]
        n_examples, attempts = 12, 2 * definition.repeats
        drawn = random_runs(definition, np.random.default_rng(5), n_examples * 2)
        frames = [
            pl.DataFrame(rows).with_columns(
                id=pl.int_range(len(rows)) // attempts, epoch=pl.int_range(len(rows)) % attempts
            )
            for rows in drawn
        ]
        tables = [ExampleTable.from_native(frame, f"run {i}") for i, frame in enumerate(frames)]
        question = Question((name,), parameters=definition.parameters)
        statistic = question.statistic_of(tables, check_labels=False)
        assert statistic.columns["id"] == "id"
        own_rule = load_statistic(name).repeats
        assert statistic.repeats == (own_rule or "sum")
        assert pair(*tables, statistic).count_table.n_examples == n_examples

    def test_a_rule_of_the_statistic(self) -> None:
        frame = self.FRAME.with_columns(passed=pl.lit(1))
        with pytest.raises(InputError, match="combines the attempts at an example by its own rule"):
            asked(frame, frame, statistics=("pass_at_k",), repeats="mean")

    @pytest.mark.parametrize("column", ["epoch", "Sample_ID", "trial", "repetition_number", "attempt-no"])
    def test_columns_that_number_attempts(self, column: str) -> None:
        frame = self.FRAME.rename({"seed": column})
        statistic = the_one(frame, frame)
        assert (statistic.columns["id"], statistic.repeats) == ("id", "sum")
        plain = self.FRAME.rename({"seed": "temperature"})
        with pytest.raises(PairingError):
            trackperm.compare(plain, plain)

    def test_a_constant_seed_is_not_a_repeat(self) -> None:
        frame = PLAIN.with_columns(seed=pl.lit(7))
        assert the_one(frame, frame).repeats is None
        assert the_one(frame, frame, columns={"id": "id,seed"}).columns["id"] == "id,seed"

    def test_a_spec_decides_for_itself(self, tmp_path: Path) -> None:
        path = tmp_path / "spec.yaml"
        path.write_text("counts: {c: prediction == label, n: 1}\nscore: c / n\nrepeats: mean\n")
        assert the_one(self.FRAME, self.FRAME, statistics=(path,)).repeats == "mean"
        assert the_one(self.FRAME, self.FRAME, statistics=(path,), repeats="any").repeats == "any"

    def test_by_position_rows_are_examples(self) -> None:
        with pytest.raises(InputError, match="but pairing by position cannot"):
            trackperm.compare(self.FRAME, self.FRAME, repeats="sum", by_position=True)
        assert trackperm.compare(self.FRAME, self.FRAME, by_position=True).n_examples == 4


def test_columns_of_one_of_several_statistics() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 40)
    frame = pl.DataFrame({"id": range(40), "prediction": label, "label": label, "chance": rng.random(40)})
    found = trackperm.compare(frame, frame, ["f1", "roc_auc"], columns={"score": "chance"})
    assert [each.statistic.columns.get("score") for each in found] == [None, "chance"]
    with pytest.raises(InputError, match="the statistic `f1` uses no column `scroe`"):
        trackperm.compare(frame, frame, ["f1", "roc_auc"], columns={"scroe": "chance"})


def test_parameters_that_no_statistic_has() -> None:
    with pytest.raises(InputError, match="has no parameter `positive`"):
        trackperm.compare(PLAIN, PLAIN, parameters={"positive": "cat"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by_position": "no"}, "`by_position` is 'no'; expected True or False"),
        ({"allow_unseen": "x"}, "`allow_unseen` is 'x'; expected True or False"),
        ({"parameters": ["positive"]}, r"`parameters` is \['positive'\]; expected a mapping"),
        ({"columns": "prediction=a"}, "`columns` is 'prediction=a'; expected a mapping"),
        ({"cluster": 3}, "`cluster` is 3; expected the name of a column"),
        ({"slices": [3]}, "the slice 3 is not the name of a column"),
        ({"margin": "0.1"}, "`margin` is '0.1'; expected a positive number"),
        ({"metric": "label"}, "the metric `label` is given beside `accuracy`, which reads no score"),
    ],
)
def test_values_that_a_program_may_not_give_are_refused(options: dict[str, Any], message: str) -> None:
    """Regression: a text counted as True, and a metric beside a statistic without a score was left out."""
    run = pl.DataFrame({"id": range(9), "prediction": [0, 1, 2] * 3, "label": [0, 1, 1] * 3})
    with pytest.raises(
        InputError if "metric" in options or "margin" in options else TypeError, match=message
    ):
        trackperm.compare(run, run, "accuracy", **options)


def test_usual_names_that_differ_between_the_runs_are_named() -> None:
    columns = {"ID": range(8), "Prediction": ["a", "b"] * 4, "Label": ["a"] * 8}
    runs = pl.DataFrame(columns), pl.DataFrame(columns).rename({"Prediction": "Predicted"})
    with pytest.raises(InputError, match="is unclear") as caught:
        trackperm.compare(*runs)
    option = "`--candidate-column prediction=Predicted`"
    assert str(caught.value.hint).startswith(f"name the columns of accuracy by {option}, ")
    assert trackperm.compare(*runs, candidate_columns={"prediction": "Predicted"}).n_examples == 8


def test_labels_may_be_in_another_file() -> None:
    frame = pl.DataFrame({"id": range(8), "prediction": ["a", "b"] * 4, "other": ["a"] * 8})
    with pytest.raises(InputError, match="lacks `label`") as caught:
        trackperm.compare(frame, frame, "accuracy")
    named = "`--label NAME` names the column"
    in_file = "`--labels FILE` reads the reference answers from a file of their own"
    assert caught.value.hint == f"{named}; {in_file}."
