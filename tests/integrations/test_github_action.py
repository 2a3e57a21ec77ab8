"""The composite action: its steps, run in order as a runner runs them, on an MLflow store."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
import yaml
from support.hooked_runs import HookedStore
from support.json_api import Answer, Asked, json_api
from support.local_wheel import local_wheel
from support.processes import ROOT
from support.server_client import predictions
from support.workflow_steps import ActionRun, CompositeAction, interpolations

pytestmark = pytest.mark.tracker

FOLDER = ROOT / "integrations" / "github-action"
HOSTILE = '"; touch pwned; $(touch pwned) `touch pwned` #'
MASKS = {"lines": "x\n::add-mask::y\r\n ::add-mask::z", "within": "##[add-mask]z"}
TOKEN = "token-of-the-job"


@dataclass
class Runner:
    """A runner on which the action is installed, and a store with runs to judge."""

    runs: HookedStore
    action: CompositeAction

    def gate(self, candidate: str, **inputs: str) -> ActionRun:
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        uri = {"tracking-uri": self.runs.store.uri}
        return self.action.run({**uri, "candidate": candidate, **given}, without=("install",))


@pytest.fixture(scope="module")
def action(tmp_path_factory: pytest.TempPathFactory) -> CompositeAction:
    """The action, installed on a runner that pull request 17 has started."""
    folder = tmp_path_factory.mktemp("runner")
    event = folder / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 17}}))
    github = {"token": TOKEN, "event_name": "pull_request"}
    env = {"GITHUB_EVENT_PATH": str(event), "GITHUB_REPOSITORY": "team/digits"}
    action = CompositeAction(FOLDER / "action.yml", folder, github, env)
    inputs = {"candidate": "", "package": str(local_wheel(folder)), "python": sys.executable}
    installed = action.run(inputs, without=("gate", "comment", "verdict"))
    assert installed.code == 0, installed.printed
    return action


@pytest.fixture(scope="module")
def runner(action: CompositeAction, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    runs = HookedStore.local(tmp_path_factory.mktemp("store"), action.workspace)
    policy = runs.policy_file("pull-request", tracking_uri=None, runs=[])
    policy.rename(action.workspace / "trackperm.yaml")
    runs.baseline()
    runs.finished("same", seed=1)
    runs.finished("worse", rate=0.6)
    runs.finished(HOSTILE, rate=0.6)
    runs.few("few")
    return Runner(runs, action)


def cases(run: ActionRun) -> list[ET.Element]:
    return list(ET.parse(Path(run.outputs["reports"], "junit.xml")).getroot().iter("testcase"))


def test_scripts_contain_no_expression():
    definition = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
    for step in definition["runs"]["steps"]:
        assert not interpolations(step["run"]), step["id"]
        assert "${{" not in step["run"], step["id"]


@pytest.mark.extended
@pytest.mark.parametrize(("name", "code"), [("same", 0), (HOSTILE, 1)])
def test_files(action: CompositeAction, name: str, code: int):
    policy = {"name": "files", "baseline": {"run": "base.parquet"}}
    (action.workspace / "files.yaml").write_text(yaml.safe_dump({"policies": [policy]}))
    pl.DataFrame(predictions(1)).write_parquet(action.workspace / "base.parquet")
    columns = predictions(1) if code == 0 else predictions(2, rate=0.6)
    pl.DataFrame(columns).write_parquet(action.workspace / f"{name}.parquet")
    inputs = {"candidate": f"{name}.parquet", "policy": "files.yaml"}
    run = action.run(inputs, without=("install",))
    assert (run.code, run.outputs["exit-code"]) == (code, str(code)), run.printed
    assert run.summary.read_text().startswith("<!-- trackperm gate: files -->")
    assert not [*action.workspace.glob("pwned*"), *action.temp.rglob("pwned*")]


@pytest.mark.slow
def test_pass(runner: Runner):
    run = runner.gate("mlflow:digits/same")
    assert (run.code, run.ran) == (0, ["gate", "verdict"]), run.printed
    assert {**run.outputs, "reports": ""} == {"outcome": "pass", "exit-code": "0", "reports": ""}
    assert "✅ pull-request: pass" in run.summary.read_text()
    assert "::notice title=trackperm pull-request::accuracy" in run.printed
    assert run.commands[0::2] == ["stop-commands", "notice"]
    [case] = cases(run)
    assert case.find("failure") is None
    assert len(runner.runs.compared()) == 1


@pytest.mark.slow
def test_regression(runner: Runner):
    run = runner.gate("mlflow:digits/worse", log="false", name="pull-request")
    assert run.code == 1, run.printed
    assert (run.outputs["outcome"], run.outputs["exit-code"]) == ("fail", "1")
    assert "❌ pull-request: fail" in run.summary.read_text()
    assert "\n::error title=trackperm pull-request::accuracy: the candidate is significantly" in run.printed
    [case] = cases(run)
    assert case.find("failure") is not None
    written = Path(run.outputs["reports"])
    assert json.loads((written / "gate.json").read_text())["logged"] == []
    assert (written / "gate.md").read_text() == run.summary.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("allowed", "code"), [("false", 4), ("true", 0)])
def test_undecided(runner: Runner, allowed: str, code: int):
    run = runner.gate("mlflow:digits/few", log="false", allow_undecided=allowed)
    assert run.code == code, run.printed
    assert (run.outputs["outcome"], run.outputs["exit-code"]) == ("undecided", "4")
    assert "::warning title=trackperm pull-request::" in run.printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inputs", "code", "said"),
    [
        ({"candidate": "mlflow:digits/none-such"}, 2, "none-such"),
        ({"candidate": "mlflow:digits/same", "policy": "other.yaml"}, 2, "other.yaml"),
        ({"candidate": "mlflow:digits/same", "tracking_uri": "http://127.0.0.1:9"}, 3, "127.0.0.1:9"),
    ],
    ids=["no-candidate", "no-policy", "no-tracker"],
)
def test_what_cannot_be_compared_says_why(runner: Runner, inputs: dict[str, str], code: int, said: str):
    run = runner.gate(**inputs)
    assert run.code == code, run.printed
    assert (run.outputs["outcome"], run.outputs["exit-code"]) == ("error", str(code))
    assert said in run.printed
    assert "\n::error title=trackperm" in f"\n{run.printed}"
    assert "Traceback" not in run.printed


@pytest.mark.slow
@pytest.mark.parametrize("hostile", ["candidate", "baseline", "policy", "name", "tracking_uri"])
def test_a_hostile_input_is_text(runner: Runner, hostile: str):
    values = {
        "candidate": f"mlflow:digits/{HOSTILE}",
        "baseline": f"mlflow:digits/{HOSTILE}",
        "tracking_uri": f"http://127.0.0.1:9/{HOSTILE}",
    }
    inputs = {"candidate": "mlflow:digits/same", "log": "false", hostile: values.get(hostile, HOSTILE)}
    run = runner.gate(**inputs)
    # the run of that name is significantly worse; as a baseline it is one that is beaten
    assert run.code == {"candidate": 1, "baseline": 0, "tracking_uri": 3}.get(hostile, 2), run.printed
    assert not [*runner.action.workspace.glob("pwned*"), *runner.action.temp.rglob("pwned*")]
    assert not Path("pwned").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hostile", "notation"),
    [("candidate", "lines"), ("candidate", "within"), ("policy", "within"), ("name", "lines")],
)
def test_a_hostile_input_cannot_be_a_workflow_command(runner: Runner, hostile: str, notation: str):
    run = runner.gate(**{"candidate": "mlflow:digits/same", "log": "false", hostile: MASKS[notation]})
    assert run.code == 2
    assert "add-mask" in run.printed
    first, token, *rest = run.commands
    assert (first, len(token), rest) == ("stop-commands", 32, ["error"]), run.printed


@dataclass
class Comments:
    """A stand-in for GitHub's API of comments, by its documentation."""

    found: list[dict[str, Any]] = field(default_factory=list)
    is_refusing: bool = False
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def comments(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Comments]:
    state = Comments()
    place = "/repos/team/digits/issues"

    def answer(asked: Asked) -> Answer:
        state.asked.append(f"{asked.method} {asked.path}")
        if asked.headers["Authorization"] != f"Bearer {TOKEN}" or state.is_refusing:
            return 403, {"message": "Resource not accessible by integration"}
        if asked.method == "GET" and asked.path.startswith(f"{place}/17/comments?per_page=100&page="):
            page = int(asked.path.rpartition("=")[2])
            return 200, state.found[100 * (page - 1) : 100 * page]
        if (asked.method, asked.path) == ("POST", f"{place}/17/comments"):
            made = {"id": len(state.found), "user": {"type": "Bot"}, "body": asked.data["body"]}
            state.found.append(made)
            return 201, made
        if asked.method == "PATCH" and asked.path.startswith(f"{place}/comments/"):
            state.found[int(asked.path.rpartition("/")[2])]["body"] = asked.data["body"]
            return 200, {}
        return 404, {}

    with json_api(answer) as url:
        monkeypatch.setenv("GITHUB_API_URL", url)
        yield state


