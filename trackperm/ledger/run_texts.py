"""Texts of logged results in a table of runs: names of comparisons, and verdicts of the compared runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trackperm.comparison import Comparison
from trackperm.comparison.inference.verdict import MARKERS, Conclusion
from trackperm.exact.result import EXACT_WITHIN
from trackperm.leaderboards import Leaderboard, Pair
from trackperm.report.fitting_names import fitting_names, shorten_in_the_middle
from trackperm.report.leaderboard import cells
from trackperm.report.numbers import format_difference, format_number
from trackperm.report.phrases import equivalence, one_sided_claim, one_sided_word, pvalue_name, score_digits

_LONGEST = 128
"""Characters of a name that W&B stores; MLflow stores 250."""

_STATISTIC = 32

_WORDS = {"MC": "Monte Carlo"}
_NOT_SHOWN = "is not shown to be"
_VERBS: dict[Conclusion, str] = {
    "better": "beats",
    "worse": "loses to",
    "undecided": "cannot be told from",
    "equivalent": "is equivalent to",
}


@dataclass(frozen=True)
class _PValue:
    """p-value as text, with all that qualifies it.

    Attributes
    ----------
    name : str
        ``p``, ``mid-p`` or ``adj. p``.
    relation : {'=', '≈', '≤'}
        ≈ for Monte Carlo, ≤ for tilted sampling and other upper bounds.
    value : str
        Two significant digits, or more if they are needed to show the verdict.
    remarks : tuple of str
        Such as ``MC``, ``one-sided``, ``uncorrected`` and ``asymptotic``.
    """

    name: str
    relation: str
    value: str
    remarks: tuple[str, ...]

    def short(self) -> str:
        """Return the form of a table: ``p≈0.0033 MC``."""
        return " ".join([f"{self.name}{self.relation}{self.value}", *self.remarks])

    def spoken(self) -> str:
        """Return the form of a sentence: ``p ≈ 0.0033 (Monte Carlo)``."""
        relation = "" if self.relation == "=" else f"{self.relation} "
        remarks = ", ".join(_WORDS.get(remark, remark) for remark in self.remarks)
        name = self.name.replace("adj.", "adjusted")
        return f"{name} {relation}{self.value}{remarks and f' ({remarks})'}"


def comparison_name(comparison: Comparison) -> str:
    """Return the verdict of a comparison as a sentence of at most 128 characters, with its p-value.

    Names of runs are cut in the middle if they are long. The p-value of an equivalence is that of the
    equivalence.
    """
    verdict = comparison.decision
    verb, claim = _VERBS[verdict.word], one_sided_claim(comparison)
    if verdict.word == "undecided" and claim is not None:
        verb = f"{_NOT_SHOWN} {claim} than"
    within = f" within {comparison.margin:g}" if verdict.word == "equivalent" else ""
    shown = f", {_pvalue(comparison).spoken()}"
    if verdict.word == "equivalent":
        shown = f", {equivalence(comparison).replace(' = ', ' ')}"
    if verdict.depends_on_missing:
        shown = ": it depends on missing predictions"
    if share := _share_of_examples(comparison):
        shown += f", {share} examples"
    if verdict.equivalent and verdict.word != "equivalent":
        shown += f", and is equivalent within {comparison.margin:g}"
    rest = f"{within} in {shorten_in_the_middle(_plain(comparison.title), _STATISTIC)}{shown}"
    names = [_plain(name) for name in (comparison.candidate_name, comparison.baseline_name)]
    candidate, baseline = fitting_names(names, _LONGEST - len(f" {verb} {rest}"))
    return f"{candidate} {verb} {baseline}{rest}"


def tells_another_verdict(name: str, comparison: Comparison) -> bool:
    """Whether a name has the verb of another verdict, and none of this comparison's verdict."""
    verbs = {(verb, word) for word, verb in _VERBS.items()} | {(_NOT_SHOWN, "undecided")}
    told = {word for verb, word in verbs if f" {verb} " in name}
    return bool(told) and comparison.decision.word not in told


