"""What a page of the server does, without a browser: ask for a job, wait for it, read what it came to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import requests

from support.waiting import wait_until
from trackperm.server.jobs.visitors import PAGE_HEADER

API = "/ajax-api/2.0/trackperm"
SECONDS = 60.0


class Client:
    """One user of a server, by name and password if need be; a program, unless it has the token of a page."""

    def __init__(self, uri: str, user: tuple[str, str] | None = None, page: str | None = None) -> None:
        self.uri = uri
        self._user = user
        self._page = {} if page is None else {PAGE_HEADER: page}

    def get(self, path: str, headers: Mapping[str, str] | None = None, **query: Any) -> requests.Response:
        """Read a page or an endpoint, on a connection of its own."""
        given = {**self._page, **(headers or {})}
        return requests.get(self.uri + path, params=query, headers=given, auth=self._user, timeout=30)

    def cancel(self, job: str) -> requests.Response:
        """Cancel a job."""
        return requests.delete(
            f"{self.uri}{API}/jobs", params={"id": job}, headers=self._page, auth=self._user, timeout=30
        )

    def post(
        self, order: object, headers: Mapping[str, str] | None = None, path: str = f"{API}/jobs"
    ) -> requests.Response:
        """Ask for a job."""
        given = {**self._page, **(headers or {})}
        return requests.post(self.uri + path, json=order, headers=given, auth=self._user, timeout=30)

    def begin(self, order: object) -> str:
        """Ask for a job, and return its id."""
        answer = self.post(order)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job"])

    def begin_running(self, order: object) -> str:
        """Ask for a job, and return its id as soon as it runs."""
        job = self.begin(order)
        wait_until(lambda: self.state(job)["state"] != "waiting")
        return job

    def state(self, job: str) -> dict[str, Any]:
        """Read what is known of a job."""
        answer = self.get(f"{API}/jobs", id=job)
        assert answer.status_code == 200, answer.text
        state: dict[str, Any] = answer.json()
        return state

    def wait(self, job: str, seconds: float = SECONDS) -> dict[str, Any]:
        """Wait until a job is done or has failed."""
        wait_until(lambda: self.state(job)["state"] not in ("waiting", "running"), seconds)
        return self.state(job)

    def result(self, order: object, seconds: float = SECONDS) -> dict[str, Any]:
        """Do a job, and return its result."""
        state = self.wait(self.begin(order), seconds)
        assert state["state"] == "done", state
        result: dict[str, Any] = state["result"]
        return result

    def error(self, order: object, seconds: float = SECONDS) -> dict[str, Any]:
        """Do a job that fails, and return its error."""
        state = self.wait(self.begin(order), seconds)
        assert state["state"] == "failed", state
        error: dict[str, Any] = state["error"]
        return error

    def changed(self, job: str, **query: Any) -> dict[str, Any]:
        """Read a page of the examples that changed, as soon as they are there."""
        page: dict[str, Any] = {}

        def is_ready() -> object:
            answer = self.get(f"{API}/changed", id=job, **query)
            assert answer.status_code == 200, answer.text
            page.update(answer.json())
            return page["ready"]

        wait_until(is_ready, SECONDS)
        return page


def predictions(seed: int, n: int = 200, rate: float = 0.2) -> dict[str, list[Any]]:
    """Predictions of two classes by a run that is wrong on about a share `rate` of `n` examples."""
    labels = np.random.default_rng(0).integers(0, 2, n)
    wrong = np.random.default_rng(seed).random(n) < rate
    return {
        "id": [f"Dev-{i:06d}" for i in range(n)],
        "prediction": np.where(wrong, 1 - labels, labels).tolist(),
        "label": labels.tolist(),
    }
