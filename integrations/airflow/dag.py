"""A DAG that trains, and then judges the run: a regression fails the gate, and nothing after it runs."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.exceptions import AirflowFailException, AirflowSkipException
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, task

POLICY = "/opt/trackperm/trackperm.yaml"


@task(retries=3, retry_delay=timedelta(seconds=10), retry_exponential_backoff=True)
def gate(candidate: str, policy: str = POLICY) -> str:
    """Judge a run; another try may help where the tracker failed, and nowhere else."""
    import trackperm  # here, for Airflow reads this file more often than it runs the task
    from trackperm.errors import TrackerError

    try:
        report = trackperm.gate(candidate, policy)
    except TrackerError:
        raise
    except Exception as error:  # bad input, or a fault: another try would end the same
        raise AirflowFailException(str(error)) from error
    print("\n".join(report.lines()))
    if report.outcome == "undecided":
        raise AirflowSkipException(report.summary)
    if not report.passed:
        raise AirflowFailException(report.summary)
    return report.outcome


with DAG(
    "train_and_judge", schedule=None, start_date=datetime(2026, 1, 1), catchup=False, tags=["trackperm"]
) as dag:
    train = BashOperator(
        task_id="train",
        bash_command="python train.py",  # its last line of output is the run: mlflow:RUN_ID
        do_xcom_push=True,
    )
    deploy = BashOperator(task_id="deploy", bash_command="echo deploying")
    judged = gate(train.output)
    judged >> deploy
