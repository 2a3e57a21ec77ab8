"""HTML shells of the pages and their static files; scripts fetch the results, and show them as text."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from importlib import resources
from pathlib import PurePosixPath

from flask import Flask, Response, abort, request

from trackperm.report.templating import environment
from trackperm.version import __version__

_FOLDERS = (
    resources.files("trackperm.server") / "static",
    resources.files("trackperm.report") / "templates",  # styles of charts that reports have as well
)
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

_FILES = {
    file.name: file
    for folder in _FOLDERS
    for file in folder.iterdir()
    if PurePosixPath(file.name).suffix in _TYPES
}

STATIC_NAMES = tuple(sorted(_FILES))
"""Names of the files below ``/trackperm/static/``."""


def register(app: Flask, prefix: str) -> None:
    """Add the pages and their static files to MLflow's `app`, as routes for GET below the static prefix."""
    for name in ("compare", "leaderboard"):
        app.add_url_rule(
            f"{prefix}/trackperm/{name}", f"trackperm_{name}", _shell(name, prefix), methods=["GET"]
        )
    app.add_url_rule(f"{prefix}/trackperm/static/<name>", "trackperm_static", _static, methods=["GET"])


def _shell(name: str, prefix: str) -> Callable[[], Response]:
    def page() -> Response:
        nonce = secrets.token_urlsafe(16)
        body = (
            environment("trackperm.server")
            .get_template(f"{name}.html")
            .render(prefix=prefix, nonce=nonce, page=secrets.token_urlsafe(16), version=__version__)
        )
        response = Response(body, mimetype="text/html")
        response.headers["Content-Security-Policy"] = policy(nonce)
        response.headers["Cache-Control"] = "no-store"
        response.headers["Referrer-Policy"] = "same-origin"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    return page


def policy(nonce: str) -> str:
    """Return the Content-Security-Policy of a page, which allows only scripts and styles with its nonce.

    The server also serves artifacts, so that ``'self'`` would allow the scripts of a run.
    """
    sources = {
        "default-src": "'none'",
        "script-src": f"'nonce-{nonce}'",
        "style-src": f"'nonce-{nonce}'",
        "img-src": "data:",
        "connect-src": "'self'",
        "form-action": "'none'",
        "base-uri": "'none'",
        "frame-ancestors": "'self'",
    }
    return "; ".join(f"{name} {value}" for name, value in sources.items())


def _static(name: str) -> Response:
    if name not in STATIC_NAMES:
        abort(404)
    body = _FILES[name].read_bytes()
    response = Response(body, mimetype=_TYPES[PurePosixPath(name).suffix])
    response.set_etag(hashlib.sha256(body).hexdigest()[:32])
    response.headers["Cache-Control"] = "no-cache"  # browsers keep it, and ask whether it has changed
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.make_conditional(request)
    return response
