"""Exceptions of trackperm, each also the built-in exception that it refines.

::

    TrackpermError
    ├── InputError (ValueError)          arguments, options and files that cannot be used
    │   ├── SpecError                    a statistic or policy file
    │   ├── UndefinedStatisticError      a statistic without a value
    │   │   └── UntestableError
    │   ├── PairingError                 examples of two runs
    │   │   └── DisjointError
    │   ├── SourceError                  per-example data
    │   │   └── ChoiceError
    │   ├── NoBaselineError              the baseline of a candidate
    │   │   └── IsBaselineError
    │   ├── NotConfiguredError           a tracker that nothing names
    │   ├── NoSuchAliasError             an alias in a model or artifact registry
    │   ├── QueueError                   the queue of comparisons
    │   ├── HealthError                  the health file of a watcher
    │   ├── SignatureError               the signature of a webhook
    │   └── ReplayError                  a webhook that arrived before
    ├── InputTypeError (TypeError)
    ├── CapacityError (MemoryError)      limits of memory, disk and time
    │   ├── StorageError (OSError)       files that cannot be written
    │   └── TooManyJobsError
    ├── MissingDependencyError (ImportError)
    ├── TrackerError (RuntimeError)      MLflow, W&B
    │   └── PermissionDeniedError
    ├── RefusedRequestError              an HTTP request that is answered by an error status
    ├── LeaseLostError                   a queue row that another worker claimed
    └── FaultError                       a fault of trackperm itself

The command line prints a :class:`TrackpermError` as one message and exits with its ``exit_code``.

Seven more exceptions are signals: one function raises them, another one catches them, and no caller of
trackperm sees them. They are at the end of this module. Two refusals of YAML derive from PyYAML's own errors,
and are in :mod:`trackperm.statistic.document`.
"""

from __future__ import annotations

from collections.abc import Sequence

from trackperm.option_names import in_python


class TrackpermError(Exception):
    """Base class of all errors that trackperm raises on purpose.

    Parameters
    ----------
    message : str
        What was found, where, and what was expected. It starts in lower case and has names in backticks. It
        names options as the command line does; see :mod:`trackperm.option_names`.
    hint : str, optional
        The next step, printed after a blank line.

    Examples
    --------
    >>> print(InputError("`alpha` is 2; expected a number between 0 and 1", hint="`--alpha 0.05`."))
    `alpha` is 2; expected a number between 0 and 1
    <BLANKLINE>
    Hint: `alpha=0.05`.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Return message and hint for readers in Python, with options as keyword arguments."""
        return in_python(self.on_command_line())

    def on_command_line(self) -> str:
        """Return message and hint for readers of the command line."""
        return self.message if self.hint is None else f"{self.message}\n\nHint: {self.hint}"


class InputError(TrackpermError, ValueError):
    """An argument, option or file content cannot be used."""


class SpecError(InputError):
    """A statistic spec or a policy file is not valid; the message has its file, line and column."""


class UndefinedStatisticError(InputError):
    """A statistic has no value after some exchanges of outputs."""


class UntestableError(UndefinedStatisticError):
    """A statistic has no value, or always the same one, after every exchange of outputs."""


class PairingError(InputError):
    """Examples of two runs cannot be proved to belong together."""


class DisjointError(PairingError):
    """Two runs have no example in common."""


class LargeScoreError(InputError):
    """A score is so large that the differences of other examples are lost beside it."""


class SourceError(InputError):
    """A file or artifact does not hold readable per-example data."""


class ChoiceError(SourceError):
    """A file has several parts that must not be mixed, and none of them was chosen.

    Parameters
    ----------
    message, hint : str
        As for :class:`TrackpermError`.
    what : str
        What a part is called, such as ``filter``.
    parts : sequence of str
        Names of the parts.
    """

    def __init__(self, message: str, *, what: str, parts: Sequence[str], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.what = what
        self.parts = tuple(parts)


class NoBaselineError(InputError):
    """The rule of a policy finds no baseline for a candidate."""


class IsBaselineError(NoBaselineError):
    """A candidate is itself the baseline by the rule of its policy."""


class NotConfiguredError(InputError):
    """No server or store of a tracker is configured."""


class NoSuchAliasError(InputError):
    """No version in the registry has an alias yet."""


class QueueError(InputError):
    """The queue cannot be read or written at the moment."""


class HealthError(InputError):
    """A health file cannot be written."""


class SignatureError(InputError):
    """A webhook is not proved to come from a sender who knows the secret, at this time."""


class ReplayError(InputError):
    """A webhook was received before."""


class InputTypeError(TrackpermError, TypeError):
    """An argument or column has the wrong type."""


class CapacityError(TrackpermError, MemoryError):
    """A computation exceeds a limit of memory, disk or time."""


class StorageError(CapacityError, OSError):
    """A file cannot be written, for example on a full disk; the next attempt may succeed."""


class TooManyJobsError(CapacityError):
    """A visitor, or all visitors together, have too many pending jobs."""


class MissingDependencyError(TrackpermError, ImportError):
    """An optional library that the request needs is not installed."""


class EngineError(TrackpermError, RuntimeError):
    """A data frame engine failed, or cannot be reached."""

    exit_code = 3


class TrackerError(TrackpermError, RuntimeError):
    """A tracker failed, refused a request, or cannot be reached."""

    exit_code = 3


class PermissionDeniedError(TrackerError):
    """A tracker does not let the user read or write something."""


class RefusedRequestError(TrackpermError):
    """An HTTP request is answered by an error status.

    Parameters
    ----------
    status : int
        Status code of HTTP.
    message, hint : str
        As for :class:`TrackpermError`.
    """

    def __init__(self, status: int, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class LeaseLostError(TrackpermError):
    """A worker changes a queue row that is gone, or that another worker claimed in the meantime."""


class FaultError(TrackpermError):
    """A fault of trackperm itself; no result has its exit code."""

    exit_code = 70

    @classmethod
    def of(cls, error: Exception) -> FaultError:
        """Describe an exception that nobody raised on purpose."""
        return cls(
            f"a fault in trackperm itself: {type(error).__name__}: {error}",
            hint="set TRACKPERM_DEBUG=1 to see where, and please report it.",
        )


class UndefinedError(ArithmeticError):
    """Signal: a statistic has no value at a point."""


class UncountableError(Exception):
    """Signal: a counter refuses an example.

    Parameters
    ----------
    row : int
        Index of the example, from 0.
    problem : str
        The reason: a clause that names the columns.
    hint : str, optional
        The next step.
    """

    def __init__(self, row: int, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.row = row
        self.problem = problem
        self.hint = hint


class UnusableColumnError(Exception):
    """Signal: the values of a JSON column have no common type."""


class SkippedTaskError(TrackpermError):
    """Signal: a policy does not select the run of a queue row."""


class UnfinishedRunError(TrackpermError):
    """Signal: the run of a queue row is still in progress."""


class DroppedJobError(TrackpermError):
    """Signal: a job was ended because nobody waits for it any more."""


class ForbiddenRouteError(TrackpermError):
    """Signal: a job sent a request to something other than a public route of MLflow."""
