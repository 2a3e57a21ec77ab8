"""The one place where templates become pages: everything is escaped unless a template says otherwise."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(template: str, **context: object) -> str:
    """Fill the template of that name with `context`."""
    return _environment().get_template(template).render(**context)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("trackperm.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
