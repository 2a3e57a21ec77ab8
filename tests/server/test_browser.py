"""The whole way through the pages, in a real browser on a real server."""

from __future__ import annotations

import base64
import re
from contextlib import suppress

import pytest
from playwright.sync_api import Error, Locator, Page, expect
from support.boards import sweep, sweep_tables
from support.layout import board_problems, require_strongest_ink
from support.mlflow_server import ADMIN, MlflowServer, add_user, allow, basic_auth
from support.mlflow_stores import MlflowStore
from support.pages import FIRST, SECOND, THIRD, Site, Watched, number, watched
from support.server_client import Client

import trackperm
from trackperm.report.drawings.effect_bar import label
from trackperm.report.leaderboard.cells import finding
from trackperm.report.plain_words import plain_words

pytestmark = [pytest.mark.tracker, pytest.mark.slow]


def compared(site, statistic="accuracy", **options):
    runs = (f"mlflow:{site.runs[name]}" for name in (FIRST, SECOND))
    return trackperm.compare(*runs, statistic, tracking_uri=site.uri, **options)


def chosen(opened: Watched, site: Site, *names: str) -> Page:
    """Tick runs in MLflow's own table, and let MLflow compare them."""
    page = opened.page
    page.goto(f"{site.uri}/#/experiments/{site.experiment}/runs")
    for name in names:
        page.get_by_role("row").filter(has_text=name).get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Compare", exact=True).click()
    return page


def test_compare_page_says_what_compare_says(site, opened):
    page = opened.open(site.compare())
    expected = compared(site)
    headline = f"birch is better than ash by accuracy (p = {expected.format_pvalue()})"
    expect(page.locator("#headline")).to_contain_text(headline)
    facts = dict(
        zip(
            page.locator("dt").all_inner_texts(),
            page.locator("dd:not(.small)").all_inner_texts(),
            strict=True,
        )
    )
    assert number(facts["baseline"]) == pytest.approx(expected.baseline_score, abs=5e-5)
    assert number(facts["difference"]) == pytest.approx(expected.difference, abs=5e-5)
    assert page.locator("#signature").inner_text() == expected.signature
    assert page.locator("#words").inner_text() == plain_words(expected)
    drawn = page.locator("#bar svg:visible")
    assert drawn.count() == page.locator("#null svg:visible").count() == 1
    assert drawn.get_attribute("aria-label") == label(expected)
    loaded = page.evaluate("performance.getEntriesByType('resource').map(({name}) => name)")
    assert not [name for name in loaded if "vega" in name or "chart" in name]
    opened.photograph("compare")


def test_from_the_table_of_runs_to_a_logged_comparison(site, opened):
    page = chosen(opened, site, FIRST, SECOND)
    button = page.get_by_role("link", name="Paired permutation test")
    button.wait_for()
    opened.photograph("mlflow-compare")
    opened.problems.clear()  # MLflow's own page asks for what is not there
    button.click()
    opened.settled()
    assert set(page.url.split("runs=")[1].split(",")) == {site.runs[FIRST], site.runs[SECOND]}
    assert "by accuracy (p = " in page.locator("#headline").inner_text()
    before = {run.info.run_id for run in MlflowStore(site.uri).comparisons("demonstration")}
    page.get_by_role("button", name="Log this comparison").click()
    link = page.locator("#logged a")
    link.wait_for()
    opened.photograph("logged")
    run_id = link.get_attribute("href").rpartition("/")[2]
    assert {run.info.run_id for run in MlflowStore(site.uri).comparisons("demonstration")} - before == {
        run_id
    }
    page.get_by_role("button", name="Log this comparison").click()
    expect(page.locator("#logged")).to_contain_text("It was logged before")
    link.click()
    page.get_by_role("heading", name=re.compile("accuracy")).first.wait_for()
    opened.problems.clear()


def test_more_runs_lead_from_the_table_to_the_leaderboard(site, opened):
    page = chosen(opened, site, FIRST, SECOND, THIRD)
    page.get_by_role("link", name="Paired permutation tests").click()
    opened.settled()
    assert page.locator("#board tbody tr").count() == 3
    opened.problems.clear()


def go(page: Page, address: str, button: Locator, *, there: bool) -> str | None:
    """Go to an address, again where MLflow's page puts back its own meanwhile; where the button leads."""
    for _ in range(20):
        page.evaluate("hash => { location.hash = hash }", address)
        with suppress(Error):
            button.wait_for(state="visible" if there else "detached", timeout=2_000)
            return button.get_attribute("href", timeout=2_000) if there else None
    pytest.fail(f"at {address} the button {'is missing' if there else 'stays'}")


