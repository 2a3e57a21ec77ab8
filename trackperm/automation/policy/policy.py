"""Policy file ``trackperm.yaml``: which runs are compared unattended, and what counts as failure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, PrivateAttr

from trackperm.automation.policy.keys import (
    BaselineRule,
    Container,
    Containers,
    Name,
    Part,
    Selection,
    StatisticChoice,
    Statistics,
    Texts,
    as_tuple,
)
from trackperm.choices import Alternative, CorrectionName, EngineName, MissingRule, Repeats, Unit
from trackperm.comparison import Question
from trackperm.errors import InputError, SpecError, TrackpermError
from trackperm.messages import listed, printable, without_credentials
from trackperm.option_names import COLUMNS, PAIRS, rewritten
from trackperm.statistic import Statistic, load_statistic
from trackperm.statistic.document import Document, DocumentPath
from trackperm.tables.remote import is_remote
from trackperm.trackers.base import Tracker, open_tracker
from trackperm.trackers.references import RunReference

_KEYS = {"slice": "slices", "statistic": "statistics"}


class Policy(Part):
    """Policy: which runs are compared with what, how they are judged, and where results are logged."""

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

    artifact: str | None = None
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

    cluster: str | None = None
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
    """Treatment of examples that only one run has."""

    engine: EngineName = "auto"
    """Where rows are joined and counted, which changes no result."""

    fail_on: Literal["regression", "not-shown-non-inferior"] = "regression"
    """`regression`: the candidate is significantly worse. `not-shown-non-inferior`: it is not shown to be at
    most `margin` worse."""

    log_to: Container | None = None
    """Experiment or project for the comparisons, instead of the candidate's."""

    tag_runs: bool = False
    """Whether baseline and candidate get tags with the verdict."""

    tracking_uri: str | None = None
    """Tracking server or store. Credentials come from the environment only."""

    _statistics: tuple[Statistic, ...] = PrivateAttr(default=())
    _folder: Path = PrivateAttr(default=Path())
    _file: Path | None = PrivateAttr(default=None)
    _baseline_given_by: str = PrivateAttr(default="named by the policy")

    @property
    def digest(self) -> str:
        """Digest of all keys that change a comparison.

        Name, selected runs, engine and what counts as failure are not among them.
        """
        parts = {
            "baseline": self.baseline.model_dump(mode="json", exclude_none=True),
            "artifact": self.artifact,
            "statistics": [statistic.document() for statistic in self._statistics],
            "columns": [dict(sorted(statistic.columns.items())) for statistic in self._statistics]
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
        data = self.model_dump(mode="json", exclude={"runs", "log_to", "baseline"})
        return {
            **data,
            "tracking_uri": self.tracking_uri and without_credentials(self.tracking_uri),
            "runs": [str(each) for each in self.runs],
            "baseline": without_credentials(str(self.baseline)),
            "log_to": None if self.log_to is None else str(self.log_to),
        }

    @property
    def file(self) -> Path | None:
        """Policy file that the policy was read from, if any."""
        return self._file

    @property
    def folder(self) -> Path:
        """Folder at which relative paths of the policy start."""
        return self._folder

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that were read for the policy: its own, and the specs of its statistics."""
        specs = (self._folder / each.name for each in self.statistics if is_spec(each.name))
        return (*(() if self._file is None else (self._file,)), *specs)

    @property
    def specs(self) -> tuple[Statistic, ...]:
        """Statistics of the policy, compiled when the file was loaded."""
        return self._statistics

    @property
    def question(self) -> Question:
        """Statistics, metrics and units, as the comparison takes them."""
        return Question(
            statistics=self._statistics,
            metrics=self.metric,
            columns={} if self._statistics else self.columns,  # compiled statistics have them
            unit=self.unit,
            repeats=self.repeats,
            cluster=self.cluster,
            allow_unseen=self.allow_unseen,
        )

    @property
    def baseline_given_by(self) -> str:
        """Origin of a named baseline, as the end of a sentence."""
        return self._baseline_given_by

    def with_baseline(self, reference: str) -> Policy:
        """Return the policy with the run or file `reference` as its baseline, whose absence is an error."""
        if RunReference.parse(reference).scheme == "file" and not is_remote(reference):
            reference = str(Path(reference).absolute())
        policy = self.model_copy(update={"baseline": BaselineRule(run=reference), "if_no_baseline": "error"})
        policy._baseline_given_by = "named in place of the policy's"
        return policy

    def _compiled(self, file: Path, statistics: Sequence[Statistic]) -> None:
        self._file, self._folder, self._statistics = file, file.parent, tuple(statistics)


class PolicyDocument(Part):
    """Policies of one file."""

    version: Literal[1] = 1
    """Version of the format."""

    policies: Annotated[tuple[Policy, ...], BeforeValidator(as_tuple)]
    """The policies, each with its own name."""


@dataclass(frozen=True)
class PolicyFile:
    """Policies of a file, validated.

    Attributes
    ----------
    path : Path
        Path of the file.
    policies : tuple of Policy
        At least one policy; their names differ.
    """

    path: Path
    policies: tuple[Policy, ...]

    def find(self, name: str | None = None) -> Policy:
        """Return the policy called `name`, or the only policy of the file.

        Raises
        ------
        InputError
            If no policy has that name, or there are several and no name is given.
        """
        names = [policy.name for policy in self.policies]
        if name is None and len(names) > 1:
            raise InputError(
                f"`{printable(self.path)}` has {len(names)} policies",
                hint=f"`--name` chooses one of {listed(names)}.",
            )
        for policy in self.policies:
            if name in (None, policy.name):
                return policy
        raise InputError(
            f"`{printable(self.path)}` has no policy `{name}`", hint=f"there are {listed(names)}."
        )


def load_policies(path: str | Path) -> PolicyFile:
    """Read a policy file, and compile its statistics.

    Raises
    ------
    SpecError
        If the file cannot be read or is not valid: the first error, with file, line and column.

    Examples
    --------
    >>> _ = Path("trackperm.yaml").write_text("policies: [{name: nightly, baseline: {newest: {}}}]")
    >>> load_policies("trackperm.yaml").find("nightly").alpha
    0.05
    """
    found = read_policies(path)
    if isinstance(found, list):
        raise found[0]
    return found


def read_policies(path: str | Path) -> PolicyFile | list[SpecError]:
    """Read a policy file as :func:`load_policies` does, or return all its errors."""
    path = Path(path)
    try:
        document = Document.read(path)
        misfits = document.misfits(PolicyDocument)
        found = () if misfits else document.validate(PolicyDocument).policies
    except SpecError as error:
        if not path.is_file():
            error = SpecError(error.message, hint="policies are in a YAML file, such as `trackperm.yaml`.")
        return [error]
    if misfits or not found:
        hint = "add one: a `name` and a `baseline`."
        return misfits or [document.error("the list of policies is empty", ("policies",), hint=hint)]
    problems = []
    names: list[str] = []
    for number, policy in enumerate(found):
        at: DocumentPath = ("policies", number)
        try:
            if policy.name in names:
                raise document.error(f"another policy is called `{policy.name}` already", (*at, "name"))
            names.append(policy.name)
            _compile(document, at, policy, path.absolute())
            _require_distinct(document, at, policy, found[:number])
        except SpecError as error:
            problems.append(error)
    return problems or PolicyFile(path, found)


def policy_tracker(policy: Policy, reference: RunReference, opened: Tracker | None = None) -> Tracker:
    """Return `opened` if it has runs of the scheme of `reference`, else open the tracker of the policy.

    Raises
    ------
    InputError
        If no tracker has that scheme.
    TrackerError
        If the tracker cannot be reached.
    """
    if opened is not None and opened.scheme == reference.scheme:
        return opened
    return open_tracker(reference.scheme, policy.tracking_uri)


def is_spec(name: str) -> bool:
    """Whether the name of a statistic is the path of a spec."""
    return name.endswith((".yaml", ".yml"))


def in_policies(text: str) -> str:
    """Return a message with keys of policies in place of options of commands."""

    def key(name: str, value: str | None) -> str | None:
        if name in COLUMNS:
            return "columns" if value is None else f"columns: {{{name}: {value}}}"
        if name in PAIRS:
            entry, _, given = (value or "").partition("=")
            return f"{PAIRS[name]}: {{{entry}: {given}}}" if given else PAIRS[name]
        written = _KEYS.get(name, name.replace("-", "_"))
        if written not in Policy.model_fields:
            return None
        is_switch = value is None and Policy.model_fields[written].annotation is bool
        return f"{written}: true" if is_switch else f"{written}: {value}" if value else written

    return rewritten(text, key)


def hint_for_policies(error: Exception) -> str | None:
    """Return the hint of an error, as :func:`in_policies` writes it."""
    if not isinstance(error, TrackpermError) or error.hint is None:
        return None
    return in_policies(error.hint)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a policy file, for completion and checks in editors."""
    schema = PolicyDocument.model_json_schema()
    statistics = schema["$defs"]["Policy"]["properties"]["statistics"]
    statistics["items"] = {"anyOf": [{"type": "string"}, statistics["items"]]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "trackperm policies",
    }


def _compile(document: Document, at: DocumentPath, policy: Policy, file: Path) -> None:
    """Compile the statistics of a policy, and refuse keys that contradict each other."""
    if policy.fail_on == "not-shown-non-inferior" and policy.margin is None:
        raise document.error(
            "`not-shown-non-inferior` needs a `margin`",
            (*at, "fail_on"),
            hint="the margin is how much worse a candidate may be, such as `margin: 0.01`.",
        )
    if policy.tracking_uri is not None:
        hint = (
            "put them in the environment: `MLFLOW_TRACKING_USERNAME` and `MLFLOW_TRACKING_PASSWORD`, or the "
            "whole URI in `MLFLOW_TRACKING_URI`; `WANDB_API_KEY` for W&B."
        )
        _require_no_credentials(document, (*at, "tracking_uri"), policy.tracking_uri, hint)
    run = policy.baseline.run
    if run is not None and is_remote(run):
        hint = "put them in the environment; `trackperm gate --baseline` takes a URL with credentials."
        _require_no_credentials(document, (*at, "baseline", "run"), run, hint)
    if not policy.statistics and "statistics" in policy.model_fields_set:
        raise document.error("the list is empty", (*at, "statistics"), hint="add one, such as `accuracy`.")
    try:
        Question(
            statistics=tuple(choice.name for choice in policy.statistics),
            metrics=policy.metric,
            unit=policy.unit,
            repeats=policy.repeats,
        )
    except InputError as error:
        raise document.error(in_policies(error.message), at, hint=hint_for_policies(error)) from error
    is_one_sided = policy.alternative not in (None, "two-sided")
    if is_one_sided and not policy.statistics and policy.fail_on == "regression":
        raise document.error(
            f"the alternative `{policy.alternative}` is one-sided, and which side is better depends on the"
            " statistic; expected `statistics` beside it",
            (*at, "alternative"),
            hint="name the statistic under `statistics`, or leave `alternative` out.",
        )
    statistics: list[Statistic] = []
    for number, choice in enumerate(policy.statistics):
        where = (*at, "statistics", number)
        statistic = _statistic(document, where, policy, choice, file.parent)
        if statistic.name in [each.name for each in statistics]:
            raise document.error(
                f"another statistic is called `{statistic.name}` already",
                where,
                hint="leave one out; with other parameters or columns, a spec gives it another name.",
            )
        statistics.append(statistic)
        _require_regression_shows(document, where, policy, statistic)
    policy._compiled(file, statistics)


def _require_distinct(document: Document, at: DocumentPath, policy: Policy, others: Sequence[Policy]) -> None:
    """Refuse two policies with the same queue key, because one of the two would never be used."""
    for other in others:
        if policy.runs and policy.queue_key == other.queue_key:
            raise document.error(
                f"the policy `{other.name}` compares and judges the same runs in the same way, so one of the"
                " two would never be used",
                at,
                hint="leave `runs` out of a policy that is for `trackperm gate` only.",
            )


def _has_credentials(uri: str) -> bool:
    return "@" in urlsplit(uri).netloc or without_credentials(uri) != uri


def _require_no_credentials(document: Document, at: DocumentPath, uri: str, hint: str) -> None:
    """Refuse an address with credentials, or an invalid one, without quoting its line."""
    try:
        problem = f"credentials in `{at[-1]}`" if _has_credentials(uri) else None
    except ValueError as error:
        problem, hint = f"`{at[-1]}` is not a valid address ({error})", "expected `https://HOST:PORT/PATH`."
    if problem is not None:
        raise SpecError(document.error(problem, at).message.partition("\n\n")[0], hint=hint)


def _statistic(
    document: Document, at: DocumentPath, policy: Policy, choice: StatisticChoice, folder: Path
) -> Statistic:
    """Compile one statistic; an error inside a spec has its place in the spec."""
    is_file = is_spec(choice.name)
    path = folder / choice.name
    try:
        is_missing = is_file and not path.is_file()
    except OSError as error:  # a name that is too long
        raise document.error(f"`{choice.name}` cannot be read: {error.strerror}", at) from error
    if is_missing:
        raise document.error(f"there is no file `{choice.name}`", at, hint=f"`{path}` was expected.")
    resolution: Any = choice.resolution
    try:
        spec = load_statistic(path if is_file else choice.name)
    except SpecError as error:
        if is_file:
            raise
        raise document.error(in_policies(error.message), at, hint=hint_for_policies(error)) from error
    try:
        return load_statistic(
            spec,
            parameters=choice.parameters,
            columns={**policy.columns, **choice.columns},
            resolution=resolution,
        )
    except TrackpermError as error:
        raise document.error(in_policies(error.message), at, hint=hint_for_policies(error)) from error


def _require_regression_shows(
    document: Document, at: DocumentPath, policy: Policy, statistic: Statistic
) -> None:
    """Refuse a gate that no candidate can fail: a one-sided test for better never shows worse."""
    tested = policy.alternative or statistic.alternative
    if policy.fail_on != "regression" or tested == "two-sided":
        return
    if (tested == "greater") == statistic.greater_is_better:
        wanted = "less" if statistic.greater_is_better else "greater"
        at = at if policy.alternative is None else (*at[:2], "alternative")
        raise document.error(
            f"by `{statistic.name}` the alternative `{tested}` shows that a candidate is better, never that"
            " it is worse, so `fail_on: regression` would never fail",
            at,
            hint=f"`alternative: two-sided`, or `alternative: {wanted}`, which tests for worse only.",
        )
