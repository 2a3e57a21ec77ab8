"""Pages opened in a real browser, which can reach no network."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def browser() -> str:
    """Return the path of Chromium; skip where there is none."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("TRACKPERM_REQUIRE_ALL") == "1":
            pytest.fail("no Chromium")
        pytest.skip("no Chromium")
    return path


def rendered(page: str, tmp_path: Path, *options: str) -> str:
    """Open `page` in a browser without network and return the document as it then is."""
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    command = [
        *(browser(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}"),
        *("--virtual-time-budget=5000", *options, "--dump-dom", file.as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout
