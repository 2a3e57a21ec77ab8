"""One server, one user: what jobs come to, and what is refused."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from uuid import uuid4

import pytest
from support.mlflow_server import MlflowServer
from support.mlflow_stores import MlflowStore
from support.processes import workers_of
from support.server_client import API, Client, predictions
from support.waiting import wait_until

import trackperm

pytestmark = [pytest.mark.tracker, pytest.mark.contract]

RATES = {"baseline": 0.3, "candidate": 0.1, "third": 0.2}
STORED = "counts: {right: prediction == label, n: 1}\nscore: right / n\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    folder = tmp_path_factory.mktemp("trackperm-server")
    with MlflowServer.with_pages(folder, {"TRACKPERM_ARTIFACT_MB": "4"}) as server:
        yield server


@pytest.fixture(scope="module")
def store(server: MlflowServer) -> MlflowStore:
    return MlflowStore(server.uri)


@pytest.fixture(scope="module")
def client(server: MlflowServer) -> Client:
    return Client(server.uri)


@pytest.fixture
def experiment() -> str:
    return f"digits-{uuid4().hex[:8]}"


def log_runs(store: MlflowStore, experiment: str) -> list[str]:
    return [
        store.run_with_predictions(experiment, name, predictions(seed, rate=rate), artifact="predictions.csv")
        for seed, (name, rate) in enumerate(RATES.items())
    ]


@pytest.fixture
def runs(store: MlflowStore, experiment: str) -> list[str]:
    return log_runs(store, experiment)


@pytest.fixture(scope="module")
def shared(store: MlflowStore) -> list[str]:
    """Three runs for all tests that write nothing."""
    return log_runs(store, "only read")


def compare(runs: list[str], **choices: object) -> dict[str, object]:
    return {"kind": "compare", "runs": runs[:2], **choices}


def test_comparison_is_that_of_the_library(client: Client, server: MlflowServer, shared: list[str]) -> None:
    order = compare(shared, alternative="greater", alpha=0.01, statistic="f1", parameters={"positive": 1})
    state = client.wait(client.begin(order))
    expected = trackperm.compare(
        f"mlflow:{shared[0]}",
        f"mlflow:{shared[1]}",
        "f1",
        alternative="greater",
        alpha=0.01,
        parameters={"positive": 1},
        tracking_uri=server.uri,
    )
    assert state["error"] is None
    assert state["bytes"] > 0
    assert state["done"] == state["total"]
    assert state["result"]["comparison"] == expected.to_dict()
    assert state["result"]["logged"] is None


def test_changed_examples_are_paged_searched_and_filtered(
    client: Client, server: MlflowServer, shared: list[str]
) -> None:
    job = client.begin(compare(shared))
    client.wait(job)
    found = trackperm.compare(f"mlflow:{shared[0]}", f"mlflow:{shared[1]}", tracking_uri=server.uri)
    ids = found.discordant.get_column("id").to_list()
    everything = client.changed(job, limit=500)
    place = everything["columns"].index("id")
    assert [row[place] for row in everything["rows"]] == ids
    assert everything["total"] == everything["matching"] == len(ids)
    pages = [client.changed(job, offset=offset, limit=7)["rows"] for offset in range(0, len(ids), 7)]
    assert list(chain.from_iterable(pages)) == everything["rows"]
    for direction, number in (("better", found.n_better), ("worse", found.n_worse)):
        page = client.changed(job, direction=direction, limit=500)
        assert page["matching"] == number
        assert {row[0] for row in page["rows"]} == {direction}
    searched = client.changed(job, search=ids[3].upper())
    assert [row[place] for row in searched["rows"]] == [ids[3]]
    assert client.changed(job, search="%")["matching"] == 0
    assert client.get(f"{API}/changed", id=job, limit=501).status_code == 400
    assert client.get(f"{API}/changed", id=job, offset=-1).status_code == 400


def test_choices(client: Client, store: MlflowStore, experiment: str, runs: list[str]) -> None:
    store.log_columns(runs[0], predictions(0), "only_in_one.csv")
    tag = "trackperm.statistic."
    experiment_id = store.experiment(experiment)
    store.client.set_experiment_tag(experiment_id, f"{tag}share_right", STORED)
    store.client.set_experiment_tag(experiment_id, f"{tag}broken", "score: 1 +")
    gone = store.run(experiment, "deleted")
    store.client.delete_run(gone)
    result = client.result({"kind": "choices", "runs": [*runs, gone]})
    assert [(run["id"], run["name"]) for run in result["runs"]] == list(zip(runs, RATES, strict=True))
    assert result["runs"][0]["url"] == f"{client.uri}/#/experiments/{experiment_id}/runs/{runs[0]}"
    assert result["artifacts"] == ["predictions.csv"]
    assert [missing["run"] for missing in result["missing"]] == [gone]
    stored = {each["name"]: each for each in result["statistics"] if each["origin"] != "built in"}
    assert set(stored) == {"share_right", "broken"}
    assert stored["share_right"]["problem"] is None
    assert "broken" in stored["broken"]["problem"]
    of_experiment = client.result({"kind": "choices", "experiment": experiment_id})
    assert {run["id"] for run in of_experiment["runs"]} == set(runs)


@pytest.mark.extended
def test_statistic_of_the_experiment(
    client: Client, store: MlflowStore, experiment: str, runs: list[str]
) -> None:
    name = "trackperm.statistic.share_right"
    store.client.set_experiment_tag(store.experiment(experiment), name, STORED)
    stored, built_in = (
        client.result(compare(runs, statistic=name))["comparison"] for name in ("share_right", "accuracy")
    )
    assert stored["pvalue"] == built_in["pvalue"]
    assert "`other` is not a statistic" in client.error(compare(runs, statistic="other"))["message"]


@pytest.mark.extended
def test_leaderboard_is_that_of_the_library(
    client: Client, server: MlflowServer, store: MlflowStore, experiment: str, runs: list[str]
) -> None:
    of_runs = client.result({"kind": "leaderboard", "runs": runs, "baseline": runs[0], "correction": "by"})
    expected = trackperm.leaderboard(
        [f"mlflow:{run}" for run in runs],
        baseline=f"mlflow:{runs[0]}",
        correction="by",
        tracking_uri=server.uri,
    )
    assert of_runs["board"] == expected.to_dict()
    of_experiment = client.result({"kind": "leaderboard", "experiment": store.experiment(experiment)})
    assert {row["id"] for row in of_experiment["rows"]} == set(runs)


@pytest.mark.extended
def test_logging_twice_updates_the_same_run(
    client: Client, store: MlflowStore, experiment: str, runs: list[str]
) -> None:
    first, second = (client.result(compare(runs, log=True))["logged"] for _ in range(2))
    assert (first["created"], second["created"]) == (True, False)
    assert first["id"] == second["id"]
    assert (first["look"], second["look"]) == (1, 1)
    (logged,) = store.comparisons(experiment)
    assert logged.info.run_id == first["id"]
    assert logged.data.tags["trackperm.state"] == "done"
    assert store.get(runs[1]).data.tags["sig.accuracy"]
    other = client.result(compare(runs, log=True, alpha=0.01))["logged"]
    assert (other["created"], other["look"]) == (True, 2)


@pytest.mark.extended
def test_logged_leaderboard(client: Client, store: MlflowStore, experiment: str, runs: list[str]) -> None:
    result = client.result({"kind": "leaderboard", "runs": runs, "log": True})
    assert result["logged"]["created"]
    (logged,) = store.comparisons(experiment, "leaderboard")
    assert logged.info.run_id == result["logged"]["id"]
    assert "accuracy" in store.description(experiment)


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ({"kind": "compare", "runs": ["a"]}, "`runs`"),
        ({"kind": "compare", "runs": ["a", "../b"]}, "`runs.1`"),
        ({"kind": "compare", "runs": ["a", "b"], "alpha": 2}, "`alpha`"),
        ({"kind": "compare", "runs": ["a", "b"], "statistic": "/etc/passwd.yaml"}, "`statistic`"),
        ({"kind": "compare", "runs": ["a", "b"], "labels": "/etc/passwd"}, "unknown key `labels`"),
        ({"kind": "leaderboard"}, "either runs or an experiment"),
        ({"kind": "publish"}, "expected one of `choices`"),
        ([], "expected keys and values, found a list"),
    ],
)
def test_orders_that_cannot_be_used(client: Client, order: object, said: str) -> None:
    answer = client.post(order)
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


def test_content_that_is_not_taken(client: Client) -> None:
    as_text = client.post({}, headers={"Content-Type": "text/plain"})
    assert (as_text.status_code, "application/json" in as_text.text) == (400, True)
    assert client.post({"kind": "compare", "runs": ["a" * 70_000]}).status_code == 413


def test_runs_that_are_not_there(client: Client, shared: list[str]) -> None:
    answer = client.post(compare([shared[0], uuid4().hex]))
    assert answer.status_code == 404
    assert "not found" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:1"}, 202),  # as MLflow does
        ({"Origin": "OWN"}, 202),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example"}, 403),
    ],
)
def test_requests_of_other_sites(
    client: Client, shared: list[str], headers: dict[str, str], status: int
) -> None:
    named = {name: value.replace("OWN", client.uri) for name, value in headers.items()}
    answer = client.post({"kind": "choices", "runs": shared[:1]}, headers=named)
    assert answer.status_code == status
    if status == 202:
        job = answer.json()["job"]
        client.wait(job)
        assert client.get(f"{API}/jobs", {"Sec-Fetch-Site": "cross-site"}, id=job).status_code == 403


def test_jobs_that_are_not_there(client: Client, server: MlflowServer, shared: list[str]) -> None:
    """Requests of invented pages leave nothing behind: anybody can invent any number."""
    theirs = client.begin({"kind": "choices", "runs": shared[:1]})
    client.wait(theirs)
    for job in ("", "0" * 32, "../../etc", "x", theirs):
        other = Client(server.uri, page=f"made-up-{uuid4().hex}")
        assert other.get(f"{API}/jobs", id=job).status_code == 404
        assert other.get(f"{API}/changed", id=job).status_code == 404
        assert other.cancel(job).status_code == 404
    assert len(list(server.folder.glob("trackperm-server-*/pages/*"))) == 1


@pytest.mark.parametrize("artifact", ["../other/predictions.csv", "..", "%2e%2e/predictions.csv"])
def test_artifact_paths_stay_in_the_run(client: Client, shared: list[str], artifact: str) -> None:
    message = client.error(compare(shared, artifact=artifact))["message"]
    assert "not an artifact path" in message or "Invalid path" in message


@pytest.mark.extended
def test_artifacts_stored_anywhere(client: Client, store: MlflowStore, tmp_path: Path) -> None:
    """The server reads them; nothing depends on where they are."""
    experiment = f"elsewhere-{uuid4().hex[:8]}"
    store.client.create_experiment(experiment, artifact_location=(tmp_path / "outside").as_uri())
    runs = []
    for seed in range(2):
        run_id = store.run(experiment, f"run {seed}")
        target = tmp_path / "outside" / run_id / "artifacts"
        target.mkdir(parents=True)
        columns = predictions(seed)
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        (target / "predictions.csv").write_text("\n".join(lines))
        runs.append(run_id)
    result = client.result(compare(runs, log=True))
    (logged,) = store.comparisons(experiment)
    assert result["logged"]["id"] == logged.info.run_id
    assert (tmp_path / "outside" / logged.info.run_id / "artifacts" / "trackperm").is_dir()


def test_large_artifact_is_refused(client: Client, store: MlflowStore, experiment: str) -> None:
    columns = {**predictions(0, n=5000), "text": [uuid4().hex * 30 for _ in range(5000)]}
    runs = [store.run_with_predictions(experiment, name, columns, artifact="p.csv") for name in "ab"]
    error = client.error(compare(runs))
    assert "at most 4 MB" in error["message"]
    assert "TRACKPERM_ARTIFACT_MB" in error["hint"]


@pytest.fixture(scope="module")
def large(store: MlflowStore) -> dict[str, object]:
    """The comparison of two runs, which takes a while."""
    runs = [
        store.run_with_predictions("large", name, predictions(seed, 200_000), artifact="p.parquet")
        for seed, name in enumerate("ab")
    ]
    return compare(runs)


@pytest.mark.slow
def test_killed_process(client: Client, server: MlflowServer, large: dict[str, object]) -> None:
    client.result(large)
    job = client.begin_running(large)
    for process in workers_of(server.process):
        os.kill(process, signal.SIGKILL)
    state = client.wait(job)
    assert state["state"] == "failed"
    assert "signal 9" in state["error"]["message"]
    assert "try again" in state["error"]["hint"]
    assert client.result(large)["kind"] == "compare"


@pytest.mark.slow
def test_others_are_answered_meanwhile(client: Client, large: dict[str, object]) -> None:
    job = client.begin(large)
    slowest, n_answers, first = 0.0, 0, time.monotonic()
    while client.state(job)["state"] in ("waiting", "running"):
        begun = time.monotonic()
        assert client.get("/health").status_code == 200
        slowest, n_answers = max(slowest, time.monotonic() - begun), n_answers + 1
    assert n_answers > 3
    assert slowest < max(1.0, (time.monotonic() - first) / 3)


@pytest.mark.extended
def test_job_folder_is_private(server: MlflowServer, client: Client, shared: list[str]) -> None:
    client.result({"kind": "choices", "runs": shared})
    (folder,) = server.folder.glob("trackperm-server-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    # the answer comes before the job's process has cleared up
    wait_until(lambda: not list(folder.glob("*/scratch")), 30.0)
