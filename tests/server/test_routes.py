"""Endpoints of jobs: which pages may use them, and who may read a job."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from flask import Flask, Request, request
from flask.testing import FlaskClient
from werkzeug.test import EnvironBuilder, TestResponse

from trackperm.server import routes
from trackperm.server.jobs.changed_examples import write_changed_examples
from trackperm.server.jobs.limits import Limits
from trackperm.server.jobs.pool import WorkerPool
from trackperm.server.jobs.store import CHANGED_FILE, RESULT_FILE, Job, JobStore
from trackperm.server.jobs.visitors import PAGE_HEADER, Visitor
from trackperm.server.routes import API, is_from_allowed_page

pytestmark = [
    pytest.mark.tracker,
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy"),  # of MLflow's own tables
]

OWN = "https://runs.example"


def is_allowed(method: str = "POST", base: str = OWN, **headers: str) -> bool:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return is_from_allowed_page(
        Request(EnvironBuilder(method=method, base_url=base, headers=named).get_environ())
    )


@pytest.mark.parametrize("allowed", ["https://front.example", "https://*.example", "*", ""])
@pytest.mark.parametrize(
    "origin", ["https://front.example", "http://front.example", "http://localhost:3000", "null"]
)
@pytest.mark.parametrize("site", [None, "cross-site", "same-site"])
def test_what_mlflow_lets_through_is_let_through(
    monkeypatch: pytest.MonkeyPatch, allowed: str, origin: str, site: str | None
) -> None:
    """Regression: a proxy that rewrites `Host` had every job refused, whatever MLflow was told."""
    from mlflow.server.security_utils import should_block_cors_request

    monkeypatch.setenv("MLFLOW_SERVER_CORS_ALLOWED_ORIGINS", allowed)
    blocked = should_block_cors_request(origin, "POST", allowed.split(",") if allowed else None)
    more = {} if site is None else {"Sec_Fetch_Site": site}
    assert is_allowed(base="http://127.0.0.1:5000", Origin=origin, **more) is not blocked


@pytest.mark.parametrize(
    ("method", "headers", "allowed"),
    [
        ("POST", {}, True),
        ("POST", {"Origin": OWN}, True),
        # a page that anybody on the network could have sent
        ("POST", {"Origin": "http://runs.example"}, False),
        ("POST", {"Origin": "https://runs.example:8443"}, False),
        ("POST", {"Origin": "https://runs.example.evil.example"}, False),
        ("POST", {"Origin": "null"}, False),
        ("POST", {"Sec_Fetch_Site": "same-origin", "Origin": "http://another"}, True),
        ("POST", {"Sec_Fetch_Site": "cross-site", "Origin": OWN}, False),
        ("POST", {"Sec_Fetch_Site": "cross-site"}, False),
        ("POST", {"Sec_Fetch_Site": "none"}, False),
        ("GET", {"Sec_Fetch_Site": "none"}, True),
        ("GET", {"Sec_Fetch_Site": "same-site"}, False),
    ],
)
def test_what_browsers_say(method: str, headers: dict[str, str], allowed: bool) -> None:
    assert is_allowed(method, **headers) is allowed


def test_switched_off_with_mlflows_own_check(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_allowed(Origin="https://evil.example")
    monkeypatch.setenv("MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE", "true")
    assert is_allowed(Origin="https://evil.example")


class Site:
    """Endpoints of jobs over an MLflow that lets everybody read everything, as without accounts."""

    def __init__(self) -> None:
        self.app, self.store = Flask(__name__), JobStore()
        self.app.add_url_rule("/ajax-api/2.0/mlflow/runs/get", "runs", lambda: {"run": {}})
        user = lambda: request.headers.get("X-User")  # noqa: E731
        routes.register(self.app, "", self.store, WorkerPool(Limits()), user)

    def finished_job(self, **headers: str) -> Job:
        """Make a job with a result, as the sender of these headers."""
        with self.app.test_request_context(headers=headers, environ_base={"REMOTE_ADDR": "127.0.0.1"}):
            visitor = Visitor.of(request, headers.get("X-User"))
        job = self.store.begin(visitor, [("runs/get", "run_id", "secret")])
        (job.folder / RESULT_FILE).write_text('{"verdict": "better"}')
        write_changed_examples(job.folder / CHANGED_FILE, ["id"], [["dev-0"]], None)
        job.update(state="done", changed_table="ready")
        return job

    def answers(self, job: Job, **headers: str) -> list[TestResponse]:
        """Read a job and its changed examples, as the sender of these headers."""
        client: FlaskClient = self.app.test_client()
        return [client.get(f"{API}/{path}?id={job.id}", headers=headers) for path in ("jobs", "changed")]


ONE_PAGE, OTHER_PAGE = {PAGE_HEADER: "a" * 32}, {PAGE_HEADER: "b" * 32}


@pytest.mark.parametrize(
    ("owner", "others"),
    [
        ({"X-User": "ann"}, [{"X-User": "bob"}, {"X-User": "admin"}, {}, {"X-User": "bob", **ONE_PAGE}]),
        ({"X-User": "ann", **ONE_PAGE}, [{"X-User": "bob", **ONE_PAGE}, ONE_PAGE]),
        (ONE_PAGE, [OTHER_PAGE, {}, {"X-User": "ann", **ONE_PAGE}]),
        ({}, [ONE_PAGE, {"X-User": "ann"}]),
    ],
    ids=["user", "page-of-a-user", "page", "program"],
)
def test_a_job_is_shown_to_its_owner_alone(
    owner: dict[str, str], others: list[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow lets all of them read the runs, so only the owner of the job protects its result."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    site = Site()
    job = site.finished_job(**owner)
    report, changed = site.answers(job, **owner)
    assert report.get_json()["result"] == {"verdict": "better"}
    assert changed.get_json()["rows"] == [["dev-0"]]
    for other in others:
        for answer in site.answers(job, **other):
            assert answer.status_code == 404
            assert "this job is not yours" in answer.text
        cancelled = site.app.test_client().delete(f"{API}/jobs?id={job.id}", headers=other)
        assert cancelled.status_code == 404
