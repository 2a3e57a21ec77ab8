"""Fine-tune a classifier with the Trainer of transformers; its run is compared with the newest baseline.

The model is a tiny one that is built here, on made-up sentences, so that nothing is downloaded: put yours in
its place. What matters is the callback.
"""

from __future__ import annotations

import argparse

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from trackperm.automation.training.huggingface import ComparisonCallback


def sentences(n: int, seed: int) -> list[dict[str, object]]:
    """Eight random tokens each; the first one decides the label."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(2, 50, (n, 8), generator=generator).tolist()
    return [{"id": f"s{i}", "input_ids": each, "labels": int(each[0] > 25)} for i, each in enumerate(tokens)]


def main() -> None:
    """Train, log, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_name")
    parser.add_argument("--epochs", type=float, default=3)
    options = parser.parse_args()

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    trainer = Trainer(
        BertForSequenceClassification(config),
        TrainingArguments(
            "out",
            run_name=options.run_name,
            report_to="mlflow",  # or "wandb"
            num_train_epochs=options.epochs,
            learning_rate=1e-2,
            save_strategy="no",
            use_cpu=True,
        ),
        train_dataset=sentences(400, seed=1),
    )
    test_set = sentences(201, seed=2)
    trainer.add_callback(ComparisonCallback(trainer, test_set, policy="trackperm.yaml", columns={"id": "id"}))
    trainer.train()


if __name__ == "__main__":
    main()
