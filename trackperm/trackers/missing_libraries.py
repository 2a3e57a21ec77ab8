"""Libraries of object stores, which trackers import when artifacts lie there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trackperm.errors import MissingDependencyError

_INSTALL = {
    "boto3": "pip install 'trackperm[s3]'",
    "botocore": "pip install 'trackperm[s3]'",
    "google": "pip install 'trackperm[gcs]'",
    "azure": "pip install 'trackperm[azure]'",
}
_REQUIRED = re.compile(r"requires? the (\w+) library")  # as wandb says it


def missing_library(causes: Iterable[BaseException], doing: str) -> MissingDependencyError | None:
    """Describe the library without which a tracker could not go on; None where another thing was wrong.

    Parameters
    ----------
    causes : iterable of BaseException
        What the tracker raised, and what that came from.
    doing : str
        Completes "... is needed for", such as ``reading run `3f2a```.
    """
    for cause in causes:
        name = cause.name if isinstance(cause, ModuleNotFoundError) else None
        said = _REQUIRED.search(str(cause))
        library = (name or (said[1] if said else "")).partition(".")[0]
        if library:
            known = _INSTALL.get(library, f"pip install {library}")
            called = "boto3" if library == "botocore" else library
            return MissingDependencyError(
                f"`{called}`, which is not installed, is needed for {doing}", hint=known
            )
    return None
