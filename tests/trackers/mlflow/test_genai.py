"""Runs of ``mlflow.genai.evaluate``, compared by their traces, and held against MLflow's own comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import mlflow
import pytest
from mlflow.entities import AssessmentSource, Feedback
from mlflow.genai import scorer
from scipy.stats import binomtest
from support.command_line import call_trackperm
from support.mlflow_server import MlflowServer
from support.mlflow_stores import MlflowStore

import trackperm
from trackperm.errors import InputError, PairingError, SourceError
from trackperm.tables.table import ExampleTable

pytestmark = [
    pytest.mark.tracker,
    pytest.mark.newer,
    pytest.mark.extended,
    pytest.mark.filterwarnings("ignore"),
]

N = 12


@scorer
def correct(inputs: dict[str, Any], outputs: str) -> str:
    return "yes" if outputs == inputs["q"] else "no"


@scorer
def length(outputs: str) -> int:
    return len(outputs)


@scorer
def flaky(inputs: dict[str, Any], outputs: str) -> bool:
    if inputs["q"] == "q3":
        raise ValueError("no judge today")
    return outputs.startswith("q")


@scorer
def parts(outputs: str) -> list[Feedback]:
    return [Feedback(name="part", value=letter == "q") for letter in outputs[:2]]


@scorer
def tone(outputs: str) -> str:
    return "calm" if outputs.startswith("q") else "rude"


@pytest.fixture
def store(mlflow_server: MlflowServer) -> MlflowStore:
    """The store that MLflow's own functions use, with an experiment."""
    store = MlflowStore(mlflow_server.uri)
    _use(store)
    return store


def _use(store: MlflowStore) -> None:
    mlflow.set_tracking_uri(store.uri)
    mlflow.set_experiment(experiment_id=store.experiment(f"genai-{uuid4().hex[:8]}"))


def rows(right: Sequence[bool], **more: Sequence[Any]) -> list[dict[str, Any]]:
    """Data whose outputs are right or not; `more` are columns beside."""
    return [
        {
            "inputs": {"q": f"q{i}", "k": i},
            "outputs": f"q{i}" if is_right else "x",
            **{name: values[i] for name, values in more.items()},
        }
        for i, is_right in enumerate(right)
    ]


def evaluate(data: list[dict[str, Any]], *scorers: Any, predict_fn: Any = None) -> str:
    result = mlflow.genai.evaluate(data=data, scorers=list(scorers), predict_fn=predict_fn)
    return str(result.run_id)


def read(store: MlflowStore, run_id: str, artifact: str | None = None) -> ExampleTable:
    tracker = store.tracker()
    return tracker.read(tracker.find(run_id), artifact)


def compare(store: MlflowStore, *runs: str, score: str = "correct", **options: Any) -> trackperm.Comparison:
    return trackperm.compare(
        *(f"mlflow:{run}" for run in runs),
        "mean",
        columns={"score": score},
        tracking_uri=store.uri,
        **options,
    )


WORSE = [i % 3 != 0 for i in range(N)]
BETTER = [i % 8 != 1 for i in range(N)]
GAINED = sum(b and not w for w, b in zip(WORSE, BETTER, strict=True))
LOST = sum(w and not b for w, b in zip(WORSE, BETTER, strict=True))


def test_static_outputs_pair_by_request_id_with_a_column_for_each_scorer(store: MlflowStore):
    first = evaluate(rows(WORSE), correct, length, flaky, tone)
    second = evaluate(rows(BETTER), correct, length, flaky, tone)
    table = read(store, first)
    frame = table.frame.to_polars()
    assert frame.columns == ["id", "inputs", "outputs", "correct", "flaky", "length", "tone"]
    assert sorted(frame["correct"].to_list()) == sorted(map(float, WORSE))
    assert set(frame["tone"]) == {"calm", "rude"}
    assert frame["flaky"].null_count() == 1
    assert table.notes == (
        f"scorer `flaky` has no value for 1 of {N} examples: 1 of its assessments failed, the first by"
        " no judge today",
        "scorer `tone` gives words, which have no mean: `--metric tone=calm` compares the share of one",
    )
    assert table.facts["evaluation"] == "mlflow.genai.evaluate"
    assert list(table.metrics) == ["correct", "flaky", "length"]
    own = trackperm.compare(
        f"mlflow:{first}", f"mlflow:{second}", slices=[], missing="drop", tracking_uri=store.uri
    )
    assert [each.statistic.name for each in own] == ["correct", "flaky", "length"]
    with pytest.raises(PairingError, match="in `flaky`") as caught:
        trackperm.compare(f"mlflow:{first}", f"mlflow:{second}", slices=[], tracking_uri=store.uri)
    assert f"`--missing drop` tests `flaky` on the {N - 1} paired examples only" in str(caught.value.hint)
    assert "`--metric correct` compares one metric only" in str(caught.value.hint)
    comparison = compare(store, first, second)
    assert (comparison.n_better, comparison.n_worse) == (GAINED, LOST)
    assert comparison.pvalue == pytest.approx(binomtest(GAINED, GAINED + LOST).pvalue, rel=1e-12)
    assert comparison.n_examples == N
    calm = trackperm.compare(
        f"mlflow:{first}", f"mlflow:{second}", metric="tone=calm", tracking_uri=store.uri
    )
    assert (calm.n_better, calm.n_worse, calm.pvalue) == (GAINED, LOST, comparison.pvalue)
    with pytest.raises(PairingError, match=rf"1 of {N} examples of .* has no value in `flaky`"):
        compare(store, first, second, score="flaky")
    assert compare(store, first, second, score="flaky", missing="drop").n_examples == N - 1
    with pytest.raises(PairingError, match="no fixed order"):
        compare(store, first, second, by_position=True)


