"""Shape of a spec as pydantic models: its keys and the kinds of their values."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, WithJsonSchema
from pydantic_core import PydanticCustomError

from trackperm.choices import Alternative, RepeatsInSpec
from trackperm.messages import kind
from trackperm.statistic.document import Document

VERSION = 1
"""Version of the spec language."""

_NOT_OF_EXAMPLES = (
    *("counts", "score", "contrast", "g", "h"),
    *("missing", "worst", "best", "undefined", "ranges"),
)
_OTHER_FORMS = {
    "pairs": ((), "with `pairs`, the score is the mean of `term` over all pairs; there are no counts."),
    "rank_statistic": (
        ("pairs", "classes", "resolution"),
        "with `rank_statistic`, the score is a function of whole columns; there are no counts.",
    ),
}

Contrast = Literal["difference", "log ratio"]


def _one_of(*types: type, expected: str) -> AfterValidator:
    """Accept values of `types` only; a boolean does not count as an integer."""

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
Range = Annotated[
    object,
    _one_of(list, expected="two numbers, as in `[0, 1]`"),
    WithJsonSchema({"type": "array", "items": _SCALARS, "minItems": 2, "maxItems": 2}),
]


class _Common(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,  # each form is built when a spec of that form is first read
    )
    # Descriptions are not docstrings of attributes, as pydantic would parse the source at every start.

    version: Literal[1] = Field(1, description="Version of the language.")

    name: str | None = Field(
        None, description="Name for people and logged metrics; by default that of the file."
    )

    title: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="Name in results, of any characters, such as `pass@1`; by default `name`.",
    )

    description: str = Field("", description="What the statistic is, and where it comes from.")

    parameters: dict[str, Parameter] = Field(
        {},
        description="Default values of parameters, which `--set NAME=VALUE` changes; a value has the type of "
        "its default.",
    )

    columns: dict[str, str] = Field({}, description="Columns of the data, by their names in this spec.")

    cluster: str | None = Field(
        None, description="Column whose groups of examples are exchanged between the runs as a whole."
    )

    strata: str | None = Field(
        None,
        description="Column whose groups of examples are scored separately; the score is the weighted mean "
        "of their scores.",
    )

    slices: list[str] = Field(
        [],
        description="Columns whose values define slices: parts of the examples that are compared "
        "separately as well. All tests of the statistic are then corrected for multiplicity.",
    )

    weights: dict[str, Number] = Field({}, description="Weight of every stratum or class; equal by default.")

    alternative: Alternative = Field("two-sided", description="Which values of the statistic are extreme.")

    greater_is_better: bool = Field(
        True,
        description="Whether a greater value is a better candidate. It is required where the name is "
        "that of an error, as in `val_loss`, `rmse`, `latency`.",
    )


class _Spec(_Common):
    missing: dict[str, Expression] = Field(
        {}, description="Value of every count for a missing prediction: an expression in `label`."
    )

    worst: dict[str, Expression] = Field(
        {},
        description="Value of every count for the worst possible prediction: an expression in `label`. "
        "`--missing bounds` uses it; a missing prediction need not be the worst, as it makes no false "
        "positive.",
    )

    best: dict[str, Expression] = Field(
        {},
        description="Value of every count for the best possible prediction: an expression in `label`. "
        "By default the counts with `label` in place of `prediction`, where they read nothing "
        "else of a run.",
    )

    ranges: dict[str, Range] = Field(
        {},
        description="Least and greatest value of columns of numbers, by their names in this spec, as in "
        "`{probability: [0, 1]}`; an example with a value outside is refused.",
    )

    repeats: RepeatsInSpec | None = Field(
        None,
        description="Treatment of several rows of one example, such as epochs or attempts. `sum` adds "
        "their counts, `mean` averages them, `any` and `all` take the greatest and the least; both runs "
        "need the same number of rows. `bundle` adds any number of rows that one rule of both runs "
        "made. `pass_at_k` and `pass_hat_k` estimate, for the parameter `k`, the probability that "
        "any or all of `k` attempts pass. `attempts` exchanges the attempts of an example among "
        "themselves, and `rows` takes each row as an example.",
    )

    classes: Classes = Field(
        None,
        description="Column, usually `label`, whose values are the classes, or a list of them. In counts, "
        "`class` is the class that is counted; all examples are counted for every class, and the "
        "score is the weighted mean over the classes. A column called `class` is read by another name, "
        "as in `columns: {kind: class}`.",
    )

    resolution: Resolution = Field(
        None, description="Number to whose multiples decimal counts are rounded: one, or one for each count."
    )

    undefined: Expression = Field(None, description="Value of 0/0, a number.")


class ShortSpec(_Spec):
    """Counts of one run and its score; the statistic contrasts two scores."""

    model_config = ConfigDict(title="Short form")

    counts: dict[str, Expression] = Field(description="Integers of every example of a run, from its columns.")

    score: Expression = Field(description="A run's value, from the sums of its counts.")

    contrast: Contrast = Field(
        "difference",
        description="Contrast of the scores of candidate and baseline that is tested. The log ratio is "
        "log(score of the candidate) - log(score of the baseline), where `undefined` is the score at 0/0. "
        "A score of 0 has no logarithm: a test in which an exchange of outputs leads to one is refused.",
    )


class LongSpec(_Spec):
    """The functions g and h of the paper."""

    model_config = ConfigDict(title="Long form")

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


class Pairs(BaseModel):
    """Pairs of examples, and what each counts."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="Pairs", defer_build=True)

    left: Expression = Field(
        None,
        description="Condition on the left example of a pair, from its columns except the score; all "
        "examples by default.",
    )

    right: Expression = Field(
        None,
        description="Condition on the right example of a pair, from its columns except the score, and "
        "from those of the left example as `left.NAME`; all examples by default.",
    )

    term: Expression = Field(
        description="What a pair counts, from the columns of both examples as `left.NAME` and `right.NAME`; "
        "`score` is the score of the run.",
    )

    scale: Literal["ranks", "raw"] = Field(
        "ranks",
        description="Scores that are exchanged: `ranks` within each run, whose scores need not be on one "
        "scale, or `raw` scores.",
    )

    score: Expression = Field(
        None,
        description="Score of an example, from the columns of the run; by default the column `score`. With "
        "`classes` it may read the class, as in `class_probability(probabilities, class)`.",
    )

    average: Literal["macro", "weighted"] = Field(
        "macro",
        description="Weights of the classes: `macro` weighs all equally, or as `weights` says, and "
        "`weighted` by the number of left examples of each.",
    )


