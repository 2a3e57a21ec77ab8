"""The shape of a spec: which keys there are and what stands behind them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, WithJsonSchema
from pydantic_core import PydanticCustomError

from trackperm.choices import Alternative, RepeatsInSpec
from trackperm.messages import kind
from trackperm.statistic.document import Document

VERSION = 1
"""Version of the language."""

Contrast = Literal["difference", "log ratio"]


def _one_of(*types: type, expected: str) -> AfterValidator:
    """Accept values of `types` alone, of which a boolean is not an integer."""

    def check(value: object) -> object:
        if type(value) in types:
            return value
        raise PydanticCustomError(
            "kind", "expected {expected}, found {found}", {"expected": expected, "found": kind(value)}
        )

    return AfterValidator(check)


_SCALARS: dict[str, Any] = {"type": ["string", "number"]}

# The text of an expression is read from the document, so that `1` and `0.5` keep their digits.
Expression = Annotated[object, _one_of(str, int, float, expected="an expression"), WithJsonSchema(_SCALARS)]
Number = Annotated[object, _one_of(str, int, float, expected="a number"), WithJsonSchema(_SCALARS)]
Parameter = Annotated[
    object,
    _one_of(str, int, float, bool, expected="one value"),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]
Resolution = Annotated[
    object,
    _one_of(str, int, float, dict, expected="a number, or one for each count named"),
    WithJsonSchema({"type": ["string", "number", "object"], "additionalProperties": _SCALARS}),
]
Classes = Annotated[
    object,
    _one_of(str, list, expected="a column's name, or a list of classes"),
    WithJsonSchema(
        {
            "type": ["string", "array"],
            "items": {"type": ["string", "integer", "boolean"]},
            "minItems": 1,
            "uniqueItems": True,
        }
    ),
]


class _Spec(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        title="statistic",
        defer_build=True,  # each form is built when a spec of that form is first read
    )
    # Docstrings of attributes, which pydantic can take for descriptions, it reads from the source: at every
    # start, and for longer than it takes to read a spec.

    version: Literal[1] = Field(1, description="Version of the language.")

    name: str | None = Field(
        None, description="Name for people and logged metrics; by default that of the file."
    )

    description: str = Field("", description="What the statistic is, and where it comes from.")

    parameters: dict[str, Parameter] = Field(
        {},
        description="Defaults of values that `--set NAME=VALUE` changes; a value has the type of its "
        "default.",
    )

    columns: dict[str, str] = Field({}, description="Columns of the data by the name that they have here.")

    missing: dict[str, Expression] = Field(
        {}, description="What a missing prediction counts, for every count: an expression in `label`."
    )

    worst: dict[str, Expression] = Field(
        {},
        description="What the worst possible prediction counts, for every count: an expression in `label`. "
        "For `--missing bounds`; what is missing need not be the worst, as it makes no false "
        "positive.",
    )

    best: dict[str, Expression] = Field(
        {},
        description="What the best possible prediction counts, for every count: an expression in `label`. "
        "By default the counts with `label` in place of `prediction`, where these read nothing "
        "else of a run.",
    )

    repeats: RepeatsInSpec | None = Field(
        None,
        description="What becomes of several rows of one example, such as epochs or attempts. `sum` adds up "
        "their counts, `mean` averages them, `any` and `all` take the greatest and the least; "
        "as many rows in both runs. `bundle` adds up any number that one rule of both runs "
        "made. `pass_at_k` and `pass_hat_k` estimate, for the parameter `k`, the chance that "
        "any or all of `k` attempts pass. `attempts` exchanges the attempts of an example among "
        "themselves, and `rows` takes each row as an example.",
    )

    cluster: str | None = Field(
        None, description="Column whose groups of examples are exchanged between the runs as a whole."
    )

    strata: str | None = Field(
        None,
        description="Column whose groups of examples are scored apart; the score is the weighted mean of "
        "theirs.",
    )

    classes: Classes = Field(
        None,
        description="Column, usually `label`, whose values are the classes, or a list of them. In counts, "
        "`class` stands for one of them; all examples are counted for every class, and the "
        "score is the weighted mean of those of the classes. A column called `class` is read by "
        "another name, as in `columns: {kind: class}`.",
    )

    slices: list[str] = Field(
        [],
        description="Columns whose values make slices: parts of the examples that are compared by "
        "themselves as well. All tests of the statistic are then corrected for each other.",
    )

    weights: dict[str, Number] = Field({}, description="Weight of every stratum or class; equal by default.")

    resolution: Resolution = Field(
        None, description="What decimal counts are rounded to multiples of: one number, or one by count."
    )

    undefined: Expression = Field(None, description="Value of 0/0, a number.")

    alternative: Alternative = Field("two-sided", description="Which values of the statistic are extreme.")

    greater_is_better: bool = Field(
        True,
        description="Whether a greater value is a better candidate. It has to be said where the name is "
        "that of an error, as in `val_loss`, `rmse`, `latency`.",
    )


class ShortSpec(_Spec):
    """Counts of one run, and its score; the statistic contrasts two scores."""

    counts: dict[str, Expression] = Field(description="Integers of every example of a run, from its columns.")

    score: Expression = Field(description="A run's value, from the sums of its counts.")

    contrast: Contrast = Field(
        "difference",
        description="What of the scores of candidate and baseline is tested. The log ratio is log(score of "
        "the candidate) - log(score of the baseline), where `undefined` is the score at 0/0. A "
        "score of 0 has no logarithm: a test in which an exchange of outputs leads to one is "
        "refused.",
    )


class LongSpec(_Spec):
    """The functions g and h of the paper."""

    counts: dict[str, Expression] = Field(
        {},
        description="Integers of every example of a run, from its columns; by default the columns that `g` "
        "reads.",
    )

    g: dict[str, Expression] = Field(
        description="Integers of every pair of outputs, from the counts `u.NAME` (candidate) and `v.NAME` "
        "(baseline).",
    )

    h: Expression = Field(description="The statistic, from the sums of g.")


def validate(document: Document) -> ShortSpec | LongSpec:
    """Check the shape of a spec, long where it has `g` or `h`, else short.

    Raises
    ------
    SpecError
        If it is of another version, or if keys are missing, unknown, of both forms, or have values of the
        wrong kind.
    """
    return document.validate(form(document))


def form(document: Document) -> type[ShortSpec] | type[LongSpec]:
    """Return the form of a spec, by its keys.

    Raises
    ------
    SpecError
        If it is of another version, or has keys of both forms.
    """
    keys = document.data
    version = keys.get("version", VERSION)
    if type(version) is not int or version != VERSION:
        found = repr(version) if isinstance(version, str | int | float) else kind(version)
        raise document.error(
            f"the version of the language is {found}; this trackperm reads {VERSION}",
            ("version",),
            hint=f"`version: {VERSION}`, or a newer trackperm.",
        )
    long = next((key for key in keys if key in ("g", "h")), None)
    if long is None:
        return ShortSpec
    for key in ("score", "contrast"):
        if key in keys:
            hint = "`counts` and `score` are the short form, `g` and `h` the long one."
            raise document.error(f"`{long}` does not go with `{key}`", (long,), key=True, hint=hint)
    return LongSpec


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec, for editors: completion, descriptions, squiggles.

    It holds the shape alone: expressions, names and types are checked when the spec is loaded.
    """
    form: Any = ShortSpec | LongSpec
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "trackperm statistic",
        **TypeAdapter(form).json_schema(),
    }
