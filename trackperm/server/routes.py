"""HTTP endpoints of jobs: start, read, and cancel a job, and page through its changed examples."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import Any

from flask import Flask, Request, Response, request

from trackperm.errors import (
    CapacityError,
    InputError,
    RefusedRequestError,
    StorageError,
    TooManyJobsError,
    TrackpermError,
)
from trackperm.server.jobs.changed_examples import ChangedPage, read_changed_examples
from trackperm.server.jobs.pool import WorkerPool
from trackperm.server.jobs.replay import Caller
from trackperm.server.jobs.requests import JobRequest, read_request
from trackperm.server.jobs.store import CHANGED_FILE, RESULT_FILE, Job, JobStore, error_values
from trackperm.server.jobs.visitors import Visitor

API = "/ajax-api/2.0/trackperm"
PATHS = (
    (f"{API}/jobs", "POST"),
    (f"{API}/jobs", "GET"),
    (f"{API}/jobs", "DELETE"),
    (f"{API}/changed", "GET"),
)
"""Paths below the static prefix, with their methods."""

_MOST_BYTES = 2**16
_MOST_ROWS = 500
_AGAIN = "start it again."
_SHOWN = ("state", "step", "done", "total", "bytes", "error")
_SWITCHED_OFF = "MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE"


def register(
    app: Flask, prefix: str, store: JobStore, pool: WorkerPool, user: Callable[[], str | None]
) -> None:
    """Add the endpoints of jobs to MLflow's `app`, below the static prefix of all routes.

    `user` returns the name of the signed-in user who sent the request, or None.
    """

    def begin() -> Response:
        caller = Caller.of(app, request, prefix)
        asked = _job_request()
        reads = _permissions(caller, asked)
        visitor = Visitor.of(request, user())
        job = store.begin(visitor, reads, is_lasting=getattr(asked, "log", False))
        pool.submit(job, caller, asked)
        return _answer(json.dumps({"job": job.id}), 202)

    def own_job() -> Job:
        """Return the job that the request names; refuse a job of another visitor as if it did not exist."""
        visitor, job_id = Visitor.of(request, user()), request.args.get("id", "")
        job = store.find(job_id)
        if job is None or job.state.owner != visitor.owner:
            raise _not_found()
        store.hear(visitor)  # only for owners, as invented pages could fill the disk
        return store.find(job_id) or job

    def readable_job() -> Job:
        """Return the visitor's job, if the visitor may still read the runs that it is about."""
        job = own_job()
        if job.state.state not in ("waiting", "dropped"):  # these states tell nothing about runs
            caller = Caller.of(app, request, prefix)
            for route, name, value in job.state.reads:
                _read(caller, route, name, value)
        return job

    def report() -> Response:
        job = readable_job()
        state = {name: getattr(job.state, name) for name in _SHOWN}
        result = "null"
        if job.state.state == "done":
            try:
                result = (job.folder / RESULT_FILE).read_text(encoding="utf-8")
            except OSError as error:
                raise _not_found() from error
        # the result is JSON text already, and may be large
        return _answer(f'{json.dumps(state)[:-1]}, "result": {result}}}')

    def cancel() -> Response:
        job = own_job()
        if not (job.state.is_lasting and job.state.state == "running"):
            job.cancel()
        return Response(status=204)

    def changed() -> Response:
        job = readable_job()
        if job.state.changed_table == "none":
            raise RefusedRequestError(404, "this job has no table of changed examples")
        if job.state.changed_table == "failed":
            raise RefusedRequestError(503, "the table of changed examples could not be written", hint=_AGAIN)
        if job.state.changed_table == "writing":
            return _answer(json.dumps({"ready": False, **asdict(ChangedPage(0, 0, [], []))}))
        direction = request.args.get("direction", "all")
        if direction not in ("all", "better", "worse"):
            raise InputError(f"`direction` is {direction!r}; expected all, better or worse")
        page = read_changed_examples(
            job.folder / CHANGED_FILE,
            offset=_number("offset", 0, 2**31),
            limit=_number("limit", 50, _MOST_ROWS),
            search=request.args.get("search", "")[:1000],
            direction=direction,
        )
        return _answer(json.dumps({"ready": True, **asdict(page)}, ensure_ascii=False))

    for (path, method), name, view in zip(
        PATHS, ("begin", "report", "cancel", "changed"), (begin, report, cancel, changed), strict=True
    ):
        app.add_url_rule(f"{prefix}{path}", f"trackperm_{name}", _guarded(view), methods=[method])


