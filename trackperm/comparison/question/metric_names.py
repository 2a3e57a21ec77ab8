"""Names of statistics from those of metrics and columns, which may have any characters."""

from __future__ import annotations

from trackperm.messages import printable
from trackperm.statistic import builtin_names

_LONGEST_NAME = 59  # of 64, with room for `mean_`
_LONGEST_TITLE = 200


def names_in_spec(name: str, title: str) -> dict[str, str]:
    """Return the entry `name` of a spec, and the entry `title` if the metric is called otherwise.

    `name` has letters, digits, ``_``, ``-`` and ``.`` alone, since it begins the names of logged metrics.
    """
    name, title = name[:_LONGEST_NAME], printable(" ".join(title.split()))[:_LONGEST_TITLE]
    if not name or name in builtin_names():
        return {"name": f"mean_{name}"}
    return {"name": name} if title in ("", name) else {"name": name, "title": title}
