"""Comparisons asked for as a page does: how long until the verdict, and what others wait for meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from benchmarks.summary import Row
from benchmarks.workloads import seconds
from support.mlflow_server import MlflowServer
from support.mlflow_stores import MlflowStore
from support.server_client import Client, predictions

pytestmark = pytest.mark.tracker

_LONGEST_TURN, _LONGEST_WAIT = 2.0, 1.0  # seconds between two looks, as in server.js


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[MlflowServer]:
    with MlflowServer(tmp_path_factory.mktemp("server"), app="trackperm") as started:
        yield started


@pytest.mark.parametrize(("n", "limit"), [(10_000, 1.0), (1_000_000, 10.0)])
def test_first_verdict(benchmark, table, server: MlflowServer, tmp_path: Path, n: int, limit: float):
    client, store = Client(server.uri), MlflowStore(server.uri)
    runs = [
        store.run_with_predictions(f"runs of {n}", name, predictions(seed, n), artifact="predictions.parquet")
        for seed, name in enumerate(("baseline", "candidate"), start=1)
    ]
    order = {"kind": "compare", "runs": runs}
    client.result(order)  # the first job starts the process that computes

    waited: list[float] = []

    def page() -> dict[str, object]:
        job = client.begin(order)
        while (state := client.state(job))["state"] in ("waiting", "running"):
            waited.append(seconds(lambda: client.get("/health")))
            time.sleep(0.05)
        return state

    def download() -> None:
        for run_id in runs:
            store.client.download_artifacts(run_id, "predictions.parquet", str(tmp_path))

    state = benchmark.pedantic(page, rounds=3)
    assert state["state"] == "done"
    table.add(
        Row(
            f"verdict on a page, N = {n:,}, warm",
            benchmark.stats.stats.median,
            beside="downloading both artifacts",
            theirs=seconds(download),
            compare="share",
            limit=limit,
            note=f"others are answered within {max(waited):.2g} s meanwhile",
            summary=True,
        )
    )


def test_fifty_visitors_at_once(benchmark, table, server: MlflowServer):
    """Each with a page of its own, and without an account: all wait, nobody is refused."""
    store = MlflowStore(server.uri)
    runs = [
        store.run_with_predictions("visited", name, predictions(seed, 5_000), artifact="predictions.parquet")
        for seed, name in enumerate(("baseline", "candidate"), start=1)
    ]
    order = {"kind": "compare", "runs": runs}

    def visit(number: int) -> float:
        client, pause = Client(server.uri, page=f"the-page-of-visitor-{number}"), 0.1
        begun = time.perf_counter()
        job = client.begin(order)
        while (state := client.state(job))["state"] in ("waiting", "running"):
            time.sleep(pause)
            pause = min(1.3 * pause, _LONGEST_TURN if state["state"] == "waiting" else _LONGEST_WAIT)
        assert state["state"] == "done"
        return time.perf_counter() - begun

    def visits() -> list[float]:
        with ThreadPoolExecutor(50) as pool:
            return sorted(pool.map(visit, range(50)))

    visits()  # starts the processes
    waited = benchmark.pedantic(visits, rounds=1)
    table.add(
        Row(
            "verdict on a page, N = 5,000, 50 visitors at once: the slowest but two",
            waited[47],
            limit=10.0,
            note=f"median {waited[25]:.2g} s, nobody refused",
            summary=True,
        )
    )
