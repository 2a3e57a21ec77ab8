"""Requests of a job, replayed through MLflow's own routes in this process, as the user who asked for it.

MLflow checks the permissions of that user at every one of them; the credentials never leave the process.
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

_CREDENTIALS = ("Authorization", "Cookie", "X-MLFLOW-WORKSPACE")
_FORWARDED = ("Content-Type", "Accept", "User-Agent")
_ROUTES = ("/api/", "/ajax-api/", "/get-artifact")
_OWN = "/trackperm/"


class ForbiddenRouteError(Exception):
    """A request of a job to something else than MLflow's public routes."""


class MlflowRefusalError(Exception):
    """MLflow does not let the user read something.

    Parameters
    ----------
    status : int
        Of HTTP.
    message : str
        MLflow's own.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Caller:
    """The user who sent a request.

    Attributes
    ----------
    app : Flask
        The application that has MLflow's routes and checks permissions.
    prefix : str
        Static prefix of all routes, without a slash at the end; mostly empty.
    host_url : str
        Scheme and host under which the user sees the server, with a slash at the end.
    address : str
        The user's network address.
    credentials : mapping of str to str
        The headers that say who it is.
    """

    app: Flask = field(repr=False)
    prefix: str
    host_url: str
    address: str
    credentials: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, app: Flask, request: Request, prefix: str) -> Caller:
        """Take the user of `request`, which `app` has let through."""
        credentials = {name: request.headers[name] for name in _CREDENTIALS if name in request.headers}
        return cls(app, prefix, request.host_url, request.remote_addr or "", credentials)

    @property
    def base(self) -> str:
        """URL of the tracking server as the user sees it."""
        return self.host_url.rstrip("/") + self.prefix

    def send(
        self, method: str, target: str, headers: Mapping[str, str], body: IO[bytes] | None = None
    ) -> TestResponse:
        """Send a request to a route of MLflow; the answer is a stream, to be closed.

        Parameters
        ----------
        method : str
            Of HTTP.
        target : str
            Path and query below the static prefix, percent-encoded.
        headers : mapping of str to str
            Of these, only those that describe the body are sent.
        body : file, optional
            Its content.

        Raises
        ------
        ForbiddenRouteError
            If `target` is no public route of MLflow.
        """
        path = unquote(urlsplit(target).path)
        if (
            not path.startswith(_ROUTES)
            or posixpath.normpath(path) != path.rstrip("/")
            or _OWN in path
            or "\\" in path
        ):
            raise ForbiddenRouteError(path)
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
        """Read something of MLflow, as the user.

        Raises
        ------
        MlflowRefusalError
            If MLflow does not let the user read it.
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
        raise MlflowRefusalError(answer.status_code, message)
