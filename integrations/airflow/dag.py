"""A DAG that trains, and then judges the run: a regression fails the gate, and nothing after it runs."""

from __future__ import annotations

from datetime import datetime

from airflow import DAG
from airflow.providers.standard.operators.bash import BashOperator

# A tracker that fails, exit code 3, is asked again. Retries of Airflow would repeat what cannot change, too:
# 1, significantly worse, and 2, bad input.
GATE = """
for wait in ${WAITS:-10 60 300} 0; do
    code=0
    trackperm gate --candidate "$CANDIDATE" --policy "$POLICY" || code=$?
    [ "$code" -eq 3 ] || break
    sleep "$wait"
done
exit "$code"
"""

with DAG(
    "train_and_judge", schedule=None, start_date=datetime(2026, 1, 1), catchup=False, tags=["trackperm"]
) as dag:
    train = BashOperator(
        task_id="train",
        bash_command="python train.py",  # its last line of output is the run: mlflow:RUN_ID
        do_xcom_push=True,
    )
    gate = BashOperator(
        task_id="gate",
        bash_command=GATE,
        env={"CANDIDATE": "{{ ti.xcom_pull(task_ids='train') }}", "POLICY": "/opt/trackperm/trackperm.yaml"},
        append_env=True,
        skip_on_exit_code=4,  # undecided with too few examples
        retries=0,
    )
    deploy = BashOperator(task_id="deploy", bash_command="echo deploying")
    train >> gate >> deploy
