"""Policies as data: the keys of a policy file, and what was read together with them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, InstanceOf

from trackperm.automation.policy.keys import (
    BaselineRule,
    Container,
    Containers,
    Name,
    Part,
    Selection,
    Statistics,
    Text,
    Texts,
    as_tuple,
)
from trackperm.choices import Alternative, CorrectionName, EngineName, MissingRule, Repeats, Unit
from trackperm.messages import without_credentials
from trackperm.statistic import Statistic
from trackperm.statistic.written_spec import written_spec


class PolicyKeys(Part, title="Policy"):
    """Keys of a policy: which runs are compared with what, how they are judged, where results are logged."""

    name: Name
    """Name of the policy: lower-case letters, digits and hyphens."""

    runs: Containers = ()
    """Experiments or projects whose finished runs are compared. `trackperm gate` does not need them."""

    only: Selection = Selection()
    """Selection of these runs; by default all."""

    baseline: BaselineRule
    """Rule that finds the run to compare with."""

    if_no_baseline: Literal["error", "pass"] = "error"
    """Outcome if no baseline is found, as for the very first run, or if the named file does not exist. A run
    that is named and not in its tracker is always an error."""

    artifact: Text | None = None
    """Artifact with the per-example predictions of both runs, if they have several tables."""

    statistics: Statistics = ()
    """Statistics to test: names, or keys and values. By default the runs' own metrics, or else accuracy."""

    metric: Texts = ()
    """Metrics of the runs, or columns with a score per example, whose means are compared."""

    unit: Unit | None = None
    """Unit that is exchanged between the runs: all rows of an `example` together, the default; each `row`; or
    the attempts within each example, `attempt`."""

    repeats: Repeats | None = None
    """How several rows of one example are combined; by default `sum`."""

    cluster: Text | None = None
    """Column whose groups of examples are exchanged as a whole."""

    units: Literal["any", "declared"] = "any"
    """Whether units of exchange have to be declared. `declared` refuses a comparison in which examples of one
    document, user or input depend on each other, or in which the rows of an example were combined by default,
    until the policy has a `cluster`, `unit` or `repeats`, or the statistic's file a `cluster` or `repeats`.
    `unit: example` declares that examples are independent of each other."""

    allow_unseen: bool = False
    """Whether predictions may be compared with labels although no label equals any of them."""

    columns: dict[str, str] = Field(default_factory=dict)
    """Columns of the data with other names, for every statistic, such as `id: example`."""

    slices: Texts = ()
    """Columns whose values define slices, which are compared as well."""

    alpha: Annotated[float, Field(gt=0.0, lt=0.5, allow_inf_nan=False)] = 0.05
    """Significance level."""

    margin: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    """The smallest difference that matters, in units of the statistics."""

    correction: CorrectionName = "holm"
    """Correction over several statistics and slices, which depend on each other."""

    alternative: Alternative | None = None
    """Alternative of the test; by default that of the spec."""

    missing: MissingRule = "error"
    """Treatment of examples that only one run has. With `wrong`, a candidate whose baseline lacks more
    predictions, as after a test set grew, passes only if it passes on the examples that both runs have."""

    engine: EngineName = "auto"
    """Where rows are joined and counted, which changes no result."""

    fail_on: Literal["regression", "not-shown-non-inferior"] = "regression"
    """`regression`: the candidate is significantly worse. `not-shown-non-inferior`: it is not shown to be at
    most `margin` worse."""

    log_to: Container | None = None
    """Experiment or project for the comparisons, instead of the candidate's."""

    tag_runs: bool = False
    """Whether baseline and candidate get tags with the verdict."""

    tracking_uri: Text | None = None
    """Tracking server or store. Credentials come from the environment only."""


class Policy(PolicyKeys):
    """Policy that was read from a file: its keys, its statistics, and where they are from."""

    specs: tuple[InstanceOf[Statistic], ...] = Field(default=(), repr=False)
    """Statistics of the policy, compiled when the file was read."""

    file: Path | None = None
    """Policy file; relative paths start at its folder."""

    baseline_given_by: str = "named by the policy"
    """Origin of a named baseline, as the end of a sentence."""

    @property
    def digest(self) -> str:
        """Digest of all keys that change a comparison.

        Name, selected runs, engine and what counts as failure are not among them.
        """
        parts = {
            "baseline": self.baseline.model_dump(mode="json", exclude_none=True),
            "artifact": self.artifact,
            "statistics": [written_spec(statistic) for statistic in self.specs],
            "columns": [dict(sorted(statistic.columns.items())) for statistic in self.specs]
            or dict(sorted(self.columns.items())),
            **{
                name: value
                for name in ("metric", "unit", "repeats", "cluster", "allow_unseen")
                if (value := getattr(self, name))
            },
            **({"units": self.units} if self.units == "declared" else {}),
            "slices": self.slices,
            "alpha": self.alpha,
            "margin": self.margin,
            "correction": self.correction,
            "alternative": self.alternative,
            "missing": self.missing,
            "log_to": None if self.log_to is None else str(self.log_to),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    @property
    def queue_key(self) -> str:
        """Key of the policy's rows in a queue: digest of the comparison, outcome, selected runs and tracker.

        A row is therefore not processed by a policy that selects other runs, looks for the run in another
        tracker, or judges it by other rules.
        """
        selected = [sorted(self.only.tags.items()), self.only.name, [str(each) for each in self.runs]]
        parts = [self.digest, self.tracking_uri, selected, self.fail_on, self.if_no_baseline]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as JSON values, with defaults and without credentials."""
        data = self.model_dump(
            mode="json", exclude={"runs", "log_to", "baseline", "specs", "file", "baseline_given_by"}
        )
        return {
            **data,
            "tracking_uri": self.tracking_uri and without_credentials(self.tracking_uri),
            "runs": [str(each) for each in self.runs],
            "baseline": without_credentials(str(self.baseline)),
            "log_to": None if self.log_to is None else str(self.log_to),
        }


class PolicyDocument(Part):
    """Policy file: the version of its format, and its policies."""

    version: Literal[1] = 1
    """Version of the format."""

    policies: Annotated[tuple[PolicyKeys, ...], BeforeValidator(as_tuple)]
    """The policies, each with its own name."""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a policy file, for completion and checks in editors."""
    schema = PolicyDocument.model_json_schema()
    statistics = schema["$defs"]["PolicyKeys"]["properties"]["statistics"]
    statistics["items"] = {"anyOf": [{"type": "string"}, statistics["items"]]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "trackperm policies",
    }
