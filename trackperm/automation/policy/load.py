"""Policy file ``trackperm.yaml``, read and validated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trackperm.automation.policy.keys import StatisticChoice
from trackperm.automation.policy.policy import Policy, PolicyDocument, PolicyKeys
from trackperm.automation.policy.resolve import is_spec
from trackperm.automation.policy.wording import hint_for_policies, in_policies
from trackperm.comparison import Question
from trackperm.errors import InputError, SpecError, TrackpermError
from trackperm.messages import listed, printable, without_credentials
from trackperm.statistic import Statistic, load_statistic
from trackperm.statistic.document import Document, DocumentPath
from trackperm.statistic.score_ranges import require_margin_within
from trackperm.tables.remote import is_remote


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

        Raise InputError if no policy has that name, or the file has several and no name is given.
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
        raise InputError(f"`{printable(self.path)}` has no policy `{name}`", hint=f"it has {listed(names)}.")


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
        hint = "add a policy with a `name` and a `baseline`."
        return misfits or [document.error("the list of policies is empty", ("policies",), hint=hint)]
    problems = []
    names: list[str] = []
    policies: list[Policy] = []
    for number, policy in enumerate(found):
        at: DocumentPath = ("policies", number)
        try:
            if policy.name in names:
                raise document.error(f"another policy is called `{policy.name}` already", (*at, "name"))
            names.append(policy.name)
            policies.append(_compiled(document, at, policy, path.absolute()))
            _require_distinct(document, at, policies)
        except SpecError as error:
            problems.append(error)
    return problems or PolicyFile(path, tuple(policies))


def _compiled(document: Document, at: DocumentPath, keys: PolicyKeys, file: Path) -> Policy:
    """Refuse keys that contradict each other, and compile the statistics."""
    _require_consistent(document, at, keys)
    statistics: list[Statistic] = []
    for number, choice in enumerate(keys.statistics):
        where = (*at, "statistics", number)
        statistic = _statistic(document, where, keys, choice, file.parent)
        if statistic.name in [each.name for each in statistics]:
            raise document.error(
                f"another statistic is called `{statistic.name}` already",
                where,
                hint="leave one out; with other parameters or columns, a spec gives it another name.",
            )
        statistics.append(statistic)
        _require_regression_shows(document, where, keys, statistic)
        _require_margin(document, at, keys, statistic)
    return Policy.model_construct(**dict(keys), specs=tuple(statistics), file=file)


def _require_consistent(document: Document, at: DocumentPath, policy: PolicyKeys) -> None:
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


def _require_distinct(document: Document, at: DocumentPath, policies: Sequence[Policy]) -> None:
    """Refuse a policy with the queue key of an earlier one, because one of the two would never be used."""
    *others, policy = policies
    for other in others:
        if policy.runs and policy.queue_key == other.queue_key:
            raise document.error(
                f"the policy `{other.name}` compares and judges the same runs in the same way, so one of the"
                " two would never be used",
                at,
                hint="leave `runs` out of a policy that is for `trackperm gate` only.",
            )


def _require_no_credentials(document: Document, at: DocumentPath, uri: str, hint: str) -> None:
    """Refuse an address with credentials, or an invalid one, without quoting its line."""
    try:
        has_credentials = "@" in urlsplit(uri).netloc or without_credentials(uri) != uri
        problem = f"credentials in `{at[-1]}`" if has_credentials else None
    except ValueError as error:
        problem, hint = f"`{at[-1]}` is not a valid address ({error})", "expected `https://HOST:PORT/PATH`."
    if problem is not None:
        raise SpecError(document.error(problem, at).message.partition("\n\n")[0], hint=hint)


def _statistic(
    document: Document, at: DocumentPath, policy: PolicyKeys, choice: StatisticChoice, folder: Path
) -> Statistic:
    """Compile one statistic; an error inside a spec has its place in the spec."""
    is_file = is_spec(choice.name)
    path = folder / choice.name
    try:
        is_missing = is_file and not path.is_file()
    except OSError as error:  # a name that is too long
        raise document.error(f"`{choice.name}` cannot be read: {error.strerror}", at) from error
    if is_missing:
        raise document.error(f"`{choice.name}` does not exist", at, hint=f"expected a file at `{path}`.")
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


def _require_margin(document: Document, at: DocumentPath, policy: PolicyKeys, statistic: Statistic) -> None:
    if policy.margin is not None:
        try:
            require_margin_within(statistic, policy.margin)
        except InputError as error:
            raise document.error(error.message, (*at, "margin"), hint=error.hint) from error


def _require_regression_shows(
    document: Document, at: DocumentPath, policy: PolicyKeys, statistic: Statistic
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