def test_request_ids_of_the_data_pair_runs_with_other_prompts(store: MlflowStore):
    ids = [f"case-{i}" for i in range(N)]
    second = rows(BETTER, request_id=ids)
    for row in second:
        row["inputs"] = {**dict(reversed(row["inputs"].items())), "prompt": "politely"}
    runs = evaluate(rows(WORSE, request_id=ids), correct), evaluate(second, correct)
    assert sorted(read(store, runs[0]).frame["id"]) == sorted(ids)
    assert compare(store, *runs).n_examples == N


def test_a_called_function_pairs_by_inputs_whatever_the_order_of_their_names(store: MlflowStore):
    right = dict(zip((f"q{i}" for i in range(N)), BETTER, strict=True))

    def answer(q: str, k: int) -> str:
        return q if right[q] else "x"

    def always(q: str, k: int) -> str:
        return q

    questions = [{"inputs": row["inputs"]} for row in rows(WORSE)]
    swapped = [{"inputs": dict(reversed(row["inputs"].items()))} for row in questions]
    first = evaluate(questions, correct, predict_fn=answer)
    second = evaluate(swapped, correct, predict_fn=always)
    table = read(store, first)
    assert {*table.columns} >= {"id", "request_id", "inputs", "outputs", "correct"}
    assert "MLflow's request ids are random" in table.notes[0]
    comparison = compare(store, first, second)
    assert (comparison.n_better, comparison.n_worse) == (N - sum(BETTER), 0)


def test_the_same_inputs_twice_are_refused_by_id(store: MlflowStore):
    data = [*rows(WORSE[:6]), *rows(WORSE[:2])]
    first, second = (evaluate(data, correct) for _ in range(2))
    with pytest.raises(PairingError, match="share"):
        compare(store, first, second)


def test_several_values_are_averaged_as_mlflow_averages_them(store: MlflowStore):
    run_id = evaluate(rows(WORSE[:6]), parts, length)
    table = read(store, run_id)
    assert sorted({*table.frame["part"]}) == [0.0, 0.5]
    assert "scorer `part` has several values for 4 examples, averaged, as MLflow does" in table.notes


def test_overridden_values_and_those_of_other_runs_do_not_count(store: MlflowStore):
    run_id = evaluate(rows([True, False]), correct)
    experiment = store.get(run_id).info.experiment_id
    for trace in store.client.search_traces(locations=[experiment], run_id=run_id):
        source = AssessmentSource(source_type="HUMAN", source_id="someone")
        (judged,) = (each for each in trace.info.assessments if each.name == "correct")
        changed = Feedback(name="correct", value=False, source=source, overrides=judged.assessment_id)
        mlflow.log_assessment(
            trace.info.trace_id,
            mlflow.entities.Feedback(
                name="correct",
                value=True,
                source=source,
                metadata={"mlflow.assessment.sourceRunId": "0" * 32},
            ),
        )
        mlflow.override_feedback(
            trace_id=trace.info.trace_id,
            assessment_id=judged.assessment_id,
            value=changed.value,
            source=source,
        )
    assert read(store, run_id).frame["correct"].to_list() == [0.0, 0.0]


def test_a_table_beside_the_evaluation_has_to_be_named(store: MlflowStore):
    with mlflow.start_run() as active:
        mlflow.genai.evaluate(data=rows([True, False]), scorers=[correct])
    run_id = active.info.run_id
    assert read(store, run_id, "traces").frame["correct"].to_list() in ([1.0, 0.0], [0.0, 1.0])
    store.log_columns(run_id, {"id": ["a"], "prediction": ["x"]}, "mine.parquet")
    assert read(store, run_id, "mine.parquet").columns == ["id", "prediction"]
    if store.get(run_id).data.tags.get("mlflow.runType") == "genai_evaluate":
        with pytest.raises(InputError, match="2 artifacts that could hold its predictions"):
            read(store, run_id)


