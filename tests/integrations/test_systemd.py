"""The units of systemd: checked by `systemd-analyze`, and their commands run where the specifiers lead."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from support.hooked_runs import HookedStore
from support.placed import placed
from support.processes import ROOT, run, script
from support.receivers import WANDB, Sender
from support.watchers import Program

from trackperm.automation.queue.queue import Queue
from trackperm.automation.webhooks.receive import WANDB_SECRET

pytestmark = pytest.mark.tracker

FOLDER = ROOT / "integrations" / "systemd"
PROGRAM = "/opt/trackperm/bin/trackperm"
UNITS = ["trackperm-watch", "trackperm-receive"]
MOST_EXPOSED = 20  # tenths; systemd calls it OK below 3.0


class Unit:
    """A unit, on a machine whose folders are in `folder`."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.settings: dict[str, list[str]] = defaultdict(list)
        for line in (FOLDER / f"{name}.service").read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "[")):
                key, _, value = line.partition("=")
                self.settings[key].append(value)
        # what systemd makes before it starts the command
        for setting, root in (("StateDirectory", "S"), ("RuntimeDirectory", "t")):
            for made in self.settings.get(setting, []):
                (folder / root / made).mkdir(parents=True, exist_ok=True)
        (folder / "E" / "trackperm").mkdir(parents=True, exist_ok=True)

    def _resolved(self, text: str) -> str:
        return re.sub(r"%([ESt])", rf"{self.folder}/\1", text)

    @property
    def command(self) -> list[str]:
        [command] = self.settings["ExecStart"]
        return shlex.split(self._resolved(command))

    @property
    def env(self) -> dict[str, str]:
        """What the unit sets, and what its file of credentials does."""
        [file] = self.settings["EnvironmentFile"]
        path = Path(self._resolved(file.removeprefix("-")))
        assert path.exists() or file.startswith("-")
        lines = [self._resolved(each) for each in self.settings["Environment"]]
        lines += path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_the_unit(name: str, tmp_path: Path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = (FOLDER / f"{name}.service").read_text(encoding="utf-8")
    unit = tmp_path / f"{name}.service"
    unit.write_text(placed(text, {PROGRAM: script("trackperm")}), encoding="utf-8")
    verified = run(["systemd-analyze", "verify", "--man=no", unit], timeout=60)
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")
    unit.write_text(text.replace("ProtectSystem", "ProtectSystems"), encoding="utf-8")
    assert "ProtectSystems" in run(["systemd-analyze", "verify", "--man=no", unit], timeout=60).stderr
    unit.write_text(text, encoding="utf-8")
    security = ["systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSED}", unit]
    exposed = run(security, timeout=60)
    assert exposed.returncode == 0, exposed.stdout


@pytest.mark.parametrize("name", UNITS)
def test_units_contain_no_credentials(name: str, tmp_path: Path):
    unit = Unit(name, tmp_path)
    assert all(value.startswith("HOME=") for value in unit.settings["Environment"])
    assert unit.settings["User"] == ["trackperm"], "one name, so that the units share the queue"
    assert unit.settings["StateDirectory"] == ["trackperm"]


@pytest.mark.slow
def test_watch(tmp_path: Path):
    unit = Unit("trackperm-watch", tmp_path)
    runs = HookedStore.local(tmp_path)
    runs.baseline()
    candidate = runs.finished(rate=0.5)
    runs.policy_file(tracking_uri=None).rename(tmp_path / "E" / "trackperm" / "trackperm.yaml")
    (tmp_path / "E" / "trackperm" / "watch.env").write_text(f"MLFLOW_TRACKING_URI={runs.store.uri}\n")
    program, *arguments = unit.command
    assert program == PROGRAM
    with Program(arguments, tmp_path / "journal", unit.env) as watcher:
        compared = watcher.wait_for("compared")
        assert compared["candidate"] == f"mlflow:{candidate}"
        health = tmp_path / "t" / unit.settings["RuntimeDirectory"][0] / "health.json"
        assert json.loads(health.read_text())["state"] == "ok"
        assert watcher.stop() == 0
    assert runs.compared() == [f"mlflow:{candidate}"]
    assert "Traceback" not in watcher.text
    [entry] = Queue(tmp_path / "S" / "trackperm").entries()
    assert entry.state == "done"


@pytest.mark.slow
def test_receive(tmp_path: Path):
    unit = Unit("trackperm-receive", tmp_path)
    policy = HookedStore("", tmp_path).policy_file(runs="wandb:team/digits", tracking_uri=None)
    policy.rename(tmp_path / "E" / "trackperm" / "trackperm.yaml")
    (tmp_path / "E" / "trackperm" / "receive.env").write_text(f"{WANDB_SECRET}={WANDB}\n")
    program, *arguments = shlex.split(placed(shlex.join(unit.command), {"--port 8642": "--port 0"}))
    assert program == PROGRAM
    with Program(arguments, tmp_path / "journal", unit.env) as receiver:
        started = receiver.wait_for("started")
        assert started["host"] == "127.0.0.1"
        sender = Sender(int(started["port"]))
        assert sender.wandb({"artifact": "team/digits/predictions:v1"})[0] == 202
        assert sender.post("/wandb", b"{}", {})[0] == 401
        assert receiver.stop() == 0
    assert WANDB not in receiver.text
    [entry] = Queue(tmp_path / "S" / "trackperm").entries()
    assert (entry.state, entry.candidate) == ("waiting", "wandb:team/digits/predictions:v1")
