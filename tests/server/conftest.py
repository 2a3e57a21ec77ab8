"""A browser, and one server with trackperm's pages and a few runs for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from support.mlflow_server import MlflowServer
from support.pages import Site, chromium


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
