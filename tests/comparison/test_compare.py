"""Keys, families, slices and refusals of `trackperm.compare`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support.comparisons import answers, numbered, run_data

import trackperm
from trackperm.comparison import RunData, compare_runs
from trackperm.comparison.runs import require_two_runs
from trackperm.errors import InputError, InputTypeError, PairingError, TrackpermError
from trackperm.statistic import load_statistic
from trackperm.tables import ExampleTable
from trackperm.trackers.references import RunReference, TrackedRun


def test_the_key_is_of_the_data_and_the_options_not_of_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline = answers([True, False, True, True])
    candidate = answers([True, True, True, False])
    baseline.write_parquet(tmp_path / "baseline.parquet")
    candidate.write_parquet(tmp_path / "candidate.parquet")
    monkeypatch.chdir(tmp_path)
    compared = trackperm.compare(tmp_path / "baseline.parquet", "candidate.parquet")
    assert trackperm.compare("baseline.parquet", tmp_path / "candidate.parquet").key == compared.key
    assert trackperm.compare(baseline.reverse(), candidate).key == compared.key
    assert trackperm.compare(candidate, baseline).key != compared.key
    assert trackperm.compare(baseline, candidate, alternative="greater").key != compared.key
    assert trackperm.compare(baseline, candidate, alpha=0.01).key != compared.key
    assert trackperm.compare(baseline, baseline).key != compared.key


def test_one_class_that_nobody_has_does_not_stop_a_macro_average(tmp_path: Path) -> None:
    """0/0 in one part of a sum has its declared value; a score is refused only if every part is 0/0."""
    part = "tp_{0} / (tp_{0} + incorrect_{0} / 2)"
    counts = "".join(
        f"  tp_{c}: (prediction == '{c}') & (label == '{c}')\n"
        f"  incorrect_{c}: (prediction == '{c}') != (label == '{c}')\n"
        for c in "abc"
    )
    spec = tmp_path / "macro.yaml"
    score = " + ".join(part.format(c) for c in "abc")
    spec.write_text(f"counts:\n{counts}score: ({score}) / 3\nundefined: 0\n")
    label = ["a", "a", "b", "b"]
    frames = [
        pl.DataFrame({"id": range(4), "label": label, "prediction": prediction})
        for prediction in (["a", "b", "b", "b"], ["a", "a", "b", "b"])
    ]
    comparison = trackperm.compare(*frames, spec)
    assert comparison.candidate_score == pytest.approx(2 / 3)
    strangers = [frame.with_columns(label=pl.lit("z"), prediction=pl.lit("z")) for frame in frames]
    with pytest.raises(InputError, match="0/0 in both runs"):
        trackperm.compare(*strangers, spec, allow_unseen=True)


def test_artifact_paths_are_of_tracked_runs(tmp_path: Path) -> None:
    answers([True, False]).write_parquet(tmp_path / "a")
    with pytest.raises(InputError, match="needs a run in a tracker; expected"):
        trackperm.compare(str(tmp_path / "a"), answers([True, True]), artifact="predictions.parquet")


def test_several_statistics_are_one_family() -> None:
    runs = answers([True] * 20), answers([False] * 12 + [True] * 8)
    alone = trackperm.compare(*runs)
    both = trackperm.compare(*runs, ["accuracy", "error_rate"])
    assert [each.title for each in both] == ["accuracy", "error_rate"]
    assert [each.corrected.n_tests for each in both if each.corrected is not None] == [2, 2]
    assert alone.corrected is None
    assert both[0].pvalue == alone.pvalue
    apart = trackperm.compare(*runs, ["accuracy", "error_rate"], correction="none")
    assert [each.corrected for each in apart] == [None, None]
    with pytest.raises(InputError, match="two statistics have the name `accuracy`"):
        trackperm.compare(*runs, ["accuracy", "accuracy"])
    with pytest.raises(InputError, match="`statistic` is an empty list"):
        trackperm.compare(*runs, [])
    for options, message in (
        ({"statistic": 3}, "`statistic` is a int; expected a name"),
        ({"slices": 3}, "`slices` is a int; expected a column or a list of columns"),
        ({"correction": "magic"}, "`correction` is 'magic'; expected one of `holm`"),
    ):
        with pytest.raises(TrackpermError) as caught:
            trackperm.compare(*runs, **options)
        assert caught.value.message.startswith(message)


def test_slices_are_compared_where_they_are_named_or_declared(tmp_path: Path) -> None:
    spec = tmp_path / "sliced.yaml"
    spec.write_text("counts: {right: prediction == label, n: 1}\nscore: right / n\nslices: [language]\n")
    language = pl.Series("language", ["de", "en"] * 10)
    runs = [
        side.with_columns(language) for side in (answers([True] * 20), answers([False] * 12 + [True] * 8))
    ]
    titles = ["sliced", "sliced [language = de]", "sliced [language = en]"]
    assert trackperm.compare(*runs, spec).title == "sliced"
    assert [each.title for each in trackperm.compare(*runs, spec, slices=())] == titles
    assert [each.title for each in trackperm.compare(*runs, [spec])] == titles
    explored = trackperm.compare(*runs, "accuracy", slices="language")
    again = trackperm.compare(*runs, "accuracy", slices=["language"])
    assert [each.key for each in again] == [each.key for each in explored]
    assert [each.slice is not None and not each.slice.declared for each in explored] == [False, True, True]


def test_test_sets_of_other_names_are_named(tmp_path: Path):
    """Regression: runs on two benchmarks were told to store a column with the same type."""
    for task, target in (("gsm8k", 7), ("mmlu", "A")):
        row = {
            "doc_id": 1,
            "doc": {},
            "target": target,
            "resps": [["A"]],
            "filtered_resps": ["A"],
            "acc": 1.0,
        }
        row |= {"filter": "none", "metrics": ["acc"], "arguments": [], "doc_hash": task, "prompt_hash": task}
        name = f"samples_{task}_2026-01-01T00-00-00.jsonl"
        (tmp_path / name).write_text("".join(json.dumps({**row, "doc_id": i}) + "\n" for i in range(4)))
    files = [tmp_path / f"samples_{task}_2026-01-01T00-00-00.jsonl" for task in ("gsm8k", "mmlu")]
    with pytest.raises(
        InputError, match=r"the test sets of the runs differ: task `gsm8k` in .*, task `mmlu` in"
    ):
        trackperm.compare(*files)


@pytest.mark.parametrize(
    ("datasets", "ids", "is_blamed"),
    [
        (("dataset b535db9d", "dataset 6d7a1ed4"), "abcde", False),
        (("digits b535db9d", "digits 6d7a1ed4"), "abcdd", False),
        (("digits b535db9d", "digits 6d7a1ed4"), "abcee", True),
        (("digits b535db9d", "letters b535db9d"), "abcdd", True),
    ],
    ids=["default name", "same ids", "other ids", "other names"],
)
def test_digests_of_outputs_are_no_other_test_sets(datasets: tuple[str, str], ids: str, is_blamed: bool):
    """Regression: MLflow's digest of a data frame includes its outputs, which differ between any two runs."""
    frames = [
        pl.DataFrame({"id": list(each), "correct": [1, 0, 1, 0, 1][: len(each)]}) for each in ("abcd", ids)
    ]
    runs = [
        replace(run, table=replace(run.table, facts={"dataset": dataset}))
        for run, dataset in zip(run_data(*frames), datasets, strict=True)
    ]
    with pytest.raises(PairingError) as error:
        compare_runs(*runs, load_statistic("mean", columns={"score": "correct"}))
    assert error.value.message.startswith("the test sets of the runs differ") == is_blamed
    assert (error.value.hint or "").startswith("compare runs on one test set. ") == is_blamed
    assert not is_blamed or "test set. E" in str(error.value.hint)


