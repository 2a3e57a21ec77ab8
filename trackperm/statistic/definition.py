"""Compiled statistics: counts of one run's examples, g of a pair of runs, h of the sums of g."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from trackperm.choices import Alternative, RepeatsInSpec
from trackperm.errors import InputError
from trackperm.exact import RationalStatistic, RealStatistic
from trackperm.exact.differences import linearised
from trackperm.exact.engines.lattice.statistic import Statistic as ExactStatistic
from trackperm.statistic.counter_columns import (
    has_counters,
    look_up_labels,
    names_by_class,
    names_of_objects,
    names_of_sets,
    text_columns_of_counters,
)
from trackperm.statistic.document import Document
from trackperm.statistic.expressions.arrays import integers
from trackperm.statistic.expressions.equality import Equality, compared_texts
from trackperm.statistic.expressions.parts import CLASS, has_totals, in_parts
from trackperm.statistic.expressions.ranges import Range, range_of
from trackperm.statistic.expressions.tree import Expression, Name
from trackperm.statistic.expressions.types import computed_names
from trackperm.statistic.pairs.term import PairTerm
from trackperm.statistic.rank_score import RankScore
from trackperm.statistic.schema import Contrast
from trackperm.statistic.score_of_python import ScoreOfPython

POSITIVE = "positive"
"""Name of the parameter with the class that is counted."""

CLASS_COLUMN = "trackperm class"
"""Column from which counts read the class."""

ATTEMPTS = "n_attempts"
"""Count of the attempts at an example, where attempts are exchanged within examples."""

OF_PASSES: frozenset[RepeatsInSpec | None] = frozenset(("any", "all", "pass_at_k", "pass_hat_k"))
"""Rules by which an example counts from 0 to 1, because its rows pass or fail."""

ClassValue = str | int | bool
ParameterValue = int | float | str | bool
Units = Mapping[str, Fraction]
Integers = npt.NDArray[np.int64]

Outcome = Literal["missing", "worst", "best"]
"""Value that replaces a missing prediction."""


@dataclass(frozen=True, eq=False)
class Statistic:
    """A compiled spec: the statistic that is tested; see :func:`~trackperm.statistic.load_statistic`.

    Attributes
    ----------
    name : str
        Name of letters, digits, ``_``, ``-`` and ``.``, with which the names of logged metrics begin.
    title, description : str
        Name and description for people; by default, the title is the name.
    alternative : {'two-sided', 'less', 'greater'}
        Alternative in the spec.
    greater_is_better : bool
        Whether a greater value is a better candidate.
    count_names : tuple of str
        Names of the counts of an example of one run, which are integers in the units of `resolution`.
    columns : mapping of str to str
        Column of every name that the counts use, and of ``id`` and ``label``.
    used_columns : tuple of str
        Columns that the counts read.
    class_columns : mapping of str to mapping of str to str
        Columns by class, by the names in counts that have one column for each class; the column of such a
        name in `columns` is a pattern, such as ``probability_*``.
    parameters : mapping
        Values of the parameters.
    set_parameters : frozenset of str
        Parameters whose values were chosen in a call, or in a spec that is not built in.
    resolution : mapping of str to Fraction, or Fraction
        Units of counts by name; the unit of other counts is 1. Or one Fraction, until the data tell which
        counts are decimals: these are rounded to its multiples, and loading the statistic again with their
        units gives a mapping.
    g_names : tuple of str
        Names of the integers of a pair, whose sums are the arguments of h.
    h : RationalStatistic, RealStatistic or callable
        Rational where h consists of ``+ - * /`` and integer powers alone, and a callable where the score is a
        Python function. Its value is in the units of the spec, whatever the units of its arguments.
    score : RationalStatistic, RealStatistic, ScoreOfPython or None
        Value of one run, from the totals of its counts; None in the long form.
    part_score : RationalStatistic, RealStatistic, ScoreOfPython or None
        Value of one run on one stratum or class; the score where there are no such parts.
    contrast : {'difference', 'log ratio'}
        How h compares the scores of two runs.
    repeats : str or None
        Treatment of several rows of one example; None where each example has one row.
    cluster, strata : str or None
        Names, in `columns`, of the column whose groups are exchanged as a whole, and of the column whose
        groups are scored separately.
    class_column : str or None
        Name, in `columns`, of the column whose values are the classes.
    classes : tuple of str, int or bool
        Classes in ascending order; empty as long as they are unknown.
    predicts_classes : bool
        Whether the predictions of both runs are classes as well as the values of `class_column`.
    weights : mapping of str to Fraction
        Weight of every stratum or class, by its text; empty as long as these are unknown. Arguments of
        `pairs`, `h` and `score` are the counts of each part: `total_names`.
    ranges : mapping of str to (Fraction, Fraction)
        Least and greatest allowed value of columns, by the names that counts use.
    slices : tuple of str
        Columns whose values define slices, which are compared separately as well.
    pair_term : PairTerm or None
        What pairs of examples count, if the score is a mean over pairs; the count is then
        :data:`~trackperm.statistic.pairs.term.SHARE`, whose units follow from the data, by part if there are
        strata.
    rank_score : RankScore or None
        The score, if it is a rank statistic; the counts are then codes, such as
        :data:`~trackperm.statistic.rank_score.RANK`.
    chosen : str
        Reason for the choice of the statistic, where the user named none, such as ``the log's own metric``.
    found : tuple of str
        Columns that were found in the data because the user named none.
    id_is_named : bool
        Whether the user named the column of ids.
    function : ScoreOfPython or None
        The Python function that is the score; None if the spec defines the score.
    """

    name: str
    title: str
    description: str
    alternative: Alternative
    greater_is_better: bool
    count_names: tuple[str, ...]
    columns: Mapping[str, str]
    used_columns: tuple[str, ...]
    parameters: Mapping[str, ParameterValue]
    set_parameters: frozenset[str]
    resolution: Units | Fraction
    g_names: tuple[str, ...]
    h: ExactStatistic = field(repr=False)
    score: RationalStatistic | RealStatistic | ScoreOfPython | None = field(repr=False)
    part_score: RationalStatistic | RealStatistic | ScoreOfPython | None = field(repr=False)
    contrast: Contrast
    repeats: RepeatsInSpec | None
    cluster: str | None
    strata: str | None
    class_column: str | None
    classes: tuple[ClassValue, ...]
    predicts_classes: bool
    weights: Mapping[str, Fraction]
    slices: tuple[str, ...]
    undefined: Fraction | None = field(repr=False)
    ranges: Mapping[str, tuple[Fraction, Fraction]]
    _counts: Mapping[str, Expression] = field(repr=False)
    _g: Mapping[str, Expression] = field(repr=False)
    _scaled_g: Mapping[str, Expression] = field(repr=False)
    _h: Expression | None = field(repr=False)
    _score: Expression | None = field(repr=False)
    _missing: Mapping[str, Expression] = field(repr=False)
    _worst: Mapping[str, Expression] = field(repr=False)
    _best: Mapping[str, Expression] = field(repr=False)
    _source: Document = field(repr=False)
    class_columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pair_term: PairTerm | None = None
    rank_score: RankScore | None = None
    chosen: str = ""
    found: tuple[str, ...] = ()
    id_is_named: bool = False
    function: ScoreOfPython | None = field(default=None, repr=False)

    @cached_property
    def number_columns(self) -> tuple[str, ...]:
        """Columns that the counts only compute with, as numbers or booleans; groups are not among them."""
        if self.depends_on_both:
            return ()
        groups = {self.strata, self.cluster, self.class_column, CLASS}
        names = computed_names(self.expressions) - groups
        return tuple(sorted(self.columns[name] for name in names))

    @property
    def ordered_columns(self) -> tuple[str, ...]:
        """Columns that the counts only compute with, and scores that pairs or ranks of examples order."""
        is_ordered = self.depends_on_both and "score" in self.columns
        return (*self.number_columns, self.columns["score"]) if is_ordered else self.number_columns

    @property
    def truth_columns(self) -> tuple[str, ...]:
        """Columns of numbers in which true and false as text are booleans: elsewhere, they are classes."""
        classes = {self.columns.get("prediction"), self.columns.get("label")}
        return tuple(name for name in self.number_columns if name not in classes)

    @property
    def answer_columns(self) -> tuple[str, ...]:
        """Columns of predictions, if the counts read them, and of labels."""
        return tuple(self.columns[name] for name in ("prediction", "label") if name in self.columns)

    @property
    def example_columns(self) -> tuple[str, ...]:
        """Columns besides the label that belong to the examples, so that they agree in both runs."""
        read = self.pair_term or self.rank_score
        if read is None:
            return ()
        return tuple(self.columns[name] for name in read.example_names if name != "label")

    @property
    def has_score(self) -> bool:
        """Whether a run has a score, so that the statistic contrasts two scores; not in the long form."""
        return self.score is not None or self.rank_score is not None

    @property
    def depends_on_both(self) -> bool:
        """Whether counts of a run depend on the other run: shares of pairs, and codes of scores."""
        return self.pair_term is not None or self.rank_score is not None

    @property
    def has_several_rows(self) -> bool:
        """Whether an example may have several rows, which are exchanged together or separately."""
        return self.repeats not in (None, "rows")

    @property
    def adds_rows(self) -> bool:
        """Whether a unit may have several rows: those of an example, or the examples of a cluster."""
        return self.cluster is not None or self.has_several_rows

    @cached_property
    def count_ranges(self) -> Mapping[str, Range | None]:
        """Least and greatest value of each count on one row, by conditions and `ranges`; None if unknown.

        Where rows pass or fail, and examples by a rule of :data:`OF_PASSES`, unknown ones are from 0 to 1.
        """
        found = {name: range_of(self._counts[name].tree, self.ranges) for name in self.count_names}
        if self.repeats in OF_PASSES:
            found |= {name: (Fraction(0), Fraction(1)) for name, each in found.items() if each is None}
        return found

    @property
    def has_classes(self) -> bool:
        """Whether the score is a mean over classes."""
        return bool(self.classes) or self.class_column is not None

    @property
    def adds_classes(self) -> bool:
        """Whether the score adds up counts of classes, and is not the mean of their scores."""
        return self._score is not None and has_totals(self._score)

    @cached_property
    def tells_classes(self) -> bool:
        """Whether counts only test predictions for equality, with labels or with what labels may equal."""
        prediction, label = map(self.equality, ("prediction", "label"))
        return prediction.is_all and ("label" in prediction.names or prediction.shares(label))

    @cached_property
    def has_positive(self) -> bool:
        """Whether counts compare labels with the class in the parameter :data:`POSITIVE`."""
        return POSITIVE in self.equality("label").parameters

    def equality(self, name: str) -> Equality:
        """Return the comparisons of `name` for equality in the counts."""
        return Equality.of(name, self._counts.values())

    @cached_property
    def compared_texts(self) -> Mapping[str, Sequence[tuple[str, str | None]]]:
        """Texts and listed classes with which counts compare each column, and the parameter of each.

        The value of `positive` is not among them.
        """
        listed = self.classes if self.class_column is None else ()
        texts = compared_texts(self._counts.values(), {CLASS: listed})
        kept = {name: [each for each in texts[name] if each[1] != POSITIVE] for name in sorted(texts)}
        return {name: found for name, found in kept.items() if found}

    @property
    def counts_missing(self) -> bool:
        """Whether the spec defines the counts of a missing prediction."""
        return bool(self._missing)

    @property
    def divides_by_labels(self) -> bool:
        """Whether all divisors of the score are counts that read no prediction."""
        score = self.part_score
        if not isinstance(score, RationalStatistic):
            return False
        used = {
            i for divisor in score.divisors for term in divisor.terms for i, power in enumerate(term) if power
        }
        known = {"label", CLASS if self.has_classes else "label"}
        return all({node.full for node in self._counts[self.count_names[i]].names} <= known for i in used)

    def substitute(self, outcome: Outcome) -> Mapping[str, Expression]:
        """Return the counts of a missing prediction; empty where they are unknown.

        The best prediction is the label, if counts read only predictions and labels.
        """
        said = {"missing": self._missing, "worst": self._worst, "best": self._best}[outcome]
        if said or outcome != "best":
            return said
        read = {node.full for expression in self._counts.values() for node in expression.names}
        if not read <= {"prediction", "label", CLASS if self.has_classes else "label"}:
            return {}

        def as_label(name: Name) -> Name:
            return replace(name, name="label") if name.full == "prediction" else name

        return {name: expression.with_names(as_label) for name, expression in self._counts.items()}

    @cached_property
    def counter_columns(self) -> tuple[str, ...]:
        """Columns that counters of texts and lists read."""
        names = text_columns_of_counters(self.expressions)
        return tuple(self.columns[name] for name in names if name != CLASS or not self.has_classes)

    @cached_property
    def object_columns(self) -> tuple[str, ...]:
        """Columns that may hold objects of numbers: probabilities by class, or grades by item."""
        return tuple(self.columns[name] for name in names_of_objects(self.expressions))

    @cached_property
    def set_columns(self) -> tuple[str, ...]:
        """Columns of sets of items, such as the labels that apply to an example."""
        return tuple(self.columns[name] for name in names_of_sets(self._counts.values()))

    def column_of_count(self, name: str) -> str | None:
        """Return the column whose values are the count, as those of a metric are; None for other counts."""
        count = self._counts.get(name)  # the ranks of clusters have a further count
        return self.columns.get(count.tree.full) if count and isinstance(count.tree, Name) else None

    @cached_property
    def has_counters(self) -> bool:
        """Whether counts, or the counts of a missing prediction, call counters."""
        return has_counters(self.expressions)

    @cached_property
    def looks_up_labels(self) -> bool:
        """Whether counts depend on the labels of all examples in the test."""
        return look_up_labels(self._counts.values())

    @cached_property
    def names_by_class(self) -> Mapping[str, tuple[str, ...]]:
        """Names in counts that may have one column for each class, with the classes that the spec lists."""
        return names_by_class(self._counts.values())

    @cached_property
    def tests_labels(self) -> bool:
        """Whether counts read the column of labels by another name alone, as that of a judge's verdicts."""
        names = {name.full for expression in self._counts.values() for name in expression.names}
        return "label" not in names and self.columns["label"] in {self.columns.get(name) for name in names}

    @cached_property
    def missing_reads_label(self) -> bool:
        """Whether the counts of a missing prediction depend on its label."""
        return any(name.full == "label" for expression in self._substitutes for name in expression.names)

    @cached_property
    def expressions(self) -> tuple[Expression, ...]:
        """All expressions for counts, and for counts of missing predictions."""
        return (*self._counts.values(), *self._substitutes)

    @cached_property
    def _substitutes(self) -> list[Expression]:
        """All expressions for counts of missing predictions."""
        outcomes = get_args(Outcome)
        return [expression for outcome in outcomes for expression in self.substitute(outcome).values()]

    @cached_property
    def read_columns(self) -> Mapping[str, str]:
        """Column of every name in counts."""
        return {**self.columns, CLASS: CLASS_COLUMN} if self.has_classes else self.columns

    @cached_property
    def total_names(self) -> tuple[str, ...]:
        """Names of the score's arguments: the counts, or those of each stratum or class if there are any."""
        return self.count_names if self.rank_score else in_parts(self.count_names, self.weights)

    def pairs(self, candidate: Integers, baseline: Integers) -> tuple[Integers, Integers]:
        """Return g of pairs of examples, with outputs as logged (observed) and exchanged (swapped).

        Parameters
        ----------
        candidate, baseline : ndarray of int64, shape (K, p)
            Counts of both runs, in the order of `total_names`, in integers of their units.

        Returns
        -------
        observed, swapped : ndarray of int64, shape (K, m)

        Raises
        ------
        SpecError
            If g divides by zero or leaves 64 bits.
        InputError
            If the score is a rank statistic.
        """
        if self.rank_score is not None:
            raise InputError(f"`{self.name}` is a rank statistic, not a function of sums over examples")
        return self._joint(candidate, baseline), self._joint(baseline, candidate)

    def _joint(self, u: Integers, v: Integers) -> Integers:
        values = joint_values(self.total_names, u, v)
        result = np.empty((len(u), len(self._scaled_g)), dtype=np.int64)
        for i, (name, expression) in enumerate(self._scaled_g.items()):
            count = self._plain_g.get(name)
            column = integers(expression, values, len(u)) if count is None else values[count]
            if column.dtype == object:
                largest = max(map(abs, column), default=0)
                if largest >= 2**62:
                    raise expression.error(
                        expression.tree, f"`{name}` reaches {largest}, which 64 bits cannot hold"
                    )
            result[:, i] = column
        return result

    @cached_property
    def _plain_g(self) -> Mapping[str, str]:
        """Count that a g reads, by the names of the g that consist of one count of one run."""
        return {name: g.tree.full for name, g in self._scaled_g.items() if isinstance(g.tree, Name)}

    def tested(self, observed: Integers, swapped: Integers, multiplicities: Integers) -> ExactStatistic:
        """Return h for g of these pairs, simplified to a linear function where it is one.

        Arguments that no exchange changes are replaced by their totals. A mean then becomes linear; the mean
        over many parts has denominators that are too large to multiply out.
        """
        if isinstance(self.h, RationalStatistic) and (observed != swapped).any(axis=0).all():
            return self.h.linear or self.h
        linear = linearised(self.h, observed, swapped, multiplicities)
        return self.h if linear is None else linear

    @property
    def score_text(self) -> str | None:
        """Score as an expression of counts, or of the columns of a rank statistic; None in the long form."""
        if self.function is not None:
            return self.function.text
        if self.rank_score is not None:
            return self.rank_score.text
        return None if self._score is None else str(self._score)


def joint_values(names: tuple[str, ...], u: Integers, v: Integers) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the names ``u.<count>`` and ``v.<count>``, from counts of shape (K, p)."""
    sides = {"u": np.asarray(u), "v": np.asarray(v)}
    return {f"{side}.{name}": array[:, i] for side, array in sides.items() for i, name in enumerate(names)}


def class_text(value: object) -> str:
    """Return a class as specs write it, also in names of counts: booleans are ``true`` and ``false``."""
    return str(value).lower() if isinstance(value, bool) else str(value)
