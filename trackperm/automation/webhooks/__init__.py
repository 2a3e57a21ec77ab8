"""HTTP receiver of webhooks from MLflow and W&B."""
