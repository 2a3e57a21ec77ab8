"""The recipe for W&B's automations: its payload as W&B fills it in, to a real receiver, and its script."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
from support.hooked_runs import HookedStore
from support.processes import ROOT
from support.receivers import Site, listening
from support.receiving import Receiving
from support.server_client import predictions
from support.wandb_projects import WandbProjects, log_columns, logged_run
from support.wandb_standin import Standin, environment

pytestmark = pytest.mark.tracker

FOLDER = ROOT / "integrations" / "wandb-automation"
DOCUMENTED = {
    "project_name",
    "entity_name",
    "event_type",
    "event_author",
    "alias",
    "tag",
    "artifact_collection_name",
    "artifact_version",
    "artifact_version_string",
    "ACCESS_TOKEN",
    "SECRET",
}
PAYLOAD = (FOLDER / "payload.json").read_text(encoding="utf-8")


def filled_in(artifact: str) -> bytes:
    """Return the payload as it is sent: W&B replaces variables, and knows no others than these."""
    values = {"artifact_version_string": artifact, "event_type": "CREATE_ARTIFACT"}
    return re.sub(r"\$\{(\w+)\}", lambda found: values[found[1]], PAYLOAD).encode()


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.spec_from_file_location("create_automation", FOLDER / "create_automation.py")
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_payload_has_only_documented_variables():
    assert set(re.findall(r"\$\{(\w+)\}", PAYLOAD)) <= DOCUMENTED
    assert "$" not in re.sub(r"\$\{\w+\}", "", PAYLOAD)


def test_the_payload_is_taken(tmp_path: Path):
    site = Site(tmp_path)
    with listening(site.server):
        assert site.wandb(filled_in("team/digits/predictions:v3"))[0] == 202
        assert site.wandb(PAYLOAD.encode())[0] == 400, "nothing was filled in"
    assert site.queued == [("project", "wandb:team/digits/predictions:v3")]


def test_the_automation(script: ModuleType):
    """Put together by W&B's own client: event, scope, address and payload."""
    from wandb.automations import WebhookIntegration
    from wandb.automations.scopes import _ArtifactSequenceScope

    collection = _ArtifactSequenceScope(id="QXJ0", name="predictions")
    webhook = WebhookIntegration(id="SW50", name="trackperm", url_endpoint="https://runs.example/wandb")
    made = script.automation(collection, webhook)
    assert made.name == "trackperm"
    assert made.event.event_type.value == "CREATE_ARTIFACT"
    assert made.scope.name == "predictions"
    assert made.action.integration_id == "SW50"
    assert made.action.request_payload == json.loads(PAYLOAD)


@pytest.mark.slow
def test_what_is_announced_is_compared(standin: Standin, tmp_path: Path):
    """A signed payload, a receiver as a process, and the comparison in the project."""
    project, runs = "announced", {}
    for seed, role in enumerate(["baseline", "candidate"]):
        with logged_run(project, role, standin=standin) as run:
            run.config.update({"role": role})
            log_columns(run, predictions(seed), "predictions.parquet")
        runs[role] = str(run.id)
    baseline = {"run": f"wandb:team/{project}/{runs['baseline']}"}
    policy = HookedStore(standin.url, tmp_path).policy_file(runs=f"wandb:team/{project}", baseline=baseline)
    with Receiving(tmp_path, policy, **environment(tmp_path, standin)) as receiving:
        announced = f"team/{project}/predictions-{runs['candidate']}:v0"
        assert receiving.sender.wandb(filled_in(announced))[0] == 202
        [compared] = receiving.wait_for(1, "compared")
        assert compared["candidate"] == f"wandb:team/{project}/{runs['candidate']}"
        assert receiving.program.stop() == 0
        assert environment(tmp_path)["WANDB_API_KEY"] not in receiving.program.text
    assert len(WandbProjects(standin).comparisons(f"team/{project}")) == 1
