"""Evaluations in Weave, read over HTTP from a small server of traces on the loopback interface."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from support.mlflow_server import free_port
from support.wandb_projects import logged_run
from support.wandb_standin import API_KEY, Standin
from support.web_server import QuietHandler, serving

from trackperm.comparison import Question
from trackperm.errors import SourceError, TrackerError
from trackperm.tables.table import ExampleTable
from trackperm.trackers.wandb.artifacts import read_run
from trackperm.trackers.wandb.evaluations import traces_url
from trackperm.trackers.wandb.store import Store

pytestmark = [pytest.mark.tracker, pytest.mark.extended]

CALL = "0192-evaluate"


class Traces:
    """Calls that Weave's server has, what it was asked, and how it answers."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.queries: list[dict[str, Any]] = []
        self.status = 200
        self.cut = 0

    def add(self, example: object, output: object, parent: str = CALL, **more: Any) -> None:
        """Add the call that one example of an evaluation makes."""
        self.calls.append(
            {
                "id": f"call-{len(self.calls)}",
                "parent_id": parent,
                "op_name": "weave:///team/digits/op/Evaluation.predict_and_score:x7",
                "inputs": {"self": "weave:///team/digits/object/Evaluation:x", "example": example},
                "output": output,
                **more,
            }
        )


class TraceServer(QuietHandler):
    """Answers ``calls/stream_query``, as Weave's server does."""

    def __init__(self, traces: Traces, *arguments: Any) -> None:
        self.traces = traces
        super().__init__(*arguments)

    def stream_query(self) -> None:
        query = json.loads(self.content())
        key = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        self.traces.queries.append({"path": self.path, "key": key, **query})
        found = [call for call in self.traces.calls if call["parent_id"] in query["filter"]["parent_ids"]]
        lines = [{name: call.get(name) for name in query["columns"]} for call in found]
        body = "".join(json.dumps(line) + "\n" for line in lines).encode()
        elsewhere = {"Location": "http://127.0.0.1:9/elsewhere"}
        self.answer(self.traces.status, elsewhere, body, cut=self.traces.cut)

    do_POST = stream_query


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traces]:
    traces = Traces()
    with serving(TraceServer, traces) as url:
        monkeypatch.setenv("WF_TRACE_SERVER_URL", url + "/")
        yield traces


