"""A linear classifier in Lightning, and its test set, as modules of either name of the package have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch
import torch
from torch.utils.data import DataLoader, Dataset

N_FEATURES = 5


class Points(Dataset[Any]):
    """Points on two sides of a plane; named by number, as mappings, or as plain pairs."""

    def __init__(self, n: int = 61, *, named: bool = False, seed: int = 1) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, N_FEATURES, generator=generator)
        self.y = (self.x.sum(dim=1) > 0).long()
        self._named = named

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> Any:
        pair = self.x[index], self.y[index]
        return {"x": pair[0], "label": pair[1], "name": f"p{index}"} if self._named else pair


def classifier(base: Any = lightning.pytorch.LightningModule, returned: Any = None) -> Any:
    """Make a module, of the class `base`; what its steps return is made by `returned`."""

    class Linear(base):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(N_FEATURES, 2)

        def training_step(self, batch: Any, index: int) -> Any:
            x, y = _pair(batch)
            return torch.nn.functional.cross_entropy(self.layer(x), y)

        def test_step(self, batch: Any, index: int, dataloader_idx: int = 0) -> Any:
            x, y = _pair(batch)
            scores = self.layer(x)
            if returned is not None:
                return returned(scores, y)
            return {"prediction": scores.argmax(1), "label": y}

        validation_step = test_step

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=0.1)

    return Linear()


def _pair(batch: Any) -> Any:
    return (batch["x"], batch["label"]) if isinstance(batch, dict) else batch


def loader(dataset: Any, size: int = 8) -> Any:
    """Batches in the order of `dataset`."""
    return DataLoader(dataset, batch_size=size)


def trainer(folder: Path, callbacks: Any, logger: Any = False, base: Any = None, **arguments: Any) -> Any:
    """Make a quiet trainer on one CPU."""
    return (base or lightning.pytorch.Trainer)(
        accelerator="cpu",
        devices=arguments.pop("devices", 1),
        logger=logger,
        callbacks=callbacks,
        default_root_dir=folder,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
        **arguments,
    )


def classes(module: Any, dataset: Points) -> list[int]:
    """Classify points one by one, without a trainer."""
    with torch.no_grad():
        return [int(module.layer(x.unsqueeze(0)).argmax()) for x in dataset.x]
