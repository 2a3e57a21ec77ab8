"""Metrics that a log computes over all its examples together, such as BLEU: what is said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trackperm.errors import InputError
from trackperm.messages import listed
from trackperm.tables.table import ExampleTable


def whole_log_metrics(tables: Sequence[ExampleTable]) -> dict[str, str]:
    """Map metrics of whole logs to built-in statistics, or to empty text if the runs share none."""
    found: dict[str, str] = {}
    for table in tables:
        for name, statistic in table.whole_log_metrics.items():
            found[name] = statistic if found.get(name, statistic) == statistic else ""
    return found


def notes_on_whole_logs(tables: Sequence[ExampleTable]) -> list[str]:
    """Say which metrics are not compared because they have no number for each example."""
    metrics = whole_log_metrics(tables)
    if not metrics:
        return []
    are = "which is computed" if len(metrics) == 1 else "which are computed"
    options = [f"`--statistic {statistic}`" for statistic in metrics.values() if statistic]
    way = f"; {' or '.join(options)} compares predictions with labels by it" if options else ""
    return [f"look: not compared: {listed(metrics)}, {are} over all samples together{way}"]


def require_metrics_of_examples(tables: Sequence[ExampleTable]) -> None:
    """Refuse logs of which all metrics are computed over all examples together.

    Equality of predictions and labels, which is compared without metrics, answers another question.

    Raises
    ------
    InputError
        If a log has such metrics.
    """
    metrics = whole_log_metrics(tables)
    if not metrics:
        return
    origin = next(table.origin for table in tables if table.whole_log_metrics)
    raise InputError(
        f"no metric of `{origin}` has a number for each sample: {listed(metrics)}"
        f" {'is' if len(metrics) == 1 else 'are'} computed over all samples together",
        hint=_ways_to_compare(metrics),
    )


def require_metric_of_examples(name: str, tables: Sequence[ExampleTable]) -> None:
    """Refuse a metric, named by the user, that is computed over all examples together.

    Raises
    ------
    InputError
        If it is such a metric.
    """
    metrics = whole_log_metrics(tables)
    if name in metrics:
        raise InputError(
            f"the metric `{name}` is computed over all samples together; expected a metric with a number for"
            " each sample",
            hint=_ways_to_compare({name: metrics[name]}),
        )


def _ways_to_compare(metrics: Mapping[str, str]) -> str:
    """Name the statistics that compare metrics of whole logs, and the metrics without a statistic."""
    options = " ".join(f"--statistic {statistic}" for statistic in metrics.values() if statistic)
    without = [name for name, statistic in metrics.items() if not statistic]
    sentences = [f"`{options}` computes this from predictions and labels."] if options else []
    if without:
        sentences.append(f"no built-in statistic computes {listed(without)} from such a log.")
    return " ".join(sentences)
