"""HTTP receiver of the webhooks of MLflow and W&B."""
