"""Let MLflow announce new versions of models to a receiver: `python create_webhook.py https://HOST/mlflow`."""

import os
import sys

from mlflow import MlflowClient
from mlflow.entities.webhook import WebhookAction, WebhookEntity, WebhookEvent, WebhookStatus

NAME = "trackperm"
VARIABLE = "TRACKPERM_MLFLOW_WEBHOOK_SECRET"
CREATED = WebhookEvent(WebhookEntity.MODEL_VERSION, WebhookAction.CREATED)
ANOTHER = WebhookEvent(WebhookEntity.REGISTERED_MODEL, WebhookAction.CREATED)  # of which nothing is compared


def main(url: str) -> None:
    """Make the webhook, or bring it up to date, and send an event for a trial."""
    secret = os.environ.get(VARIABLE)
    if not secret:
        sys.exit(f"`{VARIABLE}` is not set: it has to be the secret that the receiver has")
    client = MlflowClient()
    webhooks = client.list_webhooks(max_results=100)
    made = next((each for each in webhooks if each.name == NAME), None)
    if made is None:
        made = client.create_webhook(NAME, url, [CREATED], secret=secret)
    else:
        client.update_webhook(
            made.webhook_id, url=url, events=[CREATED], secret=secret, status=WebhookStatus.ACTIVE
        )
    tried = client.test_webhook(made.webhook_id, ANOTHER)
    if not tried.success:
        sys.exit(f"{url} answered {tried.response_status}: {tried.response_body or tried.error_message}")
    print(f"MLflow announces new versions of models to {url}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} URL")
    main(sys.argv[1])
