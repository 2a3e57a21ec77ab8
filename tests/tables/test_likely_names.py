"""Names of tables that hints suggest."""

from __future__ import annotations

import pytest

from trackperm.tables.likely_names import likeliest


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["history.csv", "predictions.json"], "predictions.json"),
        (["train_predictions", "test_predictions"], "test_predictions"),
        (["train.csv", "valid.csv"], "valid.csv"),
        (["b.csv", "a.csv"], "b.csv"),
        (["feature_importance.json", "config.json"], "feature_importance.json"),
    ],
)
def test_likeliest(names: list[str], expected: str) -> None:
    assert likeliest(names) == expected