class _OfRows(_Common):
    """Entries of forms in which each example is one row."""

    repeats: Literal["rows"] | None = Field(
        None, description="`rows` takes each row as an example; rows of one example cannot be combined."
    )


class PairSpec(_OfRows):
    """A score that is the mean of a term over pairs of examples."""

    model_config = ConfigDict(title="Form for pairs")

    pairs: Pairs = Field(description="Pairs of examples that are compared, and what each of them counts.")

    classes: Classes = Field(
        None,
        description="Column, usually `label`, whose values are the classes, or a list of them. Pairs are "
        "made for every class, which is `class` in `left`, `right` and `score`, and the score is the "
        "weighted mean over the classes.",
    )

    resolution: Number = Field(
        None,
        description="Number to whose multiples the terms of pairs are rounded, if they are not integers.",
    )

    units: dict[str, Number] = Field(
        {}, description="Units of the shares of examples in the score, as the data determined them."
    )


class RankStatistic(BaseModel):
    """Rank statistic of the scores of a run and of the labels."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, title="RankStatistic", defer_build=True
    )

    function: Literal["average_precision", "kendall_tau_b", "spearman"] = Field(
        description="Score of a run as a function of two whole columns: the column `score` and the label. It "
        "is computed again after every exchange of outputs."
    )

    label: Expression = Field(
        description="Label of an example, from its columns except the score; for `average_precision` a "
        "condition, such as `label == positive`.",
    )

    scale: Literal["ranks", "raw"] = Field(
        "ranks",
        description="Scores that are exchanged: `ranks` within each run, whose scores need not be on one "
        "scale, or `raw` scores.",
    )


class RankSpec(_OfRows):
    """A score that is a function of whole columns."""

    model_config = ConfigDict(title="Form for rank statistics")

    classes: ClassVar[None] = None

    rank_statistic: RankStatistic = Field(description="The function of whole columns that is the score.")


Spec = ShortSpec | LongSpec | PairSpec | RankSpec
"""A spec in any form."""


def validate(document: Document) -> Spec:
    """Check the shape of a spec.

    It is that of pairs if it has `pairs`, that of ranks if it has `rank_statistic`, and the long form if it
    has `g` or `h`.
    """
    return document.validate(form(document))


def form(document: Document) -> type[ShortSpec] | type[LongSpec] | type[PairSpec] | type[RankSpec]:
    """Return the form of a spec, which its keys determine; refuse another version, or keys of two forms."""
    keys = document.data
    version = keys.get("version", VERSION)
    if type(version) is not int or version != VERSION:
        found = repr(version) if isinstance(version, str | int | float) else kind(version)
        raise document.error(
            f"expected version {VERSION} of the language, found {found}",
            ("version",),
            hint=f"write `version: {VERSION}`, or install a newer trackperm.",
        )
    for name, (others, hint) in _OTHER_FORMS.items():
        for key in (*_NOT_OF_EXAMPLES, *others) if name in keys else ():
            if key in keys:
                raise document.error(f"`{key}` cannot be used with `{name}`", (key,), key=True, hint=hint)
    if "pairs" in keys or "rank_statistic" in keys:
        return PairSpec if "pairs" in keys else RankSpec
    long = next((key for key in keys if key in ("g", "h")), None)
    if long is None:
        return ShortSpec
    for key in ("score", "contrast"):
        if key in keys:
            hint = "`counts` and `score` are the short form, `g` and `h` the long one."
            raise document.error(f"`{long}` cannot be used with `{key}`", (long,), key=True, hint=hint)
    return LongSpec


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec, for completion and diagnostics in editors.

    It describes the shape alone; expressions, names and types are checked when a spec is loaded.

    Examples
    --------
    >>> from trackperm.statistic import json_schema
    >>> json_schema()["title"]
    'trackperm statistic'
    """
    form: Any = Spec
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "trackperm statistic",
        **TypeAdapter(form).json_schema(),
    }
