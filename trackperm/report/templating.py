"""The one place where templates become pages: everything is escaped unless a template says otherwise."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **context: object) -> str:
    """Fill the template of that name with `context`."""
    return environment("trackperm.report").get_template(template).render(**context)


@cache
def environment(package: str) -> Environment:
    """Return the templates in the folder ``templates`` of `package`."""
    # What is printed or logged as text needs no templates.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
