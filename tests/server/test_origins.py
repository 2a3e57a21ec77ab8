"""Which pages may use our endpoints, against MLflow's own rule for requests that write."""

from __future__ import annotations

import pytest
from flask import Request
from werkzeug.test import EnvironBuilder

from trackperm.server.origins import is_from_allowed_page

pytestmark = [
    pytest.mark.tracker,
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy"),  # of MLflow's own tables
]

OWN = "https://runs.example"


def is_allowed(method: str = "POST", base: str = OWN, **headers: str) -> bool:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return is_from_allowed_page(
        Request(EnvironBuilder(method=method, base_url=base, headers=named).get_environ())
    )


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (OWN, True),
        ("http://runs.example", False),  # anybody on the network could have sent that page
        ("https://runs.example:8443", False),
        ("https://runs.example.evil.example", False),
        ("null", False),
    ],
)
def test_own_origin_has_a_scheme(origin: str, allowed: bool) -> None:
    assert is_allowed(Origin=origin) is allowed


@pytest.mark.parametrize("allowed", ["https://front.example", "https://*.example", "*", ""])
@pytest.mark.parametrize(
    "origin", ["https://front.example", "http://front.example", "http://localhost:3000", "null"]
)
@pytest.mark.parametrize("site", [None, "cross-site", "same-site"])
def test_what_mlflow_lets_through_is_let_through(
    monkeypatch: pytest.MonkeyPatch, allowed: str, origin: str, site: str | None
) -> None:
    """Regression: a proxy that rewrites `Host` had every job refused, whatever MLflow was told."""
    from mlflow.server.security_utils import should_block_cors_request

    monkeypatch.setenv("MLFLOW_SERVER_CORS_ALLOWED_ORIGINS", allowed)
    blocked = should_block_cors_request(origin, "POST", allowed.split(",") if allowed else None)
    more = {} if site is None else {"Sec_Fetch_Site": site}
    assert is_allowed(base="http://127.0.0.1:5000", Origin=origin, **more) is not blocked


@pytest.mark.parametrize(
    ("method", "headers", "allowed"),
    [
        ("POST", {}, True),
        ("POST", {"Sec_Fetch_Site": "same-origin", "Origin": "http://another"}, True),
        ("POST", {"Sec_Fetch_Site": "cross-site", "Origin": OWN}, False),
        ("POST", {"Sec_Fetch_Site": "cross-site"}, False),
        ("POST", {"Sec_Fetch_Site": "none"}, False),
        ("GET", {"Sec_Fetch_Site": "none"}, True),
        ("GET", {"Sec_Fetch_Site": "same-site"}, False),
    ],
)
def test_what_browsers_say(method: str, headers: dict[str, str], allowed: bool) -> None:
    assert is_allowed(method, **headers) is allowed


def test_switched_off_with_mlflows_own_check(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_allowed(Origin="https://evil.example")
    monkeypatch.setenv("MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE", "true")
    assert is_allowed(Origin="https://evil.example")
