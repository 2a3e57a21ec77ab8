"""The shape of a spec: which keys there are and what stands behind them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

from trackperm.documents import Document, kind
from trackperm.exact import Alternative


def _expression(value: object) -> object:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return value
    raise PydanticCustomError("expression", "expected an expression, found {found}", {"found": kind(value)})


def _parameter(value: object) -> object:
    if isinstance(value, str | int | float | bool):
        return value
    raise PydanticCustomError("parameter", "expected one value, found {found}", {"found": kind(value)})


def _resolution(value: object) -> object:
    if isinstance(value, str | int | float | dict) and not isinstance(value, bool):
        return value
    raise PydanticCustomError(
        "resolution", "expected a number, or one for each count named, found {found}", {"found": kind(value)}
    )


# The text of an expression is read from the document, so that `1` and `0.5` keep their digits.
Expression = Annotated[object, AfterValidator(_expression)]
Parameter = Annotated[object, AfterValidator(_parameter)]
Resolution = Annotated[object, AfterValidator(_resolution)]


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str | None = None
    description: str = ""
    parameters: dict[str, Parameter] = {}
    columns: dict[str, str] = {}
    resolution: Resolution = None
    undefined: Expression = None
    alternative: Alternative = "two-sided"
    greater_is_better: bool = True


class ShortSpec(_Spec):
    """Counts of one run, and its score; the statistic is the difference of two scores."""

    counts: dict[str, Expression]
    score: Expression


class LongSpec(_Spec):
    """The functions g and h of the paper."""

    counts: dict[str, Expression] = {}
    g: dict[str, Expression]
    h: Expression


def validate(document: Document) -> ShortSpec | LongSpec:
    """Check the shape of a spec, long where it has `g` or `h`, else short.

    Raises
    ------
    SpecError
        If keys are missing, unknown, of both forms, or have values of the wrong kind.
    """
    keys = document.data
    long = next((key for key in keys if key in ("g", "h")), None)
    if long is None:
        return document.validate(ShortSpec)
    if "score" in keys:
        hint = "`counts` and `score` are the short form, `g` and `h` the long one."
        raise document.error(f"`{long}` does not go with `score`", (long,), key=True, hint=hint)
    return document.validate(LongSpec)
