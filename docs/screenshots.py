"""Pictures of trackperm's pages for the documentation, taken of the store of ``make demo``.

``python docs/screenshots.py``, which ``make docs`` calls, trains the demonstration in a temporary folder,
serves it on the loopback interface, and photographs each page in Chromium, light and dark, into
``docs/pages/images``. As a hook of MkDocs, the module replaces a line ``<!-- picture: NAME -->`` by the
pictures of that name, or says that they are missing. ``--readme`` also renews the README's picture,
``docs/picture.png``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "pages" / "images"
README_PICTURE = ROOT / "docs" / "picture.png"
SCHEMES = ("light", "dark")
WIDTH, HEIGHT = 1280, 900

_MARK = re.compile(r"^<!-- picture: ([a-z-]+) -->$", re.MULTILINE)
_PATIENCE = 120.0  # seconds
_MLFLOW_THEME = "_mlflow_dark_mode_toggle_enabled"
_OPTIONS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


@dataclass(frozen=True)
class Picture:
    """Picture of one page.

    Attributes
    ----------
    alt : str
        Text for readers who do not see it.
    address : str
        Address below that of the server, or ``report``. ``{digits}`` and ``{breast-cancer}`` are ids of
        experiments, ``{old}`` and ``{new}`` those of two runs, ``{all}`` those of three.
    shown : str
        Selector of what is visible when the page is complete.
    """

    alt: str
    address: str
    shown: str


_RESULT = "#result:not([hidden]):not(.stale)"
PICTURES: Mapping[str, Picture] = {
    "compare": Picture(
        "Comparison page of logistic-regression and naive-bayes: the verdict in words and as a bar, then the"
        " numbers and the examples that changed.",
        "/trackperm/compare?runs={old},{new}",
        _RESULT,
    ),
    "leaderboard": Picture(
        "Leaderboard page: the finding, then a chart of three classifiers ranked by accuracy, and all pairs.",
        "/trackperm/leaderboard?runs={all}",
        _RESULT,
    ),
    "runs-table": Picture(
        "MLflow's table of runs in the view Significance: three runs, the best on top, with cells such as f1"
        " 0.9720 ▲ p=0.00049.",
        "/#/experiments/{breast-cancer}/runs?viewStateShareKey=trackperm",
        "[role=gridcell][col-id='tags.`sig.f1`']",
    ),
    "report": Picture(
        "HTML report of a logged comparison: verdict, bar, numbers and the examples that changed.",
        "report",
        "svg",
    ),
}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace the marks of a page; called by MkDocs for every page."""
    up = "../" * page.file.src_uri.count("/")
    return _MARK.sub(lambda match: _markdown(match[1], up), markdown)


def _markdown(name: str, up: str) -> str:
    alt = PICTURES[name].alt
    if not all((IMAGES / f"{name}-{scheme}.png").is_file() for scheme in SCHEMES):
        missing = "`make docs` takes this picture where Chromium is installed"
        return f'!!! note "A picture is missing in this build"\n    {missing}. It shows: {alt}'
    return "\n".join(f"![{alt}]({up}images/{name}-{scheme}.png#only-{scheme})" for scheme in SCHEMES)


def take(chromium: str, folder: Path, *, readme: Path | None = None) -> list[Path]:
    """Take all pictures into `folder`, light and dark, and return their paths."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    taken = []
    with TemporaryDirectory(prefix="trackperm-docs-") as scratch, _served(Path(scratch)) as uri:
        addresses = _addresses(uri, Path(scratch))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=list(_OPTIONS))
            for scheme in SCHEMES:
                context = browser.new_context(
                    color_scheme="dark" if scheme == "dark" else "light",
                    viewport={"width": WIDTH, "height": HEIGHT},
                )
                context.set_default_timeout(1000 * _PATIENCE)
                # the theme of MLflow's own pages is a setting of the visitor
                is_dark = str(scheme == "dark").lower()
                context.add_init_script(f"localStorage.setItem('{_MLFLOW_THEME}', '{is_dark}')")
                for name, picture in PICTURES.items():
                    page = context.new_page()
                    page.goto(addresses[name])
                    page.locator(picture.shown).first.wait_for()
                    _settle(page)
                    path = folder / f"{name}-{scheme}.png"
                    page.screenshot(path=path)
                    taken.append(path)
                    if readme is not None and (name, scheme) == ("report", "light"):
                        _photograph_verdict(page, readme)
                    page.close()
                context.close()
            browser.close()
    return taken


def _photograph_verdict(page: Page, path: Path) -> None:
    """Take the top of a report: its headline, and all down to its first figure."""
    heading = page.get_by_role("heading", level=1).bounding_box()
    figure = page.locator("svg").first.bounding_box()
    if heading is None or figure is None:
        raise SystemExit("the report shows no heading or no figure, so the README's picture is not renewed")
    left, right = min(heading["x"], figure["x"]), figure["x"] + figure["width"]
    top, bottom = heading["y"], figure["y"] + figure["height"]
    space = 24
    page.screenshot(
        path=path,
        clip={
            "x": left - 2 * space,
            "y": max(top - space, 0),
            "width": right - left + 3 * space,
            "height": bottom - max(top - space, 0) + space / 2,
        },
    )


def _settle(page: Page) -> None:
    """Wait until the page looks the same for a second."""
    before, deadline = b"", time.monotonic() + _PATIENCE
    while (now := page.screenshot()) != before and time.monotonic() < deadline:
        before = now
        page.wait_for_timeout(1000)


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve the demonstration from `folder` on the loopback interface."""
    subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "trackperm", "--workers", "1"]
    command += [
        "--backend-store-uri",
        "sqlite:///demo-store/mlflow.db",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        uri = f"http://127.0.0.1:{port}"
        _wait(uri, folder / "server.log")
        yield uri
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait(uri: str, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{uri}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"the server of the demonstration did not start:\n{log.read_text()[-4000:]}")


def _addresses(uri: str, scratch: Path) -> dict[str, str]:
    """Return the address of each picture's page."""
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    experiments = {found.name: found.experiment_id for found in client.search_experiments()}
    runs = {
        run.info.run_name: run.info.run_id
        for run in client.search_runs([experiments["digits"]])
        if "trackperm.kind" not in run.data.tags
    }
    logged = client.search_runs([experiments["digits"]], "tags.`trackperm.kind` = 'comparison'")
    first = min(logged, key=lambda run: run.info.start_time)
    report = client.download_artifacts(first.info.run_id, "trackperm_report.html", str(scratch))
    ids = {
        **experiments,
        "old": runs["naive-bayes"],
        "new": runs["logistic-regression"],
        "all": ",".join(runs.values()),
    }
    return {
        name: Path(report).as_uri() if picture.address == "report" else uri + picture.address.format(**ids)
        for name, picture in PICTURES.items()
    }


def main() -> None:
    """Take the pictures, or say why there are none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--readme", action="store_true", help=f"also renew {README_PICTURE.relative_to(ROOT)}"
    )
    chosen = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("no pictures: Chromium is not installed; the pages say so where a picture belongs")
        return
    for path in take(chromium, IMAGES, readme=README_PICTURE if chosen.readme else None):
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
