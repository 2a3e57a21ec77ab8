"""Any order of calls of the queue by two workers, against a model in memory."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule
from support.budget import cases
from support.queue_tasks import KEY, Clock, task

from trackperm.automation.queue.queue import Entry, Queue
from trackperm.errors import LeaseLostError


class Model(RuleBasedStateMachine):
    claims = Bundle("claims")
    candidates = st.integers(0, 3)

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.clock = Clock()
        self.queue = Queue(Path(self._folder.name), clock=self.clock, lease=10)
        self.state: dict[str, str] = {}
        self.holder: dict[str, str | None] = {}
        self.baseline: dict[str, str | None] = {}
        self.completed: list[str] = []

    def teardown(self) -> None:
        self._folder.cleanup()

    @rule(number=candidates, stamp=st.sampled_from([None, "1", "2"]))
    def add(self, number: int, stamp: str | None) -> None:
        candidate = f"mlflow:run{number}"
        before = {entry.candidate: entry for entry in self.queue.entries()}.get(candidate)
        fresh = before is None or (before.state == "refused" and stamp not in (None, before.stamp))
        assert len(self.queue.add([task(number, stamp=stamp)], "watch")) == fresh
        if fresh:
            self.state[candidate], self.baseline[candidate] = "waiting", None

    @rule(target=claims, owner=st.sampled_from("ab"))
    def claim(self, owner: str) -> object:
        claim = self.queue.claim([KEY], owner)
        for entry in self.queue.entries():  # a claim ends the leases that have expired
            if entry.state == "waiting" and self.state[entry.candidate] == "claimed":
                self.state[entry.candidate], self.holder[entry.candidate] = "waiting", None
        if claim is None:
            return multiple()
        assert claim.candidate not in self.completed
        assert claim.baseline == self.baseline[claim.candidate]
        self.state[claim.candidate], self.holder[claim.candidate] = "claimed", claim.token
        return claim

    @rule(seconds=st.sampled_from([1.0, 9.0, 11.0, 4000.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    def _holds(self, claim: Entry) -> bool:
        return self.state.get(claim.candidate) == "claimed" and self.holder[claim.candidate] == claim.token

    @rule(claim=claims, baseline=st.sampled_from("xyz"))
    def fix(self, claim: Entry, baseline: str) -> None:
        if not self._holds(claim):
            with pytest.raises(LeaseLostError):
                self.queue.fix_baseline(claim, baseline, "why")
            return
        found = self.queue.fix_baseline(claim, baseline, "why").baseline
        self.baseline[claim.candidate] = self.baseline[claim.candidate] or baseline
        assert found == self.baseline[claim.candidate]

    @rule(claim=claims, stamp=st.sampled_from("12"))
    def note_stamp(self, claim: Entry, stamp: str) -> None:
        if self._holds(claim):
            assert self.queue.note_stamp(claim, stamp).stamp == stamp
        else:
            with pytest.raises(LeaseLostError):
                self.queue.note_stamp(claim, stamp)

    @rule(claim=claims)
    def renew(self, claim: Entry) -> None:
        if self._holds(claim):
            self.queue.renew(claim)
        else:
            with pytest.raises(LeaseLostError):
                self.queue.renew(claim)

    @rule(claim=consumes(claims), end=st.sampled_from(["complete", "refuse", "retry", "release", "drop"]))
    def end(self, claim: Entry, end: str) -> None:
        arguments = {"complete": ("pass", []), "refuse": ("no",), "retry": ("down", 5.0)}.get(end, ())
        held = self._holds(claim)
        if not held:
            with pytest.raises(LeaseLostError):
                getattr(self.queue, end)(claim, *arguments)
            return
        getattr(self.queue, end)(claim, *arguments)
        self.holder[claim.candidate] = None
        if end == "drop":
            del self.state[claim.candidate]
            return
        self.state[claim.candidate] = {"complete": "done", "refuse": "refused"}.get(end, "waiting")
        if end == "complete":
            self.completed.append(claim.candidate)

    @invariant()
    def is_as_the_model_says(self) -> None:
        assert {entry.candidate: entry.state for entry in self.queue.entries()} == self.state
        assert len(set(self.completed)) == len(self.completed)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=cases(20), stateful_step_count=25, deadline=None)
