"""Log what lm-evaluation-harness wrote with `--log_samples` to a run of MLflow, and print the run.

The samples are logged as they are, for trackperm checks the hashes of documents in them, under names without
the time: `samples_TASK.jsonl`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from pathlib import Path

import mlflow

_NAME = re.compile(r"(samples_.+)_\d{4}-\d\d-\d\dT[\d.:-]+\.jsonl")


def main() -> None:
    """Log one folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with samples_*.jsonl, such as OUTPUT_PATH/MODEL")
    parser.add_argument("--experiment", default="lm-eval")
    parser.add_argument("--name", help="of the run; by default that of the folder")
    parser.add_argument("--role", help="value of the tag `role`")
    options = parser.parse_args()

    found = {path: _NAME.fullmatch(path.name) for path in sorted(options.folder.glob("samples_*.jsonl"))}
    names = {path: f"{match[1]}.jsonl" for path, match in found.items() if match}
    if not names or len(set(names.values())) < len(names):
        parser.error(f"`{options.folder}` holds {len(names)} files of samples; one of each task is expected")
    mlflow.set_experiment(options.experiment)
    tags = {"role": options.role} if options.role else {}
    run_name = options.name or options.folder.name
    with tempfile.TemporaryDirectory() as folder, mlflow.start_run(run_name=run_name, tags=tags) as run:
        for path, name in names.items():
            shutil.copy(path, Path(folder, name))
        mlflow.log_artifacts(folder)
    print(f"mlflow:{run.info.run_id}")


if __name__ == "__main__":
    main()
