"""Every page at three widths, light and dark, with few and many runs: nothing is cut, covered or too wide."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page
from support.mlflow_server import MlflowServer
from support.mlflow_stores import MlflowStore
from support.pages import Site, watched
from support.text_boxes import layout_problems

from trackperm.trackers.mlflow.tracker import MlflowTracker

pytestmark = [pytest.mark.tracker, pytest.mark.slow]

WIDTHS = (390, 1280, 1920)
# colours move nothing, so that those of the dark are checked at one width
WINDOWS = [*((width, "light") for width in WIDTHS), (1280, "dark")]
LARGEST = 129
N = 80


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with as many runs as the largest leaderboard has, whose names share a beginning."""
    rng = random.Random(1)
    labels = [rng.choice(["cat", "dog"]) for _ in range(N)]
    tables = {
        f"classifier-with-a-long-name-seed-{number:03d}": {
            "id": [f"q-{i:03d}" for i in range(N)],
            "prediction": [label if rng.random() < 0.95 - 0.004 * number else "fish" for label in labels],
            "label": labels,
        }
        for number in range(LARGEST)
    }
    folder = tmp_path_factory.mktemp("crowd")
    store = MlflowStore.local(folder)  # which is quicker than to log them through the server
    runs = {
        name: store.run_with_predictions("crowd", name, table, artifact="predictions.parquet")
        for name, table in tables.items()
    }
    with MlflowServer(folder, app="trackperm") as server:
        yield Site(server.uri, store.experiment("crowd"), runs)


def address(site: Site, kind: str, size: int) -> str:
    runs = list(site.runs.values())[:size]
    if kind == "compare":
        runs = [runs[-1], runs[0]]
    return f"{site.uri}/trackperm/{kind}?runs={','.join(runs)}"


def windows(page: Page, height: int) -> Iterator[str]:
    """Give the window of a page each width and colour scheme, and yield the name of a picture."""
    for width, scheme in WINDOWS:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        yield f"{width}-{scheme}"


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("compare", 40),
        pytest.param("leaderboard", 2, marks=pytest.mark.nightly),
        ("leaderboard", 40),
        pytest.param("leaderboard", LARGEST, marks=pytest.mark.nightly),
    ],
)
def test_pages(chrome, crowd, tmp_path, kind, size):
    with watched(chrome, tmp_path, crowd.uri, checks=True) as opened:
        opened.open(address(crowd, kind, size))
        for name in windows(opened.page, 900):
            opened.photograph(f"{kind}-{size}-{name}")
            assert opened.violations() == [], name
            assert layout_problems(opened.page) == [], name


def covered(page: Page) -> list[str]:
    """List what the bar with the button covers, or pushes out of the window, of MLflow's page."""
    found: list[str] = page.evaluate("""() => {
      const bar = document.getElementById("trackperm-button").getBoundingClientRect();
      const root = document.getElementById("root"), frame = root.getBoundingClientRect();
      const found = [];
      if (bar.height < 20 || bar.left < 0 || bar.right > innerWidth) found.push("the bar is cut");
      if (frame.top < bar.bottom - 1) found.push("the page lies under the bar");
      if (frame.bottom > innerHeight + 1) found.push("the page is pushed out of the window");
      for (const each of root.querySelectorAll("a, button, input, select, [role=row], tr, [role=tab]")) {
        const box = each.getBoundingClientRect();
        if (!box.width || !box.height || !each.checkVisibility()) continue;
        const x = box.left + box.width / 2, y = box.top + box.height / 2;
        if (document.elementFromPoint(x, y)?.id === "trackperm-button") found.push(each.outerHTML);
      }
      return found;
    }""")
    return found


def test_the_button_covers_nothing(chrome, crowd, tmp_path):
    first, second = list(crowd.runs.values())[:2]
    asked = f'runs=["{first}","{second}"]&experiments=["{crowd.experiment}"]'
    chosen = f"selectedRunUuid={second}&compareToRunUuid={first}"
    with watched(chrome, tmp_path, crowd.uri) as opened:
        page = opened.page
        for number, at in enumerate(
            (f"compare-runs?{asked}", f"experiments/{crowd.experiment}/evaluation-runs?{chosen}")
        ):
            page.goto(f"{crowd.uri}/#/{at}")
            page.get_by_role("link", name="Paired permutation test").wait_for()
            page.wait_for_timeout(3_000)  # MLflow's page asks its server again and again
            for name in windows(page, 800):
                page.wait_for_timeout(300)  # it is laid out anew
                opened.photograph(f"button-{number}-{name}")
                assert covered(page) == [], name
        page.goto(f"{crowd.uri}/#/experiments/{crowd.experiment}/runs")
        page.locator("#trackperm-button").wait_for(state="detached")
        height = page.evaluate("document.getElementById('root').getBoundingClientRect().height")
        assert height == pytest.approx(800, abs=1)
        page.goto("about:blank")
        opened.problems.clear()  # those of MLflow's page


def test_verdicts_are_visible_in_the_table_of_runs(chrome, crowd, tmp_path):
    """At 390 pixels MLflow's own bar of links takes half of the window, and the table scrolls."""
    tracker, store = MlflowTracker(crowd.uri), MlflowStore(crowd.uri)
    for number, run in enumerate(list(crowd.runs.values())[:40]):
        tag = f"accuracy 0.{900 - number} ▲ adj. p≈1.4e-32 MC"
        store.client.set_tag(run, "sig.accuracy", tag)
        store.client.log_metric(run, "sig.accuracy.score", 0.9 - number / 1000)
    view = tracker.set_up_view("crowd")
    with watched(chrome, tmp_path, crowd.uri) as opened:
        page = opened.page
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            page.goto("about:blank")
            page.goto(view.link)
            cell = page.locator("[role=gridcell][col-id='tags.`sig.accuracy`']").first
            cell.wait_for(state="attached")
            opened.photograph(f"runs-table-{width}")
            if width >= 1280:
                box, table = cell.bounding_box(), page.locator(".ag-root").bounding_box()
                assert box["x"] + box["width"] <= table["x"] + table["width"] <= width
                assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth")
            assert cell.inner_text() == "accuracy 0.900 ▲ adj. p≈1.4e-32 MC"
        page.goto("about:blank")
        opened.problems.clear()
