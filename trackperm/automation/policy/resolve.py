"""Functions that resolve the keys of a policy: its tracker, paths, statistics, and another baseline."""

from __future__ import annotations

from pathlib import Path

from trackperm.automation.policy.keys import BaselineRule
from trackperm.automation.policy.policy import Policy
from trackperm.comparison import Question
from trackperm.tables import split_part
from trackperm.tables.remote import is_remote
from trackperm.trackers.base import Tracker, open_tracker
from trackperm.trackers.references import RunReference


def policy_tracker(policy: Policy, reference: RunReference, opened: Tracker | None = None) -> Tracker:
    """Return `opened` if it has runs of the scheme of `reference`, else open the tracker of the policy."""
    if opened is not None and opened.scheme == reference.scheme:
        return opened
    return open_tracker(reference.scheme, policy.tracking_uri)


def policy_path(policy: Policy, path: str) -> str:
    """Return a path relative to the folder of the policy file as a whole path; URLs stay unchanged."""
    folder = Path() if policy.file is None else policy.file.parent
    return path if is_remote(path) else str(folder / Path(path).expanduser())


def missing_baseline_file(policy: Policy) -> str | None:
    """Return the text of a baseline that is taken for a file which does not exist; None for any other."""
    text = policy.baseline.run
    if text is None or RunReference.parse(text).scheme != "file":
        return None
    file, _ = split_part(policy_path(policy, text))
    return text if isinstance(file, Path) and not file.exists() else None


def policy_files(policy: Policy) -> list[Path]:
    """List the files that were read for a policy: its own, and the specs of its statistics."""
    specs = [Path(policy_path(policy, each.name)) for each in policy.statistics if is_spec(each.name)]
    return [*([] if policy.file is None else [policy.file]), *specs]


def is_spec(name: str) -> bool:
    """Whether the name of a statistic is the path of a spec."""
    return name.endswith((".yaml", ".yml"))


def question_of(policy: Policy) -> Question:
    """Return statistics, metrics and units as the comparison takes them."""
    return Question(
        statistics=policy.specs,
        metrics=policy.metric,
        columns={} if policy.specs else policy.columns,  # compiled statistics have them
        unit=policy.unit,
        repeats=policy.repeats,
        cluster=policy.cluster,
        allow_unseen=policy.allow_unseen,
        is_standing=True,
    )


def with_baseline(policy: Policy, reference: str) -> Policy:
    """Return the policy with the run or file `reference` as its baseline; a missing one is an error."""
    if RunReference.parse(reference).scheme == "file" and not is_remote(reference):
        reference = str(Path(reference).absolute())
    return policy.model_copy(
        update={
            "baseline": BaselineRule(run=reference),
            "if_no_baseline": "error",
            "baseline_given_by": "named in place of the policy's",
        }
    )
