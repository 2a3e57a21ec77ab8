"""Explanation of a comparison: in plain words on its page, and as the Markdown of a tracker."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trackperm.comparison import Comparison
from trackperm.exact import PermutationTest
from trackperm.exact.intervals import Interval
from trackperm.report import phrases
from trackperm.report.drawings.text_bar import text_bar
from trackperm.report.formatting import escape_markdown, shorten
from trackperm.report.headline import headline
from trackperm.report.notes import notes_of
from trackperm.report.plain_words import plain_words

_DESCRIPTION_LIMIT = 8_000  # MLflow cuts longer tags without notice
_PROSE_LIMIT = 1_000


def markdown(comparison: Comparison, remarks: Sequence[str] = ()) -> str:
    """Render a description for a tracker, with further sentences: verdict first, at most 8,000 characters.

    Names in it cannot act as Markdown.
    """
    side = phrases.sides(comparison.test.alternative)
    table = [
        (
            f"{phrases.pvalue_name(comparison.test)}-value",
            f"{phrases.bare_pvalue(comparison)} ({phrases.how_certain(comparison)}, {side})",
        ),
        ("equivalence", phrases.equivalence(comparison)),
        ("correction", phrases.correction(comparison)),
        ("chosen", comparison.statistic.chosen),
        *phrases.scores(comparison),
        *phrases.intervals(comparison),
        (f"{phrases.unit(comparison)}s", f"{comparison.n_examples:,} ({phrases.discordance(comparison)})"),
    ]
    bullets = [_sentence(shorten(note, _PROSE_LIMIT)) for note in (*notes_of(comparison), *remarks)]
    parts = [
        f"**{comparison.marker} {escape_markdown(headline(comparison))}**",
        lead(comparison),
        "\n".join(
            [
                f"| {escape_markdown(comparison.title)}{phrases.direction(comparison.statistic)} | |",
                "|---|---|",
                *(f"| {name} | {escape_markdown(value)} |" for name, value in table if value),
            ]
        ),
        escape_markdown(" ".join(explanation(comparison))),
        "\n".join(f"- {escape_markdown(bullet)}" for bullet in bullets),
        "\n".join(f"- {escape_markdown(opinion)}" for opinion in phrases.opinions(comparison)),
        escape_markdown(shorten(comparison.signature, _PROSE_LIMIT)),
    ]
    found = "\n\n".join(part for part in parts if part)
    return found if len(found) <= _DESCRIPTION_LIMIT else found[: _DESCRIPTION_LIMIT - 1].rstrip("\\") + "…"


def lead(comparison: Comparison) -> str:
    """Return the result in plain words and as a bar of characters, in Markdown."""
    words = escape_markdown(plain_words(comparison))
    return "\n".join([words, "", "```text", *text_bar(comparison), "```"])


def explanation(comparison: Comparison) -> list[str]:
    """Return sentences about what was tested, and what the test does not cover."""
    alternative = comparison.test.alternative
    statistic = comparison.statistic.title
    if comparison.baseline_score is not None and comparison.candidate_score is not None:
        quantity = f"the difference in {statistic} (candidate minus baseline)"
    else:
        quantity = f"the statistic {statistic}"
    extreme = {
        "two-sided": "at least as far from zero as",
        "less": "at most",
        "greater": "at least",
    }[alternative]
    description = shorten(comparison.statistic.description, _PROSE_LIMIT)
    chosen = comparison.statistic.chosen
    sentences = [f"{statistic}: {_sentence(description)}"] if description else []
    if chosen:
        sentences.append(f"It was chosen {'' if chosen == 'by default' else 'as '}{chosen}.")
    sentences += [
        f"The null hypothesis is that {comparison.null_hypothesis}: exchanging them between the runs"
        " would not change their distribution.",
        f"{phrases.pvalue_name(comparison.test)} {_share(comparison.test)} in which {quantity} is {extreme}"
        " the observed one" + ("; values equal to it count half." if comparison.test.mid_p else "."),
    ]
    if comparison.depends_on_missing:
        sentences.append("The data do not decide the verdict: it depends on the missing predictions.")
    elif comparison.decision.sign == "undecided":
        sought = phrases.one_sided_claim(comparison)
        shown = "neither run is shown to be better; this does not prove that they are equally good"
        if sought is not None:
            shown = (
                f"the candidate is not shown to be {sought}, and a one-sided test cannot show the opposite"
            )
        sentences.append(
            f"Here p is {_not(comparison.test)} below {comparison.alpha:g}{_corrected(comparison)},"
            f" so {shown}."
        )
    else:
        sentences.append(
            f"Here p is below {comparison.alpha:g}{_corrected(comparison)}, so chance is a poor"
            " explanation; the p-value does not show whether the difference is large enough to matter."
        )
    sentences += _size(comparison)
    if comparison.n_discordant > 0:
        reach = "" if phrases.is_within_reach(comparison) else f", so it cannot be below {comparison.alpha:g}"
        sentences.append(_sentence(phrases.smallest_p_sentence(comparison) + reach))
    return [*sentences, f"The test is about {phrases.SCOPE}."]


def _share(test: PermutationTest) -> str:
    """Complete "p ...": the share of exchanges that it equals, bounds or estimates."""
    if test.method == "monte-carlo":
        return f"is an estimate, from {test.n_samples:,} random exchanges, of the share of all exchanges"
    if test.method == "tilted":
        return (
            f"is a valid p-value from {test.n_samples:,} random exchanges, which stands for the share of all"
            " exchanges"
        )
    bound = "an upper bound of " if test.relation == "≤" else ""
    return f"is {bound}the share of all exchanges"


def _not(test: PermutationTest) -> str:
    """Deny that p is below a level; methods that are not exact know a bound or an estimate of the share."""
    return "not" if test.relation == "=" else "not shown to be"


def _corrected(comparison: Comparison) -> str:
    """Return the correction of the p-value, as the end of a clause."""
    found = comparison.corrected
    if comparison.n_uncorrected is not None:
        return f", without correction, although it is one of {comparison.n_uncorrected} tests"
    if found is None:
        return ""
    return f" after correction for {found.n_tests} tests ({found.title}, {found.controls})"


def _size(comparison: Comparison) -> list[str]:
    """Return sentences about the size of the difference."""
    sentences = []
    if comparison.interval is not None:
        alone = "" if comparison.corrected is None else "; it is not corrected for the other tests"
        sentences.append(
            _sentence(
                f"{phrases.confidence(comparison.interval)} ({comparison.interval.method}): "
                f"{comparison.interval.note}{_disagreement(comparison.test, comparison.interval)}{alone}"
            )
        )
    sizes, unit = comparison.effect_sizes, phrases.unit(comparison)
    if phrases.is_range(comparison):
        sentences.append("Sizes of the effect are not shown, for they depend on the missing predictions.")
    elif sizes.odds is not None and sizes.odds_interval is not None:
        low, high = sizes.odds_interval.low, sizes.odds_interval.high
        for_each = f"The odds of better to worse discordant {unit}s are {sizes.odds:.3g}"
        if math.isinf(sizes.odds):
            for_each = f"No discordant {unit} is worse, so the odds of better to worse cannot be estimated"
        range_ = f"{low:.3g} or more" if math.isinf(high) else f"{low:.3g} to {high:.3g}"
        sentences.append(f"{for_each} ({phrases.confidence(sizes.odds_interval)} {range_}).")
    if sizes.cohens_dz is not None and not phrases.is_range(comparison):
        sentences.append(
            f"The mean difference is {abs(sizes.cohens_dz):.3g} standard deviations of the differences."
        )
    if comparison.margin is not None:
        sentences.append(_margin(comparison, comparison.margin))
    return sentences


def _margin(comparison: Comparison, margin: float) -> str:
    """Return a sentence on whether the difference is within the margin, and what shows it."""
    size, decision = comparison.size, comparison.decision
    if decision.equivalent is None:
        return f"The difference is not shown to be within the margin of {margin:g}: {decision.lack}."
    is_, show = ("is", "show") if decision.equivalent else ("is not", "do not show")
    if (deciding := phrases.deciding_interval(comparison)) is None:
        return f"The difference {is_} within ±{margin:g}: {size.unseen}."
    level = f"{100 * (1 - 2 * comparison.alpha):.10g} %"
    return (
        f"The {level} interval {phrases.ends(deciding)} {is_} within ±{margin:g}, so the two one-sided"
        f" tests at level {comparison.alpha:g} {show} equivalence."
    )


def _disagreement(test: PermutationTest, interval: Interval) -> str:
    """Return a clause on how the interval and the reported p-value may disagree, if its note has none."""
    if interval.approximate:
        return ""
    if test.mid_p:
        return "; it agrees with the exact p-value, and may disagree with the mid-p-value"
    if test.method == "monte-carlo":
        return "; it may disagree with the estimated p-value"
    return ""


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:] + ("" if note.endswith(".") else ".")
