"""A classifier of transformers that is built from a configuration in a moment, and its test set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

VOCABULARY = 50


def examples(n: int = 60, seed: int = 1) -> list[dict[str, Any]]:
    """Make examples of many lengths, whose label shows in their first token."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for number in range(n):
        length = 3 + number % 6
        tokens = torch.randint(2, VOCABULARY, (length,), generator=generator).tolist()
        found.append(
            {"input_ids": tokens, "labels": int(tokens[0] > VOCABULARY // 2), "question": f"q{number}"}
        )
    return found


def padded(batch: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Collate examples, padded to the longest."""
    longest = max(len(example["input_ids"]) for example in batch)
    tokens = [example["input_ids"] + [0] * (longest - len(example["input_ids"])) for example in batch]
    input_ids = torch.tensor(tokens)
    labels = torch.tensor([example["labels"] for example in batch])
    return {"input_ids": input_ids, "attention_mask": (input_ids > 0).long(), "labels": labels}


def trainer(folder: Path, dataset: Any, *, epochs: float = 1, **arguments: Any) -> Trainer:
    """Make a trainer of a new model, the same every time."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    own = {key: arguments.pop(key) for key in ("compute_metrics", "callbacks") if key in arguments}
    return Trainer(
        BertForSequenceClassification(config),
        TrainingArguments(
            str(folder / "out"),
            num_train_epochs=epochs,
            learning_rate=1e-2,
            use_cpu=True,
            disable_tqdm=True,
            save_strategy="no",
            remove_unused_columns=False,
            **{"report_to": "none", **arguments},
        ),
        data_collator=padded,
        train_dataset=examples(),
        eval_dataset=dataset,
        **own,
    )


def classes(model: Any, dataset: list[dict[str, Any]]) -> list[int]:
    """Classify examples one by one, without a trainer."""
    model.eval()
    with torch.no_grad():
        return [int(model(input_ids=torch.tensor([each["input_ids"]])).logits.argmax()) for each in dataset]