@pytest.fixture(scope="module")
def logged(wandb_server: Standin, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run on the stand-in, whose summary tests write."""
    with logged_run(
        f"digits-{uuid4().hex[:8]}", standin=wandb_server, folder=tmp_path_factory.mktemp("evaluated")
    ) as run:
        return f"{run.entity}/{run.project}/{run.id}"


def read(standin: Standin, locator: str, n_rows: int | str | None, **entries: Any) -> ExampleTable:
    entry = {"_type": "eval-table", "evaluate_call_id": CALL, "nrows": n_rows}
    standin.run(locator).summary = json.dumps({"evaluation": entry, **entries})
    store = Store(standin.url)
    return read_run(store, store.tracked(store.fresh_api().run(locator)))[0]


def test_inputs_outputs_and_scores_are_columns(standin: Standin, traces: Traces, logged: str):
    for i in range(3):
        example = {"id": f"q{i}", "question": "2 + 2?", "label": "4"}
        scores = {"correct": i > 0, "judge": {"rating": 0.5, "why": {"text": "ok"}}}
        traces.add(example, {"output": str(i), "scores": scores, "model_latency": 0.1})
    traces.calls.append(
        {
            "id": "s",
            "parent_id": CALL,
            "op_name": "weave:///team/digits/op/Evaluation.summarize:y",
            "inputs": {"self": "weave:///x"},
            "output": {"correct": {"true_count": 2}},
        }
    )
    traces.add({"id": "other"}, {"output": 1}, parent="another evaluation")
    table = read(standin, logged, 3)
    assert table.frame.to_dict(as_series=False) == {
        "id": ["q0", "q1", "q2"],
        "question": ["2 + 2?"] * 3,
        "label": ["4"] * 3,
        "prediction": ["0", "1", "2"],
        "score.correct": [False, True, True],
        "score.judge.rating": [0.5] * 3,
        "score.judge.why.text": ["ok"] * 3,
    }
    assert table.origin == f"wandb:{logged}"
    asked = Question().statistics_of([table, table])
    assert [(each.name, each.chosen) for each in asked] == [
        ("correct", "one of the metrics of the log"),
        ("judge.rating", "one of the metrics of the log"),
    ]
    (query,) = traces.queries
    assert (query["path"], query["key"]) == ("/calls/stream_query", f"api:{API_KEY}")
    assert (query["project_id"], query["filter"]) == (logged.rpartition("/")[0], {"parent_ids": [CALL]})


def test_rows_of_a_dataset_have_its_digests_as_ids(standin: Standin, traces: Traces, logged: str):
    for row in ("aB3", "dE4"):
        traces.add(f"weave:///team/digits/object/test:v1/attr/rows/id/{row}", {"scores": {"correct": True}})
    table = read(standin, logged, 2)
    assert table.frame.to_dict(as_series=False) == {
        "id": ["aB3", "dE4"],
        "prediction": [None, None],
        "score.correct": [True, True],
    }


def test_names_that_are_taken_get_another(standin: Standin, traces: Traces, logged: str):
    output = {"output": {"id": 7, "answer": "x"}, "scores": {"answer": 1, "id": 2}}
    traces.add({"id": "a"}, output)
    table = read(standin, logged, 1)
    assert table.frame.row(0) == ("a", 7, "x", 1, 2)
    assert table.columns == ["id", "output.id", "answer", "score.answer", "score.id"]


def test_failed_predictions_are_missing_not_wrong(standin: Standin, traces: Traces, logged: str):
    traces.add({"id": "a"}, {"output": "x", "scores": {"correct": True}})
    traces.add({"id": "b"}, None, exception="Traceback\n  ...\nTimeoutError: late\n")
    table = read(standin, logged, 2)
    assert table.frame.to_dict(as_series=False) == {
        "id": ["a", "b"],
        "prediction": ["x", None],
        "score.correct": [True, None],
        "error": [None, "TimeoutError: late"],
    }


def test_the_older_name_of_outputs(standin: Standin, traces: Traces, logged: str):
    traces.add({"id": "a"}, {"model_output": "x", "scores": {"correct": True}})
    assert read(standin, logged, 1).frame.row(0) == ("a", "x", True)


def test_examples_that_are_missing(standin: Standin, traces: Traces, logged: str):
    traces.add({"id": "a"}, {"output": "x"})
    with pytest.raises(SourceError, match=r"evaluation `evaluation` of run .* has 1 of 2 examples"):
        read(standin, logged, 2)
    for unknown in (None, "2"):
        assert len(read(standin, logged, unknown)) == 1


def test_calls_without_an_example(standin: Standin, traces: Traces, logged: str):
    traces.add({"id": "a"}, {"output": "x"}, inputs={"self": "x"})
    with pytest.raises(SourceError, match=r"call `call-0` .* has no example"):
        read(standin, logged, 1)


@pytest.mark.parametrize("status", [401, 404, 500, 307])
def test_servers_that_refuse(standin: Standin, traces: Traces, logged: str, status: int):
    traces.status = status
    with pytest.raises(TrackerError, match=rf"answered {status}[\s\S]*WF_TRACE_SERVER_URL"):
        read(standin, logged, 1)
    assert len(traces.queries) == 1  # the key goes nowhere else


def test_answers_that_break_off(standin: Standin, traces: Traces, logged: str):
    traces.add({"id": "a"}, {"output": "x"})
    traces.cut = 10
    with pytest.raises(TrackerError, match=r"trace server at .* failed while reading"):
        read(standin, logged, 1)


def test_a_server_that_is_not_there(standin: Standin, logged: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WF_TRACE_SERVER_URL", f"http://127.0.0.1:{free_port()}/")
    with pytest.raises(TrackerError, match=r"trace server at .* failed while reading"):
        read(standin, logged, 1)


def test_evaluations_of_another_kind_are_named(standin: Standin, traces: Traces, logged: str):
    other = {"_type": "eval-table-ces", "dataset_version_id": "x"}
    with pytest.raises(SourceError, match=r"only `evaluation \(eval-table-ces\)`"):
        read(standin, logged, 1, evaluation=other)


@pytest.mark.parametrize(
    ("base_url", "environment", "expected"),
    [
        ("https://api.wandb.ai", {}, "https://trace.wandb.ai"),
        ("https://wandb.example.org", {}, "https://wandb.example.org/traces"),
        ("http://127.0.0.1:8080", {"WANDB_PUBLIC_BASE_URL": "https://w.org/"}, "https://w.org/traces"),
        ("https://api.wandb.ai", {"WF_TRACE_SERVER_URL": "http://127.0.0.1:1/"}, "http://127.0.0.1:1"),
    ],
)
def test_where_traces_are(
    base_url: str, environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert traces_url(base_url) == expected
