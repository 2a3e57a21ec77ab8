"""The button on MLflow's own Compare pages: one script element at the end of the page that MLflow serves.

``TRACKPERM_BUTTON=off`` leaves the page as it is.
"""

from __future__ import annotations

import os
from functools import wraps

from flask import Flask, Response, request
from flask.typing import ResponseReturnValue
from markupsafe import escape

SWITCH = "TRACKPERM_BUTTON"
_VIEW = "serve"
"""MLflow's name for the view of its page."""

_END = b"</body>"
_CONDITIONS = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_RANGE", "HTTP_IF_RANGE")


def install(app: Flask, prefix: str) -> bool:
    """Let the page of MLflow load the script of the button.

    Parameters
    ----------
    app : flask.Flask
        MLflow's application.
    prefix : str
        What stands before every path of the server; empty for nothing.

    Returns
    -------
    bool
        False where the switch is off, or `app` has no such page: the pages of trackperm do without it.
    """
    view = app.view_functions.get(_VIEW)
    if os.environ.get(SWITCH, "on").lower() == "off" or view is None:
        return False
    element = f'<script src="{escape(prefix)}/trackperm/static/button.js" defer></script>'.encode()

    @wraps(view)
    def serve(*args: object, **kwargs: object) -> ResponseReturnValue:
        for condition in _CONDITIONS:  # the file is older than the script in it
            request.environ.pop(condition, None)
        response = app.make_response(app.ensure_sync(view)(*args, **kwargs))
        return _with_script(response, element)

    app.view_functions[_VIEW] = serve
    return True


def _with_script(response: Response, element: bytes) -> Response:
    """Add `element` to a page; return anything else as it is."""
    if response.status_code != 200 or response.mimetype != "text/html":
        return response
    response.direct_passthrough = False
    body = response.get_data()
    before, end, after = body.rpartition(_END)
    if not end:
        return response
    response.set_data(before + element + end + after)
    for name in ("ETag", "Last-Modified", "Accept-Ranges"):
        response.headers.pop(name, None)
    response.headers["Cache-Control"] = "no-cache"
    return response
