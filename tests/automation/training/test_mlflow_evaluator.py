"""The evaluators of ``mlflow.models.evaluate``, its own and ours, with models and data of every kind."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import mlflow
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from support.mlflow_server import MlflowServer
from support.mlflow_stores import MlflowStore
from support.processes import python

import trackperm
from trackperm.errors import InputError, PairingError
from trackperm.tables.table import ExampleTable

pytestmark = [
    pytest.mark.tracker,
    pytest.mark.newer,
    pytest.mark.extended,
    pytest.mark.filterwarnings("ignore"),
]

N = 60
GENERATOR = np.random.default_rng(8)
DATA = pd.DataFrame({"a": GENERATOR.normal(size=N), "b": GENERATOR.normal(size=N)})
DATA["y"] = (DATA["a"] + 0.5 * DATA["b"] > 0).astype(int)
QIDS = [f"q{i:02d}" for i in range(N)]
QUIET = {"log_explainer": False}


def cautious(data: pd.DataFrame) -> pd.Series:
    return (data["a"] > 1).astype(int)


def good(data: pd.DataFrame) -> pd.Series:
    return (data["a"] > 0).astype(int)


@pytest.fixture
def store(mlflow_server: MlflowServer) -> MlflowStore:
    """The store that MLflow's own functions use, with an experiment."""
    store = MlflowStore(mlflow_server.uri)
    mlflow.set_tracking_uri(store.uri)
    mlflow.set_experiment(experiment_id=store.experiment(f"evaluator-{uuid4().hex[:8]}"))
    return store


def evaluate(
    model: Any, data: Any = DATA, config: dict[str, Any] | None = None, **options: Any
) -> tuple[str, dict[str, float]]:
    """Evaluate with our evaluator alone, and return the run and the metrics."""
    options = {"model_type": "classifier", "targets": "y", "evaluators": "trackperm"} | options
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(model, data, evaluator_config=config, **options)
    return run.info.run_id, dict(result.metrics)


def read(store: MlflowStore, run_id: str) -> ExampleTable:
    tracker = store.tracker()
    return tracker.read(tracker.find(run_id))


def compare(store: MlflowStore, *runs: str, **options: Any) -> trackperm.Comparison:
    return trackperm.compare(*(f"mlflow:{run}" for run in runs), tracking_uri=store.uri, **options)


def test_beside_the_default_evaluator_it_logs_what_a_comparison_needs(store: MlflowStore):
    options = {"evaluators": ["default", "trackperm"]}
    first, metrics = evaluate(cautious, config={"default": QUIET}, **options)
    second, _ = evaluate(good, config={"default": QUIET}, **options)
    assert metrics["accuracy_score"] == np.mean(cautious(DATA) == DATA["y"])
    assert "confusion_matrix.png" in store.artifacts(first)
    table = read(store, first)
    frame = table.frame.to_polars()
    assert frame["id"].to_list() == list(range(N))
    assert frame["prediction"].to_list() == cautious(DATA).to_list()
    assert frame["label"].to_list() == DATA["y"].to_list()
    assert table.identity == (frame.columns[-1],)
    assert frame[frame.columns[-1]].n_unique() == N
    comparison = compare(store, first, second)
    assert comparison.candidate_score == np.mean(good(DATA) == DATA["y"])
    assert any("ids are row numbers" in note for note in comparison.pairing.notes)


def test_rows_in_another_order_are_refused_and_ids_pair_them(store: MlflowStore):
    shuffled = DATA.assign(qid=QIDS).sample(frac=1.0, random_state=3)
    first, _ = evaluate(cautious)
    moved, _ = evaluate(good, shuffled.drop(columns="qid"))
    with pytest.raises(PairingError, match="differs between the runs"):
        compare(store, first, moved)

    by_list, _ = evaluate(cautious, config={"id": QIDS})
    by_column, _ = evaluate(good, shuffled, config={"id": "qid"})
    expected = np.mean(good(DATA) == DATA["y"])
    assert compare(store, by_list, by_column).candidate_score == expected
    assert store.get(by_column).data.tags["trackperm.ids.predictions"] == "column qid"
    assert read(store, by_list).identity == read(store, by_column).identity


