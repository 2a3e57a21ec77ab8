"""Identity of a result: the digest that identifies it, and the line of settings that reproduce it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from trackperm.statistic import Statistic
from trackperm.statistic.written_spec import written_spec
from trackperm.version import __version__


def key_of(parts: Iterable[object], statistic: Statistic, options: Mapping[str, str]) -> str:
    """Return the digest of `parts`, which are JSON values, the spec and the options."""
    every = [*parts, written_spec(statistic), dict(sorted(options.items()))]
    return hashlib.sha256(json.dumps(every, ensure_ascii=False).encode()).hexdigest()


def signature_of(statistic: Statistic, settings: Mapping[str, object]) -> str:
    """Return the settings in one line, with a digest of the spec and the version; None is left out."""
    spec = hashlib.sha256(written_spec(statistic).encode()).hexdigest()[:8]
    every = {**settings, "spec": spec, "trackperm": __version__}
    shown = (f"{name}:{value}" for name, value in every.items() if value is not None)
    return "|".join([statistic.name, *shown])
