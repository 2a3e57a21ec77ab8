"""Let W&B announce versions of an artifact: `create_automation.py ENTITY/PROJECT COLLECTION TYPE WEBHOOK`."""

import json
import sys
from pathlib import Path
from typing import Any

import wandb
from wandb.automations import NewAutomation, OnCreateArtifact, SendWebhook

NAME = "trackperm"
PAYLOAD = json.loads((Path(__file__).parent / "payload.json").read_text(encoding="utf-8"))


def automation(collection: Any, webhook: Any) -> NewAutomation:
    """Put together: whenever a version of `collection` is created, send its name to `webhook`."""
    announced = OnCreateArtifact(scope=collection) >> SendWebhook.from_integration(webhook, payload=PAYLOAD)
    announced.name = NAME
    return announced


def main(project: str, name: str, kind: str, webhook_name: str) -> None:
    """Make the automation in W&B."""
    api = wandb.Api()
    entity = project.partition("/")[0]
    webhook = next((each for each in api.webhook_integrations(entity) if each.name == webhook_name), None)
    if webhook is None:
        sys.exit(f"the team {entity} has no webhook called {webhook_name}: Team settings, Webhooks")
    collection = api.artifact_collection(kind, f"{project}/{name}")
    api.create_automation(automation(collection, webhook), fetch_existing=True)
    print(f"W&B announces versions of {project}/{name} to {webhook.url_endpoint}")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(f"usage: {sys.argv[0]} ENTITY/PROJECT COLLECTION TYPE WEBHOOK")
    main(*sys.argv[1:])
