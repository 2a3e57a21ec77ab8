"""Metrics whose log declares whether greater values are better, against the direction of their names."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from support.eval_logs import lm_eval_sample, write_json, write_lines
from support.example_tables import table

import trackperm
from trackperm.comparison import Question
from trackperm.comparison.question.log_metrics import lost_metrics, own_metrics
from trackperm.errors import InputError
from trackperm.report.notes import cautions_of
from trackperm.statistic import Statistic, read_statistic
from trackperm.tables.table import ExampleTable

RUN = "2026-01-01T00-00-00.000000"
N = 50


def log(folder: Path, metric: str, n_ones: int, declared: bool | None) -> Path:
    """The folder of a run with a metric of 0 and 1."""
    folder.mkdir()
    samples = []
    for i in range(N):
        sample = lm_eval_sample(i, 0.0, metrics=[metric], **{metric: float(i < n_ones)})
        del sample["exact_match"]
        samples.append(sample)
    write_lines(folder / f"samples_pairs_{RUN}.jsonl", samples)
    if declared is not None:
        directions = {"pairs": {metric: declared}}
        document = {"results": {}, "configs": {}, "higher_is_better": directions}
        write_json(folder / f"results_{RUN}.json", document)
    return folder


def scores(declared: bool | None, metric: str = "quality", origin: str = "run") -> ExampleTable:
    found = table(origin, id=[1, 2, 3], **{metric: [0.0, 1.0, 0.0]})
    directions = {} if declared is None else {metric: declared}
    return replace(found, metrics={metric: metric}, greater_is_better=directions)


def mean_of(*tables: ExampleTable) -> Statistic:
    (found,) = own_metrics(tables)
    return found


@pytest.mark.parametrize(("metric", "declared"), [("pct_stereotype", False), ("likelihood_diff", False)])
def test_fewer_are_better_if_the_results_say_so(tmp_path: Path, metric: str, declared: bool) -> None:
    """By its name alone, `likelihood_diff` has a verdict of the opposite direction."""
    old, new = (log(tmp_path / name, metric, n, declared) for name, n in (("old", 40), ("new", 15)))
    found = trackperm.compare(old, new)
    assert (found.baseline_score, found.candidate_score) == (0.8, 0.3)
    assert str(found.verdict) == "better"
    assert found.statistic.found == (f"direction: lower values of `{metric}` are better, by the log",)


def test_an_open_name_is_compared_if_it_is_declared() -> None:
    found = mean_of(scores(True, "toxicity"), scores(True, "toxicity"))
    assert found.greater_is_better
    assert found.found == ("direction: greater values of `toxicity` are better, by the log",)
    with pytest.raises(InputError, match="`toxicity` does not show whether greater values are better"):
        mean_of(scores(None, "toxicity"), scores(None, "toxicity"))


def test_a_declaration_precedes_the_name_of_an_error() -> None:
    assert mean_of(scores(True, "loss"), scores(True, "loss")).greater_is_better
    assert not mean_of(scores(None, "loss"), scores(None, "loss")).greater_is_better


def test_a_declaration_that_the_name_implies_is_not_said() -> None:
    assert mean_of(scores(True), scores(True)).found == ()
    assert mean_of(scores(False, "loss"), scores(False, "loss")).found == ()


def two(**scores: list[float]) -> list[pl.DataFrame]:
    """Two runs: each score is that of the baseline, and is 1 less in the candidate."""
    baseline = pl.DataFrame({"id": range(12), **{name: values * 3 for name, values in scores.items()}})
    return [baseline, baseline.with_columns(pl.col(list(scores)) - 1.0)]


PRESUMED = re.compile(
    r"look: greater values of `(.*)` are taken as better; if lower ones are, write a spec: (.*)"
)


@pytest.mark.parametrize("statistic", [None, "mean"])
@pytest.mark.parametrize("name", ["valence", "müde, quote: x", "true [%]"])
def test_a_presumed_direction_is_said_with_the_spec_that_reverses_it(
    name: str, statistic: str | None
) -> None:
    runs = two(**{name: [2.0, 3.5, 1.25, 4.0]})
    found = trackperm.compare(*runs, statistic, metric=name)
    (said,) = filter(None, map(PRESUMED.fullmatch, cautions_of(found)))
    assert said[1] == name
    assert str(found.verdict) == "worse"
    spec = "\n".join(re.findall("`([^`]*)`", said[2]))
    reversed_ = trackperm.compare(*runs, read_statistic(spec, "spec"))
    assert str(reversed_.verdict) == "better"
    assert not list(filter(PRESUMED.match, cautions_of(reversed_)))


def test_a_direction_that_is_known_is_not_said() -> None:
    for metric in ("reward", "judge_score", "macro_f1", "Fehlerrate"):
        assert cautions_of(trackperm.compare(*two(**{metric: [2.0, 3.0, 1.0, 4.0]}), metric=metric)) == []
    assert mean_of(scores(True, "valence"), scores(None, "valence")).found == ()
    stated = [run.with_columns(higher_is_better=pl.lit(True)) for run in two(valence=[2.0, 3.0, 1.0, 4.0])]
    assert cautions_of(trackperm.compare(*stated, metric="valence")) == []


def test_a_presumed_direction_is_said_of_many_runs_and_of_metrics_of_logs() -> None:
    runs = dict(zip(("old", "new"), two(valence=[2.0, 3.5, 1.25, 4.0]), strict=True))
    board = trackperm.leaderboard(runs, metric="valence")
    assert len([*filter(PRESUMED.match, board.notes)]) == 1
    (declared,) = own_metrics([scores(None, "valence"), scores(None, "valence")])
    assert PRESUMED.match(*declared.found)


SIGNED = [0.5, 3.0, 1.0, 4.0]  # the candidate of `two` has 0.5 - 1


@pytest.mark.parametrize("name", ["error", "Residual", "forecast_error", "Abweichung"])
def test_errors_with_a_sign_have_no_direction(name: str) -> None:
    """Their mean is the bias: the greater the bias below, the better a model would be."""
    with pytest.raises(InputError, match=rf"`{name}` of `.*` has negative values, such as -0\.5") as raised:
        trackperm.compare(*two(**{name: SIGNED}), metric=name)
    assert f'pl.col("{name}").cast(pl.Float64).abs()' in str(raised.value.hint)
    sizes = [run.with_columns(pl.col(name).abs()) for run in two(**{name: SIGNED})]
    assert str(trackperm.compare(*sizes, metric=name).verdict) == "better"


def test_a_whole_number_for_a_missing_error_is_quoted_as_it_is() -> None:
    with pytest.raises(InputError, match="negative values, such as -1, and") as raised:
        trackperm.compare(*two(error=[3, 0, 2, 5]), metric="error")
    assert "leave -1 empty if it marks a missing value" in str(raised.value.hint)


@pytest.mark.parametrize("name", ["nll", "log_error", "docking_score", "loss"])
def test_losses_are_negative_by_right(name: str) -> None:
    assert str(trackperm.compare(*two(**{name: SIGNED}), metric=name).verdict) == "better"


def test_an_error_with_a_sign_is_not_compared_beside_other_metrics() -> None:
    found = replace(table("run", id=[1, 2], error=[-1.0, 2.0], quality=[0.0, 1.0]), metrics={})
    metrics = {"error": "error", "quality": "quality"}
    statistic = mean_of(*2 * [replace(found, metrics=metrics)])
    assert statistic.name == "quality"
    assert any("not known whether greater values are better: `error`" in note for note in statistic.found)
    declared = replace(found, metrics={"error": "error"}, greater_is_better={"error": False})
    assert not mean_of(declared, declared).greater_is_better


def test_one_run_declares_it_for_both() -> None:
    assert not mean_of(scores(None), scores(False)).greater_is_better


def test_runs_that_disagree_are_refused() -> None:
    with pytest.raises(
        InputError, match="greater values of `quality` are better by the log `a`, and lower ones by `b`"
    ):
        mean_of(scores(True, origin="a"), scores(False, origin="b"))


@pytest.mark.parametrize("statistic", ["mean", "pass_at_1"])
def test_statistics_of_which_more_is_better_are_refused(tmp_path: Path, statistic: str) -> None:
    runs = [log(tmp_path / name, "pct_stereotype", 20, False) for name in ("old", "new")]
    with pytest.raises(
        InputError, match=rf"greater values of `{statistic}` are better, but the log declares"
    ):
        trackperm.compare(*runs, statistic)


@pytest.mark.parametrize("statistic", ["mean", "pass_at_1"])
def test_the_only_score_of_an_error_is_no_mean(tmp_path: Path, statistic: str) -> None:
    """The column is called `score`, but the metric in it is an error."""
    runs = [log(tmp_path / name, "error", 20, None) for name in ("old", "new")]
    with pytest.raises(InputError, match=rf"greater values of `{statistic}` .* `error` has the name"):
        trackperm.compare(*runs, statistic)


def test_the_only_score_has_the_direction_of_its_metric(tmp_path: Path) -> None:
    runs = [log(tmp_path / name, "wer", n, None) for name, n in (("old", 40), ("new", 15))]
    found = trackperm.compare(*runs, metric="score")
    assert str(found.verdict) == "better"
    assert found.statistic.found == (
        "direction: lower values of `score` are better, which has those of `wer`",
    )


@pytest.mark.parametrize(("option", "is_greater"), [("bad=1", False), ("bad=1.0", False)])
def test_shares_of_ones(option: str, is_greater: bool) -> None:
    runs = [scores(False, "bad"), scores(False, "bad")]
    (found,) = Question(metrics=(option,)).statistics_of(runs)
    assert found.greater_is_better == is_greater
    with pytest.raises(InputError, match="leaves open whether more such examples are better"):
        Question(metrics=("bad=0",)).statistics_of(runs)


def test_a_declared_metric_that_the_candidate_lacks_is_lost() -> None:
    other = scores(True, "quality")
    assert lost_metrics(scores(False, "toxicity"), other) == ["toxicity"]
    assert lost_metrics(scores(None, "toxicity"), other) == []
