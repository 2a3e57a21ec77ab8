"""A browser, and one server with trackperm's pages and a few runs for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from support.mlflow_server import MlflowServer
from support.pages import FIRST, SECOND, Site, Watched, chromium, watched


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    """Start one browser for a module; every page of it has a profile of its own.

    Playwright has an event loop running for as long, which other modules must not find.
    """
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Start a server with our pages, and log three runs there."""
    with MlflowServer(tmp_path_factory.mktemp("site"), app="trackperm") as server:
        yield Site.demonstration(server.uri)


@pytest.fixture
def opened(chrome: Browser, site: Site, tmp_path: Path) -> Iterator[Watched]:
    """Open a page for the server, which fails the test where it does what it must not."""
    with watched(chrome, tmp_path, site.uri) as page:
        yield page


@pytest.fixture(scope="session")
def large(site: Site) -> Site:
    """Log two runs whose comparison takes a while."""
    n = 300_000
    tables = {
        name: {
            "id": list(range(n)),
            "prediction": [i % k for i in range(n)],
            "label": [i % 2 for i in range(n)],
        }
        for name, k in ((FIRST, 3), (SECOND, 5))
    }
    return Site.of(site.uri, "large", tables)
