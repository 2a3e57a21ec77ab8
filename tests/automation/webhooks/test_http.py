"""The receiver against senders that mean it harm: limits of size, time and number, and what is no HTTP."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.budget import cases
from support.receivers import WANDB, Site, listening, signed_raw

from trackperm.automation.queue.queue import Queue
from trackperm.automation.webhooks import http
from trackperm.automation.webhooks.http import ReceiverServer
from trackperm.automation.webhooks.receive import Receiver, Secrets
from trackperm.errors import InputError

BODY = b'{"run": "team/digits/x"}'
LENGTH = b"Content-Length: %d" % len(BODY)


def status(answer: bytes) -> int:
    found = re.match(rb"HTTP/1\.[01] ([0-9]{3}) ", answer)
    assert found is not None, answer[:200]
    return int(found[1])


def connected(stack: ExitStack, site: Site) -> socket.socket:
    """Connect to the receiver, until the stack is left."""
    return stack.enter_context(socket.create_connection(("127.0.0.1", site.port), timeout=10))


def answers(answer: bytes) -> int:
    return len(re.findall(rb"HTTP/1\.[01] [0-9]{3} ", answer))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([b"Content-Length: 65537"], 413),
        ([b"Content-Length: 99999999999999999999"], 413),
        ([b"Content-Length: " + b"9" * 5000], 413),
        ([b"Content-Length: -1"], 400),
        ([b"Content-Length: +2"], 400),
        ([b"Content-Length: 2, 2"], 400),
        ([b"Content-Length: 0x2"], 400),
        ([b"Content-Length: 1e3"], 400),
        ([b"Content-Length: \xc2\xb2"], 400),
        ([b"Content-Length:"], 400),
        ([b"Content-Length: 2", b"Content-Length: 3"], 400),
        ([LENGTH, LENGTH], 400),
        ([b"Transfer-Encoding: chunked"], 411),
        ([LENGTH, b"Transfer-Encoding: chunked"], 411),
        ([b"Transfer-Encoding: identity", LENGTH], 411),
        ([LENGTH, b"transfer-encoding:\tchunked"], 411),
        ([b"Content-Length : 2"], 411),
        ([], 411),
    ],
    ids=lambda given: b" | ".join(given).decode("latin-1")[:40] if isinstance(given, list) else None,
)
def test_invalid_lengths(site: Site, headers: list[bytes], expected: int):
    """No two readers of such a request agree on where it ends."""
    assert status(site.raw(signed_raw(BODY, *headers))) == expected
    [line] = site.heard.events("delivery-refused")
    assert line["status"] == expected
    assert site.queued == []


def test_nothing_is_read_behind_a_request(site: Site):
    """Pipelined requests, and what hides behind a body, are left alone."""
    two = signed_raw(BODY, LENGTH, b"Connection: keep-alive") + signed_raw(BODY, LENGTH)
    answer = site.raw(two)
    assert (status(answer), answers(answer)) == (202, 1)
    hidden = BODY + b"\r\nPOST /wandb HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
    assert answers(site.raw(signed_raw(hidden, b"Content-Length: %d" % (len(BODY) - 1)))) == 1
    assert len(site.queued) == 1


@pytest.mark.parametrize(
    "request_line",
    [
        b"POST /wandb\r\n",
        b"POST  /wandb HTTP/3.0\r\n",
        b"POST /wandb HTTP/1.1 x\r\n",
        b"POST /wandb FTP/1.1\r\n",
        b"secret-words\r\n",
        b"POST /" + b"secret-words" * 6000 + b" HTTP/1.1\r\n",
        b"PUT /wandb HTTP/1.1\r\n",
        b"CONNECT secret-words:443 HTTP/1.1\r\n",
        b"__init__ /wandb HTTP/1.1\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00 secret-words\r\n",
    ],
    ids=lambda line: line[:24].decode("latin-1"),
)
def test_invalid_requests(site: Site, request_line: bytes):
    """It is refused and noted, and nothing of it is repeated."""
    answer = site.raw(request_line + b"Content-Length: 0\r\n\r\n")
    assert status(answer) in (400, 414, 501, 505)
    assert b"secret-words" not in answer
    assert "secret-words" not in site.heard.text
    [line] = site.heard.events("delivery-refused")
    assert line["path"] in ("/wandb", "another")


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_length_that_is_right(site: Site, version: bytes):
    request = signed_raw(BODY, LENGTH).replace(b"HTTP/1.1", b"HTTP/" + version)
    assert status(site.raw(request)) == 202


def test_header_bombs(site: Site):
    many = [b"X-%d: y" % number for number in range(300)]
    assert status(site.raw(signed_raw(BODY, LENGTH, *many))) == 431
    long = [b"X-%d: " % number + b"y" * 60_000 for number in range(50)]
    assert status(site.raw(signed_raw(BODY, LENGTH, *long))) == 431
    assert status(site.raw(signed_raw(BODY, LENGTH, b"X: " + b"y" * 70_000))) == 431
    assert site.queued == []


def test_a_sender_can_read_why_its_long_body_is_refused(site: Site):
    """Closed at once, the connection would break off the sender, and take the answer back."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as connection:
        connection.sendall(b"POST /wandb HTTP/1.1\r\nContent-Length: 200000\r\n\r\n")
        for _ in range(4):
            time.sleep(0.1)
            connection.sendall(b"x" * 50_000)
        assert status(connection.recv(65536)) == 413


