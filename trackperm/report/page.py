"""The full page of one comparison: a single file that needs no network, for MLflow, W&B, mail or disk."""

from __future__ import annotations

import math

from trackperm.comparison import Comparison
from trackperm.report import charts, discordant, text
from trackperm.report.templating import render


def html(comparison: Comparison) -> str:
    """Render `comparison` as a page; see :func:`trackperm.report.html`."""
    chart = charts.embedded(charts.pmf_chart(comparison))
    del chart["spec"]["title"]  # the page has its own headline
    return render(
        "page.html",
        marker=comparison.marker,
        verdict=comparison.verdict,
        headline=text.headline(comparison),
        scope=text.SCOPE,
        facts=_facts(comparison),
        notes=text.notes(comparison),
        statistic=comparison.statistic.name,
        chart=chart,
        explanation=text.explanation(comparison),
        pairing=comparison.pairing.lines(),
        discordant=discordant.viewable(comparison),
        n_discordant=comparison.n_discordant,
        signature=comparison.signature,
    )


def _facts(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Name, value and small print of every number at the top of the page."""
    details = {
        "baseline": f"{comparison.baseline_name} ({comparison.baseline})",
        "candidate": f"{comparison.candidate_name} ({comparison.candidate})",
        "difference": "candidate minus baseline",
    }
    test = comparison.test
    certainty = text.certainty(test.error_bound)
    if math.isfinite(test.error_bound):
        certainty += f", relative error at most {test.error_bound:.1g}"
    return [
        *((name, value, details.get(name, "")) for name, value in text.scores(comparison)),
        ("p-value", text.format_pvalue(test.pvalue, test.log10_pvalue), f"{certainty}, {test.alternative}"),
        ("examples", f"{test.n_examples}", text.discordance(comparison)),
    ]