def test_models_with_other_features_are_paired_by_their_ids(store: MlflowStore):
    first, _ = evaluate(cautious, config={"id": QIDS}, feature_names=["a"])
    second, _ = evaluate(good, config={"id": QIDS})
    assert not {*read(store, first).identity} & {*read(store, second).identity}
    assert compare(store, first, second).n_examples == N


def test_it_compares_at_once_and_logs_the_comparison(store: MlflowStore):
    baseline, nothing = evaluate(cautious)
    candidate, metrics = evaluate(good, config={"baseline_run_id": baseline})
    comparison = compare(store, baseline, candidate)
    assert nothing == {}
    assert metrics == {
        "accuracy/p_value": comparison.pvalue,
        "accuracy/difference": comparison.difference,
        "accuracy/baseline_score": comparison.baseline_score,
        "accuracy/candidate_score": comparison.candidate_score,
    }
    assert "sig.accuracy" in store.get(candidate).data.tags

    silent, metrics = evaluate(
        good,
        config={"baseline_run_id": baseline, "statistic": "f1", "parameters": {"positive": 0}, "log": False},
    )
    assert set(metrics) == {
        f"f1/{name}" for name in ("p_value", "difference", "baseline_score", "candidate_score")
    }
    assert not any(name.startswith("sig.") for name in store.get(silent).data.tags)


def test_a_regressor_with_numbers_without_names(store: MlflowStore):
    features = DATA[["a", "b"]].to_numpy()
    targets = features @ [1.0, 2.0]
    model = LinearRegression().fit(features, targets)
    run_id, _ = evaluate(lambda data: model.predict(data), features, targets=targets, model_type="regressor")
    frame = read(store, run_id).frame.to_polars()
    assert np.allclose(frame["prediction"], targets)
    assert frame["label"].to_list() == targets.tolist()


def test_predictions_that_are_in_the_data(store: MlflowStore):
    data = DATA.assign(guess=cautious(DATA))
    run_id, _ = evaluate(None, data, predictions="guess")
    other, _ = evaluate(good)
    assert read(store, run_id).frame.to_polars()["prediction"].to_list() == data["guess"].to_list()
    assert compare(store, run_id, other).n_examples == N


def test_text_from_a_model_of_several_columns(store: MlflowStore):
    questions = pd.DataFrame(
        {"question": [f"what is {i}?" for i in range(8)], "answer": [str(i) for i in range(8)]}
    )

    def model(data: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"text": [text[8:-1] for text in data["question"]], "tokens": [3] * len(data)})

    options = {"targets": "answer", "model_type": "question-answering"}
    run_id, _ = evaluate(model, questions, predictions="text", **options)
    frame = read(store, run_id).frame.to_polars()
    assert frame["prediction"].to_list() == frame["label"].to_list() == questions["answer"].to_list()
    with pytest.raises(InputError, match="the model gives several columns, `text`, `tokens`"):
        evaluate(model, questions, **options)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"ids": "qid"}, "has no option `ids`"),
        ({"baseline_run_id": 3}, "option `baseline_run_id` .* is 3; expected str"),
        ({"statistic": "f1"}, "need a baseline"),
        ({"id": "qid"}, "have no column `qid`; they have `a`, `b`"),
        ({"id": ["q1"]}, "option `id` has 1 ids"),
        ({"id": ["q1"] * N}, "share"),
        ({"id": 7}, "expected a column name, or ids"),
        ({"name": "../x"}, "is not a name for predictions"),
        ({"baseline_run_id": "0" * 32}, "has no run with id"),
    ],
)
def test_a_bad_option_is_one_clear_error(store: MlflowStore, config: dict[str, Any], message: str):
    with pytest.raises(trackperm.TrackpermError, match=message):
        evaluate(good, config=config)


