"""Which pages of the web may use our endpoints: those of this server, and those that MLflow lets through."""

from __future__ import annotations

import os

from flask import Request

_SWITCHED_OFF = "MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE"


def is_from_allowed_page(request: Request) -> bool:
    """Whether no page of a foreign site has sent `request`.

    A browser says so itself, by comparing addresses as its reader sees them (``Sec-Fetch-Site``), where it
    trusts the connection. Elsewhere the origin has to be that of this server, scheme included, or one to
    which MLflow's own routes are open: ``--cors-allowed-origins``, and pages on the visitor's own machine.
    MLflow's ``--disable-security-middleware`` switches this check off as well. Programs send neither header.

    Parameters
    ----------
    request : flask.Request
        To one of our endpoints. MLflow restricts no origin of a request that only reads; here the same holds
        for all of them.
    """
    from mlflow.server.security_utils import get_allowed_origins_from_env, should_block_cors_request

    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site == "same-origin" or os.environ.get(_SWITCHED_OFF) == "true":
        return True
    if origin is None:  # an address that was typed in has no origin
        return site is None or (site == "none" and request.method == "GET")
    if site is None and origin == request.host_url.rstrip("/"):
        return True
    return not should_block_cors_request(origin, "POST", get_allowed_origins_from_env())
