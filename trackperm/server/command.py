"""The application that ``mlflow server --app-name trackperm`` serves.

MLflow's command imports this module before it starts processes that serve, and each of them imports it again.
What would fail in each of them fails in the command, once. It is an application and no factory of one:
MLflow cannot tell every WSGI server to call a factory.
"""

from __future__ import annotations

import os
from typing import Any

from trackperm.server.app import create_app, prepare

app: Any = None
"""None in the command itself."""

if "_MLFLOW_SGI_NAME" in os.environ:
    app = create_app()
else:
    prepare()
