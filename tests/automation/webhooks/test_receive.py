"""The webhook receiver over real HTTP: what is taken, what is refused, and what is said of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.budget import cases
from support.receivers import MLFLOW, WANDB, Site, created

from trackperm.automation.policy.load import load_policies
from trackperm.automation.queue.queue import Queue
from trackperm.automation.webhooks.receive import MLFLOW_SECRET, WANDB_SECRET, Receiver, Secrets
from trackperm.errors import InputError


def test_an_artifact_of_wandb(site: Site):
    status, answer = site.wandb({"artifact": "team/digits/predictions:v3", "event": "LINK", "token": "t0p"})
    assert (status, answer["queued"]) == (202, 1)
    assert site.queued == [("project", "wandb:team/digits/predictions:v3")]
    [line] = site.heard.events("delivery")
    assert line["policies"] == ["project"]
    assert "t0p" not in site.heard.text


def test_runs_are_queued_for_the_policy_that_is_about_them(site: Site):
    """One policy names no entity of W&B."""
    assert site.wandb({"run": "team/other/abc123"})[0] == 202
    assert site.mlflow(created("3f2a" * 8))[0] == 202
    assert site.queued == [("elsewhere", "wandb:team/other/abc123"), ("registry", "mlflow:" + "3f2a" * 8)]


@pytest.mark.parametrize(
    "document",
    [
        created(None),
        created(""),
        {"entity": "model_version_alias", "action": "created", "data": {"name": "m", "alias": "champion"}},
        {"entity": "registered_model", "action": "created", "data": {"name": "m"}},
    ],
)
def test_events_of_mlflow_that_tell_of_no_run(site: Site, document: dict[str, Any]):
    status, answer = site.mlflow(document)
    assert (status, answer["status"]) == (200, "ignored")
    if document["entity"] == "model_version":
        assert answer["reason"].startswith("no run made this version of the model, so it has no")
    else:
        assert answer["reason"] == "it announces no run"
    assert site.queued == []


def test_what_was_ignored_may_be_sent_again(site: Site, tmp_path: Path):
    """Regression: it was refused as received before, for a month, by the policy that was mended for it."""
    for _ in range(2):
        status, answer = site.wandb({"run": "team/unknown/abc123"})
        assert (status, answer["reason"]) == (200, "no policy covers it")
        assert site.mlflow(created(None))[0] == 200
    path = tmp_path / "mended.yaml"
    path.write_text("policies: [{name: mended, runs: wandb:team/unknown, baseline: {newest: {}}}]")
    site.server.receiver = replace(site.receiver, policies=load_policies(path).policies)
    assert site.wandb({"run": "team/unknown/abc123"})[0] == 202
    assert site.wandb({"run": "team/unknown/abc123"})[0] == 409
    assert site.queued == [("mended", "wandb:team/unknown/abc123")]


@pytest.mark.parametrize(
    ("send", "reason"),
    [
        (lambda site: site.wandb({"run": "team/digits/x"}, secret="guessed"), "does not match the body"),
        (lambda site: site.wandb(b"this is no JSON", secret="guessed"), "does not match the body"),
        (lambda site: site.post("/wandb", b"{}", {}), "the header `X-Wandb-Signature` is missing"),
        (
            lambda site: site.post("/mlflow", b"{}", {"X-MLflow-Signature": "v1,x"}),
            "`X-MLflow-Delivery-Id` is missing",
        ),
        (lambda site: site.mlflow(created("a" * 32), at=time.time() - 400), "more than 300 seconds"),
        (lambda site: site.mlflow(created("a" * 32), at=time.time() + 400), "more than 300 seconds"),
    ],
    ids=["guessed", "before the body is read", "none", "without a delivery", "old", "of the future"],
)
def test_other_signatures_are_refused(site: Site, send: Callable[[Site], tuple[int, object]], reason: str):
    assert send(site)[0] == 401
    assert site.queued == []
    [refused] = site.heard.events("delivery-refused")
    assert refused["status"] == 401
    assert reason in refused["reason"]


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"this is no JSON",
        b"[]",
        b'"text"',
        b"{}",
        b"\xff\xfe",
        b"[" * 50_000,
        b"1" * 5_000,
        b'{"run": 5}',
        b'{"run": "team/digits/x", "artifact": "team/digits/a:v1"}',
        b'{"run": "team/digits"}',
        b'{"run": "team/digits/x:v1"}',
        b'{"run": "../../etc/passwd"}',
        b'{"run": "team/digits/.."}',
        b'{"run": "https://host/team/digits/x"}',
        b'{"run": "team/digits/x\\n"}',
        b'{"run": "team/digits/x y"}',
        b'{"run": "team/digits/x\\u0000"}',
        b'{"run": "team/digits/x\\u0027 OR 1=1"}',
        b'{"run": "team/digits/\\u0445"}',
        b'{"run": "team\\u2044digits\\u2044x"}',
        b'{"run": "team/digits/\\ud800"}',
        b'{"run": "team/digits/x", "run": "../x"}',
        b'{"artifact": "team/digits/a"}',
        b'{"artifact": "team/digits/a:v1:v2"}',
        b'{"artifact": "team/digits/a:${alias}"}',
        b'{"artifact": ["team/digits/a:v1"]}',
    ],
    ids=lambda body: body[:30].decode("latin-1"),
)
def test_malformed_bodies_of_wandb(site: Site, body: bytes):
    assert site.wandb(body)[0] == 400
    assert site.queued == []


@pytest.mark.parametrize(
    "run_id", [5, "a/b", "../x", "x" * 65, "a b", "ü", ["x"], {"a": 1}, "-rf", "a\0", "a'--", "а" * 32]
)
def test_malformed_ids_of_mlflow(site: Site, run_id: object):
    assert site.mlflow(created(run_id))[0] == 400
    assert site.mlflow({**created("x"), "data": []}, delivery="delivery-2")[0] == 400
    assert site.queued == []


def test_a_kind_whose_secret_is_not_set(tmp_path: Path):
    site = Site(tmp_path)
    site.server.__exit__()
    receiver = Receiver([], site.queue, Secrets(wandb=None, mlflow=MLFLOW), site.heard.log)
    assert receiver.take("/wandb", {}, b"{}")[0] == 404


def test_a_queue_that_cannot_be_written_to_lets_the_sender_try_again(site: Site):
    site.queue._file.busy = 0.05
    with Queue(site.queue.folder)._file.transaction():
        assert site.wandb({"run": "team/digits/x"})[0] == 503
    assert site.wandb({"run": "team/digits/x"})[0] == 202


def test_a_burst(site: Site):
    """200 at once are all taken, each once, and answered soon."""
    began = time.monotonic()
    with ThreadPoolExecutor(100) as senders:
        answers = list(senders.map(lambda number: site.wandb({"run": f"team/digits/r{number}"}), range(200)))
    assert [status for status, _ in answers] == [202] * 200
    assert sorted(site.queued) == sorted(("project", f"wandb:team/digits/r{number}") for number in range(200))
    assert time.monotonic() - began < 60


@settings(max_examples=cases(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_any_signed_name_is_queued_as_it_is_or_refused(site: Site, text: str):
    status, _ = site.wandb({"run": text, "nonce": time.time_ns()})
    assert status in (200, 202, 400)
    assert all(candidate.startswith("wandb:team/digits/") for _, candidate in site.queued)


def test_secrets_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    for name in (WANDB_SECRET, MLFLOW_SECRET):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="no secret is set"):
        Secrets.of_environment()
    for secret, problem in (
        ("short", "has 5 characters"),
        (f"{WANDB}\n", "begins or ends with white space"),
        (f"{WANDB}\udcff", f"`{WANDB_SECRET}` is not UTF-8 text"),  # as a byte that is not UTF-8 is read
    ):
        monkeypatch.setenv(WANDB_SECRET, secret)
        with pytest.raises(InputError, match=problem) as caught:
            Secrets.of_environment()
        assert "`short`" not in str(caught.value)
        assert WANDB not in str(caught.value)
        assert caught.value.__cause__ is None
    monkeypatch.setenv(WANDB_SECRET, WANDB)
    assert Secrets.of_environment() == Secrets(WANDB, None)
    assert WANDB not in repr(Secrets.of_environment())
