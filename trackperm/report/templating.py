"""Rendering of templates, which escape all values unless a template marks them as safe."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **context: object) -> str:
    """Render a template of the report with the values in `context`."""
    return environment("trackperm.report").get_template(template).render(**context)


@cache
def environment(package: str) -> Environment:
    """Return the environment of the folder ``templates`` of `package`."""
    # text output does not need jinja2
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
