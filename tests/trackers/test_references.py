"""References that mean one run."""

from __future__ import annotations

import pytest

from trackperm.trackers.references import is_same_run

FOLDER = "wandb:/data/wandb/offline-run-20261129_091346-a6eyeynv"


@pytest.mark.parametrize(
    ("logged", "run", "is_same"),
    [
        (FOLDER, FOLDER, True),
        (FOLDER, "wandb:team/pets/a6eyeynv", True),
        (FOLDER, "wandb:/moved/run-20261129_091346-a6eyeynv", True),
        (FOLDER, "wandb:team/pets/2ccitj6s", False),
        (FOLDER, "mlflow:a6eyeynv", False),
        ("wandb:team/pets/a6eyeynv", "wandb:team/birds/a6eyeynv", False),
        ("a6eyeynv", "wandb:team/pets/a6eyeynv", False),
    ],
)
def test_the_folder_of_an_offline_run_is_the_synced_run(logged: str, run: str, is_same: bool):
    assert is_same_run(logged, run) == is_same_run(run, logged) == is_same
