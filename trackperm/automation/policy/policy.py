"""What is compared without being asked, and what counts as failure: the policy file ``trackperm.yaml``."""

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
from trackperm.choices import Alternative, CorrectionInPolicy, EngineName, MissingRule, Repeats, Unit
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
    """What is compared, with what, how it is judged, and where the result goes."""

    name: Name
    """Name of the policy: lower-case letters, digits and hyphens."""

    runs: Containers = ()
    """Experiments or projects whose finished runs are compared. A policy for `trackperm gate` needs none."""

    only: Selection = Selection()
    """Which of these runs are compared; all by default."""

    baseline: BaselineRule
    """What they are compared with."""

    if_no_baseline: Literal["error", "pass"] = "error"
    """What becomes of a candidate for which no baseline is found, as for the first run of all, or where a
    file is named that is not there. A run that is named and not in its tracker is an error in any case."""

    artifact: str | None = None
    """Artifact with the per-example predictions, of both runs, where several could be meant."""

    statistics: Statistics = ()
    """What is tested: names, or keys and values. By default what the runs say: their own metrics, or else
    accuracy."""

    metric: Texts = ()
    """Metrics of the runs, or columns that score each example, whose means are compared."""

    unit: Unit | None = None
    """What is exchanged between the runs: all rows of an `example` together, as by default; each `row`; or
    the attempts within each example, `attempt`."""

    repeats: Repeats | None = None
    """What several rows of one example come to; `sum` by default."""

    cluster: str | None = None
    """Column whose groups of examples are exchanged as a whole."""

    units: Literal["any", "declared"] = "any"
    """Whether a comparison is judged whose units nobody has declared. `declared` refuses one in which
    examples of one document, user or input are seen to hang together, or the rows of an example were taken
    together by default: until the policy has a `cluster`, `unit` or `repeats`, or the statistic's file a
    `cluster` or `repeats`. `unit: example` declares that examples are independent of each other."""

    allow_unseen: bool = False
    """Whether predictions are compared with labels though none of them is among these."""

    columns: dict[str, str] = Field(default_factory=dict)
    """Columns of the data that are called otherwise, for every statistic, such as `id: example`."""

    slices: Texts = ()
    """Columns whose values make slices that are compared as well."""

    alpha: Annotated[float, Field(gt=0.0, lt=0.5, allow_inf_nan=False)] = 0.05
    """Significance level."""

    margin: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    """The smallest difference that matters, in units of the statistics."""

    correction: CorrectionInPolicy = "holm"
    """How several statistics and slices are corrected for each other; they depend on each other."""

    alternative: Alternative | None = None
    """Which values are extreme; as the spec says by default."""

    missing: MissingRule = "error"
    """What to do with examples that only one run has."""

    engine: EngineName = "auto"
    """Where rows are joined and counted, which changes no result."""

    fail_on: Literal["regression", "not-shown-non-inferior"] = "regression"
    """`regression`: the candidate is significantly worse. `not-shown-non-inferior`: it is not shown to be at
    most `margin` worse."""

    log_to: Container | None = None
    """Where comparisons are logged, in place of the candidate's experiment or project."""

    tag_runs: bool = False
    """Whether baseline and candidate get tags with the verdict."""

    tracking_uri: str | None = None
    """Tracking server or store. Credentials are taken from the environment alone."""

    _statistics: tuple[Statistic, ...] = PrivateAttr(default=())
    _folder: Path = PrivateAttr(default=Path())
    _file: Path | None = PrivateAttr(default=None)
    _baseline_given_by: str = PrivateAttr(default="named by the policy")

    @property
    def digest(self) -> str:
        """Digest of what decides a comparison: equal digests compare a run in the same way.

        The name, the runs that are selected, the engine and what counts as failure decide nothing of it.
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
        """Digest of what decides a comparison and its outcome, of the runs that are meant and where they are.

        Rows of a queue are kept by it, so that none is worked off by a policy that is about other runs, by
        one that would look for the run in another tracker, or by one that judges it otherwise.
        """
        selected = [sorted(self.only.tags.items()), self.only.name, [str(each) for each in self.runs]]
        parts = [self.digest, self.tracking_uri, selected, self.fail_on, self.if_no_baseline]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return what the policy says as plain values, defaults included, without credentials."""
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
        """The policy file that it was read from, if any."""
        return self._file

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that were read for it: that of the policy, and those of its statistics."""
        specs = (self._folder / each.name for each in self.statistics if is_spec(each.name))
        return (*(() if self._file is None else (self._file,)), *specs)

    @property
    def specs(self) -> tuple[Statistic, ...]:
        """The statistics that are named, compiled when the file was loaded."""
        return self._statistics

    @property
    def question(self) -> Question:
        """What is asked of the runs."""
        return Question(
            statistics=self._statistics,
            metrics=self.metric,
            columns={} if self._statistics else self.columns,  # which the compiled ones have
            unit=self.unit,
            repeats=self.repeats,
            cluster=self.cluster,
            allow_unseen=self.allow_unseen,
        )

    @property
    def baseline_given_by(self) -> str:
        """How a baseline that is named came to be, as the end of a sentence."""
        return self._baseline_given_by

    def with_baseline(self, reference: str) -> Policy:
        """Return the policy with the run or file `reference` as its baseline, and so with another digest.

        That it is not there is an error then.
        """
        if RunReference.parse(reference).scheme == "file" and not is_remote(reference):
            reference = str(Path(reference).absolute())
        policy = self.model_copy(update={"baseline": BaselineRule(run=reference), "if_no_baseline": "error"})
        policy._baseline_given_by = "named in place of the policy's"
        return policy

    def resolved(self, path: str) -> str:
        """Return a path as it is seen from the folder of the policy file; an address stays as it is."""
        return path if is_remote(path) else str(self._folder / Path(path).expanduser())

    def tracker_for(self, reference: RunReference) -> Tracker:
        """Open the tracker of a run, experiment or project.

        Raises
        ------
        InputError
            If it is in none.
        TrackerError
            If it is out of reach.
        """
        return open_tracker(reference.scheme, self.tracking_uri)

    def _compiled(self, file: Path, statistics: Sequence[Statistic]) -> None:
        self._file, self._folder, self._statistics = file, file.parent, tuple(statistics)


class PolicyDocument(Part):
    """The policies of one file."""

    version: Literal[1] = 1
    """Version of the format."""

    policies: Annotated[tuple[Policy, ...], BeforeValidator(as_tuple)]
    """The policies, each with a name of its own."""


@dataclass(frozen=True)
class PolicyFile:
    """The policies of a file that was read.

    Attributes
    ----------
    path : Path
        Where it is.
    policies : tuple of Policy
        At least one; names differ.
    """

    path: Path
    policies: tuple[Policy, ...]

    def find(self, name: str | None = None) -> Policy:
        """Return the policy called `name`, or the only one there is.

        Raises
        ------
        InputError
            If there is none of that name, or several and none is named.
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
    """Read a policy file, and compile the statistics that it names.

    Raises
    ------
    SpecError
        If it cannot be read or is not valid: the first thing that is wrong, with file, line and column.
    """
    found = read_policies(path)
    if isinstance(found, list):
        raise found[0]
    return found


