"""The HTTP endpoints of jobs: a request becomes a job, and a job's record an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import Any

from flask import Flask, Response, request

from trackperm.errors import CapacityError, InputError, StorageError, TrackpermError
from trackperm.server.jobs.changed_examples import FlipPage, read_flips
from trackperm.server.jobs.pool import WorkerPool
from trackperm.server.jobs.replay import Caller, MlflowRefusalError
from trackperm.server.jobs.requests import JobRequest, read_request
from trackperm.server.jobs.store import (
    FLIPS_FILE,
    RESULT_FILE,
    Job,
    JobStore,
    TooManyJobsError,
    error_values,
)
from trackperm.server.jobs.visitors import Visitor
from trackperm.server.origins import is_from_allowed_page

API = "/ajax-api/2.0/trackperm"
PATHS = (
    (f"{API}/jobs", "POST"),
    (f"{API}/jobs", "GET"),
    (f"{API}/jobs", "DELETE"),
    (f"{API}/flips", "GET"),
)
"""Paths below the static prefix, with their methods."""

_MOST_BYTES = 2**16
_MOST_ROWS = 500
_AGAIN = "start it again."
_SHOWN = ("state", "step", "done", "total", "bytes", "error")


class _RefusedError(TrackpermError):
    """A request that is answered by an error status."""

    def __init__(self, status: int, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


def register(
    app: Flask, prefix: str, store: JobStore, pool: WorkerPool, user: Callable[[], str | None]
) -> None:
    """Add the endpoints of jobs to `app`.

    Parameters
    ----------
    app : Flask
        The application that has MLflow's routes.
    prefix : str
        Static prefix of all routes.
    store : JobStore
        Where jobs are recorded.
    pool : WorkerPool
        Where they run.
    user : callable
        Returns the name of the user who has signed in and sent the request, or None.
    """

    def begin() -> Response:
        _require_allowed_page()
        caller = Caller.of(app, request, prefix)
        order = _order()
        reads = _readable(caller, order)
        visitor = Visitor.of(request, user())
        job = store.begin(visitor, reads, is_lasting=getattr(order, "log", False))
        pool.submit(job, caller, order)
        return _answer(json.dumps({"job": job.id}), 202)

    def found() -> Job:
        """Return the job that is asked for, which has to be one of the visitor."""
        _require_allowed_page()
        visitor, job_id = Visitor.of(request, user()), request.args.get("id", "")
        job = store.find(job_id)
        if job is None or job.state.owner != visitor.owner:
            raise _expired()
        store.hear(visitor)  # of no others, who could fill the disk with pages that they make up
        return store.find(job_id) or job

    def readable() -> Job:
        """Return the job that is asked for, if the visitor may read by now what it is about."""
        job = found()
        if job.state.state not in ("waiting", "dropped"):  # which say nothing of any run
            caller = Caller.of(app, request, prefix)
            for route, name, value in job.state.reads:
                _read(caller, route, name, value)
        return job

    def report() -> Response:
        job = readable()
        state = {name: getattr(job.state, name) for name in _SHOWN}
        result = "null"
        if job.state.state == "done":
            try:
                result = (job.folder / RESULT_FILE).read_text(encoding="utf-8")
            except OSError as error:
                raise _expired() from error
        # a result is JSON already, and may be large
        return _answer(f'{json.dumps(state)[:-1]}, "result": {result}}}')

    def cancel() -> Response:
        job = found()
        if not (job.state.is_lasting and job.state.state == "running"):
            job.cancel()
        return Response(status=204)

    def flips() -> Response:
        job = readable()
        if job.state.flips == "none":
            raise _RefusedError(404, "this job has no table of changed examples")
        if job.state.flips == "failed":
            raise _RefusedError(503, "the table of changed examples could not be written", hint=_AGAIN)
        if job.state.flips == "writing":
            return _answer(json.dumps({"ready": False, **asdict(FlipPage(0, 0, [], []))}))
        direction = request.args.get("direction", "all")
        if direction not in ("all", "better", "worse"):
            raise InputError(f"`direction` is {direction!r}; expected all, better or worse")
        page = read_flips(
            job.folder / FLIPS_FILE,
            offset=_number("offset", 0, 2**31),
            limit=_number("limit", 50, _MOST_ROWS),
            search=request.args.get("search", "")[:1000],
            direction=direction,
        )
        return _answer(json.dumps({"ready": True, **asdict(page)}, ensure_ascii=False))

    app.add_url_rule(f"{prefix}{API}/jobs", "trackperm_begin", _refusing(begin), methods=["POST"])
    app.add_url_rule(f"{prefix}{API}/jobs", "trackperm_report", _refusing(report), methods=["GET"])
    app.add_url_rule(f"{prefix}{API}/jobs", "trackperm_cancel", _refusing(cancel), methods=["DELETE"])
    app.add_url_rule(f"{prefix}{API}/flips", "trackperm_flips", _refusing(flips), methods=["GET"])


def _refusing(view: Callable[[], Response]) -> Callable[[], Response]:
    """Answer refusals by a status and what a page can show."""

    @wraps(view)
    def answered() -> Response:
        try:
            return view()
        except TrackpermError as error:
            return _answer(json.dumps({"error": error_values(error)}), _status(error))

    return answered


def _status(error: TrackpermError) -> int:
    if isinstance(error, _RefusedError):
        return error.status
    if isinstance(error, TooManyJobsError):
        return 429
    if isinstance(error, InputError):
        return 400
    return 413 if isinstance(error, CapacityError) and not isinstance(error, StorageError) else 503


def _answer(content: str, status: int = 200) -> Response:
    answer = Response(content, status, mimetype="application/json")
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["X-Content-Type-Options"] = "nosniff"
    return answer


def _require_allowed_page() -> None:
    """Refuse requests that pages of other sites send.

    Raises
    ------
    TrackpermError
        If it is one.
    """
    if not is_from_allowed_page(request):
        raise _RefusedError(
            403,
            "this request comes from a page of another site, and is refused",
            hint="`--cors-allowed-origins` of `mlflow server` names sites that are let through.",
        )


def _order() -> JobRequest:
    """Read what was asked for.

    Raises
    ------
    TrackpermError
        If it is too long, no JSON, or not what can be asked for.
    """
    if request.mimetype != "application/json":
        raise InputError(f"the content is of type {request.mimetype!r}; expected application/json")
    if request.content_length is None or request.content_length > _MOST_BYTES:
        raise _RefusedError(413, f"the request is longer than {_MOST_BYTES} bytes, or does not say how long")
    return read_request(request.get_data())


def _readable(caller: Caller, order: JobRequest) -> list[tuple[str, str, str]]:
    """Ask MLflow whether the caller may read what the order names.

    Returns
    -------
    list of (str, str, str)
        What to ask before the result is read: the experiment, and a run of each other experiment, for
        MLflow grants rights by experiments.

    Raises
    ------
    TrackpermError
        If not, with MLflow's status.
    """
    asked: dict[str, tuple[str, str, str]] = {}
    if order.experiment is not None:
        asked[order.experiment] = ("experiments/get", "experiment_id", order.experiment)
        _read(caller, *asked[order.experiment])
    baseline = getattr(order, "baseline", None)
    for run in dict.fromkeys([*order.runs, *([] if baseline is None else [baseline])]):
        found = _read(caller, "runs/get", "run_id", run)
        asked.setdefault(str(found["run"]["info"]["experiment_id"]), ("runs/get", "run_id", run))
    return list(asked.values())


def _read(caller: Caller, route: str, name: str, value: str) -> dict[str, Any]:
    """Read a run or an experiment as the caller.

    Raises
    ------
    TrackpermError
        If MLflow refuses it, with MLflow's status.
    """
    try:
        return caller.read(route, **{name: value})
    except MlflowRefusalError as error:
        what = "experiment" if name == "experiment_id" else "run"
        known = error.status if error.status in (400, 401, 403, 404) else 503
        raise _RefusedError(known, f"MLflow refuses {what} `{value}`: {str(error)[:400]}") from error


def _expired() -> TrackpermError:
    return _RefusedError(404, "there is no such job of yours; results are kept for an hour", hint=_AGAIN)


def _number(name: str, default: int, most: int) -> int:
    written = request.args.get(name, str(default))
    if not written.isdecimal() or int(written) > most:
        raise InputError(f"`{name}` is {written!r}; expected a whole number up to {most}")
    return int(written)
