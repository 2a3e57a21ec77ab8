"""Runs whose every text is an attack: it is shown as text, and the policy of the page holds by itself."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect
from support.mlflow_stores import MlflowStore
from support.pages import Site

pytestmark = [pytest.mark.tracker, pytest.mark.slow]

IMAGE = "<img src=x onerror=\"window.hacked='image';alert(1)\">"
SCRIPT = "</script></title><script>window.hacked='script';alert(2)</script>"
LINK = '<a href="javascript:alert(3)">here</a>\'"`${alert(4)}'
ATTACKS = (IMAGE, SCRIPT, LINK)
INJECTED = (
    "img, iframe, object, embed, base, form[action], main script, [onerror], [onclick], [href^='javascript:']"
)


@pytest.fixture(scope="module")
def hostile(site):
    n = 60
    ids = [f"{ATTACKS[i % 3]}{i}" for i in range(n)]
    tables = {
        f"{attack}{place}": {
            "id": ids,
            "prediction": [SCRIPT if i % (place + 2) else IMAGE for i in range(n)],
            "label": [SCRIPT if i % 4 else IMAGE for i in range(n)],
        }
        for place, attack in enumerate(ATTACKS)
    }
    found = Site.of(site.uri, f"hostile {IMAGE}", tables)
    client = MlflowStore(site.uri).client
    spec = (
        f"description: {json.dumps(IMAGE)}\ncounts: {{right: prediction == label, n: 1}}\nscore: right / n\n"
    )
    client.set_experiment_tag(found.experiment, "trackperm.statistic.hostile", spec)
    client.set_experiment_tag(found.experiment, "trackperm.statistic.broken", f"no: [{IMAGE}")
    for run in found.runs.values():
        client.set_tag(run, "mlflow.note.content", SCRIPT)
    return found


def harmless(page):
    assert page.evaluate("window.hacked") is None
    assert page.locator(INJECTED).count() == 0
    assert page.locator("script:not([nonce])").count() == 0


def test_compare_page(hostile, opened):
    first, second, _ = hostile.runs
    page = opened.open(hostile.compare(first, second))
    expect(page.locator("#headline")).to_contain_text(second)
    page.locator("#changed-scroll tbody tr").first.wait_for()
    assert IMAGE in page.locator("#changed-scroll tbody").inner_text()
    page.locator("#statistic option[value=hostile]").wait_for(state="attached")
    page.get_by_label("Statistic", exact=True).select_option("hostile")
    expect(page.locator("#statistic-description")).to_have_text(IMAGE)
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("#signature")).to_contain_text("hostile|")
    expect(page.locator("#bar svg").first).to_have_attribute("aria-label", re.compile("^difference "))
    page.get_by_role("searchbox").fill(IMAGE)
    expect(page.locator("#changed-place")).to_contain_text("of")
    page.get_by_role("button", name="Log this comparison").click()
    page.locator("#logged a").wait_for()
    opened.photograph("hostile-compare")
    harmless(page)


def test_leaderboard(hostile, opened):
    page = opened.open(f"{hostile.uri}/trackperm/leaderboard?experiment={hostile.experiment}")
    names = page.locator("#board td.name")
    assert {name.get_attribute("title") for name in names.all()} == set(hostile.runs)
    expect(page.locator("#field")).to_contain_text("runs")
    page.locator("#matrix a").first.focus()
    for mark in page.locator("#chart li svg").all():
        mark.hover(force=True)
    opened.photograph("hostile-leaderboard")
    harmless(page)


def test_addresses(hostile, opened):
    first, second, _ = hostile.runs
    page = opened.page
    page.goto(
        hostile.compare(
            first,
            second,
            f"&statistic={IMAGE}&parameter.{IMAGE}={SCRIPT}&column.{LINK}={LINK}&artifact={IMAGE}",
        )
    )
    expect(page.get_by_role("alert")).not_to_be_empty()
    harmless(page)
    page.goto(f"{hostile.uri}/trackperm/compare?runs={IMAGE},javascript:alert(1)")
    expect(page.get_by_role("alert")).not_to_be_empty()
    harmless(page)
    page.wait_for_load_state("networkidle")  # after which the console has told of all refusals
    opened.problems[:] = [problem for problem in opened.problems if "status of 40" not in problem]


def test_policy_stops_what_would_be_injected(hostile, opened):
    first, second, _ = hostile.runs
    run = hostile.runs[first]
    client = MlflowStore(hostile.uri).client
    client.log_text(run, "window.hacked = 'artifact'", "script.js")
    artifact = f"{hostile.uri}/get-artifact?path=script.js&run_uuid={run}"
    page = opened.open(hostile.compare(first, second))
    page.evaluate(
        """artifact => {
            const place = document.createElement("div");
            place.innerHTML = `<img src="x" onerror="window.hacked='handler'">
                <a href="javascript:window.hacked='link'">x</a>`;
            document.body.append(place);
            const inline = document.createElement("script");
            inline.textContent = "window.hacked = 'inline'";
            const foreign = document.createElement("script");
            foreign.src = artifact;
            place.append(inline, foreign);
            place.querySelector("a").click();
            return new Promise(resolve => setTimeout(resolve, 1000));
        }""",
        artifact,
    )
    assert page.evaluate("window.hacked") is None
    assert [problem for problem in opened.problems if "script.js" in problem]
    assert all("Content Security Policy" in problem for problem in opened.problems)
    opened.problems.clear()
