"""Three classifiers on two data sets: which of their differences are real?

Trains them with scikit-learn, logs what each predicted for every test example to an embedded MLflow
store in ./demo-store, and lets the command line compare the runs and log the verdicts back. A second
call finds the same runs and the same comparisons, and adds nothing.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

STORE = Path("demo-store").resolve()
TRACKING_URI = f"sqlite:///{STORE / 'mlflow.db'}"

os.environ["MLFLOW_TRACKING_URI"] = TRACKING_URI  # for the command line below
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
logging.getLogger("alembic").setLevel(logging.WARNING)

import pandas as pd  # noqa: E402 - after what keeps the making of the store quiet
from mlflow import MlflowClient  # noqa: E402
from sklearn.base import ClassifierMixin  # noqa: E402
from sklearn.datasets import load_breast_cancer, load_digits  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

CLASSIFIERS: dict[str, Callable[[], ClassifierMixin]] = {
    "naive-bayes": GaussianNB,
    "logistic-regression": lambda: LogisticRegression(max_iter=1000),
    "support-vectors": SVC,
}

COMPARISONS = [
    ("digits", "naive-bayes", "logistic-regression", "accuracy"),
    ("digits", "logistic-regression", "support-vectors", "accuracy"),
    ("breast-cancer", "naive-bayes", "logistic-regression", "f1", "--set", "positive=malignant"),
    ("breast-cancer", "logistic-regression", "support-vectors", "f1", "--set", "positive=malignant"),
]


def main() -> None:
    """Log the runs that are missing, then compare."""
    STORE.mkdir(exist_ok=True)
    client = MlflowClient(TRACKING_URI)
    for experiment, data in {"digits": load_digits(), "breast-cancer": load_breast_cancer()}.items():
        experiment_id = find_experiment(client, experiment)
        for classifier in CLASSIFIERS:
            if has_run(client, experiment_id, classifier):
                print(f"{experiment}/{classifier}: is logged")
            else:
                log_run(client, experiment_id, classifier, predictions(classifier, data))
                print(f"{experiment}/{classifier}: trained and logged")
    for experiment, baseline, candidate, statistic, *options in COMPARISONS:
        runs = (f"mlflow:{experiment}/{baseline}", f"mlflow:{experiment}/{candidate}")
        command = ["trackperm", "compare", *runs, "--statistic", statistic, *options]
        print("\n$", *command, flush=True)
        subprocess.run([Path(sys.executable).parent / command[0], *command[1:]], check=True, stderr=subprocess.STDOUT)
    print(f"\nsee them in the UI: mlflow ui --backend-store-uri {TRACKING_URI}")


def predictions(classifier: str, data) -> pd.DataFrame:
    """Train on one half of the data; predict the other half, one row per example."""
    names = data.target_names[data.target]
    ids = [f"example-{i:04d}" for i in range(len(names))]
    train, test = train_test_split(range(len(names)), test_size=0.5, random_state=0, stratify=data.target)
    model = make_pipeline(StandardScaler(), CLASSIFIERS[classifier]())
    model.fit(data.data[train], names[train])
    return pd.DataFrame(
        {"id": [ids[i] for i in test], "prediction": model.predict(data.data[test]), "label": names[test]}
    )


def find_experiment(client: MlflowClient, name: str) -> str:
    """Id of the experiment called `name`, which is made if need be."""
    experiment = client.get_experiment_by_name(name)
    if experiment is not None:
        return experiment.experiment_id
    return client.create_experiment(name, artifact_location=(STORE / "artifacts" / name).as_uri())


def has_run(client: MlflowClient, experiment_id: str, name: str) -> bool:
    """Whether a finished run of that name is there; unfinished ones, of a call that was stopped, are removed."""
    runs = client.search_runs([experiment_id], f"attributes.run_name = '{name}'")
    for run in runs:
        if run.info.status != "FINISHED":
            client.delete_run(run.info.run_id)
    return any(run.info.status == "FINISHED" for run in runs)


def log_run(client: MlflowClient, experiment_id: str, name: str, examples: pd.DataFrame) -> None:
    """Log a run as people do: a metric, and the predictions as an artifact."""
    run_id = client.create_run(experiment_id, run_name=name).info.run_id
    client.log_metric(run_id, "accuracy", float((examples["prediction"] == examples["label"]).mean()))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        examples.to_parquet(path, index=False)
        client.log_artifact(run_id, path)
    client.set_terminated(run_id)


if __name__ == "__main__":
    main()
