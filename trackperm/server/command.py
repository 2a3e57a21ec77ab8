"""Module that ``mlflow server --app-name trackperm`` imports, in its command and in each server process.

The command prepares the environment, so that an error occurs once and not in each process. ``app`` is an
application and not a factory: MLflow cannot tell every WSGI server to call a factory.
"""

from __future__ import annotations

import os
from typing import Any

from trackperm.server.app import create_app, prepare

app: Any = None
"""The application; None in the command itself."""

if "_MLFLOW_SGI_NAME" in os.environ:
    app = create_app()
else:
    prepare()
