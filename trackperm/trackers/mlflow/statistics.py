"""Statistics that people store with an MLflow experiment, as tags.

The tag ``trackperm.statistic.NAME`` holds the spec as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mlflow.exceptions import MlflowException

from trackperm.errors import InputError, SpecError, TrackpermError
from trackperm.statistic import Statistic, builtin_names, load_statistic, read_statistic
from trackperm.trackers.mlflow.store import Store

STATISTIC_TAG = "trackperm.statistic."
MAX_TAG = 20_000
"""Maximum number of characters of an experiment's tag; stores of older versions keep 5,000."""


def stored_statistics(store: Store, experiment_id: str) -> dict[str, Statistic | TrackpermError]:
    """Read the statistics that are stored with an experiment, by name; an invalid one is an error."""
    found = {
        tag.removeprefix(STATISTIC_TAG): text
        for tag, text in experiment_tags(store, experiment_id).items()
        if tag.startswith(STATISTIC_TAG)
    }
    return {name: _read(name, found[name]) for name in sorted(found)}


def store_statistic(store: Store, experiment_id: str, file: Path, *, is_replaced: bool = False) -> str:
    """Check a spec and store it with an experiment, under the name in the spec or else that of the file.

    The same spec is not written again, and another one of that name only if it `is_replaced`. Raise SpecError
    if the spec is not valid, InputError if its name is taken or it is too long, and TrackerError if MLflow
    failed.
    """
    if file.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"`{file}` is not a spec; expected a file that ends in `.yaml`")
    name = load_statistic(file).name
    if name in builtin_names():
        raise InputError(
            f"`{name}` is the name of a built-in statistic",
            hint="give it another name, with `name:` in the spec.",
        )
    text, tag = file.read_text(encoding="utf-8"), STATISTIC_TAG + name
    held = experiment_tags(store, experiment_id).get(tag)
    if held == text:
        return name
    if held is not None and not is_replaced:
        raise InputError(
            f"another statistic is stored as `{name}` with this experiment (tag `{tag}`); others may use it",
            hint="`--replace` replaces it; `name:` in the spec gives this one another name.",
        )
    write_experiment_tag(
        store, experiment_id, tag, text, too_long=f"the spec `{file}`", hint="shorten its comments."
    )
    return name


def experiment_tags(store: Store, experiment_id: str) -> Mapping[str, str]:
    """Read the tags of an experiment."""
    with store.calls(f"reading the tags of experiment `{experiment_id}`") as client:
        tags: Mapping[str, str] = client.get_experiment(experiment_id).tags
    return tags


def write_experiment_tag(
    store: Store, experiment_id: str, tag: str, value: str, *, too_long: str, hint: str
) -> None:
    """Write a tag of an experiment; refuse a value that MLflow could not store whole.

    `too_long` and `hint` are the subject and the hint of that InputError.
    """
    if len(value) > MAX_TAG:
        raise InputError(
            f"{too_long} has {len(value):,} characters; MLflow stores at most {MAX_TAG:,} in a tag of an"
            " experiment",
            hint=hint,
        )
    with store.calls(f"writing tag `{tag}` of experiment `{experiment_id}`", writes=True) as client:
        try:
            client.set_experiment_tag(experiment_id, tag, value)
        except MlflowException as error:
            if error.error_code != "INVALID_PARAMETER_VALUE":
                raise
            raise InputError(
                f"this version of MLflow does not store {too_long}, with {len(value):,} characters:"
                f" {str(error).partition(chr(10))[0][:200]}",
                hint=hint,
            ) from error


def _read(name: str, text: str) -> Statistic | TrackpermError:
    origin = f"stored statistic {name}"
    if len(text) > MAX_TAG:
        return SpecError(f"`{origin}` has {len(text):,} characters, more than {MAX_TAG:,}")
    try:
        return replace(read_statistic(text, origin, name), name=name)
    except TrackpermError as error:
        return error