def read_policies(path: str | Path) -> PolicyFile | list[SpecError]:
    """Read a policy file as :func:`load_policies` does, or return all that is wrong with it."""
    path = Path(path)
    try:
        document = Document.read(path)
        misfits = document.misfits(PolicyDocument)
        found = () if misfits else document.validate(PolicyDocument).policies
    except SpecError as error:
        if not path.is_file():
            error = SpecError(error.message, hint="policies stand in a YAML file, such as `trackperm.yaml`.")
        return [error]
    if misfits or not found:
        hint = "add one: a `name` and a `baseline`."
        return misfits or [document.error("there is no policy", ("policies",), hint=hint)]
    problems = []
    names: list[str] = []
    for number, policy in enumerate(found):
        at: DocumentPath = ("policies", number)
        try:
            if policy.name in names:
                raise document.error(f"another policy is called `{policy.name}` already", (*at, "name"))
            names.append(policy.name)
            _require_sense(document, at, policy, path.absolute())
            _require_work_of_its_own(document, at, policy, found[:number])
        except SpecError as error:
            problems.append(error)
    return problems or PolicyFile(path, found)


def is_spec(name: str) -> bool:
    """Whether a statistic is named by the file of its spec."""
    return name.endswith((".yaml", ".yml"))


def in_policies(text: str) -> str:
    """Return a message with options of commands as the keys that policies have for them."""

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
    """Return the JSON Schema of a policy file, for editors: completion, descriptions, squiggles."""
    schema = PolicyDocument.model_json_schema()
    statistics = schema["$defs"]["Policy"]["properties"]["statistics"]
    statistics["items"] = {"anyOf": [{"type": "string"}, statistics["items"]]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "trackperm policies",
    }


