"""Train a classifier with Lightning and test it; then its run is compared with the newest baseline.

The data are made up here, so that nothing is downloaded. What matters is what `test_step` returns, and the
callback.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import MLFlowLogger
from torch.utils.data import DataLoader, TensorDataset

from trackperm.automation.training.lightning import ComparisonCallback


class Classifier(LightningModule):
    """A linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(5, 2)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """Return the loss."""
        _, x, y = batch
        return torch.nn.functional.cross_entropy(self.layer(x), y)

    def test_step(self, batch: Any, batch_idx: int) -> Any:
        """Return what is logged of every example."""
        number, x, y = batch
        return {"id": number, "prediction": self.layer(x).argmax(1), "label": y}

    def configure_optimizers(self) -> Any:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=0.05)


def points(n: int, seed: int) -> DataLoader[Any]:
    """Points on two sides of a plane, with their numbers."""
    x = torch.randn(n, 5, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(torch.arange(n), x, (x.sum(dim=1) > 0).long()), batch_size=16)


def main() -> None:
    """Train, test, log, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_name")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--devices", type=int, default=1)
    options = parser.parse_args()

    torch.manual_seed(0)
    model = Classifier()
    trainer = Trainer(
        accelerator="cpu",
        devices=options.devices,
        max_epochs=options.epochs,
        enable_checkpointing=False,
        logger=MLFlowLogger("lightning", run_name=options.run_name),  # or WandbLogger
        callbacks=[ComparisonCallback("trackperm.yaml")],
    )
    trainer.fit(model, points(400, seed=1))
    trainer.test(model, points(201, seed=2))


if __name__ == "__main__":
    main()
