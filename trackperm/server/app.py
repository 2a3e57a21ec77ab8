"""``mlflow server --app-name trackperm``: MLflow's own pages, with ours beside them on the same port."""

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
    """Do what has to be done before the processes of a server start, as MLflow's own command does.

    Checks the environment. With basic authentication, makes the tables of users and the admin, from
    ``MLFLOW_AUTH_ADMIN_PASSWORD`` or the file that ``MLFLOW_AUTH_CONFIG_PATH`` names.

    Raises
    ------
    SystemExit
        After one line on standard error, if the environment asks for something that there is not.
    """
    import mlflow.server

    with _said_once():
        Limits.of_environment()
        if _has_accounts():
            _require_auth()
            # MLflow 3.10 has none: there, each process does it
            bootstrap = getattr(mlflow.server, "_bootstrap_basic_auth", None)
            if bootstrap is not None:
                bootstrap()


def create_app() -> Any:
    """Return MLflow's application with ours added, for uvicorn or for a WSGI server.

    It is what the entry point ``mlflow.app`` leads to. ``TRACKPERM_WITH=basic-auth`` composes it with
    MLflow's basic authentication.

    Raises
    ------
    SystemExit
        If the environment asks for something that there is not, after one line on standard error that says
        what. By this exit code gunicorn and uvicorn know that another worker process would fare no better.
    """
    from mlflow.server import app

    with _said_once():
        with_accounts = _has_accounts()
        register(app, user=_mlflow_user if with_accounts else None)
        if with_accounts:
            return _with_basic_auth(app)
    if os.environ.get("_MLFLOW_SGI_NAME") == "uvicorn":
        from mlflow.server.fastapi_app import create_fastapi_app

        return create_fastapi_app(app)
    return app


@contextmanager
def _said_once() -> Iterator[None]:
    """End the process after one line where the environment asks for something that there is not."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (TrackpermError, MlflowException) as error:
        sys.stderr.write(f"trackperm: {error.message.splitlines()[0]}\n")
        raise SystemExit(_BROKEN) from error


def _has_accounts() -> bool:
    """Whether visitors sign in, by what the environment says.

    Raises
    ------
    InputError
        If it says something else.
    """
    wanted = os.environ.get("TRACKPERM_WITH", "")
    if wanted not in ("", _AUTH):
        raise InputError(f"`TRACKPERM_WITH` is {wanted!r}; expected `{_AUTH}` or nothing")
    return wanted == _AUTH


def _require_auth() -> None:
    """Import MLflow's basic authentication.

    Raises
    ------
    MissingDependencyError
        If it lacks a library.
    """
    try:
        import mlflow.server.auth  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"`TRACKPERM_WITH={_AUTH}` needs `mlflow[auth]`, of which `{error.name}` is not installed"
        ) from error


def _with_basic_auth(app: Flask) -> Any:
    """Return `app` with MLflow's basic authentication.

    One process of the server at a time: each migrates the database of users, and makes the admin, if need be.
    """
    _require_auth()
    from mlflow.server import auth

    _let_through(auth.BEFORE_REQUEST_VALIDATORS)
    store = JobStore()
    atexit.register(store.clear)
    with store.locked():
        return auth.create_app(app)


def register(app: Flask, user: Callable[[], str | None] | None = None) -> None:
    """Add trackperm's pages, jobs, button and hook to an application that has MLflow's routes.

    Parameters
    ----------
    app : flask.Flask
        ``mlflow.server.app``, or one made from it. It has to check permissions itself, before each request,
        as MLflow's basic authentication does: what jobs read is asked of it in this process.
    user : callable, optional
        Returns the name of the user who has signed in and sent the request that Flask is about to answer, or
        None. Without it visitors are told apart by their pages and addresses.

    Raises
    ------
    InputError
        If the environment sets a limit that is none, or names a policy file that is not valid.
    """
    prefix = os.environ.get("_MLFLOW_STATIC_PREFIX", "").rstrip("/")
    store = JobStore()
    routes.register(app, prefix, store, WorkerPool(Limits.of_environment()), user or _nobody)
    pages.register(app, prefix)
    button.install(app, prefix)
    queue_finished_runs.install(app)
    atexit.register(store.clear)


def _nobody() -> None:
    """Tell the name of who has signed in where nobody does."""


def _mlflow_user() -> str | None:
    """Tell the name of who has signed in, by what MLflow's authentication has let through.

    MLflow 3.10 does not pass the name on: there, what it has accepted stands for the user.
    """
    signed_in = request.authorization
    name = g.get("mlflow_authenticated_user") or (signed_in.username if signed_in is not None else None)
    return name or request.headers.get("Authorization") or request.headers.get("Cookie")


def _let_through(validators: dict[tuple[str, str], Any]) -> None:
    """Let every user who is known reach our routes: MLflow decides about what they read, by each request."""
    prefix = os.environ.get("_MLFLOW_STATIC_PREFIX", "").rstrip("/")
    shells = [f"/trackperm/{name}" for name in ("compare", "leaderboard")]
    files = [f"/trackperm/static/{name}" for name in pages.STATIC_NAMES]
    for path, method in [*routes.PATHS, *((path, "GET") for path in [*shells, *files])]:
        validators[f"{prefix}{path}", method] = lambda: True