def test_button_follows_the_address(site, opened):
    first, second = site.runs[FIRST], site.runs[SECOND]
    page = opened.page
    button = page.get_by_role("link", name="Paired permutation test")
    page.goto(
        f"{site.uri}/#/experiments/{site.experiment}/evaluation-runs?selectedRunUuid={second}&compareToRunUuid={first}"
    )
    button.wait_for()
    assert button.get_attribute("href") == site.compare()
    for elsewhere in (
        f"#/experiments/{site.experiment}/runs",
        "#/compare-runs?runs=[broken",
        f'#/compare-runs?runs=["{first}"]',
        '#/compare-runs?runs={"length":3}',
    ):
        go(page, f'#/compare-runs?runs=["{first}","{second}"]', button, there=True)
        go(page, elsewhere, button, there=False)
    leads_to = go(page, '#/compare-runs?runs=["a/../b%26c","d"]', button, there=True)
    assert leads_to.endswith("/trackperm/compare?runs=a%2F..%2Fb%26c,d")
    opened.problems.clear()


def test_choices_are_kept_in_the_address(site, opened, chrome, tmp_path):
    page = opened.open(site.compare())
    page.get_by_label("Alternative").select_option("greater")
    page.get_by_label("Level alpha").fill("0.01")
    page.get_by_label("Margin").fill("0.3")
    page.get_by_role("button", name="Compare", exact=True).click()
    expected = compared(site, alternative="greater", alpha=0.01, margin=0.3)
    expect(page.locator("#signature")).to_have_text(expected.signature)
    expect(page.locator("#headline")).to_contain_text("and equivalent within 0.3")
    assert page.url == site.compare(more="&alternative=greater&alpha=0.01&margin=0.3")
    with watched(chrome, tmp_path, site.uri) as again:
        again.open(page.url)
        expect(again.page.locator("#signature")).to_have_text(expected.signature)
        expect(again.page.get_by_label("Level alpha")).to_have_value("0.01")
    page.get_by_role("button", name="Exchange").click()
    expect(page.locator("#headline")).to_contain_text("ash and birch are equivalent within 0.3")
    assert f"runs={site.runs[SECOND]},{site.runs[FIRST]}&" in page.url


def test_statistics_with_parameters(site, opened):
    page = opened.open(site.compare())
    page.locator("#statistic option[value=f1]").wait_for(state="attached")
    page.get_by_label("Statistic", exact=True).select_option("f1")
    page.get_by_label("positive").fill("cat")
    page.get_by_role("button", name="Compare", exact=True).click()
    expected = compared(site, "f1", parameters={"positive": "cat"})
    expect(page.locator("#signature")).to_have_text(expected.signature)
    assert "parameter.positive=cat" in page.url
    expect(page.locator("#directions")).to_be_hidden()  # single examples have no sign


def test_examples_that_changed_are_filtered_searched_and_paged(site, opened):
    page = opened.open(site.compare())
    expected = compared(site)
    rows, place = page.locator("#changed-scroll tbody tr"), page.locator("#changed-place")
    expect(place).to_have_text(f"1–50 of {expected.n_discordant}")
    page.get_by_role("button", name="Next").click()
    expect(place).to_have_text(re.compile("^51–"))
    first = expected.discordant.get_column("id").to_list()[50]
    expect(rows.first).to_contain_text(first)
    page.get_by_role("radio", name="worse").check()
    expect(place).to_have_text(f"1–{min(50, expected.n_worse)} of {expected.n_worse}")
    assert all("worse" in row and " → " in row for row in rows.all_inner_texts())
    page.get_by_role("searchbox").fill("OWL")
    among = expected.discordant.filter(
        (expected.discordant["candidate.correct"] < expected.discordant["baseline.correct"])
        & (expected.discordant["label"] == "owl")
    )
    expect(place).to_have_text(f"1–{len(among)} of {len(among)}")
    assert all("owl" in row for row in rows.all_inner_texts())
    page.get_by_role("searchbox").fill("no such text")
    expect(place).to_have_text("No example matches")
    assert rows.count() == 0


