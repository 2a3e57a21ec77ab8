"""``trackperm.compare``: test two runs by one or several statistics, on all examples and on slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, get_args, overload

from trackperm.choices import (
    Alternative,
    CorrectionName,
    EngineName,
    IntervalChoice,
    Method,
    MissingRule,
    Repeats,
    Unit,
)
from trackperm.comparison.argument_types import require_types, with_known_options
from trackperm.comparison.arrays import require_none_given, runs_of_arrays
from trackperm.comparison.question.question import Question, StatisticSource
from trackperm.comparison.result import Comparison
from trackperm.comparison.runs import (
    inputs_of,
    load_runs,
    reference_answers,
    require_artifacts_of_runs,
    require_two_runs,
)
from trackperm.comparison.several import compare_statistics
from trackperm.comparison.single import compare_runs
from trackperm.errors import InputError, InputTypeError
from trackperm.exact import TestOptions
from trackperm.exact.options import MEMORY_BUDGET, bytes_of, require_choice
from trackperm.exact.scores.resolution import Resolution
from trackperm.statistic.load import FUNCTION_HINT

if TYPE_CHECKING:
    from typing_extensions import Unpack


Values: TypeAlias = Any
"""Values of examples: an array, a series, a list, or a mapping from ids to values."""


class _ArrayOptions(TypedDict, total=False):
    alternative: Alternative | None
    alpha: float
    margin: float | None
    unit: Unit | None
    repeats: Repeats | None
    allow_unseen: bool
    parameters: Mapping[str, object] | None
    resolution: Resolution | Mapping[str, Resolution] | None
    missing: MissingRule
    engine: EngineName
    mid_p: bool
    interval: IntervalChoice
    method: Method
    n_samples: int | None
    seed: int
    exceedances: int | None
    memory_budget: int | str


class _Options(_ArrayOptions, total=False):
    cluster: str | None
    columns: Mapping[str, str] | None
    baseline_columns: Mapping[str, str] | None
    candidate_columns: Mapping[str, str] | None
    artifact: str | tuple[str, str] | None
    labels: Any
    by_position: bool
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
    slices: str | Sequence[str] | None = None,
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
    slices: str | Sequence[str] | None = None,
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
    slices: str | Sequence[str],
    correction: CorrectionName = "holm",
    **options: Unpack[_Options],
) -> list[Comparison]: ...


@overload
def compare(
    y_true: Values,
    y_baseline: Values,
    y_candidate: Values,
    *,
    statistic: StatisticSource | None = None,
    **options: Unpack[_ArrayOptions],
) -> Comparison: ...


@overload
def compare(
    y_true: Values,
    y_baseline: Values,
    y_candidate: Values,
    *,
    statistic: list[StatisticSource] | list[str] | tuple[StatisticSource, ...],
    correction: CorrectionName = "holm",
    **options: Unpack[_ArrayOptions],
) -> list[Comparison]: ...


@with_known_options
def compare(
    *runs: Any,
    statistic: StatisticSource | Sequence[StatisticSource] | None = None,
    baseline: Any = None,
    candidate: Any = None,
    y_true: Any = None,
    y_baseline: Any = None,
    y_candidate: Any = None,
    metric: str | Sequence[str] | None = None,
    slices: str | Sequence[str] | None = None,
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
    baseline_columns: Mapping[str, str] | None = None,
    candidate_columns: Mapping[str, str] | None = None,
    resolution: Resolution | Mapping[str, Resolution] | None = None,
    artifact: str | tuple[str, str] | None = None,
    labels: Any = None,
    missing: MissingRule = "error",
    by_position: bool = False,
    engine: EngineName = "auto",
    mid_p: bool = False,
    interval: IntervalChoice = "auto",
    method: Method = "auto",
    n_samples: int | None = None,
    seed: int = 0,
    exceedances: int | None = None,
    memory_budget: int | str = MEMORY_BUDGET,
    tracking_uri: str | None = None,
) -> Comparison | list[Comparison]:
    """Compare two runs on the same examples by the exact paired-permutation test.

    ``compare(baseline, candidate, statistic)`` takes runs: references, paths or data frames.
    ``compare(y_true, y_baseline, y_candidate, statistic=statistic)`` takes labels and two arrays of
    predictions, and ``compare(y_baseline, y_candidate, statistic=statistic)`` two arrays of scores, for a
    statistic that reads no labels. An array, a series, a list or a mapping as the first argument selects this
    form. Mappings, and series of pandas with an index of their own, are paired by id, others by position.

    This function logs nothing; :func:`trackperm.log` writes the result. Use :func:`trackperm.leaderboard` for
    more than two runs, :func:`trackperm.gate` for a decision by a policy, and
    :func:`trackperm.exact.difference_test` or :func:`trackperm.exact.structured_test` for arrays.

    Parameters
    ----------
    baseline, candidate : str, path or data frame
        ``mlflow:<run id>``, ``mlflow:<experiment>/<run name>``, ``wandb:<entity>/<project>/<run>``,
        ``wandb:<folder of an offline run>``, the path of a file of any format in :mod:`trackperm.tables`,
        ``FILE::PART`` for one system, filter or scorer in it, a run that ``tracker.runs()`` returned, or a
        data frame that narwhals accepts.
    y_true, y_baseline, y_candidate : array_like, shape (N,), or mapping of ids to such values
        Labels, and the predictions or scores of the two systems, example by example: arrays, series, lists,
        or mappings whose keys are ids. `statistic` is then a keyword, and options that name columns, labels
        or a tracker are refused.
    statistic : str, path or Statistic, or a list of such, optional
        Name of a built-in statistic, the path of a spec, or a statistic of a Python function, which
        :func:`trackperm.statistic.from_function` makes. Several statistics form one family of tests. By
        default, the metrics that the runs have logged, or else accuracy; see
        :mod:`trackperm.comparison.question.question`.
    metric : str or list of str, optional
        A metric of the runs, or a column that scores each example, whose mean is compared; or a value of a
        column, as ``verdict=CORRECT`` or ``verdict!=WRONG``, whose share of the examples is compared.
    slices : str or sequence of str, optional
        Columns whose values split the examples into slices. These slices are compared as well, and are
        exploratory; the slices that the spec declares are always added. With an empty sequence, only the
        declared slices are added. Without `slices`, one statistic or metric is compared on all examples only.
        A slice in which no exchange of outputs gives the statistic a value is not tested, which a note of the
        comparison of all examples says.
    correction : str
        Correction of the p-values of several statistics and slices for each other: ``holm``, which is valid
        under any dependence, ``tarone-holm``, ``hommel``, ``bonferroni``, ``bh``, ``by`` or ``none``.
    alternative : {'two-sided', 'less', 'greater'}, optional
        By default that of the spec. ``greater``: the candidate's score is greater.
    alpha : float
        Significance level of the verdict, between 0 and 1.
    margin : float, optional
        The smallest difference that matters, in units of the statistic: runs are equivalent if the interval
        of confidence 1 - 2 alpha lies between -margin and margin.
    unit : {'example', 'row', 'attempt'}, optional
        Unit that the test exchanges between the runs. By default, all rows of an example (epochs, seeds) form
        one unit. ``row`` treats each row as an example, which gives far too small p-values if these rows
        depend on each other. ``attempt`` exchanges the attempts within each example, and stays exact if the
        two runs have different numbers of attempts.
    repeats : {'sum', 'mean', 'any', 'all', 'bundle'}, optional
        Rule that combines several rows of one example; ``sum`` by default.
    cluster : str, optional
        Column whose groups of examples are exchanged as a whole.
    allow_unseen : bool
        Compare predictions with labels even if no prediction occurs among the labels, or a class that a
        parameter names never occurs.
    parameters : mapping, optional
        Values of the spec's parameters, such as ``{"positive": "yes"}``.
    columns : mapping, optional
        Column names that differ from those in the spec, such as ``{"id": "question_id"}``.
    baseline_columns, candidate_columns : mapping, optional
        Column names of one run that differ from those of the other, such as ``{"prediction": "answer"}``.
    resolution : str, float, Fraction, Decimal, or mapping of str to such, optional
        Decimal counts are rounded to multiples of this number, for all or by name; it replaces the spec's.
    artifact : str or (str, str), optional
        Artifact path in both runs, or one path for each.
    labels : str, path or data frame, optional
        The reference answers, if they are not in the files of predictions: their file, or a table with the
        columns of ids and labels.
    missing : {'error', 'drop', 'wrong', 'worst', 'best', 'bounds'}
        Treatment of examples that only one run has, or that lack a value. ``error`` refuses them, ``drop``
        leaves them out, and ``wrong`` counts a missing prediction as the statistic defines. ``worst`` assumes
        the worst possible prediction where the candidate lacks one and the best where the baseline does;
        ``best`` is the reverse. ``bounds`` reports both cases, and concludes only what they agree on.
    by_position : bool
        Pair rows by position, without an id column.
    engine : {'auto', 'polars', 'duckdb', 'spark'}
        Engine that joins and counts rows; it does not change the result. ``auto`` uses Spark for Spark
        frames, DuckDB for large runs, and polars (in memory) for others. Only the columns that are used are
        read from lazy frames and relations.
    mid_p : bool
        Count ties with the observed value half. The mid-p-value is less conservative, but it is not a valid
        p-value.
    method : {'auto', 'binomial', 'enumerate', 'dp', 'lattice', 'bracket', 'tilted', 'monte-carlo'}
        Numerical engine.
    n_samples, seed : int
        Number of random swaps of tilted sampling, by default 20,000 or fewer, or of Monte Carlo, by default
        100,000; and their seed. With `n_samples`, ``auto`` draws swaps wherever no exact engine is quick.
    exceedances : int, optional
        For Monte Carlo: the number of swaps at least as extreme as the observed one after which drawing stops
        early (by default, it does not).
    memory_budget : int or str
        Memory that a test may take, in bytes or as in ``512MB`` and ``2GiB``; 1 GiB by default. An exact
        engine that needs more is not chosen.
    interval : {'auto', 'none', 'score', 'bootstrap'}
        Interval of the difference: the one that agrees with the exact test if there is one, else the score
        interval; none; or one of these two in any case.
    tracking_uri : str, optional
        Tracking server or store of run references; by default that of the tracker's own configuration.

    Returns
    -------
    Comparison, or list of Comparison
        One comparison of all examples. With several statistics or metrics, or with `slices`, a list: for each
        statistic all examples, then its slices in ascending order of their values.

    Raises
    ------
    InputError
        If any part of the input cannot be used; subclasses name the problem.
    TrackerError
        If a tracker cannot be reached or refuses the request.

    Examples
    --------
    >>> comparison = trackperm.compare("baseline.parquet", "candidate.parquet", "accuracy")
    >>> comparison.verdict, round(comparison.pvalue, 5)
    ('better', 0.00335)

    Arrays, which are paired by position:

    >>> labels, old, new = [1, 1, 0, 0, 1, 0] * 4, [1, 0, 0, 1, 1, 0] * 4, [1, 1, 0, 0, 1, 0] * 4
    >>> trackperm.compare(labels, old, new, statistic="f1").verdict
    'better'

    Two statistics, corrected for each other:

    >>> both = trackperm.compare("baseline.parquet", "candidate.parquet", ["accuracy", "error_rate"])
    >>> [each.title for each in both]
    ['accuracy', 'error_rate']

    References
    ----------
    Zmigrod, Vieira and Cotterell (2022), Exact Paired-Permutation Testing for Structured Test Statistics.
    """
    named = {
        "baseline": baseline,
        "candidate": candidate,
        "y_true": y_true,
        "y_baseline": y_baseline,
        "y_candidate": y_candidate,
        "statistic": statistic,
    }
    slices = (slices,) if isinstance(slices, str) else slices
    inputs = inputs_of(runs, named)
    statistic = inputs.statistic
    options = TestOptions(
        alternative=alternative,
        alpha=alpha,
        mid_p=mid_p,
        interval=interval,
        method=method,
        n_samples=n_samples,
        seed=seed,
        exceedances=exceedances,
        memory_budget=bytes_of(memory_budget),
    )
    _require_names(statistic, metric, slices, correction)
    for each in artifact if isinstance(artifact, tuple) else (artifact,):
        require_types(artifact=each)
    require_types(
        baseline_columns=baseline_columns, candidate_columns=candidate_columns, tracking_uri=tracking_uri
    )
    require_choice("missing", missing, get_args(MissingRule))
    require_choice("engine", engine, get_args(EngineName))
    question = Question(
        statistics=_sequence(statistic, StatisticSource),
        metrics=_sequence(metric, str),
        parameters={} if parameters is None else parameters,
        columns={} if columns is None else columns,
        resolution=resolution,
        unit=unit,
        repeats=repeats,
        cluster=cluster,
        by_position=by_position,
        allow_unseen=allow_unseen,
    )
    if inputs.are_arrays:
        unsuitable = {
            "metric": metric,
            "slices": slices,
            "cluster": cluster,
            "columns": columns,
            "baseline_columns": baseline_columns,
            "candidate_columns": candidate_columns,
            "artifact": artifact,
            "labels": labels,
            "by_position": by_position or None,
            "tracking_uri": tracking_uri,
        }
        require_none_given(unsuitable)
        arrays = runs_of_arrays(inputs.y_true, inputs.baseline, inputs.candidate, question.statistics)
        both, by_position = arrays.runs, arrays.by_position
        question = replace(question, by_position=by_position)
    else:
        require_artifacts_of_runs(artifact, inputs.baseline, inputs.candidate)
        own_columns = baseline_columns or {}, candidate_columns or {}
        both = load_runs(
            inputs.baseline,
            inputs.candidate,
            artifact=artifact,
            references=reference_answers(labels, question.columns, by_position=by_position),
            tracking_uri=tracking_uri,
            columns=question.columns,
            own_columns=own_columns,
        )
        require_two_runs(*both, artifact, own_columns)
    tables = [run.table for run in both]
    if slices is None and not isinstance(statistic, list | tuple) and not isinstance(metric, list | tuple):
        statistic = question.statistic_of(tables)
        return compare_runs(
            *both, statistic, options, margin=margin, missing=missing, by_position=by_position, engine=engine
        )
    return compare_statistics(
        *both,
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
    """Return one value, or a sequence of values, as a tuple."""
    if value is None:
        return ()
    return (value,) if isinstance(value, one) else tuple(value)


def _require_names(statistic: object, metric: object, slices: object, correction: object) -> None:
    """Refuse arguments that are neither a name nor a list of names, and unknown corrections."""
    if isinstance(statistic, list | tuple) and not statistic:
        raise InputError("`statistic` is an empty list", hint="name at least one, such as `accuracy`.")
    if not isinstance(metric, str | list | tuple | None):
        raise InputTypeError(f"`metric` is a {type(metric).__name__}; expected a name, or a list of names")
    if not isinstance(statistic, StatisticSource | list | tuple | None):
        raise InputTypeError(
            f"`statistic` is a {type(statistic).__name__}; expected a name, a path, a statistic, or a list",
            hint=FUNCTION_HINT if callable(statistic) else None,
        )
    if slices is not None and not isinstance(slices, list | tuple):
        raise InputTypeError(
            f"`slices` is a {type(slices).__name__}; expected a column or a list of columns",
            hint='`slices=["language"]`.',
        )
    require_choice("correction", correction, get_args(CorrectionName))
