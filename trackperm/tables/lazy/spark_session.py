"""Session of Spark: the active one, or a new one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trackperm.errors import MissingDependencyError
from trackperm.tables.lazy.spark_failures import spark_failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INSTALL = "pip install 'trackperm[spark]'"
_CHOSEN = (
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONF_DIR",
    "SPARK_HOME",
    "SPARK_REMOTE",
    "MASTER",
)
"""Environment variables by which users choose where Spark runs; spark-submit sets the first."""

_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings of a local session that only trackperm uses: it accepts no connections from other machines."""


def spark_session() -> SparkSession:
    """Return the active session, or start one.

    Raise MissingDependencyError if PySpark or Java is not installed, and EngineError if the session cannot be
    started.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError(f"PySpark cannot be imported: {error}", hint=_INSTALL) from error
    try:
        active = SparkSession.getActiveSession()
        return _started(SparkSession.builder) if active is None else active
    except Exception as error:
        if "JAVA_GATEWAY_EXITED" in str(error) or isinstance(error, FileNotFoundError):
            raise MissingDependencyError(
                "Spark could not start its Java process", hint=f"{_INSTALL}, and Java 17 or newer."
            ) from None
        failure = spark_failure(error)
        if failure is None:
            raise
        raise failure from None


def _started(builder: SparkSession.Builder) -> SparkSession:
    """Start a session; on this machine, unless the user chose a cluster."""
    if not any(name in os.environ for name in _CHOSEN):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master("local[*]")
        for name, value in _LOCAL.items():
            builder = builder.config(name, value)
    return builder.getOrCreate()


@contextmanager
def stack_traces_unlogged() -> Iterator[None]:
    """Keep PySpark from writing the stack traces of Java to the standard error output."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was_disabled in zip(loggers, before, strict=True):
            logger.disabled = was_disabled
