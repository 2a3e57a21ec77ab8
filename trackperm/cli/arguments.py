"""Shared options of commands: types with names and help, and parsers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackperm import choices
from trackperm.errors import InputError
from trackperm.messages import listed

if TYPE_CHECKING:
    from trackperm.comparison import Comparison
    from trackperm.comparison.reproductions import Reproduction
    from trackperm.exact import TestOptions

# Sections of options in the help.

STATISTIC, COLUMNS, PAIRING = "Statistic", "Columns", "Pairing of examples"
TEST, NUMBERS, TRACKER = "Test and verdict", "Numerical method", "Trackers and logging"


def _statistic_names(incomplete: str) -> list[str]:
    """Return the built-in statistics whose names begin with `incomplete`, for completion in the shell."""
    folder = Path(__file__).parents[1] / "statistic" / "builtin"
    return sorted(path.stem for path in folder.glob("*.yaml") if path.stem.startswith(incomplete))


# Runs and their locations.

BaselineRun = Annotated[
    str,
    typer.Argument(
        metavar="BASELINE",
        help="mlflow:RUN_ID, mlflow:EXPERIMENT/RUN_NAME, wandb:ENTITY/PROJECT/RUN, wandb:OFFLINE_FOLDER, "
        "FILE or FILE::PART.",
    ),
]
CandidateRun = Annotated[
    str, typer.Argument(metavar="CANDIDATE", help="The run to be judged against the baseline.")
]
Experiment = Annotated[
    str | None,
    typer.Option(
        metavar="mlflow:EXPERIMENT|wandb:ENTITY/PROJECT",
        help="All finished runs of an experiment or project, or its logged comparisons.",
    ),
]
ArtifactPair = Annotated[
    str | None,
    typer.Option(
        "--artifact",
        metavar="NAME|BASE,CAND",
        help="Artifact PATH or PATH::PART in both runs, or one for each.",
        rich_help_panel=COLUMNS,
    ),
]
TrackingUri = Annotated[
    str | None, typer.Option(metavar="URI", help="Tracking server or store.", rich_help_panel=TRACKER)
]

# The statistic and its columns.

StatisticName = Annotated[
    list[str] | None,
    typer.Option(
        "--statistic",
        "-s",
        metavar="NAME|FILE.yaml",
        autocompletion=_statistic_names,
        help="The statistic. [default: inferred from the runs]",
        show_default=False,
        rich_help_panel=STATISTIC,
    ),
]
StatisticNames = Annotated[
    list[str] | None,
    typer.Option(
        "--statistic",
        "-s",
        metavar="NAME|FILE.yaml",
        autocompletion=_statistic_names,
        help="The statistic; repeatable. [default: inferred from the runs]",
        show_default=False,
        rich_help_panel=STATISTIC,
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="A metric of the runs, or a column of scores, whose means are compared, or a value, such as"
        " verdict=CORRECT or verdict!=WRONG, whose shares are compared; repeatable."
        " [default: the metrics that the runs have logged]",
        show_default=False,
        rich_help_panel=STATISTIC,
    ),
]
Metric = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="A metric of the runs, or a column of scores, whose means are compared, or a value, such as"
        " verdict=CORRECT or verdict!=WRONG, whose shares are compared.",
        rich_help_panel=STATISTIC,
    ),
]
Unit = Annotated[
    choices.Unit | None,
    typer.Option(
        help="Unit that is exchanged: all rows of an example, each row, or attempts within examples."
        " [default: example]",
        show_default=False,
        rich_help_panel=PAIRING,
    ),
]
Repeats = Annotated[
    choices.Repeats | None,
    typer.Option(
        help="Rule that combines several rows of one example. [default: sum]",
        show_default=False,
        rich_help_panel=PAIRING,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Exchange all examples of one value, such as a document, together.",
        rich_help_panel=COLUMNS,
    ),
]
AllowUnseen = Annotated[
    bool,
    typer.Option(
        "--allow-unseen",
        help="Compare even if no prediction occurs among the labels.",
        rich_help_panel=PAIRING,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter of the statistic, such as positive=yes.",
        rich_help_panel=STATISTIC,
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column of example ids, or several: doc,sentence.",
        rich_help_panel=COLUMNS,
    ),
]
Prediction = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of predictions.", rich_help_panel=COLUMNS)
]
Label = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of reference labels.", rich_help_panel=COLUMNS)
]
Labels = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Reference labels, if they are in a separate file.",
        rich_help_panel=COLUMNS,
    ),
]
OtherColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COLUMN",
        help="Any other column of the statistic, such as score=acc.",
        rich_help_panel=COLUMNS,
    ),
]
BaselineColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--baseline-column",
        metavar="NAME=COLUMN",
        help="A column that has another name in the baseline, such as prediction=answer; repeatable.",
        rich_help_panel=COLUMNS,
    ),
]
CandidateColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--candidate-column",
        metavar="NAME=COLUMN",
        help="The same for the candidate; repeatable.",
        rich_help_panel=COLUMNS,
    ),
]
ByPosition = Annotated[
    bool,
    typer.Option(
        "--by-position", help="Pair rows by position, without an id column.", rich_help_panel=PAIRING
    ),
]
Engine = Annotated[
    choices.EngineName,
    typer.Option(
        help="Engine that joins and counts rows; it does not change the result.", rich_help_panel=PAIRING
    ),
]
Resolution = Annotated[
    str | None,
    typer.Option(
        metavar="UNIT",
        help="Round decimal scores to multiples of this, such as 0.001.",
        rich_help_panel=NUMBERS,
    ),
]
Missing = Annotated[
    choices.MissingRule,
    typer.Option(help="Treatment of examples that only one run has.", rich_help_panel=PAIRING),
]
MissingOfMany = Annotated[
    choices.MissingOfMany,
    typer.Option(
        help="Treatment of examples that only some runs have.",
        rich_help_panel=PAIRING,
    ),
]

# The test and the correction.

Alternative = Annotated[
    choices.Alternative | None,
    typer.Option(help="Which values are extreme; by default, as in the spec.", rich_help_panel=TEST),
]
Alpha = Annotated[
    float, typer.Option(metavar="LEVEL", help="Significance level of the verdict.", rich_help_panel=TEST)
]
Margin = Annotated[
    float | None,
    typer.Option(
        metavar="SIZE",
        help="Smallest difference that matters: tests equivalence within it.",
        rich_help_panel=TEST,
    ),
]
Slices = Annotated[
    list[str] | None,
    typer.Option(
        "--slice",
        metavar="COLUMN",
        help="Compare also the examples of each value; exploratory unless the spec declares the column.",
        rich_help_panel=STATISTIC,
    ),
]
Correction = Annotated[
    choices.CorrectionName,
    typer.Option(help="Correction for the number of statistics and slices.", rich_help_panel=TEST),
]
CorrectionOfPairs = Annotated[
    choices.CorrectionOfPairs,
    typer.Option(help="Correction for the number of comparisons.", rich_help_panel=TEST),
]
MidP = Annotated[
    bool,
    typer.Option("--mid-p", help="Count ties with the observed value half (mid-p).", rich_help_panel=TEST),
]
Method = Annotated[choices.Method, typer.Option(help="Numerical engine.", rich_help_panel=NUMBERS)]
IntervalOfDifference = Annotated[
    choices.IntervalChoice,
    typer.Option(
        "--interval",
        help="Interval of the difference: the one that agrees with the test, else by scores.",
        rich_help_panel=NUMBERS,
    ),
]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples",
        metavar="N",
        help="Number of random swaps. [default: 20000 tilted ones; 100000 for Monte Carlo; 10000 with"
        " --compat]",
        show_default=False,
        rich_help_panel=NUMBERS,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Seed of the random swaps. [default: 0; 12345 with --compat sacrebleu]",
        show_default=False,
        rich_help_panel=NUMBERS,
    ),
]
Exceedances = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Stop drawing after N swaps at least as extreme as the observed one.",
        rich_help_panel=NUMBERS,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory that a test may take: bytes, or a size such as 512MB or 2GiB. [default: 1GiB]",
        show_default=False,
        rich_help_panel=NUMBERS,
    ),
]
SecondOpinions = Annotated[
    bool,
    typer.Option(
        "--second-opinions",
        help="Add the results of t, Wilcoxon, sign and McNemar tests.",
        rich_help_panel=TEST,
    ),
]
Studentized = Annotated[
    bool,
    typer.Option(
        "--studentized", help="Add the studentised test of equal scores, for ratios.", rich_help_panel=TEST
    ),
]
Compat = Annotated[
    choices.Compat | None,
    typer.Option(
        help="Print also the p-value of an older program, and why it differs.", rich_help_panel=TEST
    ),
]

# Logging.

LogTo = Annotated[
    str | None,
    typer.Option(
        metavar="mlflow:EXPERIMENT|wandb:ENTITY/PROJECT",
        help="Log here instead of where the candidate is.",
        rich_help_panel=TRACKER,
    ),
]
Alert = Annotated[
    bool,
    typer.Option(
        "--alert",
        help="Raise an alert if the candidate is significantly worse (W&B).",
        rich_help_panel=TRACKER,
    ),
]
TagRuns = Annotated[
    bool,
    typer.Option(
        "--tag-runs", help="Tag the runs, which must be finished, with the verdict.", rich_help_panel=TRACKER
    ),
]


def options_of_test(
    alternative: choices.Alternative | None = None,
    alpha: float = 0.05,
    mid_p: bool = False,
    method: choices.Method = "auto",
    n_samples: int | None = None,
    seed: int | None = None,
    exceedances: int | None = None,
    interval: choices.IntervalChoice = "auto",
    memory: str | None = None,
) -> TestOptions:
    """Build the options of the test, with defaults for options that are None."""
    from trackperm.exact import TestOptions
    from trackperm.exact.options import MEMORY_BUDGET, bytes_of

    return TestOptions(
        alternative=alternative,
        alpha=alpha,
        mid_p=mid_p,
        method=method,
        n_samples=n_samples,
        seed=seed or 0,
        exceedances=exceedances,
        interval=interval,
        memory_budget=MEMORY_BUDGET if memory is None else bytes_of(memory),
    )


def artifacts(text: str | None) -> str | tuple[str, str] | None:
    """Split ``BASE,CAND`` into two paths; a single path applies to both runs."""
    if text is None or "," not in text:
        return text
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise InputError(
            f"`--artifact {text}` is neither a path nor two paths", hint="write `--artifact BASE,CAND`."
        )
    return parts[0], parts[1]


def default_statistics(compat: choices.Compat | None) -> Sequence[str]:
    """Return the default statistics of an older program; empty without one."""
    from trackperm.comparison.reproductions import BIKEL_STATISTICS

    return BIKEL_STATISTICS if compat == "bikel" else ()


def reproductions(
    compat: choices.Compat | None, comparisons: Sequence[Comparison], n_shuffles: int | None, seed: int | None
) -> list[Reproduction | None]:
    """Compute the result of an older program for each comparison; None without such a program."""
    from trackperm.comparison.reproductions import N_SHUFFLES, reproduce

    if compat is None:
        return [None for _ in comparisons]
    return [reproduce(compat, each, n_shuffles=n_shuffles or N_SHUFFLES, seed=seed) for each in comparisons]


def at_most_one(option: str, values: Sequence[str] | None) -> tuple[str, ...]:
    """Refuse an option that is repeated although one value is used."""
    if values and len(values) > 1:
        raise InputError(
            f"`{option}` is given {len(values)} times, as {listed(values)}; expected one",
            hint="run the command once for each.",
        )
    return tuple(values or ())


def columns_of_one(texts: Sequence[str] | None, role: str) -> dict[str, str]:
    """Parse several ``--baseline-column NAME=COLUMN`` or ``--candidate-column NAME=COLUMN``."""
    return _columns(texts, f"{role}-column", "prediction=answer")


def assignments(texts: Sequence[str] | None) -> dict[str, object]:
    """Parse several ``--set NAME=VALUE``; values are parsed as YAML scalars."""
    from trackperm.statistic.document import scalar

    parsed: dict[str, object] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(
                f"`--set {text}` is not `NAME=VALUE`", hint="write `--set positive=1`, for example."
            )
        parsed[name.strip()] = scalar(value.strip())
    return parsed


def columns(others: Sequence[str] | None, **roles: str | None) -> dict[str, str]:
    """Collect column names by role, from ``--column NAME=COLUMN`` and the options of single roles."""
    named = _columns(others, "column", "score=acc")
    return named | {role: column for role, column in roles.items() if column is not None}


def _columns(texts: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    named = {}
    for text in texts or ():
        role, _, column = (part.strip() for part in text.partition("="))
        if not role or not column:
            raise InputError(
                f"`--{option} {text}` is not `NAME=COLUMN`", hint=f"write `--{option} {example}`."
            )
        named[role] = column
    return named
