"""Log a log of Inspect to a run of MLflow, as it is, and print the run."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import mlflow


def main() -> None:
    """Log one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, help="a .eval or .json file of Inspect")
    parser.add_argument("--experiment", default="inspect")
    parser.add_argument("--name", help="of the run; by default that of the file")
    parser.add_argument("--role", help="value of the tag `role`")
    options = parser.parse_args()

    if options.log.suffix not in (".eval", ".json") or not options.log.is_file():
        parser.error(f"`{options.log}` is no .eval or .json file")
    mlflow.set_experiment(options.experiment)
    tags = {"role": options.role} if options.role else {}
    name = options.name or options.log.stem
    with tempfile.TemporaryDirectory() as folder, mlflow.start_run(run_name=name, tags=tags) as run:
        mlflow.log_artifact(str(shutil.copy(options.log, Path(folder, f"log{options.log.suffix}"))))
    print(f"mlflow:{run.info.run_id}")


if __name__ == "__main__":
    main()
