"""Button on MLflow's Compare pages: a script element at the end of MLflow's page.

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
"""Name of MLflow's view that serves its page."""

_END = b"</body>"
_CONDITIONS = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_RANGE", "HTTP_IF_RANGE")


def install(app: Flask, prefix: str) -> bool:
    """Add the script of the button to MLflow's page, below the static prefix of all routes.

    Return False if the button is switched off, or `app` does not serve MLflow's page.
    """
    view = app.view_functions.get(_VIEW)
    if os.environ.get(SWITCH, "on").lower() == "off" or view is None:
        return False
    element = f'<script src="{escape(prefix)}/trackperm/static/button.js" defer></script>'.encode()

    @wraps(view)
    def serve(*args: object, **kwargs: object) -> ResponseReturnValue:
        for condition in _CONDITIONS:  # conditions on the file's date ignore the added script
            request.environ.pop(condition, None)
        response = app.make_response(app.ensure_sync(view)(*args, **kwargs))
        return _with_script(response, element)

    app.view_functions[_VIEW] = serve
    return True


def _with_script(response: Response, element: bytes) -> Response:
    """Add `element` to an HTML page; return other responses unchanged."""
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
