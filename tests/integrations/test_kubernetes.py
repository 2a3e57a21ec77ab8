"""The CronJob: its manifests, and its command run natively with the mounts elsewhere."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.hooked_runs import HookedStore
from support.placed import placed
from support.processes import ROOT, run, script

pytestmark = pytest.mark.tracker

MANIFESTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((ROOT / "integrations" / "kubernetes" / "cronjob.yaml").read_text(encoding="utf-8"))
)
KINDS = {each["kind"]: each for each in MANIFESTS}
JOB = KINDS["CronJob"]["spec"]["jobTemplate"]["spec"]
POD = JOB["template"]["spec"]
[CONTAINER] = POD["containers"]


def start(folder: Path, uri: str) -> subprocess.CompletedProcess[str]:
    """Run the container's command, with the ConfigMap and the claim in `folder`, and `uri` in the Secret."""
    policy, state = folder / "policy", folder / "state"
    for mount in (policy, state):
        mount.mkdir(exist_ok=True)
    for name, text in KINDS["ConfigMap"]["data"].items():
        (policy / name).write_text(text, encoding="utf-8")
    places = {"/etc/trackperm": policy, "/var/lib/trackperm": state}
    arguments = placed("\n".join(CONTAINER["args"]), places).split("\n")
    assert CONTAINER["command"] == ["trackperm"]
    env = {each["name"]: placed(each["value"], {"/tmp": folder}) for each in CONTAINER["env"]}
    return run([script("trackperm"), *arguments], cwd=folder, env={**env, "MLFLOW_TRACKING_URI": uri})


@pytest.mark.slow
def test_each_finished_run_is_compared_once(tmp_path: Path):
    runs = HookedStore.local(tmp_path)
    runs.baseline()
    candidate = runs.finished(rate=0.5)
    for _ in range(2):
        result = start(tmp_path, runs.store.uri)
        assert result.returncode == 0, result.stderr
        assert runs.compared() == [f"mlflow:{candidate}"]


@pytest.mark.extended
def test_a_tracker_that_is_down_fails_the_job(tmp_path: Path):
    result = start(tmp_path, "http://127.0.0.1:9")
    assert result.returncode == 3, result.stderr
    assert '"event": "list-failed"' in result.stdout
    assert "Traceback" not in result.stderr


def test_the_manifests_belong_together():
    assert [each["kind"] for each in MANIFESTS] == ["ConfigMap", "PersistentVolumeClaim", "CronJob"]
    assert {each["apiVersion"] for each in MANIFESTS} == {"v1", "batch/v1"}
    volumes = {volume["name"]: volume for volume in POD["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert set(volumes) == set(mounts)
    assert volumes["policy"]["configMap"]["name"] == KINDS["ConfigMap"]["metadata"]["name"]
    claim = KINDS["PersistentVolumeClaim"]["metadata"]["name"]
    assert volumes["state"]["persistentVolumeClaim"]["claimName"] == claim
    # all that the command writes lies in a mount
    written = [CONTAINER["args"][CONTAINER["args"].index("--state") + 1], CONTAINER["env"][0]["value"]]
    assert all(any(path.startswith(mount) for mount in mounts.values()) for path in written)


def test_two_jobs_never_run_at_once_and_a_failed_one_is_not_repeated():
    spec = KINDS["CronJob"]["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert (JOB["backoffLimit"], POD["restartPolicy"]) == (0, "Never")


def test_the_pod_is_restricted():
    """What the Pod Security Standard "restricted" wants, and files that are read-only."""
    assert POD["automountServiceAccountToken"] is False
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["securityContext"]["runAsUser"] != 0
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not [volume for volume in POD["volumes"] if "hostPath" in volume]
