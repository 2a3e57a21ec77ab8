"""Every exception that trackperm raises on purpose.

Each is a :class:`TrackpermError` and also the built-in exception that it refines, so that callers may
catch either. The command line turns them into one message and an exit code.
"""

from __future__ import annotations

from collections.abc import Sequence

from trackperm.option_names import in_python


class TrackpermError(Exception):
    """Something that trackperm refuses or cannot do, said in one message.

    Parameters
    ----------
    message : str
        What was found, where, and what was expected. Starts in lower case, names stand in backticks; options
        as on the command line, see :mod:`trackperm.option_names`.
    hint : str, optional
        The next step, printed after a blank line.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Write message and hint for Python, whose arguments have other names than options."""
        return in_python(self.on_command_line())

    def on_command_line(self) -> str:
        """Write message and hint, as they are by now: who passes an error on may say more of its place."""
        return self.message if self.hint is None else f"{self.message}\n\nHint: {self.hint}"


class InputError(TrackpermError, ValueError):
    """An argument, option or file content that cannot be used."""


class FaultError(TrackpermError):
    """A fault of trackperm itself, whose exit code no result has."""

    exit_code = 70

    @classmethod
    def of(cls, error: Exception) -> FaultError:
        """Describe an exception that nobody raised on purpose."""
        return cls(
            f"a fault in trackperm itself: {type(error).__name__}: {error}",
            hint="set TRACKPERM_DEBUG=1 to see where, and please report it.",
        )


class InputTypeError(TrackpermError, TypeError):
    """An argument or column of the wrong type."""


class SpecError(InputError):
    """A statistic spec that is not valid; the message carries file, line and column."""


class UndefinedStatisticError(InputError):
    """A statistic that has no value after some swaps of outputs."""


class PairingError(InputError):
    """Examples of two runs that cannot be proved to belong together."""


class DisjointError(PairingError):
    """Runs that have no example in common."""


class SourceError(InputError):
    """A file or artifact that does not hold readable per-example data."""


class ChoiceError(SourceError):
    """A file with several parts, which must not be mixed, of which none was chosen.

    Parameters
    ----------
    message, hint : str
        As of every error.
    what : str
        What a part is called, such as ``filter``.
    parts : sequence of str
        Their names.
    """

    def __init__(self, message: str, *, what: str, parts: Sequence[str], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.what = what
        self.parts = tuple(parts)


class CapacityError(TrackpermError, MemoryError):
    """A computation that does not fit the memory budget, or the disk."""


class StorageError(CapacityError, OSError):
    """A file that cannot be written, on a full disk for example; the next try may succeed."""


class MissingDependencyError(TrackpermError, ImportError):
    """An optional library that the request needs is not installed."""


class EngineError(TrackpermError, RuntimeError):
    """A data frame engine that failed or is out of reach."""

    exit_code = 3


class TrackerError(TrackpermError, RuntimeError):
    """A tracker that failed, refused or is out of reach."""

    exit_code = 3


class PermissionDeniedError(TrackerError):
    """A tracker that knows who asks, and does not let them read or write this."""
