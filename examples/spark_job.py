"""Compare two tables of Spark, as a job for spark-submit.

    spark-submit examples/spark_job.py prod.eval.run_a prod.eval.run_b --output s3a://results/a-b

Tables are names of the catalog, or addresses of folders of Parquet, which have a slash. Their rows stay with
the executors. To the folder of the output go the result as JSON, in `result`, and the changed examples
as Parquet, in `changed`.
"""

from __future__ import annotations

import argparse

from pyspark.sql import DataFrame, SparkSession

import trackperm


def main() -> None:
    """Compare, print the result, and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("baseline")
    parser.add_argument("candidate")
    parser.add_argument("--statistic", default="accuracy")
    parser.add_argument("--id", default="id")
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()

    session = SparkSession.builder.appName("trackperm").getOrCreate()
    result = trackperm.compare(
        table(session, arguments.baseline),
        table(session, arguments.candidate),
        arguments.statistic,
        columns={"id": arguments.id},
    )
    print(result)
    lines = session.createDataFrame([(result.to_json(),)], "value string")
    lines.coalesce(1).write.mode("overwrite").text(f"{arguments.output}/result")
    if len(result.discordant):
        changed = session.createDataFrame(result.discordant.to_arrow())
        changed.write.mode("overwrite").parquet(f"{arguments.output}/changed")


def table(session: SparkSession, name: str) -> DataFrame:
    """Return a table of the catalog, or of a folder."""
    return session.read.parquet(name) if "/" in name else session.table(name)


if __name__ == "__main__":
    main()
