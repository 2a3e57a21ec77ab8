"""Offline runs as the real wandb writes them, in a process of its own: nothing of it stays behind."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.processes import run as run_process

N_ROWS = 30
COLUMNS = ["id", "prediction", "label"]


def rows(n: int, start: int = 0, wrong_every: int = 3) -> list[list[object]]:
    """Ids, predictions and labels, of which every so many are wrong."""
    return [[f"q{i}", "b" if i % wrong_every == 0 else "a", "a"] for i in range(start, start + n)]


@dataclass(frozen=True)
class OfflineRuns:
    """A folder with one run of each kind."""

    folder: Path

    def __getitem__(self, run_id: str) -> Path:
        (path,) = (self.folder / "wandb").glob(f"offline-run-*-{run_id}")
        return path

    @property
    def staging(self) -> Path:
        return self.folder / "data/artifacts/staging"


def write_offline_runs(folder: Path) -> OfflineRuns:
    """Log every run of :func:`_runs` below `folder`."""
    settings = {name: str(folder / name) for name in ("data", "cache", "config")}
    env = {f"WANDB_{name.upper()}_DIR": path for name, path in settings.items()}
    result = run_process(
        [sys.executable, "-m", "support.wandb_offline_runs", folder],
        cwd=folder,
        env={
            **env,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "WANDB_SILENT": "true",
            "WANDB_CONSOLE": "off",
            "WANDB_ERROR_REPORTING": "false",
        },
    )
    assert result.returncode == 0, result.stderr
    return OfflineRuns(folder)


def table(n: int, start: int = 0, **options: Any) -> Any:
    """A table of W&B with :func:`rows`."""
    import wandb

    return wandb.Table(columns=COLUMNS, data=rows(n, start), **options)


def log_tables(run: Any) -> None:
    """Log tables in every way that W&B has: several steps, nested, growing, changing, joined."""
    import wandb

    run.log({"by epoch": table(4)})
    run.log({"by epoch": table(5)})
    run.log({"eval/dev set": table(6)})
    run.log({"nested": {"deep": table(7)}})
    first = wandb.Table(columns=COLUMNS, data=rows(1), log_mode="INCREMENTAL")
    run.log({"increments twice": first})
    run.log({"increments twice": wandb.Table(columns=COLUMNS, data=rows(4), log_mode="INCREMENTAL")})
    run.log({"then a page": wandb.Table(columns=COLUMNS, data=rows(2))})
    run.log({"then a page": wandb.Html("<p>")})
    growing = wandb.Table(columns=COLUMNS, data=[], log_mode="INCREMENTAL")
    for number in range(3):
        for row in rows(4, 4 * number):
            growing.add_data(*row)
        run.log({"increments": growing})
    mutable = table(2, log_mode="MUTABLE")
    run.log({"mutable": mutable})
    mutable.add_data(*rows(1, 2)[0])
    run.log({"mutable": mutable})
    run.log({"joined": wandb.JoinedTable(table(2), table(2), "id")})


def _main(folder: Path) -> None:
    import wandb

    def start(run_id: str, **options: object) -> wandb.Run:
        quiet = wandb.Settings(x_disable_stats=True, x_disable_meta=True, x_save_requirements=False)
        return wandb.init(
            mode="offline",
            dir=folder,
            project="digits",
            id=run_id,
            settings=quiet,
            reinit="create_new",
            **options,
        )

    with start("forest", entity="team", name="random forest", config={"model": {"depth": 3}}) as run:
        run.log({"loss": 0.5, "large": 2**60, "nested": {"loss": 1}})
        run.log({"predictions": wandb.Table(columns=COLUMNS, data=rows(N_ROWS, wrong_every=3))})
        run.log({"matrix": wandb.plot.confusion_matrix(y_true=[0, 1], preds=[0, 1], class_names=["a", "b"])})

    with start("logistic") as run:
        run.log({"predictions": wandb.Table(columns=COLUMNS, data=rows(N_ROWS, wrong_every=2))})

    with start("tables") as run:
        log_tables(run)
        run.summary["final"] = table(3)
        typed = [[1, 2**60, True, None, 0.5], [2, 1, False, "x", None]]
        columns = ["id", "large", "correct", "text", "score"]
        run.log({"typed": wandb.Table(columns=columns, data=typed, allow_mixed_types=True)})

    with start("files") as run:
        (folder / "p.csv").write_text("id,prediction\n001,a\n1,b\n")
        (folder / "notes.json").write_text('{"note": 1}')
        artifact = wandb.Artifact("predictions", "predictions")
        artifact.add_file(folder / "p.csv", name="dev/p.csv")
        artifact.add_file(folder / "notes.json")
        artifact.add(table(3), "shown")
        artifact.add_reference((folder / "p.csv").as_uri(), name="elsewhere.csv")
        artifact.add_reference("hdfs://bucket/p.csv", name="far.csv", checksum=False)
        run.log_artifact(artifact)
        artifact = wandb.Artifact("parts", "dataset")
        artifact.add(table(2), "shards/0")
        artifact.add(table(3, 2), "shards/1")
        artifact.add(wandb.data_types.PartitionedTable("shards"), "all")
        run.log_artifact(artifact)

    with start("one-file") as run:
        artifact = wandb.Artifact("weights", "model")
        artifact.add_file(folder / "p.csv", name="vocabulary.csv")
        run.log_artifact(artifact)
        for version in range(2):
            artifact = wandb.Artifact("predictions", "predictions", metadata={"version": version})
            (folder / "v.csv").write_text(f"id,prediction\n1,{version}\n")
            artifact.add_file(folder / "v.csv", name="p.csv")
            run.log_artifact(artifact)

    with start("cut") as run:
        wandb.Table.MAX_ROWS, wandb.Table.MAX_ARTIFACT_ROWS = 10, 20
        run.log({"all": table(10)})
        run.log({"shown in part": table(15)})
        run.log({"cut": table(25)})
        stale = table(1)
        run.log({"stale": stale})
        stale.add_data(*rows(1, 1)[0])
        run.log({"stale": stale})

    with start("only-metrics") as run:
        run.log({"loss": 1.0})

    with start("earlier", job_type="comparison", group="trackperm"):
        pass


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