def test_leaderboard(site, opened):
    page = opened.open(site.leaderboard())
    board = trackperm.leaderboard(
        [f"mlflow:{run}" for run in site.runs.values()], "accuracy", tracking_uri=site.uri
    )
    expect(page.locator("#signature")).to_have_text(board.signature)
    expect(page.locator("#headline")).to_have_text(finding(board))
    assert page.locator("#chart li .name").all_inner_texts() == [row.name for row in board.rows]
    names = page.locator("#board tbody td.name")
    assert names.all_inner_texts() == [row.name for row in board.rows]
    page.locator("#board").get_by_role("button", name="accuracy").click()
    assert names.all_inner_texts() == [row.name for row in reversed(board.rows)]
    assert page.locator("th[aria-sort=ascending]").inner_text() == "accuracy"
    page.get_by_role("button", name="Copy as Markdown").click()
    expect(page.locator("#copied")).to_have_text("Markdown copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == trackperm.report.render(board, "markdown").decode()
    opened.photograph("leaderboard")
    cell = page.locator("#matrix tbody tr").first.locator("a").first
    cell.hover()
    pair = board.pair(board.rows[0].name, board.rows[1].name)
    expect(page.locator("#pair-detail")).to_contain_text(f"{board.rows[0].name} against {board.rows[1].name}")
    assert number(page.locator("#pair-detail").inner_text().partition("adjusted p =")[2]) == pytest.approx(
        pair.adjusted, rel=0.01
    )
    cell.click()
    opened.settled()
    assert f"{board.rows[0].name} is" in page.locator("#headline").inner_text()


@pytest.mark.parametrize("n", [2, 40, pytest.param(129, marks=pytest.mark.nightly)])
def test_leaderboards_of_many_sizes(site, n, opened):
    """Nothing is cut or overlaps at any width; the heat map is reached by pointer and keyboard."""
    board = sweep(n)
    tables = {name: table.to_dict(as_series=False) for name, table in sweep_tables(n).items()}
    found = Site.of(site.uri, f"sweep of {n}", tables)
    page = opened.open(f"{site.uri}/trackperm/leaderboard?experiment={found.experiment}")
    expect(page.locator("#headline")).to_have_text(finding(board))
    for width in (390, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert board_problems(page) == [], width
        opened.photograph(f"leaderboard-{n}-{width}")
    require_strongest_ink(page)
    assert page.locator("#chart li").count() == n
    assert page.locator("#heat-map").is_visible() == (n > 10)
    if n <= 10:
        return
    link, detail, names = (
        page.locator("#heat-map a"),
        page.locator("#pair-detail"),
        [row.name for row in board.rows],
    )
    link.focus()
    expect(detail).to_contain_text(f"{names[0]} against {names[1]}: ")
    page.keyboard.press("ArrowDown")  # over the diagonal
    expect(detail).to_contain_text(f"{names[2]} against {names[1]}: ")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(detail).to_contain_text(f"{names[0]} against {names[1]}: ")
    square = page.locator("#heat-map .square")
    row, column, cell = n - 1, 2, square.bounding_box()["width"] / n
    place = {"x": cell * (column + 0.5), "y": cell * (row + 0.5)}
    square.hover(position=place)
    pair = board.pair(names[row], names[column])
    expect(detail).to_contain_text(f"{names[row]} against {names[column]}: {pair.verdict}, difference")
    assert number(detail.inner_text().partition("difference")[2]) == pytest.approx(pair.difference, abs=5e-5)
    square.click(position=place)
    opened.settled()
    assert f"{names[row]} is" in page.locator("#headline").inner_text()


def test_leaderboard_against_a_baseline_is_logged(site, opened):
    page = opened.open(f"{site.uri}/trackperm/leaderboard?experiment={site.experiment}")
    page.get_by_label("Compare", exact=True).select_option(site.runs[FIRST])
    page.get_by_label("Correction").select_option("bonferroni")
    page.get_by_role("button", name="Rank", exact=True).click()
    expect(page.locator("#headline")).to_contain_text("the baseline")
    expect(page.locator("#pairs")).to_be_hidden()
    assert f"baseline={site.runs[FIRST]}&correction=bonferroni" in page.url
    page.get_by_role("button", name="Log this leaderboard").click()
    page.locator("#logged a").wait_for()
    run_id = page.locator("#logged a").get_attribute("href").rpartition("/")[2]
    logged = MlflowStore(site.uri).comparisons("demonstration", "leaderboard")
    assert run_id in {run.info.run_id for run in logged}


def test_problems_are_said_with_the_next_step(site, opened):
    page = opened.page
    page.goto(site.compare(more="&column.id=nosuch"))
    expect(page.get_by_role("alert")).to_contain_text("nosuch")
    opened.photograph("problem")
    page.goto(site.compare(more="&alpha=much"))
    expect(page.get_by_role("alert")).to_contain_text("Level alpha is a number; found “much”")
    expect(page.locator("#alpha")).to_be_focused()
    page.get_by_label("Level alpha").fill("0.1")
    page.keyboard.press("Enter")
    opened.settled()
    expect(page.get_by_role("alert")).to_be_hidden()
    page.goto(f"{site.uri}/trackperm/compare?runs={site.runs[FIRST]},{'0' * 32}")
    expect(page.get_by_role("alert")).to_contain_text("0" * 32)
    page.goto(f"{site.uri}/trackperm/compare")
    page.get_by_label("Run ids, baseline first").fill(f"{site.runs[FIRST]} {site.runs[SECOND]}")
    page.get_by_role("button", name="Open").click()
    opened.settled()
    refused = [problem for problem in opened.problems if "status of 404" in problem]
    assert refused
    assert len(refused) == len(opened.problems)
    opened.problems.clear()


def test_static_prefix(chrome, tmp_path):
    with MlflowServer(tmp_path, app="trackperm", prefix="/mlf") as server:
        site = Site.demonstration(server.uri, 60)
        with watched(chrome, tmp_path, site.uri) as opened:
            opened.open(site.compare())
            opened.open(site.leaderboard())
            page = opened.page
            asked = f"runs=[%22{site.runs[FIRST]}%22,%22{site.runs[SECOND]}%22]&experiments=[%221%22]"
            page.goto(f"{site.uri}/#/compare-runs?{asked}")
            button = page.get_by_role("link", name="Paired permutation test")
            button.wait_for()
            button.click()
            opened.settled()
            assert page.url.startswith(f"{server.uri}/trackperm/compare?runs=")
            opened.problems.clear()  # those of MLflow's page
            page.reload()
            opened.settled()
            assert page.locator("#home").get_attribute("href") == "/mlf/"


def begun(opened, site):
    """Open a comparison that takes a while; returns its page and its job."""
    page = opened.page
    with page.expect_response(lambda answer: answer.request.method == "POST") as asked:
        page.goto(site.compare())
    page.get_by_role("button", name="Cancel").wait_for()
    return page, asked.value.json()["job"]


def test_cancel(large, opened):
    """The job ends on the server as well, and the page starts again when it is asked to."""
    page, job = begun(opened, large)
    opened.photograph("cancel")
    with page.expect_response(lambda answer: answer.request.method == "DELETE") as ended:
        page.get_by_role("button", name="Cancel").click()
    assert ended.value.status == 204
    assert job in ended.value.url
    expect(page.locator("#cancelled")).to_have_text("Cancelled. “Compare” starts again.")
    expect(page.locator("#progress")).to_be_hidden()
    expect(page.get_by_role("button", name="Compare", exact=True)).to_be_focused()
    opened.photograph("cancelled")
    page.keyboard.press("Enter")
    opened.settled()
    expect(page.locator("#cancelled")).to_be_empty()


def test_page_that_is_closed_cancels(large, opened):
    page, job = begun(opened, large)
    same = Client(large.uri, page=page.evaluate("document.documentElement.dataset.page"))
    page.goto("about:blank")
    assert same.wait(job)["state"] == "dropped"


def test_result_stays_where_it_may_not_be_logged(chrome, tmp_path):
    """What is said is about what a visitor can do, and names no option of a command."""
    reader = ("reader", "the-readers-own-1")
    with MlflowServer.with_pages(tmp_path, basic_auth(tmp_path)) as server:
        site = Site.demonstration(server.uri.replace("://", f"://{':'.join(ADMIN)}@"), 60)
        add_user(server, *reader)
        allow(server, site.experiment, reader[0])
        address = Site(server.uri, site.experiment, site.runs).compare()
        with watched(chrome, tmp_path, server.uri) as opened:
            signature = "Basic " + base64.b64encode(":".join(reader).encode()).decode()
            opened.page.set_extra_http_headers({"Authorization": signature})
            page = opened.open(address)
            page.get_by_role("button", name="Log this comparison").click()
            said = page.locator("#logged")
            expect(said).to_contain_text(
                "Not logged: you may read these runs but not write to their experiment"
            )
            expect(said).to_contain_text("permission to edit")
            assert "--no-log" not in page.content()
            expect(page.locator("#headline")).to_contain_text("birch is")
            opened.photograph("not-logged")
