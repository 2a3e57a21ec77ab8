"""What all tests share: a clean environment, and one server of each tracker where it is asked for."""

from __future__ import annotations

import gc
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.budget import CASES, Measured, cases
from support.mlflow_server import MlflowServer
from support.reference_data import ABSENT
from support.stable_environment import keep_in_place
from support.wandb_offline_runs import OfflineRuns, write_offline_runs
from support.wandb_standin import Standin, environment

keep_in_place()

NOT_BY_DEFAULT = ("extended", "slow", "nightly", "spark", "training")

FEW_COLLECTIONS = (50_000, 20, 100)
"""Thresholds of the garbage collector, which hypothesis has told of each collection: some 4 % of the time."""

SERVICE = "WANDB_SERVICE"
"""Where wandb tells processes of its own service: never restored, for that may have ended."""

REQUIRE_ALL = os.environ.get("TRACKPERM_REQUIRE_ALL") == "1"

# How long an example takes depends on what else the machine does. Where everything must run, each change is
# judged by the same examples; elsewhere each run draws others, and finds what none has found yet.
settings.register_profile(
    "untimed",
    deadline=None,
    max_examples=cases(CASES),
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=REQUIRE_ALL,
)
settings.load_profile("untimed")


@pytest.fixture
def measured(capsys: pytest.CaptureFixture[str]) -> Measured:
    """Show in the terminal what a simulation measured, unless tests run in several processes."""

    def show(*lines: str) -> None:
        with capsys.disabled():
            sys.stdout.write("\n".join(("", *lines, "")))

    return show


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    _fail_if_skipped(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    outcome = yield
    _fail_if_skipped(outcome.get_result())


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make a skip a failure where everything must run, so that nothing is skipped unnoticed.

    TRACKPERM_REFERENCE_DATA=none says that the published data are known not to be there.
    """
    is_known = os.environ.get("TRACKPERM_REFERENCE_DATA") == "none" and ABSENT in str(report.longrepr)
    if REQUIRE_ALL and report.skipped and not is_known and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped although TRACKPERM_REQUIRE_ALL=1: {report.longrepr}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector from modules and tests, which stay and which it would search again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(*FEW_COLLECTIONS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each process whole modules, and one process all tests of the session's server."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class ByModule(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            scope: str = super()._split_scope(nodeid)  # the group, or else the whole id
            return scope.partition("::")[0]

    return ByModule(config, log)


@pytest.hookimpl(tryfirst=True)  # before -m chooses by what is marked here
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs an account; let trackers have habits that are warned of, which else are errors."""
    if not os.environ.get("TRACKPERM_LIVE_WANDB"):
        live = [item for item in items if item.get_closest_marker("live")]
        config.hook.pytest_deselected(items=live)
        items[:] = [item for item in items if item not in live]
    for item in items:
        if "mlflow_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("mlflow_server"))
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("generated")
        if item.get_closest_marker("tracker"):
            for category in ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning"):
                item.add_marker(pytest.mark.filterwarnings(rf"ignore::{category}:(mlflow|wandb)(\.|$)"))
            # wandb leaves its temporary folders to the garbage collector, which `isolated` starts
            item.add_marker(pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning"))
    _leave_all_but_samples(items)


def _leave_all_but_samples(items: list[pytest.Item]) -> None:
    """Of the cases of a test with the mark `sample`, keep so many, evenly spread, by default."""
    cases_of: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sample"):
            cases_of[item.nodeid.partition("[")[0]].append(item)
    for of_test in cases_of.values():
        sample = of_test[0].get_closest_marker("sample")
        if sample.args:
            usual = [item for item in of_test if not any(map(item.get_closest_marker, NOT_BY_DEFAULT))]
            _leave_all_but(*sample.args, usual, "extended")
        if "spark" in sample.kwargs:
            on_spark = [item for item in of_test if item.get_closest_marker("spark")]
            by_day = [item for item in on_spark if not item.get_closest_marker("nightly")]
            _leave_all_but(sample.kwargs["spark"], by_day, "nightly")


def _leave_all_but(number: int, items: list[pytest.Item], mark: str) -> None:
    kept = {i * len(items) // number for i in range(number)}
    for i, item in enumerate(items):
        if i not in kept:
            item.add_marker(mark)


def pytest_sessionfinish() -> None:
    """Let what was frozen between tests be freed; DuckDB else reports leaks."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def isolated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test sees the trackers of the person who runs it, nor what another test left behind."""
    os.environ.pop(SERVICE, None)
    for name in [name for name in os.environ if name.startswith(("MLFLOW_", "WANDB_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    if request.node.get_closest_marker("tracker"):
        folder: Path = request.getfixturevalue("tmp_path")
        monkeypatch.chdir(folder)
        home = request.getfixturevalue("tmp_path_factory").mktemp("wandb-home")
        # a test that names no server reaches none, rather than W&B's
        nobody = {"WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_DIR": str(folder)}
        for name, value in {**environment(home), **nobody}.items():
            monkeypatch.setenv(name, value)
    yield
    os.environ.pop(SERVICE, None)
    if request.node.get_closest_marker("tracker") and "wandb" in sys.modules:
        gc.collect()
        gc.freeze()  # what is left are modules and what fixtures hold, which need not be searched again
    if mlflow := sys.modules.get("mlflow"):
        while mlflow.active_run() is not None:
            mlflow.end_run()
        mlflow.set_tracking_uri(None)
        mlflow.tracking.fluent._active_experiment_id = None


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """Start one real server for the whole session; tests keep to experiments of their own."""
    folder: Path = tmp_path_factory.mktemp("mlflow-server")
    with MlflowServer(folder) as server:
        yield server


@pytest.fixture(scope="session")
def wandb_server() -> Iterator[Standin]:
    """Start one stand-in for W&B's backend; tests keep to projects of their own."""
    with Standin() as server:
        yield server


@pytest.fixture
def standin(wandb_server: Standin, isolated: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    """Lend the stand-in for a test, which fails if the SDK asks for what it knows nothing of."""
    monkeypatch.setenv("WANDB_BASE_URL", wandb_server.url)  # old versions read it in spite of other settings
    yield wandb_server
    wandb_server.mend()
    unmodelled = set(wandb_server.unmodelled)
    wandb_server.unmodelled.clear()
    assert not unmodelled


@pytest.fixture(scope="session")
def offline_runs(tmp_path_factory: pytest.TempPathFactory) -> OfflineRuns:
    """Offline runs that wandb wrote once for the whole session; nobody changes them."""
    return write_offline_runs(tmp_path_factory.mktemp("wandb-offline"))
