"""Application of ``mlflow server --app-name trackperm``: MLflow's pages and trackperm's, on one port."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flask import Flask, g, request

from trackperm.errors import InputError, MissingDependencyError, TrackpermError
from trackperm.server import button, pages, queue_finished_runs, routes
from trackperm.server.jobs.limits import Limits
from trackperm.server.jobs.pool import WorkerPool
from trackperm.server.jobs.store import JobStore

_AUTH = "basic-auth"
_BROKEN = 3


def prepare() -> None:
    """Check the environment and set up accounts, once, before the processes of a server start.

    With basic authentication, this creates the tables of users and the admin, from
    ``MLFLOW_AUTH_ADMIN_PASSWORD`` or the file that ``MLFLOW_AUTH_CONFIG_PATH`` names.

    Raises
    ------
    SystemExit
        If a setting of the environment is not valid, after one line on standard error.
    """
    import mlflow.server

    with _one_line_of_error():
        Limits.of_environment()
        if _has_accounts():
            _require_auth()
            # MLflow 3.10 lacks it, and does this in each process
            bootstrap = getattr(mlflow.server, "_bootstrap_basic_auth", None)
            if bootstrap is not None:
                bootstrap()


def create_app() -> Any:
    """Return MLflow's application with trackperm's pages, for uvicorn or for a WSGI server.

    The entry point ``mlflow.app`` leads here. ``TRACKPERM_WITH=basic-auth`` adds MLflow's basic
    authentication.

    Raises
    ------
    SystemExit
        If a setting of the environment is not valid, after one line on standard error. The exit code tells
        gunicorn and uvicorn not to start another worker process.
    """
    from mlflow.server import app

    with _one_line_of_error():
        with_accounts = _has_accounts()
        register(app, user=_mlflow_user if with_accounts else None)
        if with_accounts:
            return _with_basic_auth(app)
    if os.environ.get("_MLFLOW_SGI_NAME") == "uvicorn":
        from mlflow.server.fastapi_app import create_fastapi_app

        return create_fastapi_app(app)
    return app


@contextmanager
def _one_line_of_error() -> Iterator[None]:
    """Exit after one line on standard error if a setting of the environment is not valid."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (TrackpermError, MlflowException) as error:
        sys.stderr.write(f"trackperm: {error.message.splitlines()[0]}\n")
        raise SystemExit(_BROKEN) from error


def _has_accounts() -> bool:
    """Whether visitors sign in, as ``TRACKPERM_WITH`` says."""
    wanted = os.environ.get("TRACKPERM_WITH", "")
    if wanted not in ("", _AUTH):
        raise InputError(f"`TRACKPERM_WITH` is {wanted!r}; expected `{_AUTH}` or nothing")
    return wanted == _AUTH


def _require_auth() -> None:
    """Import MLflow's basic authentication, or raise MissingDependencyError."""
    try:
        import mlflow.server.auth  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"`TRACKPERM_WITH={_AUTH}` needs `mlflow[auth]`: `{error.name}` is not installed"
        ) from error


def _with_basic_auth(app: Flask) -> Any:
    """Return `app` with MLflow's basic authentication.

    A lock makes processes of the server take turns: each may migrate the database of users and create the
    admin.
    """
    _require_auth()
    from mlflow.server import auth

    _allow_signed_in(auth.BEFORE_REQUEST_VALIDATORS)
    store = JobStore()
    atexit.register(store.clear)
    with store.locked():
        return auth.create_app(app)


def register(app: Flask, user: Callable[[], str | None] | None = None) -> None:
    """Add trackperm's pages, jobs, button and hook to an application that has MLflow's routes.

    Parameters
    ----------
    app : flask.Flask
        ``mlflow.server.app``, or an application made from it. It has to check permissions itself before each
        request, as MLflow's basic authentication does: jobs read through its routes, in this process.
    user : callable, optional
        Returns the name of the signed-in user who sent the current request of Flask, or None. Without it,
        visitors are distinguished by their pages and addresses.

    Raises
    ------
    InputError
        If a limit in the environment is not a positive number, or its policy file is not valid.
    """
    prefix = os.environ.get("_MLFLOW_STATIC_PREFIX", "").rstrip("/")
    store = JobStore()
    routes.register(app, prefix, store, WorkerPool(Limits.of_environment()), user or _nobody)
    pages.register(app, prefix)
    button.install(app, prefix)
    queue_finished_runs.install(app)
    atexit.register(store.clear)


def _nobody() -> None:
    """Return None as the name of the user, on a server without accounts."""


def _mlflow_user() -> str | None:
    """Return the name of the user whom MLflow's authentication has accepted.

    MLflow 3.10 does not pass the name on; the credentials that it accepted identify the user there.
    """
    signed_in = request.authorization
    name = g.get("mlflow_authenticated_user") or (signed_in.username if signed_in is not None else None)
    return name or request.headers.get("Authorization") or request.headers.get("Cookie")


def _allow_signed_in(validators: dict[tuple[str, str], Any]) -> None:
    """Let every signed-in user reach trackperm's routes; MLflow checks each run that they read."""
    prefix = os.environ.get("_MLFLOW_STATIC_PREFIX", "").rstrip("/")
    shells = [f"/trackperm/{name}" for name in ("compare", "leaderboard")]
    files = [f"/trackperm/static/{name}" for name in pages.STATIC_NAMES]
    for path, method in [*routes.PATHS, *((path, "GET") for path in [*shells, *files])]:
        validators[f"{prefix}{path}", method] = lambda: True
