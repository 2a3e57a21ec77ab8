"""Three users of a server with basic authentication: MLflow's permissions hold on every byte."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from support.mlflow_server import ADMIN, MlflowServer, add_user, allow, ask, basic_auth
from support.mlflow_stores import MlflowStore
from support.server_client import API, Client, predictions

pytestmark = pytest.mark.tracker

PASSWORDS = {"admin": ADMIN[1], "reader": "the-readers-own-1", "nobody": "nobodys-own-12"}


@dataclass(frozen=True)
class Guarded:
    """A server with users, and an experiment that the admin made and the reader may read."""

    server: MlflowServer
    store: MlflowStore
    experiment_id: str
    runs: tuple[str, str]

    def user(self, name: str) -> Client:
        return Client(self.server.uri, (name, PASSWORDS[name]))

    @property
    def order(self) -> dict[str, object]:
        return {"kind": "compare", "runs": list(self.runs)}


@pytest.fixture(
    scope="module",
    params=["true", pytest.param("false", marks=pytest.mark.nightly)],
    ids="fail-closed={}".format,
)
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    env = {**basic_auth(folder), "MLFLOW_BASIC_AUTH_FAIL_CLOSED": request.param}
    with MlflowServer.with_pages(folder, env) as server:
        store = MlflowStore(server.uri.replace("://", f"://admin:{PASSWORDS['admin']}@"))
        experiment_id = store.experiment("secret")
        runs = tuple(
            store.run_with_predictions("secret", name, predictions(seed, rate=rate), artifact="p.csv")
            for seed, (name, rate) in enumerate([("baseline", 0.3), ("candidate", 0.1)])
        )
        for name in ("reader", "nobody"):
            add_user(server, name, PASSWORDS[name])
        allow(server, experiment_id, "reader")
        yield Guarded(server, store, experiment_id, (runs[0], runs[1]))


@pytest.mark.slow
def test_user_without_access_gets_403_on_every_byte(guarded: Guarded) -> None:
    """Regression: a server that read runs with its own rights showed them to everybody."""
    nobody = guarded.user("nobody")
    job = guarded.user("reader").begin(guarded.order)
    assert guarded.user("reader").wait(job)["state"] == "done"
    leaderboard = {"kind": "leaderboard", "experiment": guarded.experiment_id}
    for order in (
        guarded.order,
        {**guarded.order, "log": True},
        {"kind": "choices", "runs": list(guarded.runs)},
        {"kind": "choices", "experiment": guarded.experiment_id},
        {"kind": "leaderboard", "runs": list(guarded.runs)},
        {"kind": "leaderboard", "runs": [], "experiment": guarded.experiment_id, "baseline": guarded.runs[0]},
        leaderboard,
    ):
        answer = nobody.post(order)
        assert answer.status_code == 403, (order, answer.text)
        for secret in ("candidate", "baseline", "Dev-0"):
            assert secret not in answer.text
    for other in (nobody, guarded.user("admin")):  # of no use to anybody else, not even to an admin
        for path in ("jobs", "changed"):
            assert other.get(f"{API}/{path}", id=job).status_code == 404


@pytest.mark.extended
def test_pages_hold_nothing_of_any_run(guarded: Guarded) -> None:
    nobody = guarded.user("nobody")
    for page in ("compare", "leaderboard"):
        answer = nobody.get(f"/trackperm/{page}", runs=",".join(guarded.runs))
        assert answer.status_code == 200
        for secret in ("candidate is", "Dev-0", "secret"):
            assert secret not in answer.text


@pytest.mark.extended
def test_without_a_password(guarded: Guarded) -> None:
    anonymous = Client(guarded.server.uri)
    wrong = Client(guarded.server.uri, ("reader", "a wrong password"))
    for who in (anonymous, wrong):
        assert who.post(guarded.order).status_code == 401
        for path in (f"{API}/jobs", f"{API}/changed", "/trackperm/compare", "/trackperm/leaderboard"):
            assert who.get(path, id="0" * 32).status_code == 401


@pytest.mark.extended
def test_reader_compares_and_does_not_log_but_the_admin_does(guarded: Guarded) -> None:
    reader = guarded.user("reader")
    job = reader.begin(guarded.order)
    result = reader.wait(job)["result"]
    assert result["verdict"] == "better"
    assert reader.changed(job)["total"] == result["changed"]["total"] > 0
    assert reader.result({"kind": "leaderboard", "experiment": guarded.experiment_id})["rows"]
    before = len(guarded.store.comparisons("secret"))
    tried = reader.result({**guarded.order, "log": True, "alpha": 0.025})
    assert tried["verdict"] == "better"
    assert tried["logged"] is None
    assert "you may read these runs but not write" in tried["not_logged"]["message"]
    assert "permission to edit" in tried["not_logged"]["hint"]
    assert "--no-log" not in str(tried["not_logged"])
    board = reader.result({"kind": "leaderboard", "runs": list(guarded.runs), "log": True})
    assert board["rows"]
    assert "not write" in board["not_logged"]["message"]
    assert len(guarded.store.comparisons("secret")) == before
    logged = guarded.user("admin").result({**guarded.order, "log": True})["logged"]
    assert logged["created"]
    assert guarded.store.get(logged["id"]).data.tags["trackperm.state"] == "done"


def forbid(server: MlflowServer, experiment_id: str, name: str) -> None:
    """Take a user's permission away, in the way of this version of MLflow."""
    old, new = "2.0/mlflow/experiments/permissions/update", "3.0/mlflow/users/permissions/revoke"
    said = {"experiment_id": experiment_id, "username": name, "permission": "NO_PERMISSIONS"}
    answers = [
        ask(server, old, "PATCH", **said),
        ask(server, new, resource_type="experiment", resource_id=experiment_id, username=name),
    ]
    assert 200 in [answer.status_code for answer in answers], [answer.text for answer in answers]


