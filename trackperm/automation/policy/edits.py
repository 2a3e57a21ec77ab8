"""A policy file that is edited while it is followed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trackperm.automation.policy.policy import Policy, load_policies
from trackperm.errors import InputError

Stamp = tuple[int, int, int]


class EditedPolicies:
    """The policies of a file, read again whenever the file or the spec of a statistic has changed.

    Parameters
    ----------
    path : Path
        The file.
    name : str, optional
        Only the policy of this name.
    """

    def __init__(self, path: Path, name: str | None = None) -> None:
        self._path = path
        self._name = name
        self._seen: dict[Path, Stamp | None] = {}
        self._refused: str | None = None

    def load(self) -> list[Policy]:
        """Read the policies, which are not edited as long as their files stay as they are now.

        Raises
        ------
        SpecError
            If the file is not valid.
        InputError
            If it has no policy of that name.
        """
        path = self._path.absolute()
        # From before they are read, so that what is edited meanwhile is read again. As long as they are not
        # valid, a spec that is not there may be made in the folder.
        self._seen = {file: _stamp(file) for file in (path, path.parent, *self._seen)}
        found = load_policies(self._path)
        files = {path, *(file for policy in found.policies for file in policy.files)}
        self._seen = {file: self._seen.get(file) or _stamp(file) for file in files}
        return list(found.policies) if self._name is None else [found.find(self._name)]

    def edited(self) -> Sequence[Policy] | None:
        """Return the policies as they are now, or None if nothing has changed since they were read last.

        Raises
        ------
        InputError
            As :meth:`load`, once for every change.
        """
        changed = {file for file, stamp in self._seen.items() if _stamp(file) != stamp}
        if not changed:
            return None
        try:
            found = self.load()
        except InputError as error:
            is_known, self._refused = error.message == self._refused, error.message
            if is_known and changed == {self._path.absolute().parent}:  # where others write as well
                return None
            raise
        self._refused = None
        return found


def _stamp(file: Path) -> Stamp | None:
    """Return what changes when a file does; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