def test_a_regressor_is_not_compared_by_accuracy_by_default(store: MlflowStore):
    with pytest.raises(InputError, match="needs a `statistic`"):
        evaluate(good, config={"baseline_run_id": "x"}, model_type="regressor")


def test_who_names_no_evaluator_gets_nothing_of_ours(store: MlflowStore):
    """MLflow runs all evaluators that are installed where none is named, with the options of others."""
    for config in (None, QUIET, {"classifier": QUIET}):
        run_id, metrics = evaluate(good, config=config, evaluators=None)
        assert metrics["accuracy_score"] == np.mean(good(DATA) == DATA["y"])
        assert "predictions.parquet" not in store.artifacts(run_id)
    run_id, _ = evaluate(good, config={"trackperm": {"name": "mine"}, "classifier": QUIET}, evaluators=None)
    assert "mine.parquet" in store.artifacts(run_id)


def test_mlflow_is_imported_without_what_we_need_to_compare():
    loaded = python("import mlflow, sys; print(*sorted(m for m in sys.modules if m.startswith('trackperm')))")
    assert set(loaded.split()) <= {
        "trackperm",
        "trackperm.automation",
        "trackperm.automation.training",
        "trackperm.automation.training.mlflow_evaluator",
        "trackperm.version",
    }


def names_on_the_page(kind: str) -> dict[str, str | None]:
    """Return the metrics of a kind of model in the table of the documentation, with equal statistics."""
    page = (Path(__file__).parents[3] / "docs/pages/statistics/which.md").read_text(encoding="utf-8")
    section = page.split("## MLflow's and scikit-learn's names")[1].split("\n## ")[0]
    found: dict[str, str | None] = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| `") or cells[1] not in ("both", kind.split(",")[0], kind):
            continue
        metrics, statistics = (re.findall(r"`(\w+)`", cell) for cell in (cells[0], cells[2]))
        if not re.fullmatch(r"(`\w+`(, )?)+", cells[2]):
            statistics = [None]
        if len(statistics) == 1:
            statistics *= len(metrics)
        found |= dict(zip(metrics, statistics, strict=True))
    return found


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("classifier, two classes", LogisticRegression()),
        ("classifier, several classes", LogisticRegression()),
        ("regressor", LinearRegression()),
    ],
)
def test_statistics_that_the_page_names_are_the_metrics_of_mlflow(
    kind: str, model: Any, store: MlflowStore, tmp_path: Path
) -> None:
    x = DATA[["a", "b"]]
    noisy = (x["a"] + np.random.default_rng(0).normal(size=N)).to_numpy()
    cuts = {"classifier, two classes": [0.0], "classifier, several classes": [-0.5, 0.5]}
    y = np.digitize(noisy, cuts[kind]) if kind in cuts else noisy
    mlflow.sklearn.save_model(model.fit(x, y), tmp_path / "model", pip_requirements=[])
    _, logged = evaluate(
        str(tmp_path / "model"),
        x.assign(y=y),
        {"log_explainer": False, "log_model_explainability": False},
        model_type=kind.split(",")[0],
        evaluators="default",
    )
    table = pd.DataFrame({"id": QIDS, "label": y, "prediction": model.predict(x)})
    if kind in cuts:
        chances = model.predict_proba(x)
        table["probability"] = table["score"] = chances[:, 1]
        if chances.shape[1] > 2:
            table = table.drop(columns="probability").assign(
                **{f"probability_{i}": chances[:, i] for i in range(chances.shape[1])}
            )
    named = names_on_the_page(kind)
    assert set(logged) == set(named)
    for metric, statistic in named.items():
        if statistic is not None:
            found = trackperm.compare(table, table, statistic)
            assert found.candidate_score == pytest.approx(logged[metric], rel=1e-9), metric
