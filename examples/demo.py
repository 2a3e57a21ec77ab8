"""Three classifiers on two data sets, and which of their differences are real.

Trains them with scikit-learn, logs what each predicted for every test example to an embedded MLflow
store in ./demo-store, and lets the command line compare the runs and log the verdicts back. A second
call finds the same runs and the same comparisons, and adds nothing.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path

import pandas as pd
from mlflow import MlflowClient
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from trackperm import cli
from trackperm.trackers.mlflow.tracker import MlflowTracker

STORE = Path("demo-store")
TRACKING_URI = f"sqlite:///{STORE}/mlflow.db"

CLASSIFIERS: dict[str, Callable[[], ClassifierMixin]] = {
    "naive-bayes": GaussianNB,
    "logistic-regression": lambda: LogisticRegression(max_iter=1000),
    "support-vectors": SVC,
}

EXPERIMENTS = {"digits": load_digits, "breast-cancer": load_breast_cancer}

COMPARISONS = [
    "digits/naive-bayes digits/logistic-regression",
    "digits/logistic-regression digits/support-vectors",
    "breast-cancer/naive-bayes breast-cancer/logistic-regression --statistic f1 --set positive=malignant",
    "breast-cancer/logistic-regression breast-cancer/support-vectors --statistic f1 --set positive=malignant",
]


def main() -> None:
    """Log the runs that are missing, then compare."""
    for talkative in ("mlflow", "alembic"):  # about the tables of a new store
        logging.getLogger(talkative).setLevel(logging.WARNING)
    STORE.mkdir(exist_ok=True)
    client = MlflowClient(TRACKING_URI)
    for experiment, load in EXPERIMENTS.items():
        data = load()
        experiment_id = find_experiment(client, experiment)
        for classifier in CLASSIFIERS:
            if has_run(client, experiment_id, classifier):
                print(f"found {experiment}/{classifier}")
            else:
                log_run(client, experiment_id, classifier, predict(classifier, data), data)
                print(f"trained and logged {experiment}/{classifier}")

    os.environ["MLFLOW_TRACKING_URI"] = TRACKING_URI
    for comparison in COMPARISONS:
        baseline, candidate, *options = comparison.split()
        run_command("trackperm", "compare", f"mlflow:{baseline}", f"mlflow:{candidate}", *options)

    mlflow = os.path.relpath(Path(sys.executable).parent / "mlflow")
    print("\nsee the runs with their verdicts, best first:")
    print(f"  {mlflow} server --app-name trackperm --backend-store-uri {TRACKING_URI}")
    for experiment in EXPERIMENTS:
        view = MlflowTracker(TRACKING_URI).set_up_view(experiment)
        print(f"  http://127.0.0.1:5000/{view.link}  {experiment}")


def run_command(*command: str) -> None:
    """Show a command and call it here: a process of its own would import MLflow anew."""
    print("\n$", *command, flush=True)
    sys.argv = list(command)
    with redirect_stderr(sys.stdout):
        try:
            cli.main()
        except SystemExit as end:
            if end.code:
                raise


def predict(classifier: str, data) -> pd.DataFrame:
    """Train on one half of the data and predict the other half: one row per example."""
    names = data.target_names[data.target]
    train, test = train_test_split(range(len(names)), test_size=0.5, random_state=0, stratify=data.target)
    model = make_pipeline(StandardScaler(), CLASSIFIERS[classifier]())
    model.fit(data.data[train], names[train])
    return pd.DataFrame(
        {
            "id": [f"example-{i:04d}" for i in test],
            "prediction": model.predict(data.data[test]),
            "label": names[test],
        }
    )


def find_experiment(client: MlflowClient, name: str) -> str:
    """Id of the experiment called `name`, which is made if need be."""
    experiment = client.get_experiment_by_name(name)
    if experiment is not None:
        return experiment.experiment_id
    return client.create_experiment(name, artifact_location=(STORE / "artifacts" / name).resolve().as_uri())


def has_run(client: MlflowClient, experiment_id: str, name: str) -> bool:
    """Whether a finished run of that name is there; what a call that was stopped left is removed."""
    runs = client.search_runs([experiment_id], f"attributes.run_name = '{name}'")
    for run in runs:
        if run.info.status != "FINISHED":
            client.delete_run(run.info.run_id)
    return any(run.info.status == "FINISHED" for run in runs)


def log_run(client: MlflowClient, experiment_id: str, name: str, examples: pd.DataFrame, data) -> None:
    """Log a run as people do: metrics, and a table of what was predicted."""
    run_id = client.create_run(experiment_id, run_name=name).info.run_id
    client.log_metric(run_id, "accuracy", float((examples["prediction"] == examples["label"]).mean()))
    if "malignant" in data.target_names:
        score = f1_score(examples["label"], examples["prediction"], pos_label="malignant")
        client.log_metric(run_id, "f1", float(score))
    client.log_table(run_id, examples, "predictions.json")
    client.set_terminated(run_id)


if __name__ == "__main__":
    main()