def test_an_evaluation_with_several_traces_of_an_example():
    """Regression: `log_table` was blamed, and `--id`, which evaluations do not take."""
    once, twice = run_data(
        pl.DataFrame({"id": [1, 2], "correct": [1, 0]}),
        pl.DataFrame({"id": [1, 2, 1, 2], "correct": [1, 0, 0, 0]}),
    )
    twice = replace(twice, table=replace(twice.table, facts={"evaluation": "mlflow.genai.evaluate"}))
    with pytest.raises(
        PairingError, match=r"Hint: each example has 2 traces: the run was evaluated twice"
    ) as error:
        compare_runs(once, twice, load_statistic("mean", columns={"score": "correct"}))
    assert "`log_table`" not in str(error.value)


@pytest.mark.parametrize(
    ("facts", "is_noted"),
    [
        ({"evaluation": "mlflow.genai.evaluate", "dataset": "faq {}"}, False),
        ({"evaluation": "mlflow.genai.evaluate", "dataset": "faq-{} 5eed5eed"}, True),
        ({"dataset": "faq {}"}, True),
    ],
)
def test_digests_of_answer_sheets_are_not_those_of_other_data(facts: dict[str, str], is_noted: bool):
    """Regression: every comparison of two answer sheets said "dataset differs"."""
    runs = [
        replace(
            run, table=replace(run.table, facts={name: fact.format(digest) for name, fact in facts.items()})
        )
        for run, digest in zip(
            run_data(*[numbered(correct=[1, 0])] * 2), ("1f2e3d4c", "4c3d2e1f"), strict=True
        )
    ]
    found = compare_runs(*runs, load_statistic("mean", columns={"score": "correct"}))
    assert any("dataset differs" in note for note in found.pairing.notes) == is_noted


