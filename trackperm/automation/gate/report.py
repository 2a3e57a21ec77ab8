"""Report of a gate: as lines, JSON, JUnit XML, and annotations of GitHub Actions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal
from xml.etree import ElementTree as ET

from trackperm.automation.decision_log import scrubbed
from trackperm.automation.judging.baseline import Baseline
from trackperm.automation.judging.compare_candidate import JudgedComparison
from trackperm.automation.judging.judge import EXIT_CODES, Finding, notes_of
from trackperm.automation.policy.policy import Policy
from trackperm.automation.policy.wording import in_policies
from trackperm.comparison import Comparison
from trackperm.errors import TrackpermError
from trackperm.report import text
from trackperm.tables.remote import shown_locator
from trackperm.trackers.publication import Published
from trackperm.trackers.references import TrackedRun

GateOutcome = Literal["pass", "fail", "undecided", "no baseline", "error"]

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class GateReport:
    """Result of one candidate at a gate.

    Attributes
    ----------
    policy : Policy
        Policy of the judgement.
    candidate : TrackedRun or None
        Candidate: a run or a file; None if it was not found.
    outcome : {'pass', 'fail', 'undecided', 'no baseline', 'error'}
        Outcome; ``no baseline`` is a pass that the policy allows.
    exit_code : int
        Exit code of ``trackperm gate``.
    findings : tuple of Finding
        One finding per comparison.
    baseline : Baseline or None
        Baseline, if one was found.
    comparisons : tuple of Comparison
        Comparisons, in the order of `findings`.
    published : tuple of Published
        Runs that hold the comparisons; empty if nothing is logged.
    message : str
        Reason why nothing was compared; empty otherwise.
    """

    policy: Policy
    candidate: TrackedRun | None
    outcome: GateOutcome
    exit_code: int
    findings: tuple[Finding, ...] = ()
    baseline: Baseline | None = None
    comparisons: tuple[Comparison, ...] = ()
    published: tuple[Published, ...] = ()
    message: str = ""

    @classmethod
    def of(cls, judged: JudgedComparison) -> GateReport:
        """Report on a candidate that was compared."""
        judgement = judged.judgement
        return cls(
            judged.policy,
            judged.candidate,
            judgement.outcome,
            EXIT_CODES[judgement.outcome],
            judgement.findings,
            judged.baseline,
            judged.comparisons,
            judged.published,
        )

    @classmethod
    def without_baseline(cls, policy: Policy, candidate: TrackedRun, error: TrackpermError) -> GateReport:
        """Report on a candidate without a baseline that may pass; the message has no secrets."""
        return cls(policy, candidate, "no baseline", 0, message=scrubbed(error.message))

    @classmethod
    def of_error(cls, policy: Policy, candidate: TrackedRun | None, error: TrackpermError) -> GateReport:
        """Report on a candidate that could not be compared; the message has no secrets."""
        return cls(policy, candidate, "error", error.exit_code, message=scrubbed(error.on_command_line()))

    @property
    def passed(self) -> bool:
        """Whether the candidate passes, with or without a baseline."""
        return self.exit_code == 0

    @property
    def deciding(self) -> list[Finding]:
        """Findings that have the outcome of the report."""
        return [each for each in self.findings if each.outcome == self.outcome]

    @property
    def notes(self) -> list[str]:
        """Notes of all findings, each once, such as on dropped examples."""
        return notes_of(self.findings)

    @property
    def summary(self) -> str:
        """Outcome in one line, without a full stop."""
        name, count = self.policy.name, len(self.deciding)
        if self.outcome == "no baseline":
            return f"{name}: pass, because the baseline does not exist yet"
        if self.outcome == "error":
            return f"{name}: not compared"
        of = "" if len(self.findings) == 1 else f", {count} of {len(self.findings)} comparisons"
        every = "both" if len(self.findings) == 2 else f"all {len(self.findings)}"
        said = {
            "pass": "pass" if len(self.findings) == 1 else f"pass, {every} comparisons",
            "fail": f"fail{of}",
            "undecided": f"undecided{of}",
        }
        return f"{name}: {said[self.outcome]}"

    def lines(self) -> Iterator[str]:
        """Yield the report as lines for a terminal."""
        yield from map(_no_command, self._lines())

    def _lines(self) -> Iterator[str]:
        yield one_line(self.summary)
        if self.candidate is not None:
            yield f"candidate: {_run_line(self.candidate)}"
        if self.baseline is not None:
            yield f"baseline:  {_run_line(self.baseline.run)}: {one_line(self.baseline.why)}"
        for paragraph in filter(None, self.message.splitlines()):
            yield f"  {_no_command(one_line(paragraph))}"  # GitHub reads commands behind spaces, too
        for finding in self.findings:
            yield f"  {finding.outcome:<9} {one_line(str(finding))}"
        for note in self.notes:
            yield f"  {one_line(note)}"
        for published in self.published:
            yield f"logged: {published.run.url or published.run.reference}"

    def to_json(self) -> str:
        """Return the report as JSON text."""
        data: dict[str, Any] = {
            "policy": self.policy.name,
            "policy_digest": self.policy.digest,
            "fail_on": self.policy.fail_on,
            "outcome": self.outcome,
            "exit_code": self.exit_code,
            "message": self.message or None,
            "candidate": _plain(self.candidate),
            "baseline": None
            if self.baseline is None
            else {**(_plain(self.baseline.run) or {}), "why": self.baseline.why},
            "findings": [
                {"title": each.title, "outcome": each.outcome, "reason": each.reason}
                for each in self.findings
            ],
            "comparisons": [each.to_dict() for each in self.comparisons],
            "logged": [_plain(each.run) for each in self.published],
        }
        return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_junit(self) -> str:
        """Return the report as JUnit XML, with a test case per comparison; undecided is an error."""
        suite = ET.Element("testsuite", name=f"trackperm.{self.policy.name}")
        properties = ET.SubElement(suite, "properties")
        for name, value in self._properties():
            ET.SubElement(properties, "property", name=name, value=_xml(value))
        if not self.findings:
            case = _case(suite, self.policy.name, "comparison")
            if self.outcome == "error":
                _child(case, "error", "not compared", self.message)
            else:
                ET.SubElement(case, "skipped", message=_xml(self.message))
        for number, finding in enumerate(self.findings):
            case = _case(suite, self.policy.name, finding.title)
            shown = "\n".join(map(in_policies, text.lines(self.comparisons[number])))
            if finding.outcome == "fail":
                _child(case, "failure", finding.reason, shown, kind=self.policy.fail_on)
            elif finding.outcome == "undecided":
                _child(case, "error", finding.reason, shown, kind="undecided")
            else:
                ET.SubElement(case, "system-out").text = _xml(shown)
        for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(name, str(len(suite.findall(f"testcase/{kind}"))))
        suite.set("tests", str(len(suite.findall("testcase"))))
        root = ET.Element("testsuites")
        root.append(suite)
        ET.indent(root)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"

    def annotations(self) -> Iterator[str]:
        """Yield workflow commands of GitHub Actions, one annotation per deciding finding."""
        levels = {"fail": "error", "undecided": "warning", "error": "error"}
        title = f"trackperm {self.policy.name}"
        if self.message:
            yield _command(levels.get(self.outcome, "notice"), title, self.message)
        for finding in self.deciding:
            yield _command(levels.get(finding.outcome, "notice"), title, str(finding))
        for note in self.notes:
            yield _command("warning", title, note)

    def outputs(self) -> str:
        """Return the outputs of a step, in the format of the file ``GITHUB_OUTPUT``."""
        return f"outcome={self.outcome}\nexit-code={self.exit_code}\n"

    def _properties(self) -> Iterator[tuple[str, str]]:
        yield "policy_digest", self.policy.digest
        yield "outcome", self.outcome
        if self.candidate is not None:
            yield "candidate", _reference(self.candidate)
        if self.baseline is not None:
            yield "baseline", _reference(self.baseline.run)
            yield "baseline_found_as", self.baseline.why
        for published in self.published:
            yield "logged", str(published.run.url or published.run.reference)


def github_error(error: TrackpermError) -> tuple[str, str]:
    """Return annotation and outputs for a policy that could not be read."""
    outputs = f"outcome=error\nexit-code={error.exit_code}\n"
    return _command("error", "trackperm gate", scrubbed(error.on_command_line())), outputs


def one_line(found: str) -> str:
    """Write text on one line without control characters, so that no name can begin a line."""
    return _CONTROL.sub("\ufffd", " ".join(found.split()))


def _no_command(line: str) -> str:
    """Disarm workflow commands of GitHub Actions: ``::`` at the start, ``##[`` anywhere."""
    line = line.replace("##[", "#\u200b#[")
    return f"\u200b{line}" if line.startswith("::") else line


def _run_line(run: TrackedRun) -> str:
    reference, name = one_line(_reference(run)), one_line(run.name)
    return reference if run.reference.scheme == "file" else f"{name} ({reference})"


def _reference(run: TrackedRun) -> str:
    return shown_locator(str(run.reference))


def _plain(run: TrackedRun | None) -> dict[str, str | None] | None:
    return None if run is None else {"reference": _reference(run), "name": run.name, "url": run.url}


def _case(suite: ET.Element, policy: str, title: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=f"trackperm.{policy}", name=_xml(title))


def _child(case: ET.Element, tag: str, message: str, shown: str, kind: str = "error") -> None:
    child = ET.SubElement(case, tag, message=_xml(one_line(message)), type=kind)
    child.text = _xml(shown)


def _xml(found: str) -> str:
    """Replace characters that XML does not allow."""
    return _NO_XML.sub("\ufffd", found)


def _command(level: str, title: str, message: str) -> str:
    """Write a workflow command; characters that would begin another one are escaped."""
    data = message.encode(errors="backslashreplace").decode()  # a path may contain half a surrogate pair
    data = data.replace("##[", "#\u200b#[").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{level} title={title}::{data}"
