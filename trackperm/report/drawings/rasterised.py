"""Pictures as PNG, drawn from SVG by vl-convert, the optional extra ``plots``."""

from __future__ import annotations

import importlib.util

from trackperm.errors import MissingDependencyError

SCALE = 1.5
"""Pixels per unit of SVG."""


def png(svg: str) -> bytes:
    """Render an SVG document as PNG, without a browser or network.

    Raises
    ------
    MissingDependencyError
        If vl-convert is not installed.
    """
    if importlib.util.find_spec("vl_convert") is None:
        raise MissingDependencyError(
            "pictures need `vl-convert-python`, which is not installed", hint="pip install 'trackperm[plots]'"
        )
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg, scale=SCALE))