def comparison_cell(comparison: Comparison) -> str:
    """Return score and verdict of the candidate: ``f1 0.9577 ▲ p=0.0019``.

    ``↓`` after the name of the statistic means that lower is better. Without scores of its own, the run is
    shown with the difference, ``Δ+0.0120``. Where missing predictions are bounded, the score is that of the
    worst case: ``accuracy ≥0.4500``. At its end, ``≡ within 0.05`` says that the difference is smaller than
    the margin as well, and ``n=380 of 400`` that examples were left out.
    """
    _, score = comparison.guaranteed_scores
    shown = f"Δ{format_difference(comparison.difference)}"
    if score is not None:
        shown = format_number(score, extra=score_digits(comparison))
    if score is not None and comparison.bounds and score != comparison.bounds[1].candidate_score:
        shown = f"{'≥' if comparison.statistic.greater_is_better else '≤'}{shown}"
    verdict = comparison.decision
    because = _pvalue(comparison).short()
    if verdict.depends_on_missing:
        because = "depends on missing predictions"
    elif verdict.word == "equivalent":
        because = f"within {comparison.margin:g}"
    elif verdict.equivalent:
        because += f" {MARKERS['equivalent']} within {comparison.margin:g}"
    if share := _share_of_examples(comparison):
        because += f" n={share}"
    name = _name(comparison.statistic.title, is_lower_better=not comparison.statistic.greater_is_better)
    return f"{name} {shown} {verdict.marker} {because}"


def leaderboard_cell(board: Leaderboard, score: float, pair: Pair) -> str:
    """Return score and verdict of a run of a leaderboard: ``f1 0.9577 ▲ adj. p=0.0019``."""
    adjusted = cells.adjusted(board, pair, 2)
    if adjusted[0] not in "≈≤":
        adjusted = f"{'=' if pair.test.error_bound <= EXACT_WITHIN else '≤'}{adjusted}"
    name = _name(board.statistic.title, is_lower_better=not board.statistic.greater_is_better)
    shown = format_number(score, extra=cells.score_digits(board))
    found = [name, shown, pair.marker, f"adj. p{adjusted}", one_sided_word(pair.test.alternative)]
    return " ".join(filter(None, found))


def _share_of_examples(comparison: Comparison) -> str:
    """Return how many of all examples are in the test, ``380 of 400``; empty text if all are."""
    report = comparison.pairing
    return f"{report.n_paired:,} of {report.n_paired + report.n_dropped:,}" if report.n_dropped else ""


def _name(statistic: str, *, is_lower_better: bool) -> str:
    return f"{shorten_in_the_middle(statistic, _STATISTIC)}{' ↓' * is_lower_better}"


def _pvalue(comparison: Comparison) -> _PValue:
    """Return the p-value, adjusted if it was corrected, with two digits."""
    test, corrected = comparison.test, comparison.corrected
    sign = test.relation if corrected is None else corrected.relation
    is_drawn = sign == "≈"
    is_bound = sign == "≤" or not test.error_bound < 1.0
    if corrected is None:
        name, value = pvalue_name(test), comparison.format_pvalue(2)
    else:  # a correction takes the upper ends of p-values
        name, value = "adj. p", corrected.format_pvalue(2, comparison.alpha)
        is_bound = sign == "≤" or test.error_bound > EXACT_WITHIN
    remarks = {
        "MC": is_drawn,
        f"±{100.0 * test.error_bound:.2g}%": not is_drawn
        and not is_bound
        and EXACT_WITHIN < test.error_bound < math.inf,
        one_sided_word(test.alternative): test.alternative != "two-sided",
        "mid-p": corrected is not None and test.mid_p,
        "asymptotic": comparison.pairing.asymptotic is not None,
        "uncorrected": comparison.n_uncorrected is not None,
    }
    relation = "≈" if is_drawn else "≤" if is_bound else "="
    return _PValue(name, relation, value, tuple(word for word, holds in remarks.items() if holds))


def _plain(text: str) -> str:
    """Return a name on one line, without characters that change how the rest is shown."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split()) or "unnamed"
