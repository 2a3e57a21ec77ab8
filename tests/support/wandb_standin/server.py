"""The loopback server: routes, credentials, faults on demand, and a record of everything received."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

from support.wandb_standin.changes import Changes, apply_stream
from support.wandb_standin.execution import Execution, RefusedError, operation_name
from support.wandb_standin.state import ArtifactRecord, RunRecord, State
from support.wandb_standin.views import Views

API_KEY = "0123456789abcdef" * 2 + "01234567"
_MD5_PATH = re.compile(r"/artifactsV2/.*/([0-9a-f]{32})(?:/[^/]+)?")
_STREAM = re.compile(r"/files/([^/]+)/([^/]+)/([^/]+)/file_stream")


@dataclass(frozen=True)
class Received:
    """One request: ``POST /graphql#UpsertBucket``, its headers, and its body unpacked."""

    method: str
    route: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What a request is answered with."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def json(cls, document: Any, status: int = 200) -> Answer:
        return cls(status, json.dumps(document).encode(), (("Content-Type", "application/json"),))


class Standin:
    """A context manager that answers at `url` what a W&B server answers, and notes every request.

    What was asked for and is `unmodelled` fails tests, so that an SDK that asks something new is noticed.
    """

    def __init__(self, entity: str = "team", api_key: str = API_KEY) -> None:
        self.state = State(entity)
        self.received: list[Received] = []
        self.unmodelled: set[str] = set()
        self._authorization = "Basic " + base64.b64encode(f"api:{api_key}".encode()).decode()
        self._faults: list[tuple[re.Pattern[str], Iterator[int]]] = []
        self._lock = threading.RLock()
        standin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # headers and body are two packets, the second of which else waits

            def handle_any(self) -> None:
                standin._handle(self)

            do_GET = do_POST = do_PUT = do_HEAD = handle_any

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._views = Views(self.state, self.url)
        self._changes = Changes(self.state, self._views)

    def __enter__(self) -> Standin:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def fail(self, route: str, statuses: Iterable[int]) -> None:
        """Answer the next requests whose route matches a regular expression with `statuses`.

        Routes are method and path, with the operation of GraphQL: ``POST /graphql#UpsertBucket``. Status 0
        closes the connection without an answer; ``itertools.repeat(500)`` never ends.
        """
        self._faults.append((re.compile(route), iter(statuses)))

    def mend(self) -> None:
        """End all faults."""
        self._faults.clear()

    def run(self, path: str) -> RunRecord:
        """Return the run at ``entity/project/id``."""
        entity, project, name = path.split("/")
        return self.state.runs[entity, project, name]

    def logged(self, path: str) -> dict[str, ArtifactRecord]:
        """Return what the run at ``entity/project/id`` logged and committed, by collection."""
        found = [self.state.artifacts[number] for number in self.run(path).logged]
        return {artifact.collection[2]: artifact for artifact in found if artifact.state == "COMMITTED"}

    def operations(self) -> list[str]:
        """Name the GraphQL operations received, in order."""
        return [request.route.partition("#")[2] for request in self.received if "#" in request.route]

    def _handle(self, request: BaseHTTPRequestHandler) -> None:
        body = _body(request)
        path = unquote(urlsplit(request.path).path)
        route = f"{request.command} {path}"
        if path == "/graphql":
            route += f"#{operation_name(json.loads(body)['query'])}"
        with self._lock:
            self.received.append(Received(request.command, route, dict(request.headers.items()), body))
            status = next(
                (status for pattern, left in self._faults if pattern.search(route) for status in left), None
            )
            if status == 0:
                request.close_connection = True
                return
            answer = self._try(request, path, body, route) if status is None else _fault(status, path)
        request.send_response(answer.status)
        for name, value in (*answer.headers, ("Content-Length", str(len(answer.body)))):
            request.send_header(name, value)
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(answer.body)

    def _try(self, request: BaseHTTPRequestHandler, path: str, body: bytes, route: str) -> Answer:
        try:
            return self._answer(request, path, body)
        except Exception as error:  # an argument that the model does not have is one, too
            self.unmodelled.add(f"{route}: {error!r}")
            return _fault(500, path)

    def _answer(self, request: BaseHTTPRequestHandler, path: str, body: bytes) -> Answer:
        if path == "/graphql":
            if request.headers.get("Authorization") != self._authorization:
                return Answer.json({"errors": [{"message": "user is not logged in"}]}, 401)
            return self._graphql(json.loads(body))
        if stream := _STREAM.fullmatch(path):
            run = self.state.runs.get((stream[1], stream[2], stream[3]))
            if run is None:
                return Answer.json({"error": "run not found"}, 404)
            apply_stream(run, json.loads(body))
            return Answer.json({"exitcode": None, "limits": {}})
        if path.startswith("/run-files/"):
            entity, project, name, file = path.removeprefix("/run-files/").split("/", 3)
            files = self.state.runs[entity, project, name].files
            return self._file(request.command, files, file, body)
        if path.startswith("/blobs/"):
            blob = path.removeprefix("/blobs/")
            if request.command == "PUT" and blob.startswith("md5/") and blob[4:] != _md5(body):
                return Answer(400, b"this is not what has that md5")
            return self._file(request.command, self.state.blobs, blob, body)
        if direct := _MD5_PATH.fullmatch(path):
            return self._file("GET", self.state.blobs, f"md5/{direct[1]}", body)
        if path.startswith("/sdk/otel/v1/") or path == "/healthz":
            return Answer.json({})
        if path == "/traces/calls/stream_query":
            return self._trace_calls(json.loads(body))
        self.unmodelled.add(f"{request.command} {path}")
        return Answer.json({"error": "not modelled"}, 404)

    def _graphql(self, request: dict[str, Any]) -> Answer:
        try:
            data = Execution(request, self._views.query(), self._changes, self.unmodelled).run()
        except RefusedError as error:
            return Answer.json({"data": None, "errors": [{"message": str(error)}]})
        return Answer.json({"data": data})

    @staticmethod
    def _file(method: str, files: dict[str, bytes], name: str, body: bytes) -> Answer:
        if method == "PUT":
            files[name] = body
            return Answer(headers=(("ETag", _md5(body)),))
        return Answer(200, files[name]) if name in files else Answer(404)

    def _trace_calls(self, query: dict[str, Any]) -> Answer:
        parents = (query.get("filter") or {}).get("parent_ids")
        found = [
            call for call in self.state.trace_calls if parents is None or call.get("parent_id") in parents
        ]
        return Answer(200, b"".join(json.dumps(call).encode() + b"\n" for call in found))


def _body(request: BaseHTTPRequestHandler) -> bytes:
    if request.headers.get("Transfer-Encoding") == "chunked":
        parts = []
        while size := int(request.rfile.readline().strip() or b"0", 16):
            parts.append(request.rfile.read(size))
            request.rfile.readline()
        request.rfile.readline()
        body = b"".join(parts)
    else:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
    return gzip.decompress(body) if request.headers.get("Content-Encoding") == "gzip" else body


def _fault(status: int, path: str) -> Answer:
    said = {401: "user is not logged in", 403: "permission denied"}.get(status, f"injected {status}")
    return (
        Answer.json({"errors": [{"message": said}]}, status)
        if path == "/graphql"
        else Answer(status, said.encode())
    )


def _md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()
