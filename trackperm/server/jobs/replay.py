"""Replay of a job's requests through MLflow's own routes in the server process, as the user of the job.

MLflow checks the user's permissions for every request, and the credentials never leave the server process.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any
from urllib.parse import unquote, urlencode, urlsplit

from flask import Flask, Request
from werkzeug.test import TestResponse

from trackperm.errors import ForbiddenRouteError, RefusedRequestError

_CREDENTIALS = ("Authorization", "Cookie", "X-MLFLOW-WORKSPACE")
_FORWARDED = ("Content-Type", "Accept", "User-Agent")
_ROUTES = ("/api/", "/ajax-api/", "/get-artifact")
_OWN = "/trackperm/"


@dataclass(frozen=True)
class Caller:
    """User who sent a request.

    Attributes
    ----------
    app : Flask
        Application with MLflow's routes, which checks permissions.
    prefix : str
        Static prefix of all routes, without a slash at the end; usually empty.
    host_url : str
        Scheme and host under which the user sees the server, with a slash at the end.
    address : str
        Network address of the user.
    credentials : mapping of str to str
        Headers that identify the user.
    """

    app: Flask = field(repr=False)
    prefix: str
    host_url: str
    address: str
    credentials: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, app: Flask, request: Request, prefix: str) -> Caller:
        """Take the user of a `request` that `app` has let through."""
        credentials = {name: request.headers[name] for name in _CREDENTIALS if name in request.headers}
        return cls(app, prefix, request.host_url, request.remote_addr or "", credentials)

    @property
    def base(self) -> str:
        """URL of the tracking server as the user sees it."""
        return self.host_url.rstrip("/") + self.prefix

    def send(
        self, method: str, target: str, headers: Mapping[str, str], body: IO[bytes] | None = None
    ) -> TestResponse:
        """Send a request to a route of MLflow; the answer is a stream that the caller closes.

        `target` is path and query below the static prefix, percent-encoded. Of the headers, only those that
        describe the body are sent on. Raise ForbiddenRouteError if `target` is not a public route of MLflow.
        """
        path = unquote(urlsplit(target).path)
        if (
            not path.startswith(_ROUTES)
            or posixpath.normpath(path) != path.rstrip("/")
            or _OWN in path
            or "\\" in path
        ):
            raise ForbiddenRouteError(f"`{path}` is not a public route of MLflow")
        described = {name: value for name, value in headers.items() if name.title() in _FORWARDED}
        return self.app.test_client(use_cookies=False).open(
            self.prefix + target,
            method=method,
            base_url=self.host_url,
            headers={**described, **self.credentials},
            environ_base={"REMOTE_ADDR": self.address},
            input_stream=body,
            buffered=False,
        )

    def read(self, route: str, **query: str) -> dict[str, Any]:
        """Read a JSON document from MLflow as the user.

        Raise RefusedRequestError if MLflow refuses it; with MLflow's status and message.
        """
        answer = self.send("GET", f"/ajax-api/2.0/mlflow/{route}?{urlencode(query)}", {})
        try:
            text = answer.get_data(as_text=True)
        finally:
            answer.close()
        try:
            found: dict[str, Any] = json.loads(text)
            if answer.status_code == 200:
                return found
            message = str(found["message"])
        except (ValueError, KeyError, TypeError):
            message = text.strip() or answer.status
        raise RefusedRequestError(answer.status_code, message)
