"""The conductor of two runs: read, pair, count, test; the result is one frozen value.

Numerics know nothing of runs and trackers know nothing of numerics: they meet here.
"""

from __future__ import annotations

import hashlib
import html
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import narwhals as nw

import trackperm
from trackperm.errors import InputError, UndefinedStatisticError
from trackperm.exact import (
    Alternative,
    CountTable,
    Method,
    NullDistribution,
    PermutationTest,
    RationalStatistic,
    structured_test,
)
from trackperm.exact.functions.real_number import UndefinedError
from trackperm.exact.outcome import N_SAMPLES
from trackperm.exact.scores.resolution import Resolution
from trackperm.pairing import Missing, PairingReport, pair
from trackperm.statistic import Statistic, load_statistic
from trackperm.tables import ExampleTable
from trackperm.trackers.base import Published, RunReference, TrackedRun, Tracker, open_tracker
from trackperm.trackers.files import read_file

Verdict = Literal["better", "worse", "undecided"]
MissingRule = Missing | Literal["bounds"]
"""As `Missing`, or the worst and the best case beside each other."""

MARKERS: Mapping[Verdict, str] = {"better": "▲", "worse": "▼", "undecided": "≈"}


@dataclass(frozen=True)
class RunData:
    """The per-example table of one run, and the run in its tracker if it has one.

    Attributes
    ----------
    table : ExampleTable
        What was read.
    name : str
        The name that people know the run by.
    run : TrackedRun or None
        Where the run is, unless it lies in a file or in memory.
    tracker : Tracker or None
        The adapter that found it.
    """

    table: ExampleTable
    name: str
    run: TrackedRun | None = None
    tracker: Tracker | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Case:
    """What two runs come to in one of the cases that missing predictions leave open.

    Attributes
    ----------
    missing : {'worst', 'best'}
        The case, seen from the candidate.
    difference, pvalue : float
        The statistic and its p-value.
    verdict : {'better', 'worse', 'undecided'}
        On the candidate.
    """

    missing: Missing
    difference: float
    pvalue: float
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """Everything about one comparison that is needed to print, publish and verify it.

    Attributes
    ----------
    statistic : Statistic
        What was tested.
    baseline, candidate : RunData
        The two runs; the statistic is that of the candidate minus that of the baseline.
    test : PermutationTest
        The exact test's result.
    alpha : float
        Significance level of the verdict.
    count_table : CountTable
        Distinct counts of both runs with multiplicities: the test can be repeated from it alone.
    pairing : PairingReport
        How examples were matched, and what was left out.
    discordant : narwhals.DataFrame
        The examples whose counts differ, ordered by id.
    options : mapping of str to str
        The choices that make this comparison what it is, as they enter `key`.
    """

    statistic: Statistic
    baseline_data: RunData = field(repr=False)
    candidate_data: RunData = field(repr=False)
    test: PermutationTest
    alpha: float
    count_table: CountTable = field(repr=False)
    pairing: PairingReport
    discordant: nw.DataFrame[Any] = field(repr=False)
    options: Mapping[str, str]
    cases: tuple[Case, ...] = ()

    @property
    def baseline(self) -> str:
        """What messages call the baseline: a run reference, a path or ``baseline``."""
        return self.baseline_data.table.origin

    @property
    def candidate(self) -> str:
        """What messages call the candidate."""
        return self.candidate_data.table.origin

    @property
    def baseline_name(self) -> str:
        """The baseline's name for people."""
        return self.baseline_data.name

    @property
    def candidate_name(self) -> str:
        """The candidate's name for people."""
        return self.candidate_data.name

    @property
    def baseline_run(self) -> TrackedRun | None:
        """The baseline in its tracker, if it is in one."""
        return self.baseline_data.run

    @property
    def candidate_run(self) -> TrackedRun | None:
        """The candidate in its tracker, if it is in one."""
        return self.candidate_data.run

    @property
    def pvalue(self) -> float:
        """The p-value; 0.0 only where it is below the range of floats."""
        return self.test.pvalue

    def format_pvalue(self, digits: int = 3) -> str:
        """Write the p-value; with more digits where it is next to `alpha`, so that the verdict shows."""
        return self.test.format_pvalue(digits, self.alpha)

    @property
    def log10_pvalue(self) -> float:
        """Decimal logarithm of the p-value, always finite."""
        return self.test.log10_pvalue

    @property
    def error_bound(self) -> float:
        """Certified bound on the error of the p-value, relative to it; 1 where it is only an upper bound.

        Infinity for Monte Carlo, which certifies nothing.
        """
        return self.test.error_bound

    @property
    def method(self) -> str:
        """Numerical engine that computed the p-value."""
        return self.test.method

    @property
    def observed(self) -> float:
        """The statistic of the runs as they are."""
        return self.test.observed

    @property
    def n_examples(self) -> int:
        """Number of examples tested."""
        return self.test.n_examples

    @property
    def n_discordant(self) -> int:
        """Number of examples whose outputs count differently in the two runs."""
        return self.count_table.n_discordant

    @property
    def null_distribution(self) -> NullDistribution:
        """The law of the statistic if swapping outputs made no difference."""
        return self.test.null_distribution

    @property
    def baseline_score(self) -> float | None:
        """The baseline's own score; None where the statistic is not a difference of scores."""
        return _score(self.statistic, self.count_table.totals()[1])

    @property
    def candidate_score(self) -> float | None:
        """The candidate's own score; None where the statistic is not a difference of scores."""
        return _score(self.statistic, self.count_table.totals()[0])

    @property
    def difference(self) -> float:
        """Candidate's score minus baseline's, which is the observed statistic."""
        return self.test.observed

    @property
    def verdict(self) -> Verdict:
        """Whether the candidate is shown to be better or worse at level `alpha`.

        A p-value counts as below alpha only if it is so with its whole interval: of what is certified, or
        with 99 % confidence for Monte Carlo. What the worst and the best case of missing predictions do not
        agree on is undecided.
        """
        if self.is_open:
            return "undecided"
        if not max(self.pvalue, self.test.interval[1]) < self.alpha:
            return "undecided"
        rises = (
            self.observed > 0 if self.test.alternative == "two-sided" else self.test.alternative == "greater"
        )
        return "better" if rises == self.statistic.greater_is_better else "worse"

    @property
    def is_open(self) -> bool:
        """Whether the verdict depends on what the missing predictions would have been."""
        return len({case.verdict for case in self.cases}) > 1

    @property
    def marker(self) -> str:
        """One sign for the verdict: ▲ better, ▼ worse, ≈ undecided."""
        return MARKERS[self.verdict]

    @property
    def key(self) -> str:
        """Digest of both runs, their data, the spec and the options: equal keys, same comparison."""
        # A path says nothing about the data, which the digests do; a run's reference says where it belongs.
        parts = [
            None if self.baseline_run is None else self.baseline,
            None if self.candidate_run is None else self.candidate,
            self.pairing.baseline_digest,
            self.pairing.candidate_digest,
            self.statistic.document(),
            dict(sorted(self.options.items())),
        ]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()

    @property
    def signature(self) -> str:
        """One line that says what it takes to reproduce the number."""
        spec = hashlib.sha256(self.statistic.document().encode()).hexdigest()
        parts = {
            "alt": self.test.alternative,
            "n": self.n_examples,
            "discordant": self.n_discordant,
            "paired": self.pairing.by,
            "missing": self.options["missing"],
            "method": self.method,
            "ties": self.test.ties,
            **({"p": "mid"} if self.test.mid_p else {}),
            **({"drawn": self.test.n_samples} if self.test.n_samples is not None else {}),
            "data": f"{self.pairing.baseline_digest[:8]}/{self.pairing.candidate_digest[:8]}",
            "spec": spec[:8],
            "trackperm": trackperm.__version__,
        }
        return "|".join([self.statistic.name, *(f"{name}:{value}" for name, value in parts.items())])

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values that JSON can hold; numbers that are not finite become None."""
        return {
            "statistic": self.statistic.name,
            "baseline": self.baseline,
            "candidate": self.candidate,
            "baseline_name": self.baseline_name,
            "candidate_name": self.candidate_name,
            "baseline_score": _finite(self.baseline_score),
            "candidate_score": _finite(self.candidate_score),
            "difference": self.difference,
            "pvalue": self.pvalue if self.pvalue > 0.0 else None,
            "log10_pvalue": self.log10_pvalue,
            "error_bound": _finite(self.error_bound),
            "interval": list(self.test.interval),
            "mid_p": self.test.mid_p,
            "n_samples": self.test.n_samples,
            "log10_smallest_pvalue": self.test.log10_smallest_pvalue,
            "alternative": self.test.alternative,
            "alpha": self.alpha,
            "verdict": self.verdict,
            "method": self.method,
            "why": self.test.why,
            "ties": self.test.ties,
            "n_examples": self.n_examples,
            "n_discordant": self.n_discordant,
            "n_better": self.test.n_better,
            "n_worse": self.test.n_worse,
            "cases": [asdict(case) for case in self.cases],
            "pairing": self.pairing.to_dict(),
            "options": dict(self.options),
            "signature": self.signature,
            "key": self.key,
        }

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def _repr_html_(self) -> str:
        rows = {
            "baseline": f"{self.baseline_name} {_short(self.baseline_score)}",
            "candidate": f"{self.candidate_name} {_short(self.candidate_score)}",
            "difference": _short(self.difference),
            "p-value": self.format_pvalue(),
            "examples": f"{self.n_examples} ({self.n_discordant} discordant)",
            "verdict": f"{self.marker} {self.verdict}",
        }
        cells = "".join(
            f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in rows.items()
        )
        return f"<table><caption>{html.escape(self.statistic.name)}</caption>{cells}</table>"

    def log(self, tracker: Tracker | None = None, container: str | None = None) -> Published:
        """Write the comparison to a tracker, or bring the one that is there up to date.

        Parameters
        ----------
        tracker : Tracker, optional
            Where to write; by default the tracker that the candidate was read from.
        container : str, optional
            Experiment or project; by default the candidate's.

        Raises
        ------
        InputError
            If the candidate is in no tracker and none is given.
        TrackerError
            If the tracker failed; the next call completes what was begun.
        MissingDependencyError
            If ``trackperm[plots]`` is not installed.
        """
        from trackperm.publish import publication

        target = tracker or self.candidate_data.tracker
        if target is None:
            raise InputError(
                f"the candidate `{self.candidate}` is in no tracker, so there is nowhere to log to",
                hint="give one: `comparison.log(trackperm.open_tracker('mlflow', uri), 'experiment')`.",
            )
        return target.publish(publication(self), container)


def compare(
    baseline: Any,
    candidate: Any,
    statistic: str | Path | Statistic = "accuracy",
    *,
    alternative: Alternative | None = None,
    alpha: float = 0.05,
    parameters: Mapping[str, object] | None = None,
    columns: Mapping[str, str] | None = None,
    resolution: Resolution | Mapping[str, Resolution] | None = None,
    artifact: str | tuple[str, str] | None = None,
    missing: MissingRule = "error",
    by_position: bool = False,
    mid_p: bool = False,
    method: Method = "auto",
    n_samples: int = N_SAMPLES,
    seed: int = 0,
    exceedances: int | None = None,
    tracking_uri: str | None = None,
) -> Comparison:
    """Compare two runs on the same examples by the exact paired-permutation test.

    Nothing is logged; see :meth:`Comparison.log`.

    Parameters
    ----------
    baseline, candidate : str, path or data frame
        ``mlflow:<run id>``, ``mlflow:<experiment>/<run name>``, the path of a CSV, TSV, Parquet, JSON
        lines or ``log_table`` file, or a data frame that narwhals accepts.
    statistic : str, path or Statistic
        Name of a built-in statistic, or the path of a spec.
    alternative : {'two-sided', 'less', 'greater'}, optional
        By default as the spec says. ``greater``: the candidate's score is greater.
    alpha : float
        Significance level of the verdict, between 0 and 1.
    parameters : mapping, optional
        Values of the spec's parameters, such as ``{"positive": "yes"}``.
    columns : mapping, optional
        Column names that differ from those in the spec, such as ``{"id": "question_id"}``.
    resolution : str, float, Fraction, Decimal, or mapping of str to such, optional
        What decimal counts are rounded to multiples of, all or by name, in place of what the spec says.
    artifact : str or (str, str), optional
        Artifact path in the runs, or one for each.
    missing : {'error', 'drop', 'wrong', 'worst', 'best', 'bounds'}
        What to do with examples that only one run has, or that lack a value: refuse, leave them out, or count
        what the statistic says of a missing prediction, in both runs or, as the worst or best case for the
        candidate, in one of them, and a perfect one in the other; ``bounds`` reports both, and concludes
        what they agree on.
    by_position : bool
        Pair rows by position where there is no id column.
    mid_p : bool
        Count ties with the observed value half: less conservative, but no longer a valid p-value.
    method : {'auto', 'binomial', 'enumerate', 'dp', 'lattice', 'bracket', 'monte-carlo'}
        Numerical engine.
    n_samples, seed, exceedances : int
        For Monte Carlo: random swaps, the seed that they come from, and the number of them at least as
        extreme as the observed one at which drawing stops, if it should.
    tracking_uri : str, optional
        Tracking server or store of run references; by default as the tracker decides.

    Raises
    ------
    InputError
        If anything about the input cannot be used; subclasses say what.
    TrackerError
        If a tracker cannot be reached or refuses.

    References
    ----------
    Zmigrod, Vieira and Cotterell (2022), Exact Paired-Permutation Testing for Structured Test Statistics.
    """
    first, second = (artifact, artifact) if artifact is None or isinstance(artifact, str) else artifact
    return compare_runs(
        load_run(baseline, "baseline", artifact=first, tracking_uri=tracking_uri),
        load_run(candidate, "candidate", artifact=second, tracking_uri=tracking_uri),
        load_statistic(statistic, parameters=parameters or {}, columns=columns or {}, resolution=resolution),
        alternative=alternative,
        alpha=alpha,
        missing=missing,
        by_position=by_position,
        mid_p=mid_p,
        method=method,
        n_samples=n_samples,
        seed=seed,
        exceedances=exceedances,
    )


def load_run(
    source: Any, role: str, *, artifact: str | None = None, tracking_uri: str | None = None
) -> RunData:
    """Read the per-example table of one run.

    Parameters
    ----------
    source : str, path or data frame
        As in :func:`compare`.
    role : str
        What to call a data frame that has no name of its own.
    artifact : str, optional
        Artifact path in the run.
    tracking_uri : str, optional
        Tracking server or store.
    """
    if not isinstance(source, str | Path):
        return RunData(ExampleTable.from_native(source, role), role)
    reference = RunReference.parse(source) if isinstance(source, str) else RunReference("file", str(source))
    if reference.scheme == "file":
        return RunData(read_file(reference.locator), Path(reference.locator).name)
    tracker = open_tracker(reference.scheme, tracking_uri)
    run = tracker.find(reference.locator)
    return RunData(tracker.read(run, artifact), run.name, run, tracker)


def compare_runs(
    baseline: RunData,
    candidate: RunData,
    statistic: Statistic,
    *,
    alternative: Alternative | None = None,
    alpha: float = 0.05,
    missing: MissingRule = "error",
    by_position: bool = False,
    mid_p: bool = False,
    method: Method = "auto",
    n_samples: int = N_SAMPLES,
    seed: int = 0,
    exceedances: int | None = None,
) -> Comparison:
    """Compare two runs that were read before; options as in :func:`compare`."""
    if not 0.0 < alpha < 1.0:
        raise InputError(f"`alpha` is {alpha}; expected a number between 0 and 1, such as 0.05")
    compared = partial(
        _compared,
        baseline,
        candidate,
        statistic,
        alternative=alternative,
        alpha=alpha,
        by_position=by_position,
        mid_p=mid_p,
        method=method,
        n_samples=n_samples,
        seed=seed,
        exceedances=exceedances,
    )
    if missing != "bounds":
        return compared(missing=missing)
    both = [compared(missing="worst"), compared(missing="best")]
    cases = [
        Case(comparison.pairing.missing, comparison.difference, comparison.pvalue, comparison.verdict)
        for comparison in both
    ]
    weaker = max(both, key=lambda comparison: comparison.pvalue)
    return replace(weaker, options={**weaker.options, "missing": "bounds"}, cases=tuple(cases))


def _compared(
    baseline: RunData,
    candidate: RunData,
    statistic: Statistic,
    *,
    alternative: Alternative | None,
    alpha: float,
    missing: Missing,
    by_position: bool,
    mid_p: bool,
    method: Method,
    n_samples: int,
    seed: int,
    exceedances: int | None,
) -> Comparison:
    pairing = pair(baseline.table, candidate.table, statistic, missing=missing, by_position=by_position)
    statistic = pairing.statistic
    table = pairing.count_table
    stay, swap = statistic.pairs(table.candidate, table.baseline)
    _require_defined_scores(statistic, table)
    _require_ratio(statistic, table, baseline, candidate)
    tested = alternative or statistic.alternative
    try:
        test = structured_test(
            stay,
            swap,
            statistic.tested(stay, swap, table.multiplicities),
            alternative=tested,
            multiplicities=table.multiplicities,
            mid_p=mid_p,
            method=method,
            n_samples=n_samples,
            seed=seed,
            exceedances=exceedances,
        )
    except UndefinedStatisticError as error:
        if statistic.contrast != "log ratio":
            raise
        raise UndefinedStatisticError(
            f"some swaps of outputs make a score by `{statistic.name}` 0 in one of the runs, of which"
            " `contrast: log ratio` cannot take the logarithm",
            hint=_RATIO_HINT,
        ) from error
    options = {"alternative": tested, "alpha": repr(alpha), "missing": missing, "method": method}
    if mid_p:
        options["mid_p"] = "true"
    if test.method == "monte-carlo":
        options |= {"n_samples": str(n_samples), "seed": str(seed), "exceedances": str(exceedances)}
    return Comparison(
        statistic=statistic,
        baseline_data=baseline,
        candidate_data=candidate,
        test=test,
        alpha=alpha,
        count_table=table,
        pairing=pairing.report,
        discordant=pairing.discordant,
        options=options,
    )


def _require_defined_scores(statistic: Statistic, table: CountTable) -> None:
    """Refuse two scores that are both 0/0: a declared value would be compared with itself.

    Raises
    ------
    InputError
        If every division is by 0, in both scores and in every stratum or class.
    """
    score, p = statistic.part_score, len(statistic.count_names)
    if not isinstance(score, RationalStatistic) or not score.divisors:
        return
    parts = [totals[i : i + p] for totals in table.totals() for i in range(0, len(totals), p)]
    if all(divisor(part) == 0 for divisor in score.divisors for part in parts):
        given = ", ".join(f"`{name}` is {value!r}" for name, value in statistic.parameters.items())
        raise InputError(
            f"`{statistic.name}` is 0/0 in both runs, so there is nothing to compare",
            hint=f"{given}: does it occur in the data as written?" if given else None,
        )


_RATIO_HINT = (
    "`contrast: difference` tests the difference of the scores; a constant keeps them above 0, as in"
    " `score: (wrong + 0.5) / (n + 1)`."
)


def _require_ratio(statistic: Statistic, table: CountTable, baseline: RunData, candidate: RunData) -> None:
    """Refuse a log ratio of scores that are not above 0.

    Raises
    ------
    InputError
        If one of the scores is not; says whose.
    """
    if statistic.contrast != "log ratio":
        return
    sides = ("candidate", candidate), ("baseline", baseline)
    for (role, run), totals in zip(sides, table.totals(), strict=True):
        score = _score(statistic, totals)
        if score is not None and score <= 0:
            raise InputError(
                f"the {role} `{run.table.origin}` has a score of {score:.4g} by `{statistic.name}`, of which"
                " `contrast: log ratio` cannot take the logarithm",
                hint=_RATIO_HINT,
            )


def _score(statistic: Statistic, totals: tuple[int, ...]) -> float | None:
    if statistic.score is None:
        return None
    if isinstance(statistic.score, RationalStatistic):
        try:
            return float(statistic.score(totals))
        except ZeroDivisionError:
            return None
    try:
        score = float(statistic.score.number(totals))
    except UndefinedError:
        return math.nan
    if math.isinf(score):
        raise InputError(
            f"a score by `{statistic.name}` is beyond the range of floats",
            hint="let `exp` and powers take smaller numbers.",
        )
    return score


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
