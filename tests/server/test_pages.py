"""The pages and their files, as a server sends them."""

from __future__ import annotations

import re

import pytest
from flask import Flask
from support.markup import Markup

from trackperm.server import pages

SHELLS = ("compare", "leaderboard")


@pytest.fixture(params=["", "/mlf"])
def prefix(request):
    return request.param


@pytest.fixture
def client(prefix):
    app = Flask("pages")
    pages.register(app, prefix)
    return app.test_client()


@pytest.mark.parametrize("name", SHELLS)
def test_shells_have_no_code_of_their_own(client, prefix, name):
    page = client.get(f"{prefix}/trackperm/{name}?runs=<script>alert(1)</script>")
    assert page.status_code == 200
    assert "alert(1)" not in page.text
    markup = Markup(page.text)
    assert not [text for _, text in markup.within("script", "style") if text.strip()]
    for _, attributes in markup.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]


@pytest.mark.parametrize("name", SHELLS)
def test_policy_lets_only_scripts_and_styles_of_the_page_through(client, prefix, name):
    first, second = (client.get(f"{prefix}/trackperm/{name}") for _ in range(2))
    policy = first.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert policy != second.headers["Content-Security-Policy"]
    nonces = set(re.findall(r"'nonce-([^']+)'", policy))
    assert len(nonces) == 1
    sources = re.search(r"script-src ([^;]*)", policy)[1]
    assert sources == f"'nonce-{min(nonces)}'"  # not 'self', which would be every artifact of every run
    used = [(tag, attributes) for tag, attributes in Markup(first.text).elements if "nonce" in attributes]
    assert {tag for tag, _ in used} == {"script", "link"}
    for _, attributes in used:
        assert attributes["nonce"] in nonces
        address = attributes.get("src") or attributes["href"]
        assert address.startswith(f"{prefix}/trackperm/static/")
        assert client.get(address).status_code == 200


@pytest.mark.parametrize("name", pages.STATIC_NAMES)
def test_files_are_sent_once(client, prefix, name):
    address = f"{prefix}/trackperm/static/{name}"
    first = client.get(address)
    assert first.status_code == 200
    assert first.headers["X-Content-Type-Options"] == "nosniff"
    again = client.get(address, headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304


@pytest.mark.parametrize("name", [name for name in pages.STATIC_NAMES if name.endswith(".js")])
def test_scripts_import_only_what_is_there(client, prefix, name):
    script = client.get(f"{prefix}/trackperm/static/{name}").text
    for imported in re.findall(r'from "\./([^"]+)"', script):
        assert imported in pages.STATIC_NAMES
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", script
    )


@pytest.mark.parametrize("name", ["nosuch.js", "..%2fpages.py", "%2e%2e/pages.py", "../pages.py", ""])
def test_nothing_else_is_sent(client, prefix, name):
    assert client.get(f"{prefix}/trackperm/static/{name}").status_code == 404


def test_nothing_is_written(client, prefix):
    assert client.post(f"{prefix}/trackperm/compare").status_code == 405
