"""Policy file that is read again whenever it is edited."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trackperm.automation.policy.load import load_policies
from trackperm.automation.policy.policy import Policy
from trackperm.automation.policy.resolve import policy_files
from trackperm.errors import InputError

Stamp = tuple[int, int, int]


class EditedPolicies:
    """Policies of a file, or the one called `name`, read again when the file or a spec in it has changed."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        self._path = path
        self._name = name
        self._seen: dict[Path, Stamp | None] = {}
        self._refused: str | None = None

    def load(self) -> list[Policy]:
        """Read the policies, and remember the state of their files.

        Raise SpecError if the file is not valid, and InputError if it has no policy of that name.
        """
        path = self._path.absolute()
        # Stamps are taken before the files are read, so that an edit during reading is noticed. The folder is
        # among them until the policies are valid, because a missing spec may be created in it.
        self._seen = {file: _stamp(file) for file in (path, path.parent, *self._seen)}
        found = load_policies(self._path)
        files = {path, *(file for policy in found.policies for file in policy_files(policy))}
        self._seen = {file: self._seen.get(file) or _stamp(file) for file in files}
        return list(found.policies) if self._name is None else [found.find(self._name)]

    def edited(self) -> Sequence[Policy] | None:
        """Return the policies if a file has changed since they were read last, else None.

        Raise the errors of :meth:`load`, once per change.
        """
        changed = {file for file, stamp in self._seen.items() if _stamp(file) != stamp}
        if not changed:
            return None
        try:
            found = self.load()
        except InputError as error:
            is_known, self._refused = error.message == self._refused, error.message
            if is_known and changed == {self._path.absolute().parent}:  # other files changed there
                return None
            raise
        self._refused = None
        return found


def _stamp(file: Path) -> Stamp | None:
    """Return values that change whenever a file does; None if it is missing."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
