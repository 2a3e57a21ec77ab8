"""The pages of a server, opened in a real browser that is watched for everything it must not do."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

from support.browser import browser
from support.mlflow_stores import MlflowStore

_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
_QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
_PATIENCE = 120_000.0  # milliseconds; a first job starts a process, which takes long beside other tests

expect.set_options(timeout=_PATIENCE)

CUT = """() => [...document.querySelectorAll("svg")].filter((svg) => svg.checkVisibility()).flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
      || box.bottom > frame.bottom + 1;
  }).map((text) => text.textContent);
})"""
"""Script that lists the texts that stick out of their drawing."""

FIRST, SECOND, THIRD = "ash", "birch", "cedar"
RATES = {FIRST: 0.70, SECOND: 0.80, THIRD: 0.72}
"""Runs of the demonstration, and how often each is right."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser; skip where there is none."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser(), args=[*_OPTIONS, *_QUIET])
        try:
            yield started
        finally:
            started.close()


@dataclass
class Site:
    """A server with runs of an experiment to compare, whose ids are found by name."""

    uri: str
    experiment: str
    runs: Mapping[str, str]

    @classmethod
    def demonstration(cls, uri: str, n: int = 400) -> Site:
        """Log runs on `n` examples, the second of which is better than the first."""
        rng = random.Random(0)
        labels = [rng.choice(["cat", "dog", "owl"]) for _ in range(n)]
        tables = {
            name: {
                "id": [f"q-{i:04d}" for i in range(n)],
                "prediction": [label if rng.random() < rate else "fish" for label in labels],
                "label": labels,
            }
            for name, rate in RATES.items()
        }
        return cls.of(uri, "demonstration", tables)

    @classmethod
    def of(cls, uri: str, experiment: str, tables: Mapping[str, Mapping[str, Sequence[object]]]) -> Site:
        """Log one run of each table."""
        store = MlflowStore(uri)
        runs = {
            name: store.run_with_predictions(experiment, name, dict(table), artifact="predictions.parquet")
            for name, table in tables.items()
        }
        return cls(uri, store.experiment(experiment), runs)

    def compare(self, baseline: str = FIRST, candidate: str = SECOND, more: str = "") -> str:
        """Return the address of the page that compares two runs."""
        return f"{self.uri}/trackperm/compare?runs={self.runs[baseline]},{self.runs[candidate]}{more}"

    def leaderboard(self, more: str = "") -> str:
        """Return the address of the page that ranks all runs."""
        return f"{self.uri}/trackperm/leaderboard?runs={','.join(self.runs.values())}{more}"


@dataclass
class Watched:
    """A page, and what it did that it must not do."""

    page: Page
    folder: Path
    problems: list[str] = field(default_factory=list)

    def open(self, address: str) -> Page:
        """Go to an address of our own pages and wait until all of its result is there."""
        self.page.goto(address)
        self.settled()
        return self.page

    def settled(self) -> None:
        """Wait until the result is shown, with its chart."""
        self.page.locator("#result:not([hidden]):not(.stale)").wait_for()
        self.page.locator("#null svg, #chart svg").first.wait_for(state="attached")

    def photograph(self, name: str) -> None:
        """Keep a picture of the page, where TRACKPERM_SCREENSHOTS says or among the files of the test."""
        folder = Path(os.environ.get("TRACKPERM_SCREENSHOTS", self.folder))
        folder.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=folder / f"{name}.png", full_page=True)

    def violations(self) -> list[str]:
        """Ask axe what is wrong with the page for people who use it with a keyboard or hear it."""
        found = Axe().run(self.page)
        return [
            f"{each['id']}: {each['help']}: {[node['target'] for node in each['nodes']]}"
            for each in found.response["violations"]
        ]


@contextmanager
def watched(
    started: Browser, folder: Path, own: str, *, scheme: str = "light", checks: bool = False
) -> Iterator[Watched]:
    """Open a page that fails the test where it asks another host than `own`, or complains in its console.

    `checks` lets axe be put into it, which the policy of our pages forbids as well.
    """
    context: BrowserContext = started.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": 1280, "height": 900},
        bypass_csp=checks,
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(_PATIENCE)
    page = context.new_page()
    found = Watched(page, folder)

    def look(request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.netloc != urlsplit(own).netloc:
            found.problems.append(f"asked {request.url}")

    page.on("request", look)
    page.on("dialog", lambda dialog: (found.problems.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("pageerror", lambda error: found.problems.append(f"error {error}"))
    page.on(
        "console",
        lambda message: (
            found.problems.append(f"{message.type} {message.text}")
            if message.type in ("error", "warning")
            else None
        ),
    )
    try:
        yield found
    finally:
        context.close()
    assert not found.problems, found.problems


def number(text: str) -> float:
    """Read the first number in a text."""
    match = re.search(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", text)
    assert match is not None
    return float(match[0])
