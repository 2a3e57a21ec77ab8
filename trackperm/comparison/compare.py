"""``trackperm.compare``: two runs, by one statistic or several, on all examples and on slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, get_args, overload

from trackperm.choices import (
    Alternative,
    CorrectionName,
    EngineName,
    Method,
    MissingRule,
    Repeats,
    Unit,
    require_choice,
)
from trackperm.comparison.question import Question, StatisticSource
from trackperm.comparison.result import Comparison
from trackperm.comparison.runs import load_run, reference_answers, require_artifacts_of_runs
from trackperm.comparison.several import compare_statistics
from trackperm.comparison.single import compare_runs
from trackperm.errors import InputError, InputTypeError
from trackperm.exact import TestOptions
from trackperm.exact.options import N_SAMPLES
from trackperm.exact.scores.resolution import Resolution

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Options(TypedDict, total=False):
    alternative: Alternative | None
    alpha: float
    margin: float | None
    unit: Unit | None
    repeats: Repeats | None
    cluster: str | None
    allow_unseen: bool
    parameters: Mapping[str, object] | None
    columns: Mapping[str, str] | None
    resolution: Resolution | Mapping[str, Resolution] | None
    artifact: str | tuple[str, str] | None
    labels: Any
    missing: MissingRule
    by_position: bool
    engine: EngineName
    mid_p: bool
    method: Method
    n_samples: int
    seed: int
    exceedances: int | None
    tracking_uri: str | None


@overload
def compare(
    baseline: Any,
    candidate: Any,
    statistic: StatisticSource | None = None,
    *,
    metric: str | None = None,
    slices: None = None,
    correction: CorrectionName = "holm",
    **options: Unpack[_Options],
) -> Comparison: ...


@overload
def compare(
    baseline: Any,
    candidate: Any,
    statistic: None = None,
    *,
    metric: list[str] | tuple[str, ...],
    slices: Sequence[str] | None = None,
    correction: CorrectionName = "holm",
    **options: Unpack[_Options],
) -> list[Comparison]: ...


@overload
def compare(
    baseline: Any,
    candidate: Any,
    statistic: list[StatisticSource] | list[str] | tuple[StatisticSource, ...],
    *,
    metric: str | None = None,
    slices: Sequence[str] | None = None,
    correction: CorrectionName = "holm",
    **options: Unpack[_Options],
) -> list[Comparison]: ...


@overload
def compare(
    baseline: Any,
    candidate: Any,
    statistic: StatisticSource | None = None,
    *,
    metric: str | None = None,
    slices: Sequence[str],
    correction: CorrectionName = "holm",
    **options: Unpack[_Options],
) -> list[Comparison]: ...


def compare(
    baseline: Any,
    candidate: Any,
    statistic: StatisticSource | Sequence[StatisticSource] | None = None,
    *,
    metric: str | Sequence[str] | None = None,
    slices: Sequence[str] | None = None,
    correction: CorrectionName = "holm",
    alternative: Alternative | None = None,
    alpha: float = 0.05,
    margin: float | None = None,
    unit: Unit | None = None,
    repeats: Repeats | None = None,
    cluster: str | None = None,
    allow_unseen: bool = False,
    parameters: Mapping[str, object] | None = None,
    columns: Mapping[str, str] | None = None,
    resolution: Resolution | Mapping[str, Resolution] | None = None,
    artifact: str | tuple[str, str] | None = None,
    labels: Any = None,
    missing: MissingRule = "error",
    by_position: bool = False,
    engine: EngineName = "auto",
    mid_p: bool = False,
    method: Method = "auto",
    n_samples: int = N_SAMPLES,
    seed: int = 0,
    exceedances: int | None = None,
    tracking_uri: str | None = None,
) -> Comparison | list[Comparison]:
    """Compare two runs on the same examples by the exact paired-permutation test.

    Nothing is logged: :func:`trackperm.log` writes the result. For more than two runs use
    :func:`trackperm.leaderboard`, for a decision by a policy :func:`trackperm.gate`.

    Parameters
    ----------
    baseline, candidate : str, path or data frame
        ``mlflow:<run id>``, ``mlflow:<experiment>/<run name>``, ``wandb:<entity>/<project>/<run>``,
        ``wandb:<folder of an offline run>``, the path of a file of any format in :mod:`trackperm.tables`,
        ``FILE::PART`` for one system, filter or scorer in it, a run that ``tracker.runs()`` returned, or a
        data frame that narwhals accepts.
    statistic : str, path or Statistic, or a list of such, optional
        Name of a built-in statistic, or the path of a spec. Several are one family of tests. By default what
        the runs say: their own metrics, or else accuracy; see :mod:`trackperm.comparison.question`.
    metric : str or list of str, optional
        A metric of the runs, or a column that scores each example, whose mean is compared.
    slices : sequence of str, optional
        Columns whose values make slices of the examples, which are compared as well and are exploratory,
        beside those that the spec declares; an empty sequence compares the declared ones alone. With one
        statistic or metric and without `slices`, all examples are compared and nothing else.
    correction : str
        How the p-values of several statistics and slices are corrected for each other: ``holm``, which holds
        under any dependence, ``tarone-holm``, ``hommel``, ``bonferroni``, ``bh``, ``by``, ``ahsd`` or
        ``none``.
    alternative : {'two-sided', 'less', 'greater'}, optional
        By default as the spec says. ``greater``: the candidate's score is greater.
    alpha : float
        Significance level of the verdict, between 0 and 1.
    margin : float, optional
        The smallest difference that matters, in units of the statistic: runs are equivalent where the
        interval of confidence 1 - 2 alpha lies within it.
    unit : {'example', 'row', 'attempt'}, optional
        What is exchanged between the runs. Where an example has several rows (epochs, seeds), these are one
        unit by default. ``row`` takes each for an example, which gives far too small p-values where they
        depend on each other; ``attempt`` exchanges the attempts within each example, which is exact for other
        numbers of them in the two runs.
    repeats : {'sum', 'mean', 'any', 'all', 'bundle'}, optional
        What several rows of an example come to; ``sum`` by default.
    cluster : str, optional
        Column whose groups of examples are exchanged as a whole.
    allow_unseen : bool
        Compare predictions with labels even if no prediction is among the labels.
    parameters : mapping, optional
        Values of the spec's parameters, such as ``{"positive": "yes"}``.
    columns : mapping, optional
        Column names that differ from those in the spec, such as ``{"id": "question_id"}``.
    resolution : str, float, Fraction, Decimal, or mapping of str to such, optional
        What decimal counts are rounded to multiples of, all or by name, in place of what the spec says.
    artifact : str or (str, str), optional
        Artifact path in the runs, or one for each.
    labels : str, path or data frame, optional
        The reference answers, where they lie apart from the predictions: their file, or a table with the
        columns of ids and labels.
    missing : {'error', 'drop', 'wrong', 'worst', 'best', 'bounds'}
        What to do with examples that only one run has, or that lack a value: refuse, leave them out, or count
        what the statistic says of a missing prediction; or, for the worst or best case of the candidate, of
        the worst possible one in one run and the best possible one in the other; ``bounds`` reports both
        cases, and concludes what they agree on.
    by_position : bool
        Pair rows by position where there is no id column.
    engine : {'auto', 'polars', 'duckdb', 'spark'}
        Where rows are joined and counted; the result is the same. ``auto`` takes Spark for its frames, DuckDB
        for large runs and polars, in memory, for others. Of lazy frames and relations used columns alone are
        read.
    mid_p : bool
        Count ties with the observed value half: less conservative, but no longer a valid p-value.
    method : {'auto', 'binomial', 'enumerate', 'dp', 'lattice', 'bracket', 'monte-carlo'}
        Numerical engine.
    n_samples, seed, exceedances : int
        For Monte Carlo: random swaps, the seed that they come from, and the number of them at least as
        extreme as the observed one at which drawing stops, if it should.
    tracking_uri : str, optional
        Tracking server or store of run references; by default as the tracker decides.

    Returns
    -------
    Comparison, or list of Comparison
        One comparison of all examples; or a list where several statistics or metrics, or `slices`, are given:
        by each statistic all examples, then its slices in ascending order of their values.

    Raises
    ------
    InputError
        If anything about the input cannot be used; subclasses say what.
    TrackerError
        If a tracker cannot be reached or refuses.

    Examples
    --------
    >>> comparison = trackperm.compare("baseline.parquet", "candidate.parquet", "accuracy")
    >>> comparison.verdict, round(comparison.pvalue, 5)
    ('better', 0.00335)

    Two statistics, corrected for each other:

    >>> both = trackperm.compare("baseline.parquet", "candidate.parquet", ["accuracy", "error_rate"])
    >>> [each.title for each in both]
    ['accuracy', 'error_rate']

    References
    ----------
    Zmigrod, Vieira and Cotterell (2022), Exact Paired-Permutation Testing for Structured Test Statistics.
    """
    options = TestOptions(
        alternative=alternative,
        alpha=alpha,
        mid_p=mid_p,
        method=method,
        n_samples=n_samples,
        seed=seed,
        exceedances=exceedances,
    )
    _require_names(statistic, metric, slices, correction)
    require_choice("engine", engine, get_args(EngineName))
    require_artifacts_of_runs(artifact, baseline, candidate)
    question = Question(
        statistics=_sequence(statistic, StatisticSource),
        metrics=_sequence(metric, str),
        parameters=parameters or {},
        columns=columns or {},
        resolution=resolution,
        unit=unit,
        repeats=repeats,
        cluster=cluster,
        by_position=by_position,
        allow_unseen=allow_unseen,
    )
    gold = reference_answers(labels, columns or {}, by_position=by_position)
    first, second = (artifact, artifact) if artifact is None or isinstance(artifact, str) else artifact
    runs = (
        load_run(baseline, "baseline", artifact=first, gold=gold, tracking_uri=tracking_uri),
        load_run(candidate, "candidate", artifact=second, gold=gold, tracking_uri=tracking_uri),
    )
    tables = [run.table for run in runs]
    if slices is None and not isinstance(statistic, list | tuple) and not isinstance(metric, list | tuple):
        asked = question.statistic_of(tables)
        return compare_runs(
            *runs, asked, options, margin=margin, missing=missing, by_position=by_position, engine=engine
        )
    return compare_statistics(
        *runs,
        question.statistics_of(tables),
        options,
        slices=slices or (),
        correction=correction,
        margin=margin,
        missing=missing,
        by_position=by_position,
        engine=engine,
    )


def _sequence(value: Any, one: Any) -> tuple[Any, ...]:
    """Return what is given, one or several, as a tuple."""
    if value is None:
        return ()
    return (value,) if isinstance(value, one) else tuple(value)


def _require_names(statistic: object, metric: object, slices: object, correction: object) -> None:
    """Refuse what is neither one name nor a sequence of them, and a correction that is not known.

    Raises
    ------
    InputTypeError
        If `statistic`, `metric` or `slices` is of another type.
    InputError
        If a list is empty, or there is no such correction.
    """
    if isinstance(statistic, list | tuple) and not statistic:
        raise InputError("no statistic is given", hint="name at least one, such as `accuracy`.")
    if not isinstance(metric, str | list | tuple | None):
        raise InputTypeError(f"`metric` is a {type(metric).__name__}; expected a name, or a list of names")
    if not isinstance(statistic, StatisticSource | list | tuple | None):
        raise InputTypeError(
            f"`statistic` is a {type(statistic).__name__}; expected a name, a path, a statistic, or a list"
        )
    if slices is not None and not isinstance(slices, list | tuple):
        raise InputTypeError(
            f"`slices` is a {type(slices).__name__}; expected a list of columns",
            hint='`slices=["language"]`.',
        )
    require_choice("correction", correction, get_args(CorrectionName))