@pytest.mark.extended
@pytest.mark.parametrize(
    "trickle",
    [
        signed_raw(BODY, LENGTH)[:-15],
        b"POST /wandb HTTP/1.1\r\nX: ",
        b"POST /wan",
        signed_raw(b"", b"Content-Length: 65536"),
    ],
    ids=["body", "header", "request-line", "nothing-of-the-body"],
)
def test_requests_that_trickle_in(site: Site, trickle: bytes, monkeypatch: pytest.MonkeyPatch):
    """Time is limited for all of a request, not from one byte to the next."""
    monkeypatch.setattr(http, "_READ_SECONDS", 0.5)
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", site.port), timeout=10) as connection:
        connection.sendall(trickle)
        with suppress(ConnectionError):
            while time.monotonic() - began < 30:
                time.sleep(0.1)
                connection.sendall(b"1")
    assert time.monotonic() - began < 20
    [line] = site.heard.events("delivery-refused")
    assert line["status"] == 408
    assert site.queued == []


def test_a_body_that_ends_too_early(site: Site):
    assert status(site.raw(signed_raw(BODY, LENGTH)[:-3], is_over=True)) == 400
    assert site.queued == []


@pytest.mark.extended
def test_many_slow_connections(site: Site, monkeypatch: pytest.MonkeyPatch):
    """They take the places that there are and no more; others wait their turn, and get it."""
    monkeypatch.setattr(http, "_READ_SECONDS", 1.0)
    before = threading.active_count()
    with ExitStack() as stack:
        for _ in range(3 * http.MOST_AT_ONCE):
            connected(stack, site).sendall(b"POST /wandb HTTP/1.1\r\n")
        assert threading.active_count() - before <= http.MOST_AT_ONCE
        assert site.wandb({"run": "team/digits/x"})[0] == 202
        assert threading.active_count() - before <= http.MOST_AT_ONCE


@pytest.mark.extended
@pytest.mark.parametrize(
    "opening",
    [b"", b"POST /wandb HTTP/1.1\r\n", signed_raw(b"", b"Content-Length: 65536")],
    ids=["nothing", "half-a-head", "no-body"],
)
def test_nobody_waits_for_connections_on_which_nothing_comes(site: Site, opening: bytes):
    """Regression: 400 of them kept a delivery waiting for 15 seconds."""
    with ExitStack() as stack:
        for _ in range(400):
            connected(stack, site).sendall(opening)
        began = time.monotonic()
        assert site.wandb({"run": "team/digits/x"})[0] == 202
        assert time.monotonic() - began < 1.5  # less than one of them may take


