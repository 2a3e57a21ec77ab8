"""The flow of Prefect, on Prefect's temporary server: a pass, a regression, a tracker that is down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.hooked_runs import HookedStore
from support.mlflow_server import free_port
from support.mlflow_stores import MlflowStore
from support.recipes import Recipe

pytestmark = [pytest.mark.tracker, pytest.mark.training]

ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
}


class Flow(Recipe):
    """The flow, in a folder with a store that has a baseline."""

    def __init__(self, folder: Path) -> None:
        super().__init__("prefect", folder, {**ENVIRONMENT, "PREFECT_HOME": str(folder / "prefect-home")})
        uri = MlflowStore.local(self.folder).uri
        self.runs = HookedStore(uri, folder, self.folder / "artifacts", "training")
        self.runs.baseline()

    def judges(self, candidate: str) -> subprocess.CompletedProcess[str]:
        """Run the command of the README, with a training that has made `candidate`."""
        (self.folder / "train.py").write_text(f"print('training')\nprint({candidate!r})\n")
        (command,) = (each for each in self.commands() if "flow.py" in each)
        return self.run(command.replace('"python ', f'"{sys.executable} '), seconds=240)


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Flow:
    pytest.importorskip("prefect", reason="Prefect is not installed: `make test-training`")
    return Flow(tmp_path_factory.mktemp("flow"))


def test_a_pass_is_deployed(flow: Flow):
    candidate = flow.runs.finished(seed=1)
    result = flow.judges(f"mlflow:{candidate}")
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"deploying mlflow:{candidate}" in result.stdout
    assert flow.runs.compared() == [f"mlflow:{candidate}"]


def test_a_regression_fails_the_flow_and_is_not_tried_again(flow: Flow):
    candidate = flow.runs.finished(seed=2, rate=0.5)
    result = flow.judges(f"mlflow:{candidate}")
    assert result.returncode != 0
    assert "deploying" not in result.stdout
    assert "the candidate is significantly worse" in result.stdout + result.stderr
    assert "GateError: training: fail" in result.stdout + result.stderr
    assert "Retry 1" not in result.stdout + result.stderr


@pytest.mark.nightly
def test_a_tracker_that_is_down_is_tried_again(flow: Flow):
    script, policy = flow.folder / "flow.py", flow.folder / "trackperm.yaml"
    script.write_text(script.read_text().replace("retries=3", "retries=1").replace("[10, 60, 300]", "[1]"))
    policy.write_text(policy.read_text() + f"    tracking_uri: http://127.0.0.1:{free_port()}\n")
    result = flow.judges("mlflow:" + "a" * 32)
    assert result.returncode != 0
    said = result.stdout + result.stderr
    assert "TrackerError: " in said, said
    assert "Retry 1/1" in said, said
