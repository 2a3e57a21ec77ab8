"""Page of a comparison: one HTML file that needs no network, for MLflow, W&B, mail or disk."""

from __future__ import annotations

import math

from trackperm.comparison import Comparison
from trackperm.errors import CapacityError
from trackperm.report import charts, description, discordant_examples, text
from trackperm.report.effect_bar import effect_bar
from trackperm.report.plain_words import plain_words
from trackperm.report.templating import render


def html(comparison: Comparison) -> str:
    """Render a comparison as one page that needs no network and follows the reader's dark setting.

    For lines of text use :func:`trackperm.report.text.lines`; to write the page to a tracker,
    :func:`trackperm.log`.

    Parameters
    ----------
    comparison : Comparison
        Result of :func:`trackperm.compare`.

    Raises
    ------
    MissingDependencyError
        If the libraries of ``trackperm[plots]`` are not installed.

    Examples
    --------
    >>> n_written = Path("report.html").write_text(trackperm.report.html(comparison), encoding="utf-8")
    """
    try:
        chart = charts.embedded(charts.pmf_chart(comparison))
        del chart["spec"]["title"]  # the page has its own headline
        chart["caption"] = caption(comparison)
    except CapacityError as error:
        chart = {"refusal": error.message}
    return render(
        "page.html",
        marker=comparison.marker,
        verdict=comparison.verdict,
        headline=text.headline(comparison),
        words=plain_words(comparison),
        bar=effect_bar(comparison),
        narrow_bar=effect_bar(comparison, narrow=True),
        scope=text.scope(comparison),
        facts=facts(comparison),
        notes=text.notes(comparison),
        chart=chart,
        explanation=description.explanation(comparison),
        pairing=comparison.pairing.lines(),
        second_opinions=comparison.second_opinions,
        discordant=discordant_examples.viewable(comparison),
        n_discordant=comparison.n_discordant,
        signature=comparison.signature,
    )


def facts(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return name, value and small print of every number at the top of the page."""
    details = {
        "baseline": _source(comparison.baseline_name, comparison.baseline),
        "candidate": _source(comparison.candidate_name, comparison.candidate),
        "difference": f"candidate minus baseline{text.direction(comparison.statistic)}",
        "observed": text.direction(comparison.statistic).strip(),
    }
    test = comparison.test
    certainty = text.how_certain(comparison)
    if 0 < test.error_bound < 1:
        certainty += f", relative error at most {test.error_bound:.1g}"
    return [
        *((name, value, details.get(name, "")) for name, value in text.scores(comparison)),
        (
            f"{text.pvalue_name(test)}-value",
            text.bare_pvalue(comparison),
            f"{certainty}, {test.alternative}",
        ),
        *_correction(comparison),
        *_interval(comparison),
        ("examples", f"{test.n_examples}", text.discordance(comparison)),
    ]


def _correction(comparison: Comparison) -> list[tuple[str, str, str]]:
    found = comparison.corrected
    if comparison.n_uncorrected is not None:
        return [("correction", "none", text.correction(comparison))]
    if found is None:
        return []
    detail = f"{found.title} over {found.n_tests} tests; {found.controls} under {found.valid_under}"
    return [("adjusted p-value", text.adjusted_pvalue(comparison), detail)]


def _interval(comparison: Comparison) -> list[tuple[str, str, str]]:
    found = comparison.interval
    if found is None:
        return []
    return [(text.confidence(found), text.ends(found), f"{found.method}, {found.relation} with the test")]


def caption(comparison: Comparison) -> str:
    """Return the caption of the chart: what it shows, where the p-value is in it, and how to move it."""
    return (
        "The bars show the distribution of the statistic under random exchanges of the two runs' outputs; "
        f"{_sum(comparison)}. Drag to move the axis, Shift and wheel to zoom, double-click to reset."
    )


def _sum(comparison: Comparison) -> str:
    pvalue, error = comparison.pvalue, comparison.null_distribution.mass_error_bound
    if comparison.test.mid_p:
        return "of the orange region, values equal to the observed one count half in the mid-p-value"
    if pvalue <= error or comparison.error_bound >= 1:
        return "the p-value is the probability of the orange region"
    error += comparison.error_bound * pvalue
    within = f", within 1e{math.ceil(math.log10(error))}" if error else ""
    return f"the orange parts add up to the p-value{within}"


def _source(name: str, origin: str) -> str:
    return name if name == origin else f"{name} ({origin})"