def test_more_connections_than_are_read_at_once(site: Site, monkeypatch: pytest.MonkeyPatch):
    """The oldest gives way, and is told so; a delivery comes through."""
    monkeypatch.setattr(http, "MOST_ARRIVING", 20)
    monkeypatch.setattr(http, "_HEAD_SECONDS", 60.0)
    monkeypatch.setattr(http, "_READ_SECONDS", 60.0)
    with ExitStack() as stack:
        idle = [connected(stack, site) for _ in range(60)]
        assert site.wandb({"run": "team/digits/x"})[0] == 202
        assert status(idle[0].recv(65536)) == 408
        idle[-1].sendall(b"GET /health HTTP/1.1\r\n\r\n")
        assert status(idle[-1].recv(65536)) == 200


def test_a_fault_of_our_own(tmp_path: Path):
    """The sender may try again, and what the fault says, which may be anything, is kept to ourselves."""

    class Faulty(Receiver):
        def take(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
            raise ZeroDivisionError(WANDB)

    site = Site(tmp_path)
    site.server.receiver = Faulty([], site.queue, Secrets(WANDB), site.heard.log)
    with listening(site.server):
        assert site.wandb({"run": "team/digits/x"}) == (500, {"status": "failed"})
    [line] = site.heard.events("delivery-failed")
    assert line["fault"] == "ZeroDivisionError"
    assert WANDB not in site.heard.text


@pytest.mark.extended
def test_it_ends_while_all_places_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "_READ_SECONDS", 60.0)
    site = Site(tmp_path)
    with ExitStack() as stack:
        with listening(site.server):
            for _ in range(http.MOST_AT_ONCE + 10):
                connected(stack, site)
            time.sleep(0.5)
            began = time.monotonic()
        assert time.monotonic() - began < 20


@pytest.mark.extended
def test_what_was_accepted_is_answered_before_it_ends(tmp_path: Path):
    site, release = Site(tmp_path), threading.Event()

    def keep_busy() -> None:
        with Queue(site.queue.folder)._file.transaction():
            release.wait(10)

    with ThreadPoolExecutor(2) as threads:
        busy = threads.submit(keep_busy)
        time.sleep(0.2)
        with listening(site.server):
            answer = threads.submit(site.wandb, {"run": "team/digits/x"})
            time.sleep(0.5)
            threading.Timer(1.0, release.set).start()
        assert site.heard.events("delivery")
        assert answer.result(10)[0] == 202
        busy.result(10)


def test_other_paths_and_methods(site: Site):
    assert site.post("/", b"{}", {})[0] == 404
    assert site.post("/wandb/../mlflow", b"{}", {})[0] == 404
    assert site.post("http://127.0.0.1/wandb", b"{}", {})[0] == 404
    assert status(site.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")) == 200
    assert status(site.raw(b"GET /?secret=hidden-in-address HTTP/1.1\r\nHost: x\r\n\r\n")) == 404
    assert status(site.raw(b"DELETE /wandb HTTP/1.1\r\nHost: x\r\n\r\n")) == 501
    assert "hidden" not in site.heard.text


@settings(max_examples=cases(40), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(body=st.binary(max_size=300), path=st.sampled_from(["/wandb", "/mlflow", "/"]))
def test_any_body_without_a_signature(site: Site, body: bytes, path: str):
    assert site.post(path, body, {"X-Wandb-Signature": "x"})[0] in (401, 404)


@settings(max_examples=cases(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(head=st.binary(max_size=200))
def test_any_bytes(site: Site, head: bytes):
    """Whatever comes is answered or dropped, and never a fault of ours."""
    answer = site.raw(head + b"\r\n\r\n", is_over=True)
    assert b" 500 " not in answer[:20]
    assert site.queued == []


def test_a_port_that_is_taken(site: Site):
    with pytest.raises(InputError, match=f"`127.0.0.1:{site.port}` cannot be listened on"):
        ReceiverServer(site.receiver, port=site.port)
