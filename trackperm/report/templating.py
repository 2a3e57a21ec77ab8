"""Rendering of templates, which escape all values unless a template marks them as safe."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

_NUMBER = re.compile(
    r"((?:\bmid-)?\bp [=≈<] [\d.]+(?:e[+-]\d+)?|\b\d[\d.]*e[+-]\d+|\b\d+ %|\b[\d.]+% CI"
    r"|\[[+-]?[\d.∞]+(?:e[+-]\d+)?, [+-]?[\d.∞]+(?:e[+-]\d+)?\])"
)


def render(template: str, **context: object) -> str:
    """Render a template of the report with the values in `context`."""
    return environment("trackperm.report").get_template(template).render(**context)


@cache
def environment(package: str) -> Environment:
    """Return the environment of the folder ``templates`` of `package`."""
    # text output does not need jinja2
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["whole"] = _whole
    return found


def _whole(words: str) -> str:
    """Escape words, and mark what reads as one number, so that no line breaks inside it."""
    from markupsafe import Markup

    parts = (
        Markup('<span class="whole">{}</span>').format(part) if i % 2 else Markup.escape(part)
        for i, part in enumerate(_NUMBER.split(words))
    )
    return Markup("").join(parts)
