"""Facts of logs about their rows and data sets, as readers of logs collect them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trackperm.tables.table import ExampleTable

_DIGEST = re.compile(" [0-9a-f]{8,36}$")
_OF_TRACES = "mlflow.genai.evaluate"


def are_traces(tables: Iterable[ExampleTable]) -> bool:
    """Whether the rows of all tables are traces of an evaluation in MLflow."""
    return all(table.facts.get("evaluation") == _OF_TRACES for table in tables)


def dataset_names(fact: str) -> set[str]:
    """Return the names of data sets without the digest that follows each of them in MLflow.

    Examples
    --------
    >>> dataset_names("faq 1f2e3d4c")
    {'faq'}
    """
    return {_DIGEST.sub("", each) for each in fact.split(", ")}
