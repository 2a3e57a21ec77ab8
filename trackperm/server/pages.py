"""The pages and their files. They hold nothing of any run: scripts fetch that, and show it as text."""

from __future__ import annotations

import gzip
import hashlib
import secrets
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from threading import Lock

from flask import Flask, Response, abort, request

from trackperm.report.templating import environment
from trackperm.version import __version__

_STATIC = resources.files("trackperm.server") / "static"
_VEGA = "vega.js"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_BUNDLE_SECONDS = 120.0
_WRITE_PROGRAM = (
    "import sys; from trackperm.report import charts; sys.stdout.buffer.write(charts.program().encode())"
)

STATIC_NAMES = (*sorted(file.name for file in _STATIC.iterdir() if file.is_file()), _VEGA)
"""Names of the files below ``/trackperm/static/``; the last is made when it is asked for."""


def register(app: Flask, prefix: str) -> None:
    """Add the pages and their files to `app`, all to be read with GET.

    Parameters
    ----------
    app : flask.Flask
        MLflow's application, or one that has its routes.
    prefix : str
        What stands before every path of the server, such as ``/mlf``; empty for nothing.
    """
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
    """Return the Content-Security-Policy of a page.

    Only scripts and styles that the page itself names may be used: the same server also hands out artifacts,
    so that ``'self'`` would let a run bring its own script.
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
    body = _program() if name == _VEGA else (_STATIC / name).read_bytes()
    response = Response(mimetype=_TYPES[PurePosixPath(name).suffix])
    if name == _VEGA and "gzip" in request.headers.get("Accept-Encoding", ""):
        body = _packed_program()
        response.headers["Content-Encoding"] = "gzip"
    response.data = body
    response.set_etag(hashlib.sha256(body).hexdigest()[:32])
    response.headers["Cache-Control"] = "no-cache"  # may be kept, and is asked for again
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.make_conditional(request)
    return response


_building = Lock()


def _program() -> bytes:
    with _building:
        return _built_program()


@cache
def _built_program() -> bytes:
    """Bundle the program of charts in a process of its own, which takes the memory of a JavaScript engine."""
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", _WRITE_PROGRAM], capture_output=True, timeout=_BUNDLE_SECONDS, check=False
    )
    if done.returncode:
        abort(503)
    return done.stdout


@cache
def _packed_program() -> bytes:
    return gzip.compress(_program(), mtime=0)
