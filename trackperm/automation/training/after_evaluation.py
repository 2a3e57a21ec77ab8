"""Logging and comparison after an evaluation, within a time budget, for callbacks of training frameworks.

Callbacks use it in the one process that logs. Failures are warnings of the logger ``trackperm``, and never
exceptions; predictions that could not be logged are kept in a file.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import polars as pl

from trackperm.automation.policy.load import PolicyFile, load_policies
from trackperm.automation.policy.policy import Policy
from trackperm.automation.queue.database import default_folder
from trackperm.automation.training.on_exit import BUDGET_SECONDS, budget_of, compare_on_exit, warn
from trackperm.errors import InputError
from trackperm.messages import listed
from trackperm.tables.named_frame import named_frame
from trackperm.trackers.log_predictions import log_predictions
from trackperm.trackers.open_runs import OpenRun, Snapshot

_MOST_EXACT = 2**53  # floats represent all whole numbers up to here


class AfterEvaluation:
    """Logging of a run's predictions, and its comparison by a policy; without a policy, logging only.

    The parameters are those of :func:`trackperm.compare_on_exit`; `name` is that of the predictions in the
    run, and logging and comparison together take at most `budget_seconds`.
    """

    def __init__(
        self,
        policy: str | Path | PolicyFile | Policy | None,
        *,
        policy_name: str | None = None,
        name: str = "predictions",
        budget_seconds: float = BUDGET_SECONDS,
        state: str | Path | None = None,
    ) -> None:
        self._policy = policy
        self._policy_name = policy_name
        self._name = name
        self._budget = budget_of(budget_seconds)
        self._state = state
        self._before = Snapshot(None, None, None)

    def prepare(self) -> None:
        """Read the policy and record the open runs before the training, so that errors are reported early."""
        try:
            self._before = Snapshot.taken()
            if isinstance(self._policy, str | Path):
                self._policy = load_policies(self._policy)
            if isinstance(self._policy, PolicyFile) and self._policy_name is not None:
                self._policy = self._policy.find(self._policy_name)
        except Exception as error:
            self._policy = None
            warn("predictions will be logged, but nothing will be compared", error)

    def finish(self, columns: Callable[[], Any], runs: Callable[[], Sequence[OpenRun]] = lambda: ()) -> None:
        """Log predictions to the open runs, and compare these runs.

        `columns` returns the predictions: columns by name, with ``id``. `runs` returns the runs of the
        framework's own loggers; if it has none, the active runs are used.
        """
        try:
            frame = _frame(columns())
        except Exception as error:
            warn("the predictions were not logged", error)
            return
        deadline = time.monotonic() + self._budget
        try:
            active = Snapshot.taken().runs_since(self._before)  # in this thread: MLflow keeps runs by thread
            logged = self._logged(frame, lambda: runs() or active)
        except Exception as error:
            self._keep(frame, None, error)
            return
        if self._policy is None:
            return
        for run in logged:
            left = max(0.0, deadline - time.monotonic())
            with compare_on_exit(self._policy, run=run, budget_seconds=left, state=self._state):
                pass

    def _logged(self, frame: pl.DataFrame, find: Callable[[], Sequence[OpenRun]]) -> list[OpenRun]:
        """Log to all runs in another thread, and return the runs that have the predictions in time."""
        logged: list[OpenRun] = []
        failed: list[tuple[OpenRun | None, Exception]] = []
        found: list[OpenRun] = []

        def log() -> None:
            try:
                found.extend(find())
                if not found:
                    raise InputError("no run of MLflow or W&B is open")
            except Exception as error:
                failed.append((None, error))
            for run in tuple(found):
                uri = run.environment.get("MLFLOW_TRACKING_URI")
                try:
                    log_predictions(run.handle, frame, name=self._name, tracking_uri=uri)
                    logged.append(run)
                except Exception as error:
                    failed.append((run, error))

        thread = threading.Thread(target=log, name="trackperm-predictions", daemon=True)
        thread.start()
        thread.join(self._budget)
        if thread.is_alive():
            late = TimeoutError(f"the tracker did not answer within {self._budget:g} seconds")
            pending = [run for run in found if run not in logged and run not in [each for each, _ in failed]]
            failed.extend((run, late) for run in pending)
            if not pending:
                failed.append((None, late))
        for run, error in tuple(failed):
            self._keep(frame, run, error)
        return list(logged)

    def _keep(self, frame: pl.DataFrame, run: OpenRun | None, error: Exception) -> None:
        """Write predictions that could not be logged to a file, with a warning."""
        name, whose = ("no-run", "") if run is None else (str(run.reference), f" of {run.reference}")
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{name}-{self._name}-{time.time_ns()}")
        try:
            state = default_folder() if self._state is None else Path(self._state).expanduser()
            folder = state / "unlogged"
            folder.mkdir(parents=True, exist_ok=True)
            frame.write_parquet(folder / f"{name}.parquet")
        except Exception as failure:
            where = f"could not be kept either ({type(failure).__name__}: {failure})"
        else:
            where = f"are kept in {folder / name}.parquet"
        warn(f"the predictions{whose} were not logged, and nothing is compared; they {where}", error)


def _frame(columns: Mapping[str, Any]) -> pl.DataFrame:
    """Build a data frame of the columns."""
    series = [_series(name, values) for name, values in columns.items()]
    if len({len(each) for each in series}) > 1:
        sizes = ", ".join(f"`{each.name}` {len(each):,}" for each in series)
        raise InputError(
            f"the columns of the predictions differ in length: {sizes}",
            hint="every example needs a value in each column: does a batch lack one?",
        )
    return named_frame(series)


def _series(name: str, values: Any) -> pl.Series:
    """Build a column; mixed numbers become floating-point numbers if that loses nothing."""
    try:
        return pl.Series(name, values)
    except Exception:  # such as a value of another type than the first one
        given = [value for value in values if value is not None]
    is_exact = all(not isinstance(value, Integral) or abs(int(value)) <= _MOST_EXACT for value in given)
    if all(isinstance(value, Real) for value in given) and is_exact:
        return pl.Series(name, [None if value is None else float(value) for value in values])
    types = listed(sorted({type(value).__name__ for value in given}))
    raise InputError(
        f"column `{name}` of the predictions mixes the types {types}"
        + ("" if is_exact else ", with whole numbers above 2**53"),
        hint="let all batches return values of one type, numbers or text.",
    )