def test_without_scores_or_traces_it_says_so(store: MlflowStore):
    with mlflow.start_run() as active, mlflow.start_span("nothing"):
        pass
    mlflow.flush_trace_async_logging()
    with pytest.raises(SourceError, match="no scorer has given a value to any of the 1 traces"):
        read(store, active.info.run_id, "traces")
    with pytest.raises(SourceError, match="has no traces"):
        read(store, store.run("untraced", "untraced"), "traces")


def test_more_traces_than_a_page(store: MlflowStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trackperm.trackers.mlflow.evaluations._PAGE", 5)
    monkeypatch.setattr("trackperm.trackers.mlflow.evaluations._PAGE_OF_SPANS", 5)
    static = evaluate(rows(WORSE), length)
    called = evaluate([{"inputs": {"q": f"q{i}"}} for i in range(7)], length, predict_fn=lambda q: q)
    for run_id, n in ((static, N), (called, 7)):
        table = read(store, run_id)
        assert len(table) == table.frame["id"].n_unique() == n


@pytest.mark.slow
def test_a_store_without_a_server_and_the_command_line(tmp_path: Any):
    store = MlflowStore.local(tmp_path)
    _use(store)
    run_id, other = (evaluate(rows(right), correct, length) for right in (WORSE, BETTER))
    inspected = call_trackperm(tmp_path, "inspect", f"mlflow:{run_id}", "--tracking-uri", store.uri)
    assert inspected.returncode == 0, inspected.stderr
    assert f"{N} examples" in inspected.stdout
    assert "could be score: correct, length" in inspected.stdout
    assert "evaluation: mlflow.genai.evaluate" in inspected.stdout
    command = inspected.stdout.strip().splitlines()[-1].replace(" OTHER", f" mlflow:{other}").split()
    compared = call_trackperm(tmp_path, *command[1:])
    assert compared.returncode == 0, compared.stdout + compared.stderr


class TestAgreementWithCompareEvaluations:
    """Their test of yes and no is exact below 25 discordant pairs; then both have to say the same.

    MLflow has it from 3.18 on: `make test-new-mlflow`.
    """

    __test__ = hasattr(mlflow.genai, "compare_evaluations")

    @pytest.mark.parametrize("second", [BETTER, WORSE, [not right for right in WORSE]])
    def test_of_yes_and_no(self, store: MlflowStore, second: list[bool]):
        runs = evaluate(rows(WORSE), correct), evaluate(rows(second), correct)
        theirs = mlflow.genai.compare_evaluations(runs[1], runs[0]).scorers["correct"]
        ours = compare(store, *runs)
        assert theirs.method == "mcnemar_exact"
        assert ours.pvalue == pytest.approx(theirs.p_value, rel=1e-12)
        assert ours.difference == pytest.approx(theirs.diff, abs=1e-15)
        assert (ours.n_examples, ours.n_discordant) == (theirs.n_paired, theirs.n_nonzero)
        assert (ours.baseline_score, ours.candidate_score) == pytest.approx(
            (theirs.baseline_mean, theirs.candidate_mean), abs=1e-15
        )

    def test_of_functions_that_were_called_and_of_failed_scorers(self, store: MlflowStore):
        questions = [{"inputs": row["inputs"]} for row in rows(WORSE)]

        def answering(every: int) -> Callable[[str, int], str]:
            return lambda q, k: q if k % every else "x"

        runs = [evaluate(questions, flaky, predict_fn=answering(every)) for every in (3, 4)]
        theirs = mlflow.genai.compare_evaluations(runs[1], runs[0])
        ours = compare(store, *runs, score="flaky", missing="drop")
        assert {row["paired_on"] for row in theirs.paired_rows} == {"inputs_hash"}
        assert ours.pvalue == pytest.approx(theirs.scorers["flaky"].p_value, rel=1e-12)
        assert ours.n_examples == theirs.scorers["flaky"].n_paired == N - 1

    def test_what_they_leave_out_is_refused_here(self, store: MlflowStore):
        data = [*rows(WORSE[:10]), *rows(WORSE[:2])]
        runs = evaluate(data, correct), evaluate(data, correct)
        assert mlflow.genai.compare_evaluations(runs[1], runs[0]).scorers["correct"].n_paired == 8
        with pytest.raises(PairingError, match="share"):
            compare(store, *runs)
