"""What the arguments of several commands mean: choices, assignments, artifacts, statistics."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from trackperm import documents
from trackperm.errors import InputError

if TYPE_CHECKING:
    from trackperm.statistic import Statistic


Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the statistic, such as positive=yes."),
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", help="Column of example ids, or several: id,epoch."),
]
Prediction = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of predictions.")]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of reference labels.")]
Labels = Annotated[
    str | None, typer.Option(metavar="FILE", help="Reference labels that lie apart from the predictions.")
]
OtherColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--column", metavar="NAME=COLUMN", help="Any other column of the statistic, such as score=acc."
    ),
]
ByPosition = Annotated[
    bool, typer.Option("--by-position", help="Pair rows by position where there is no id column.")
]
ResolutionOption = Annotated[
    str | None,
    typer.Option(metavar="UNIT", help="Round decimal scores to multiples of this, such as 0.001."),
]
TrackingUri = Annotated[str | None, typer.Option(metavar="URI", help="Tracking server or store.")]


class Alternative(str, Enum):
    """Which values count as extreme."""

    TWO_SIDED = "two-sided"
    LESS = "less"
    GREATER = "greater"


class Missing(str, Enum):
    """What to do with examples that only one run has."""

    ERROR = "error"
    DROP = "drop"
    WRONG = "wrong"
    WORST = "worst"
    BEST = "best"
    BOUNDS = "bounds"


class Method(str, Enum):
    """Numerical engines."""

    AUTO = "auto"
    BINOMIAL = "binomial"
    ENUMERATE = "enumerate"
    DP = "dp"
    LATTICE = "lattice"
    BRACKET = "bracket"
    MONTE_CARLO = "monte-carlo"


class Correction(str, Enum):
    """How several p-values are corrected for each other."""

    HOLM = "holm"
    TARONE_HOLM = "tarone-holm"
    HOMMEL = "hommel"
    BONFERRONI = "bonferroni"
    BH = "bh"
    BY = "by"
    HSD = "hsd"
    HSU = "hsu"
    AHSD = "ahsd"
    AHSU = "ahsu"
    NONE = "none"


class Compat(str, Enum):
    """Programs whose p-values can be reproduced."""

    BIKEL = "bikel"
    SACREBLEU = "sacrebleu"


def statistics(
    names: Sequence[str], parameters: dict[str, object], columns: dict[str, str], resolution: str | None
) -> list[Statistic]:
    """Load the statistics, each with those of the parameters that it has; some has to have each."""
    from trackperm.statistic import load_statistic

    specs = [load_statistic(name, columns=columns, resolution=resolution) for name in names]
    known = {parameter for spec in specs for parameter in spec.parameters}
    if len(specs) == 1 or not parameters.keys() <= known:
        return [load_statistic(spec, parameters=parameters) for spec in specs]
    return [
        load_statistic(spec, parameters={k: v for k, v in parameters.items() if k in spec.parameters})
        for spec in specs
    ]


def artifacts(text: str | None) -> tuple[str | None, str | None]:
    """Split ``BASE,CAND``; one path is that of both runs."""
    if text is None or "," not in text:
        return text, text
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise InputError(
            f"`--artifact {text}` is neither a path nor two paths", hint="`--artifact BASE,CAND`."
        )
    return parts[0], parts[1]


def assignment(text: str) -> tuple[str, object]:
    """Split ``NAME=VALUE``, the value as YAML reads it."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"`--set {text}` is no assignment", hint="`--set positive=1`, for example.")
    return name.strip(), documents.scalar(value.strip())


def column(text: str) -> tuple[str, str]:
    """Split ``NAME=COLUMN``."""
    name, equals, column = (part.strip() for part in text.partition("="))
    if not equals or not name or not column:
        raise InputError(f"`--column {text}` names no column", hint="`--column score=acc`, for example.")
    return name, column