@pytest.mark.slow
def test_the_pull_request_has_one_comment_that_is_rewritten(runner: Runner, comments: Comments):
    marker = "<!-- trackperm gate: pull-request -->"
    # what a person wrote is left alone, whatever it begins with; ours is on a later page
    comments.found = [
        {"id": i, "user": {"type": "User"}, "body": f"{marker}\nwritten by a person"} for i in range(100)
    ]
    first = runner.gate("mlflow:digits/worse", log="false", comment="true")
    assert (first.code, first.ran) == (1, ["gate", "comment", "verdict"]), first.printed
    assert len(comments.found) == 101
    assert comments.found[-1]["body"] == first.summary.read_text()
    assert comments.found[-1]["body"].startswith(marker)
    second = runner.gate("mlflow:digits/same", log="false", comment="true")
    assert second.code == 0, second.printed
    assert comments.asked[-1] == "PATCH /repos/team/digits/issues/comments/100"
    assert "pull-request: pass" in comments.found[-1]["body"]
    assert len(comments.found) == 101


@pytest.mark.slow
def test_a_comment_that_is_refused_decides_nothing(runner: Runner, comments: Comments):
    comments.is_refusing = True
    run = runner.gate("mlflow:digits/same", log="false", comment="true")
    assert run.code == 0, run.printed
    assert (
        "::warning title=trackperm gate::the pull request has got no comment: HTTP Error 403" in run.printed
    )
    assert TOKEN not in run.printed


def test_the_example_names_inputs_and_outputs_that_there_are():
    text = (FOLDER / "example-workflow.yml").read_text(encoding="utf-8")
    [job] = yaml.safe_load(text)["jobs"].values()
    [step] = [step for step in job["steps"] if step.get("id") == "gate"]
    definition = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
    assert set(step["with"]) <= set(definition["inputs"])
    used = {name.partition("steps.gate.outputs.")[2] for name in interpolations(text)}
    assert {name.partition(" ")[0] for name in used if name} <= set(definition["outputs"])
    for each in job["steps"]:
        assert not interpolations(each.get("run", "")), "no expression in a script"


def test_what_is_installed_by_default_is_the_action_s_own_trackperm():
    assert (FOLDER / ".." / ".." / "pyproject.toml").is_file()
    definition = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
    [install] = [step for step in definition["runs"]["steps"] if step["id"] == "install"]
    assert "$GITHUB_ACTION_PATH/../..[mlflow]" in install["run"]
