"""The script that MLflow's page is given; what the button does is tested in a browser."""

from __future__ import annotations

import pytest
from flask import Flask, Response, request

from trackperm.server import button

PAGE = "<html><body><p>a body of </body> in a text</p></body></html>"


def served(content=PAGE, mimetype="text/html", status=200, prefix=""):
    """Make an application with a page of MLflow's name, and the button in it."""
    app = Flask("mlflow")

    @app.route("/")
    def serve():
        if request.headers.get("If-None-Match"):
            return Response(status=304)
        response = Response(content, status, mimetype=mimetype)
        response.set_etag("one")
        return response

    installed = button.install(app, prefix)
    return installed, app.test_client()


def test_script_is_put_at_the_end_of_the_body():
    installed, client = served(prefix="/mlf")
    answer = client.get("/")
    assert installed
    element = '<script src="/mlf/trackperm/static/button.js" defer></script>'
    assert answer.text == PAGE[: -len("</body></html>")] + element + "</body></html>"
    assert int(answer.headers["Content-Length"]) == len(answer.data)
    assert "ETag" not in answer.headers


def test_page_that_a_browser_has_without_the_script_is_sent_again():
    _, client = served()
    assert "button.js" in client.get("/", headers={"If-None-Match": '"one"'}).text


@pytest.mark.parametrize(
    ("content", "mimetype", "status"),
    [(PAGE, "text/plain", 200), (PAGE, "text/html", 404), ("no end", "text/html", 200)],
)
def test_all_else_is_left_as_it_is(content, mimetype, status):
    _, client = served(content, mimetype, status)
    assert client.get("/").text == content


@pytest.mark.parametrize("value", ["off", "OFF"])
def test_switch(monkeypatch, value):
    monkeypatch.setenv(button.SWITCH, value)
    installed, client = served()
    assert not installed
    assert client.get("/").text == PAGE


def test_application_without_a_page():
    assert button.install(Flask("other"), "") is False


def test_prefix_is_escaped():
    _, client = served(prefix='/"><script>alert(1)</script>')
    assert "<script>alert" not in client.get("/").text
