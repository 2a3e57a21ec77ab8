"""Types of the keys of a policy: references, selections of runs, baseline rules, choices of statistics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from trackperm.errors import InputError
from trackperm.messages import kind, listed, without_credentials
from trackperm.statistic.schema import Parameter, Resolution
from trackperm.tables.spark_tables import is_spark_table
from trackperm.trackers.references import RunReference, schemes

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ALIAS = re.compile(r"models:/[^@]+@[^@/]+|(wandb:)?([^/:@]+/){1,2}[^/:]+:[^/:]+")
_RUN_ID = re.compile(r"[0-9a-fA-F]{32}")
_CHOICES = ("run", "newest", "alias", "champion", "branch")


def _name(value: str) -> str:
    if _NAME.fullmatch(value):
        return value
    raise PydanticCustomError(
        "policy_name", "expected lower-case letters, digits and hyphens, found `{value}`", {"value": value}
    )


def _not_blank(value: str) -> str:
    """Refuse text without a visible character, as of an empty variable in the tool that wrote the file."""
    if value.strip():
        return value
    raise PydanticCustomError(
        "blank", "expected text that is not empty, found {value}", {"value": repr(value)}
    )


def _run(value: str) -> str:
    """Refuse text that is probably the run of a tracker, but would be read as a file that does not exist."""
    known = schemes()
    if _RUN_ID.fullmatch(value):
        raise PydanticCustomError(
            "run",
            "`{value}` looks like the id of a run; expected {examples}, or `./{value}` for a file",
            {"value": value, "examples": " or ".join(f"`{scheme}:RUN`" for scheme in known)},
        )
    try:
        scheme = RunReference.parse(value).scheme
    except InputError as error:
        raise PydanticCustomError("run", "{problem}", {"problem": error.message}) from error
    if scheme not in ("file", *known):
        raise PydanticCustomError(
            "run",
            "`{scheme}` is not a tracker; expected one of {known}, or `./` before a path that has a colon",
            {"scheme": scheme, "known": listed(known)},
        )
    return value


def _container(value: object) -> RunReference:
    """Parse the reference of an experiment or project."""
    if isinstance(value, RunReference):
        return value
    known, found = schemes(), kind(value)
    if isinstance(value, str):
        reference = RunReference("file", value) if value.endswith(":") else RunReference.parse(value)
        if reference.scheme in known and reference.locator.strip():
            return reference
        found = f"`{value}`"
    raise PydanticCustomError(
        "container",
        "expected an experiment or project, such as {examples}, found {found}",
        {"examples": " or ".join(f"`{scheme}:NAME`" for scheme in known), "found": found},
    )


def _one_or_more(value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    return (value,) if isinstance(value, str) else value


def _as_choice(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


def as_tuple(value: object) -> object:
    """Convert a list to a tuple, which strict models require."""
    return tuple(value) if isinstance(value, list) else value


_TEXT: dict[str, Any] = {"type": "string", "pattern": r"\S"}
_TEXTS: dict[str, Any] = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_CONTAINER: dict[str, Any] = {"type": "string", "pattern": "^[a-z][a-z0-9+.-]+:.+"}

Container = Annotated[RunReference, BeforeValidator(_container), WithJsonSchema(_CONTAINER)]
Containers = Annotated[
    tuple[Container, ...],
    BeforeValidator(_one_or_more),
    WithJsonSchema({"anyOf": [_CONTAINER, {"type": "array", "items": _CONTAINER}]}),
]


Text = Annotated[str, AfterValidator(_not_blank), WithJsonSchema(_TEXT)]
Run = Annotated[Text, AfterValidator(_run), WithJsonSchema(_TEXT)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_one_or_more), WithJsonSchema(_TEXTS)]
Name = Annotated[
    str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"})
]


class Part(BaseModel):
    """Base of all models, which refuse unknown keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield names and values for ``repr``, without credentials in addresses."""
        for name, value in super().__repr_args__():
            yield name, without_credentials(value) if isinstance(value, str) else value


class Selection(Part):
    """Selection of runs by tags and name."""

    tags: dict[Text, Text] = {}
    """Tags that a run has to have. In W&B: values of its config, or tags such as `stage:test`."""

    name: Text | None = None
    """Pattern of its name, such as `cand-*`."""

    def __str__(self) -> str:
        """Return the selection as a reader sees it."""
        parts = [f"{tag}={value}" for tag, value in self.tags.items()]
        return ", ".join(parts + ([] if self.name is None else [f"name {self.name}"])) or "any"


class BaselineRule(Part):
    """Rule that finds the baseline: one of `run`, `newest`, `alias`, `champion` and `branch`."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [choice]} for choice in _CHOICES]})

    run: Run | None = None
    """A run such as `mlflow:RUN`, or a file beside the policy file."""

    newest: Selection | None = None
    """The finished run that was started last before the candidate, among the selected runs."""

    alias: Text | None = None
    """`models:/NAME@ALIAS` in MLflow; in W&B, predictions or a model `ENTITY/PROJECT/ARTIFACT:ALIAS`."""

    champion: Text | None = None
    """The run behind the version of this registered model that has the alias `champion`."""

    branch: Text | None = None
    """The finished run of this Git branch that was started last before the candidate."""

    branch_tag: Text | None = None
    """The tag that has the branch, in place of `mlflow.source.git.branch`, or of `branch` in W&B."""

    among: Container | None = None
    """The experiment or project where `newest` and `branch` look; by default that of the candidate."""

    @model_validator(mode="after")
    def _is_one(self) -> BaselineRule:
        given = [choice for choice in _CHOICES if getattr(self, choice) is not None]
        if len(given) != 1:
            found = " and ".join(f"`{choice}`" for choice in given) or "none"
            raise PydanticCustomError(
                "baseline",
                "expected one of {choices}, found {found}",
                {"choices": listed(_CHOICES), "found": found},
            )
        if self.alias is not None and not _ALIAS.fullmatch(self.alias):
            raise PydanticCustomError(
                "alias",
                "expected `models:/NAME@ALIAS`, or in W&B `ENTITY/PROJECT/ARTIFACT:ALIAS`, found `{alias}`",
                {"alias": self.alias},
            )
        for extra, owners in {"branch_tag": ("branch",), "among": ("newest", "branch")}.items():
            if getattr(self, extra) is not None and given[0] not in owners:
                raise PydanticCustomError(
                    "baseline",
                    "`{extra}` does not go with `{given}`",
                    {"extra": extra, "given": given[0]},
                )
        return self

    def __str__(self) -> str:
        """Return the rule as a reader sees it."""
        where = "" if self.among is None else f" in {self.among}"
        if self.run is not None:
            scheme = RunReference.parse(self.run).scheme
            kind_of_run = "table" if is_spark_table(self.run) else "file" if scheme == "file" else "run"
            return f"the {kind_of_run} {self.run}"
        if self.newest is not None:
            return f"the newest finished run before the candidate{where} ({self.newest})"
        if self.branch is not None:
            return f"the newest finished run of the branch {self.branch} before the candidate{where}"
        if self.champion is not None:
            return f"the champion of the model {self.champion}"
        return f"the run behind {self.alias}"


class StatisticChoice(Part):
    """Choice of a statistic, with its parameters and columns."""

    name: str
    """A built-in statistic, or a spec: a path relative to the folder of the policy file."""

    parameters: dict[str, Parameter] = {}
    """Values of its parameters."""

    columns: dict[str, str] = {}
    """Columns of the data by their names in the spec."""

    resolution: Resolution = None
    """Decimal counts are rounded to multiples of this."""


Statistics = Annotated[
    tuple[Annotated[StatisticChoice, BeforeValidator(_as_choice)], ...], BeforeValidator(as_tuple)
]
