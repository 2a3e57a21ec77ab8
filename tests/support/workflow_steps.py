"""The steps of a composite action, run in order as a runner of GitHub Actions runs them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from support.processes import run

_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_REFERENCE = re.compile(r"\b(?:inputs|github|runner|steps)(?:\.[\w-]+)+")


class CompositeAction:
    """A composite action; `folder` has a runner's temporary folder, and the workspace where steps run."""

    def __init__(
        self, path: Path, folder: Path, github: Mapping[str, str], env: Mapping[str, str] | None = None
    ) -> None:
        self.definition: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        self.workspace = folder / "workspace"
        self.temp = folder / "temp"
        for made in (self.workspace, self.temp):
            made.mkdir(exist_ok=True)
        self._github = dict(github)
        self._env = {
            **(env or {}),
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(path.parent),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temp),
        }

    def run(self, inputs: Mapping[str, str], *, without: tuple[str, ...] = ()) -> ActionRun:
        """Run all steps but those of the ids `without`, until one fails, as a job with `inputs` does."""
        declared = self.definition["inputs"]
        assert set(inputs) <= set(declared), "a runner warns of inputs that an action has not"
        given = {name: inputs.get(name, each.get("default", "")) for name, each in declared.items()}
        assert all(isinstance(value, str) for value in given.values()), "inputs are text"
        found = ActionRun(summary=self.temp / "summary.md")
        found.summary.unlink(missing_ok=True)
        outputs: dict[str, dict[str, str]] = {}
        for step in self.definition["runs"]["steps"]:
            if step["id"] in without or found.code != 0:
                continue
            context = {"inputs": given, "github": self._github, "steps": outputs}
            if not _holds(step.get("if", "true"), context):
                continue
            found.ran.append(step["id"])
            said = self._step(step, context)
            outputs[step["id"]] = {"outputs": _outputs(self.temp / "output")}
            found.printed += said.stdout + said.stderr
            found.commands += [*commands(said.stdout), *commands(said.stderr)]
            found.code = said.returncode
        context = {"inputs": given, "github": self._github, "steps": outputs}
        found.outputs = {
            name: _interpolated(each["value"], context) for name, each in self.definition["outputs"].items()
        }
        return found

    def _step(self, step: Mapping[str, Any], context: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        assert step["shell"] == "bash"
        script = self.temp / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        (self.temp / "output").write_text("", encoding="utf-8")
        env = {name: _interpolated(value, context) for name, value in step.get("env", {}).items()}
        files = {
            "GITHUB_OUTPUT": str(self.temp / "output"),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary.md"),
        }
        return run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=self.workspace,
            env={**self._env, **files, **env},
        )


class ActionRun:
    """What became of an action; there is no `summary` where no step wrote to it."""

    def __init__(self, summary: Path) -> None:
        self.summary = summary
        self.code = 0
        self.outputs: dict[str, str] = {}
        self.printed = ""
        self.commands: list[str] = []
        self.ran: list[str] = []


def commands(log: str) -> list[str]:
    """List the workflow commands that a runner finds in one stream of a step, in either of its notations."""
    found, token = [], None
    for line in log.splitlines():
        match = re.match(r"\s*::(\S+?)(?: .*?)?::(.*)", line) or re.search(r"##\[([\w-]+).*?\](.*)", line)
        if match is None or token not in (None, match.group(1)):
            continue
        token = match.group(2) if match.group(1) == "stop-commands" else None
        found.append(match.group(1))
    return found


def interpolations(text: str) -> list[str]:
    """List the expressions in `text`."""
    return [found.strip() for found in _EXPRESSION.findall(text)]


def _value(reference: str, context: Mapping[str, Any]) -> str:
    value: Any = context
    for key in reference.split("."):
        value = value.get(key, {})
    return "" if value == {} else str(value)


def _interpolated(text: str, context: Mapping[str, Any]) -> str:
    def value(match: re.Match[str]) -> str:
        reference = match.group(1).strip()
        assert _REFERENCE.fullmatch(reference), reference
        return _value(reference, context)

    return _EXPRESSION.sub(value, text)


def _holds(condition: str, context: Mapping[str, Any]) -> bool:
    """Evaluate a condition of comparisons that are joined by ``&&``."""
    for part in condition.split("&&"):
        left, is_comparison, right = (each.strip() for each in part.partition("=="))
        if not is_comparison:
            assert left == "true", f"this runner knows no condition `{left}`"
            continue
        assert _REFERENCE.fullmatch(left), left
        if json.dumps(_value(left, context)) != right.replace("'", '"'):
            return False
    return True


def _outputs(path: Path) -> dict[str, str]:
    """Read the lines ``name=value`` of a step; the last of a name counts."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, separator, value = line.partition("=")
        assert separator, f"no output of a step: {line!r}"
        found[name] = value
    return found