def shared(guarded: Guarded, experiment: str, user: tuple[str, str]) -> tuple[str, list[str]]:
    """Log two runs that a new user may read; returns their experiment and them."""
    experiment_id = guarded.store.experiment(experiment)
    runs = [
        guarded.store.run_with_predictions(experiment, name, predictions(seed), artifact="p.csv")
        for seed, name in enumerate("ab")
    ]
    add_user(guarded.server, *user)
    allow(guarded.server, experiment_id, user[0])
    return experiment_id, runs


@pytest.mark.extended
def test_results_are_withdrawn_with_the_right_to_read(guarded: Guarded) -> None:
    """Regression: they stayed readable for an hour."""
    user = ("former", "the-formers-own-1")
    experiment_id, runs = shared(guarded, "until withdrawn", user)
    former = Client(guarded.server.uri, user)
    orders = [{"kind": "compare", "runs": runs}, {"kind": "leaderboard", "experiment": experiment_id}]
    jobs = [former.begin(order) for order in orders]
    for job in jobs:
        assert former.wait(job)["state"] == "done"
    assert former.changed(jobs[0])["total"] > 0
    forbid(guarded.server, experiment_id, "former")
    for job in jobs:
        for path in ("jobs", "changed"):
            answer = former.get(f"{API}/{path}", id=job)
            assert answer.status_code == 403, answer.text
            assert "MLflow refuses" in answer.json()["error"]["message"]
            assert "Dev-0" not in answer.text
    allow(guarded.server, experiment_id, "former")
    assert former.state(jobs[0])["state"] == "done"


def state_after_a_new_password(guarded: Guarded, name: str) -> str:
    """Return the recorded state of a user's job behind four others, during which the password was changed."""
    user = (name, f"the-{name}s-own-1")
    _, runs = shared(guarded, f"for {name}", user)
    guest = Client(guarded.server.uri, user)
    busy = [guarded.user("admin").begin(guarded.order) for _ in range(4)]
    job = guest.begin({"kind": "compare", "runs": runs})
    another = {"username": name, "password": "another-one-123"}
    changed = ask(guarded.server, "2.0/mlflow/users/update-password", "PATCH", **another)
    assert changed.status_code == 200
    for each in busy:
        guarded.user("admin").wait(each)
    assert guest.get(f"{API}/jobs", id=job).status_code == 401
    time.sleep(1.0)
    (record,) = guarded.server.folder.glob(f"trackperm-server-*/{job}/state.json")
    return record.read_text()


@pytest.mark.slow
def test_permission_that_was_taken_away(guarded: Guarded) -> None:
    """What MLflow refuses while a job runs, the job does not get: it reads as the user.

    A job that ended before the password was changed shows nothing, and another one is begun.
    """
    states = (state_after_a_new_password(guarded, name) for name in ("guest", "visitor", "caller"))
    assert any('"failed"' in state for state in states)
