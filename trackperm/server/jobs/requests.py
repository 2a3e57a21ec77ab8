"""Requests of the pages, validated before anything is done."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from trackperm.choices import Alternative, CorrectionOfPairs, MissingOfMany, MissingRule, Repeats, Unit
from trackperm.errors import InputError
from trackperm.server.jobs.limits import MOST_RUNS
from trackperm.statistic.misfits import in_words
from trackperm.statistic.schema import Parameter

Identifier = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_-]{0,255}$")]
StatisticName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Text = Annotated[str, Field(min_length=1, max_length=1000)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class _TestRequest(_Request):
    """Options that comparisons and leaderboards share."""

    artifact: Text | None = None
    statistic: StatisticName | None = None
    metric: Text | None = None
    unit: Unit | None = None
    repeats: Repeats | None = None
    cluster: Text | None = None
    allow_unseen: bool = False
    parameters: dict[str, Parameter] = Field(default_factory=dict, max_length=50)
    columns: dict[str, Text] = Field(default_factory=dict, max_length=50)
    alternative: Alternative | None = None
    alpha: float = Field(default=0.05, gt=0.0, lt=1.0)
    log: bool = False


class ChoicesRequest(_Request):
    """Request for the artifacts and statistics that a page offers."""

    kind: Literal["choices"]
    runs: list[Identifier] = Field(default_factory=list, max_length=MOST_RUNS)
    experiment: Identifier | None = None

    @model_validator(mode="after")
    def _one_source(self) -> ChoicesRequest:
        return _with_one_source(self)


class CompareRequest(_TestRequest):
    """Request for a comparison of two runs."""

    kind: Literal["compare"]
    runs: list[Identifier] = Field(min_length=2, max_length=2)
    margin: float | None = Field(default=None, gt=0.0)
    missing: MissingRule = "error"
    experiment: None = None


class LeaderboardRequest(_TestRequest):
    """Request for a leaderboard of runs, or of a whole experiment."""

    kind: Literal["leaderboard"]
    runs: list[Identifier] = Field(default_factory=list, max_length=MOST_RUNS)
    experiment: Identifier | None = None
    baseline: Identifier | None = None
    missing: MissingOfMany = "error"
    correction: CorrectionOfPairs = "holm"

    @model_validator(mode="after")
    def _one_source(self) -> LeaderboardRequest:
        return _with_one_source(self)


_Sourced = TypeVar("_Sourced", ChoicesRequest, LeaderboardRequest)
JobRequest = ChoicesRequest | CompareRequest | LeaderboardRequest
_ADAPTER: TypeAdapter[JobRequest] = TypeAdapter(Annotated[JobRequest, Field(discriminator="kind")])


def read_request(content: bytes | dict[str, Any]) -> JobRequest:
    """Parse and validate a request.

    Raise InputError if it is not JSON, or not a valid request; the message says where.
    """
    try:
        if isinstance(content, bytes):
            return _ADAPTER.validate_json(content)
        return _ADAPTER.validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = [str(step) for step in first["loc"]]
        models = {
            str(get_args(each.model_fields["kind"].annotation)[0]): each for each in get_args(JobRequest)
        }
        keys = list(models[path[0]].model_fields) if path else []
        message, hint = in_words(first, keys)
        place = f"`{'.'.join(path[1:])}` of the request" if path[1:] else "the request"
        raise InputError(f"{place} is not valid: {message}", hint=hint) from error


def _with_one_source(request: _Sourced) -> _Sourced:
    if bool(request.runs) == (request.experiment is not None):
        raise ValueError("expected either runs or an experiment")
    return request