def is_from_allowed_page(sent: Request) -> bool:
    """Whether `sent` comes from this server's pages, from pages that MLflow allows, or from a program.

    On a trusted connection, browsers state this themselves (``Sec-Fetch-Site``), by comparing the addresses
    that their user sees. Otherwise the origin has to be that of this server, scheme included, or one that
    MLflow's routes accept for requests that write: ``--cors-allowed-origins``, and pages on the visitor's own
    machine. ``--disable-security-middleware`` of MLflow switches this check off as well. Programs send
    neither header.
    """
    from mlflow.server.security_utils import get_allowed_origins_from_env, should_block_cors_request

    site, origin = sent.headers.get("Sec-Fetch-Site"), sent.headers.get("Origin")
    if site == "same-origin" or os.environ.get(_SWITCHED_OFF) == "true":
        return True
    if origin is None:  # an address that was typed in has no origin
        return site is None or (site == "none" and sent.method == "GET")
    if site is None and origin == sent.host_url.rstrip("/"):
        return True
    return not should_block_cors_request(origin, "POST", get_allowed_origins_from_env())


def _guarded(view: Callable[[], Response]) -> Callable[[], Response]:
    """Refuse requests from pages of other sites, and answer errors with a status and what a page shows."""

    @wraps(view)
    def answered() -> Response:
        try:
            if not is_from_allowed_page(request):
                raise RefusedRequestError(
                    403,
                    "this request comes from a page of another site, and is refused",
                    hint="`--cors-allowed-origins` of `mlflow server` names sites that are allowed.",
                )
            return view()
        except TrackpermError as error:
            return _answer(json.dumps({"error": error_values(error)}), _status(error))

    return answered


def _status(error: TrackpermError) -> int:
    if isinstance(error, RefusedRequestError):
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


def _job_request() -> JobRequest:
    """Read the body of a request for a job."""
    if request.mimetype != "application/json":
        raise InputError(f"the content is of type {request.mimetype!r}; expected application/json")
    if request.content_length is None or request.content_length > _MOST_BYTES:
        raise RefusedRequestError(
            413, f"the request is longer than {_MOST_BYTES} bytes, or does not state its length"
        )
    return read_request(request.get_data())


def _permissions(caller: Caller, asked: JobRequest) -> list[tuple[str, str, str]]:
    """Ask MLflow whether the caller may read the runs and the experiment of a request.

    Return the permissions to check again before the result is read. MLflow grants rights by experiment, so
    that one run of each experiment suffices.
    """
    found: dict[str, tuple[str, str, str]] = {}
    if asked.experiment is not None:
        found[asked.experiment] = ("experiments/get", "experiment_id", asked.experiment)
        _read(caller, *found[asked.experiment])
    baseline = getattr(asked, "baseline", None)
    for run in dict.fromkeys([*asked.runs, *([] if baseline is None else [baseline])]):
        info = _read(caller, "runs/get", "run_id", run)["run"]["info"]
        found.setdefault(str(info["experiment_id"]), ("runs/get", "run_id", run))
    return list(found.values())


def _read(caller: Caller, route: str, name: str, value: str) -> dict[str, Any]:
    """Read a run or an experiment as the caller; a refusal has MLflow's status."""
    try:
        return caller.read(route, **{name: value})
    except RefusedRequestError as error:
        what = "experiment" if name == "experiment_id" else "run"
        status = error.status if error.status in (400, 401, 403, 404) else 503
        message = f"MLflow refuses {what} `{value}`: {error.message[:400]}"
        raise RefusedRequestError(status, message) from error


def _not_found() -> TrackpermError:
    return RefusedRequestError(
        404, "this job is not yours or does not exist; results are kept for an hour", hint=_AGAIN
    )


def _number(name: str, default: int, most: int) -> int:
    written = request.args.get(name, str(default))
    if not written.isdecimal() or int(written) > most:
        raise InputError(f"`{name}` is {written!r}; expected a whole number up to {most}")
    return int(written)
