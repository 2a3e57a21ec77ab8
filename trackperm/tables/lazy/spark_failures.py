"""Conversion of failures of Spark to errors of one line, without the stack traces of its Java process."""

from __future__ import annotations

from typing import Any

from trackperm.errors import CapacityError, EngineError, MissingDependencyError, StorageError, TrackpermError

_LONGEST = 400  # characters of a message
_TRACEBACK = "Traceback (most recent call last)"


def spark_failure(error: BaseException) -> TrackpermError | None:
    """Convert an exception of Spark to an error of one line; return None for any other exception.

    A lost connection counts as a failure of Spark, because callers open no other connections.
    """
    module = type(error).__module__.partition(".")[0]
    if module not in ("pyspark", "py4j") and not isinstance(error, ConnectionError):
        return None
    try:
        text = _text(error)
    except Exception:  # the Java process does not answer any more
        text = None
    if text is None:
        return EngineError(
            "the Java process of Spark has ended",
            hint="it may have been stopped, or have had too little memory: `spark.driver.memory`.",
        )
    line = _line(text)
    if "No space left on device" in text:
        return StorageError(
            f"Spark could not write its temporary files: {line}",
            hint="the setting `spark.local.dir` names folders that have room for them.",
        )
    if "OutOfMemoryError" in text or "maxResultSize" in text:
        return CapacityError(
            f"Spark ran out of memory: {line}",
            hint="`spark.executor.memory`, `spark.driver.memory` and `spark.sql.shuffle.partitions` set how"
            " much it has, and in how many parts rows are joined.",
        )
    if "No module named" in text:
        return MissingDependencyError(
            f"a Python process of Spark's executors lacks a module: {line}",
            hint="counters over sequences, lists and texts beyond ASCII run there, which takes trackperm with"
            " polars and pyarrow: `spark.archives` hands a packed environment to the executors.",
        )
    return EngineError(f"Spark failed: {line}")


def _text(error: BaseException) -> str | None:
    """Return the message of an exception, or of a Java one's first cause; None if the connection is lost.

    The gateway to Java raises exceptions of its own only where the process on its other side does not answer.
    """
    cause: Any = getattr(error, "java_exception", None)
    if cause is None:
        is_of_gateway = type(error).__module__.startswith("py4j.") or isinstance(error, ConnectionError)
        return None if is_of_gateway else str(error)
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString())


def _line(text: str) -> str:
    """Return the first line of a message, or the line of a Python traceback that names the exception."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if _TRACEBACK in text:
        lines = [line for line in text.partition(_TRACEBACK)[2].splitlines()[1:] if line[:1].strip()]
    line = lines[0] if lines else "it gave no reason"
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
