"""Limits of a job, from the environment, and of the jobs that may be pending."""

from __future__ import annotations

from dataclasses import dataclass

from trackperm.settings import positive_setting

PENDING_PER_PAGE = 16
"""A page runs one job at a time; sixteen allow for impatient clicks and reloads."""

PENDING_PER_USER = 64
"""Four such pages of one user."""

PENDING_PER_ADDRESS = 384
"""More than fifty visitors behind one proxy need, and less than the limit in all: others find room."""

PENDING_IN_ALL = 512
"""With two processes and a second per job, the last job waits for about four minutes."""

GONE_SECONDS = 90.0
"""Seconds without a request after which a page counts as closed, and its jobs are dropped.

A page asks every two seconds, and once a minute if it has been in the background for long. It also reports
when it is closed. A page that was only slow starts its job again.
"""

MOST_RUNS = 200
"""Runs of one leaderboard: 200 runs make 19,900 pairs; the command line has no limit."""


@dataclass(frozen=True)
class Limits:
    """Limits of one job.

    Attributes
    ----------
    seconds : float
        Running time (``TRACKPERM_JOB_SECONDS``).
    megabytes : int
        Memory (``TRACKPERM_JOB_MB``).
    artifact_megabytes : int
        Total size of what the job reads from the server (``TRACKPERM_ARTIFACT_MB``).
    """

    seconds: float = 300.0
    megabytes: int = 4096
    artifact_megabytes: int = 1024

    @classmethod
    def of_environment(cls) -> Limits:
        """Read the limits from the environment.

        Raise InputError if one of them is not a positive number.
        """
        return cls(
            seconds=float(positive_setting("TRACKPERM_JOB_SECONDS", 300)),
            megabytes=positive_setting("TRACKPERM_JOB_MB", 4096),
            artifact_megabytes=positive_setting("TRACKPERM_ARTIFACT_MB", 1024),
        )