def _require_sense(document: Document, at: DocumentPath, policy: Policy, file: Path) -> None:
    """Refuse what fits the format and yet makes no sense, and compile the statistics."""
    if policy.fail_on == "not-shown-non-inferior" and policy.margin is None:
        raise document.error(
            "`not-shown-non-inferior` needs a `margin`",
            (*at, "fail_on"),
            hint="it is how much worse a candidate may be, such as `margin: 0.01`.",
        )
    if policy.tracking_uri is not None:
        hint = (
            "put them in the environment: `MLFLOW_TRACKING_USERNAME` and `MLFLOW_TRACKING_PASSWORD`, or the "
            "whole URI in `MLFLOW_TRACKING_URI`; `WANDB_API_KEY` for W&B."
        )
        _require_no_credentials(document, (*at, "tracking_uri"), policy.tracking_uri, hint)
    run = policy.baseline.run
    if run is not None and is_remote(run):
        hint = "a cloud store has them in the environment; `trackperm gate --baseline` takes a URL with them."
        _require_no_credentials(document, (*at, "baseline", "run"), run, hint)
    if not policy.statistics and "statistics" in policy.model_fields_set:
        raise document.error("there is no statistic", (*at, "statistics"), hint="such as `accuracy`.")
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
            f"the alternative `{policy.alternative}` looks in one direction, and which one is better depends"
            " on the statistic, of which none is named",
            (*at, "alternative"),
            hint="name it under `statistics`, or leave `alternative` out.",
        )
    statistics: list[Statistic] = []
    for number, choice in enumerate(policy.statistics):
        where = (*at, "statistics", number)
        statistic = _statistic(document, where, policy, choice, file.parent)
        if statistic.name in [each.name for each in statistics]:
            raise document.error(
                f"another statistic is called `{statistic.name}` already",
                where,
                hint="leave one out; with other parameters or columns, a spec gives it a name of its own.",
            )
        statistics.append(statistic)
        _require_regression_shows(document, where, policy, statistic)
    policy._compiled(file, statistics)


def _require_work_of_its_own(
    document: Document, at: DocumentPath, policy: Policy, others: Sequence[Policy]
) -> None:
    """Refuse two policies about the same runs whose rows in a queue are the same."""
    for other in others:
        if policy.runs and policy.queue_key == other.queue_key:
            raise document.error(
                f"the policy `{other.name}` compares and judges the same runs in the same way, so that one of"
                " the two would never do so",
                at,
                hint="leave `runs` out of the one that is for `trackperm gate` alone.",
            )


def _has_credentials(uri: str) -> bool:
    return "@" in urlsplit(uri).netloc or without_credentials(uri) != uri


def _require_no_credentials(document: Document, at: DocumentPath, uri: str, hint: str) -> None:
    """Refuse an address that has credentials, or is none, without the line, which may have them."""
    try:
        problem = f"credentials in `{at[-1]}`" if _has_credentials(uri) else None
    except ValueError as error:
        problem, hint = f"`{at[-1]}` is no valid address ({error})", "it is like `https://HOST:PORT/PATH`."
    if problem is not None:
        raise SpecError(document.error(problem, at).message.partition("\n\n")[0], hint=hint)


def _statistic(
    document: Document, at: DocumentPath, policy: Policy, choice: StatisticChoice, folder: Path
) -> Statistic:
    """Compile a statistic; what is wrong in a spec of its own is said with its own place."""
    is_file = is_spec(choice.name)
    path = folder / choice.name
    try:
        is_missing = is_file and not path.is_file()
    except OSError as error:  # a name that is too long
        raise document.error(f"`{choice.name}` cannot be read: {error.strerror}", at) from error
    if is_missing:
        raise document.error(f"there is no file `{choice.name}`", at, hint=f"`{path}` was looked for.")
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
    """Refuse a gate that no candidate can fail: a one-sided test for the better never shows the worse."""
    tested = policy.alternative or statistic.alternative
    if policy.fail_on != "regression" or tested == "two-sided":
        return
    if (tested == "greater") == statistic.greater_is_better:
        wanted = "less" if statistic.greater_is_better else "greater"
        at = at if policy.alternative is None else (*at[:2], "alternative")
        raise document.error(
            f"by `{statistic.name}` the alternative `{tested}` shows that a candidate is better, never that"
            " it is worse, so that `fail_on: regression` never fails",
            at,
            hint=f"`alternative: two-sided`, or `alternative: {wanted}` which looks for the worse alone.",
        )