IDS, LABELS = [1, 2, 3, 4], ["a", "b", "a", "b"]


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame], ids=["polars", "pandas"])
def test_labels_in_a_data_frame(frame: Any):
    """They are joined with the runs by id, like those of a file."""
    labels = frame({"id": IDS[::-1], "label": LABELS[::-1]})
    runs = [pl.DataFrame({"id": IDS, "prediction": given}) for given in (LABELS, ["a"] * 4)]
    with_column = [run.with_columns(label=pl.Series(LABELS)) for run in runs]
    found = trackperm.compare(*runs, "accuracy", labels=labels)
    assert found.difference == trackperm.compare(*with_column, "accuracy").difference == -0.5
    board = trackperm.leaderboard(runs, "accuracy", labels=labels)
    assert [row.score for row in board.rows] == [1.0, 0.5]


@pytest.mark.parametrize(
    "labels",
    [LABELS, np.array(LABELS), pl.Series(LABELS), pd.Series(LABELS), 3, {"id": IDS, "label": LABELS}],
)
def test_labels_in_arrays_are_refused(labels: Any):
    """Regression: they were taken for the name of a file."""
    run = pl.DataFrame({"id": IDS, "prediction": LABELS})
    for ask in (
        lambda: trackperm.compare(run, run, "accuracy", labels=labels),
        lambda: trackperm.leaderboard([run, run], "accuracy", labels=labels),
    ):
        with pytest.raises(
            InputTypeError, match=r"`labels` is of type `\w+`; expected the path of a file, or a data"
        ):
            ask()


def test_one_run_of_a_tracker_is_not_compared_with_itself() -> None:
    """Two stores may have equal references; two artifacts or columns of one run are two systems."""
    table = ExampleTable.from_native(numbered(prediction=["a"], label=["a"]), "run")
    runs = [
        RunData(table, name, TrackedRun(RunReference("mlflow", "1"), name, "0", tracking_uri=uri))
        for name, uri in (("base", "a"), ("again", "a"), ("base", "b"))
    ]
    for artifact, columns in ((None, {}), (("a", "a"), {"prediction": "x"})):
        with pytest.raises(InputError, match=r"are the same run, `mlflow:1` \(`base`\)"):
            require_two_runs(*runs[:2], artifact, (columns, columns))
    require_two_runs(*runs[:2], ("a", "b"))
    require_two_runs(*runs[:2], None, ({"prediction": "old"}, {"prediction": "new"}))
    require_two_runs(runs[0], runs[2])
    require_two_runs(runs[0], RunData(table, "file"))
