"""What one job may use, and what the environment says of it."""

from __future__ import annotations

from dataclasses import dataclass

from trackperm.settings import positive_setting

PENDING_PER_PAGE = 16
PENDING_PER_USER = 64
PENDING_PER_ADDRESS = 384
PENDING_IN_ALL = 512
GONE_SECONDS = 90.0
"""After so long without a word of it, a page is gone, and so are its jobs.

A page asks every two seconds, once a minute where a browser has it in the background for long, and says when
it is closed. If it was only slow, it begins again.
"""

MOST_RUNS = 200


@dataclass(frozen=True)
class Limits:
    """The limits of a job.

    Attributes
    ----------
    seconds : float
        Time that it may run (``TRACKPERM_JOB_SECONDS``).
    megabytes : int
        Memory that it may take (``TRACKPERM_JOB_MB``).
    artifact_megabytes : int
        Size of all that it may read from the server (``TRACKPERM_ARTIFACT_MB``).
    """

    seconds: float = 300.0
    megabytes: int = 4096
    artifact_megabytes: int = 1024

    @classmethod
    def of_environment(cls) -> Limits:
        """Read the limits.

        Raises
        ------
        InputError
            If one is not a positive number.
        """
        return cls(
            seconds=float(positive_setting("TRACKPERM_JOB_SECONDS", 300)),
            megabytes=positive_setting("TRACKPERM_JOB_MB", 4096),
            artifact_megabytes=positive_setting("TRACKPERM_ARTIFACT_MB", 1024),
        )
