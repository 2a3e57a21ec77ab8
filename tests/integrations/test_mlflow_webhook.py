"""The recipe for MLflow's webhooks, with a real server that signs and sends to a real receiver."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from mlflow import MlflowClient
from mlflow.entities.webhook import WebhookStatus
from support.hooked_runs import HookedStore
from support.mlflow_server import MlflowServer
from support.processes import ROOT, run
from support.receivers import MLFLOW
from support.receiving import Receiving

from trackperm.automation.webhooks.receive import MLFLOW_SECRET

pytestmark = [pytest.mark.tracker, pytest.mark.slow]

SCRIPT = ROOT / "integrations" / "mlflow-webhook" / "create_webhook.py"


def test_registered_models_are_compared(tmp_path: Path):
    """Made by the script, signed by MLflow, checked, queued, and the runs compared that the policy wants."""
    env = {
        "MLFLOW_WEBHOOK_ALLOWED_SCHEMES": "http,https",
        "MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS": "true",
        "MLFLOW_WEBHOOK_SECRET_ENCRYPTION_KEY": Fernet.generate_key().decode(),
    }
    with MlflowServer(tmp_path, env) as server:
        runs, client = HookedStore(server.uri, tmp_path), MlflowClient(server.uri)
        runs.baseline()
        candidate, unwanted, unfinished = runs.finished(), runs.baseline(3), runs.begun()
        runs.log(unfinished, 5)
        with Receiving(tmp_path, runs.policy_file()) as receiving:
            url = f"http://127.0.0.1:{receiving.port}/mlflow"

            def created(secret: str, at: str = url) -> str:
                script_env = {"MLFLOW_TRACKING_URI": server.uri, MLFLOW_SECRET: secret}
                done = run([sys.executable, SCRIPT, at], cwd=tmp_path, env=script_env)
                assert "Traceback" not in done.stderr
                return f"{done.returncode} {done.stdout}{done.stderr}"

            assert "1 " in created("")
            assert f"{url} answered 401" in created("of-somebody-else-altogether")
            assert f"{url}x answered 404" in created(MLFLOW, f"{url}x")
            for _ in range(2):
                assert f"announces new versions of models to {url}" in created(MLFLOW)
                [hook] = client.list_webhooks()
                assert (hook.url, hook.status) == (url, WebhookStatus.ACTIVE)
                client.update_webhook(hook.webhook_id, status=WebhookStatus.DISABLED)
            created(MLFLOW)
            client.create_registered_model("digits")
            for run_id in (candidate, unwanted, unfinished):
                client.create_model_version(
                    "digits", f"runs:/{run_id}/model", run_id=run_id, await_creation_for=0
                )
            [compared] = receiving.wait_for(1, "compared")
            assert compared["candidate"] == f"mlflow:{candidate}"
            [skipped] = receiving.wait_for(1, "skipped")
            assert skipped["candidate"] == f"mlflow:{unwanted}"
            assert receiving.wait_for(1, "waiting")[0]["candidate"] == f"mlflow:{unfinished}"
            runs.store.client.set_terminated(unfinished)
            receiving.wait_for(2, "compared")
            assert receiving.program.stop() == 0
        assert runs.compared() == sorted([f"mlflow:{candidate}", f"mlflow:{unfinished}"])
        kept = [receiving.program.text.encode(), (tmp_path / "server.log").read_bytes()]
        kept += [
            path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)
        ]
        assert not [text for text in kept if MLFLOW.encode() in text]
