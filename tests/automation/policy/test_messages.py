"""What is said of a policy file that is wrong: the place, what was expected, and nothing secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.processes import run
from support.specs import underlined
from support.watchers import COMMAND
from typer.testing import CliRunner

from trackperm import compare_on_exit
from trackperm.automation.policy.load import load_policies
from trackperm.automation.webhooks.receive import WANDB_SECRET
from trackperm.cli import commands
from trackperm.errors import SpecError

URI = "https://someuser:hunter2secretpassword@h.example/"
SHORT = f'{{name: a, baseline: {{newest: {{}}}}, bogus: 1, tracking_uri: "{URI}"}}'
LONG = SHORT.replace("bogus", 'runs: "mlflow:digits", alpha: 0.05, margin: 0.01, bogus')


@pytest.mark.sample(1)
@pytest.mark.parametrize("policy", [LONG, SHORT])
def test_no_credentials_are_shown(
    tmp_path: Path, policy: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """Regression: a part of the password stood in the line that is shown, where it was cut."""
    caplog.set_level("INFO", "trackperm")
    path = tmp_path / "trackperm.yaml"
    path.write_text(f"policies:\n  - {policy}\n")
    with pytest.raises(SpecError) as caught:
        load_policies(path)
    said = str(caught.value)
    assert underlined(said) == "bogus"
    monkeypatch.setenv("TRACKPERM_STATE", str(tmp_path / "state"))
    with compare_on_exit(path):
        pass
    for arguments in (["check", path], ["check", "--format", "json", path]):
        said += CliRunner().invoke(commands.app, ["policy", *map(str, arguments)]).output
    secret = {WANDB_SECRET: "x" * 32}
    said += run([*COMMAND, "receive", "--policy", path], cwd=tmp_path, env=secret).stderr + caplog.text
    assert said.count("unknown key `bogus`") == 5
    assert "hunter2" not in said
    assert "someuser" not in said
