"""Runs on a W&B server, found by id, by name or by the address of their page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any
from urllib.parse import unquote, urlsplit

import wandb

from trackperm.errors import InputError
from trackperm.messages import did_you_mean, listing
from trackperm.trackers.publication import COMPARISON, GROUP, KINDS, logged_by_trackperm
from trackperm.trackers.references import TrackedRun
from trackperm.trackers.wandb.store import Store

_PAGE = re.compile(r"(?:/wandb)?/([^/]+)/([^/]+)/runs/([^/]+)(?:/.*)?")
UNFINISHED = "unfinished"
"""Tag of a comparison's run while it is being written."""

_MAX_NAMES = 1000  # run names that are searched for one similar to a wrong name


def find_run(store: Store, locator: str) -> TrackedRun:
    """Find a run by ``entity/project/id``, ``entity/project/name``, both without the entity, or its page.

    Comparisons are refused. Raise InputError if `locator` names no run, or several.
    """
    container, name, run = _look_up(store, locator)
    if run is None:
        run = _called(store, container, name, locator)
    if is_comparison(run):
        raise logged_by_trackperm(f"wandb:{container}/{run.id}", run.job_type)
    return store.tracked(run)


def is_complete(run: Any) -> bool:
    """Whether a comparison or leaderboard was written to its `run` completely."""
    return run.state == "finished" and UNFINISHED not in run.tags


def find_comparison(store: Store, locator: str) -> Any:
    """Find the run of a comparison or leaderboard by ``entity/project/id`` or the address of its page.

    Return the run of :class:`wandb.Api` as it is now. Raise InputError if no run has that id, or if it is not
    a comparison.
    """
    container, run_id, run = _look_up(store, locator)
    path = f"{container}/{run_id}"
    if run is None:
        raise InputError(
            f"W&B at `{store.base_url}` has no run with the id `{path}`",
            hint="`trackperm compare` prints where it has logged a comparison.",
        )
    if not is_comparison(run):
        raise InputError(
            f"run `wandb:{path}` is not a comparison that trackperm logged",
            hint="name a comparison, or baseline and candidate.",
        )
    return run


def list_comparisons(store: Store, container: str, kinds: Sequence[str] = (COMPARISON,)) -> list[Any]:
    """List the comparisons in ``entity/project``, or publications of other `kinds`."""
    found = store.fresh_api().runs(container, filters={"group": GROUP}, lazy=False)
    return [run for run in found if is_comparison(run) and run.job_type in kinds]


def require_project(store: Store, container: str) -> str:
    """Return ``entity/project`` for a project that may lack the entity; raise InputError if missing."""
    entity, _, project = container.rpartition("/")
    if not project or "/" in entity:
        raise InputError(f"`wandb:{container}` is not a project; expected `wandb:ENTITY/PROJECT`")
    with store.calls(f"looking up project `{container}`") as api:
        entity = entity or str(api.default_entity)
        if _exists(api, f"{entity}/{project}"):
            return f"{entity}/{project}"
        known = [found.name for found in islice(api.projects(entity), _MAX_NAMES)]
    raise InputError(
        f"W&B at `{store.base_url}` has no project `{entity}/{project}`",
        hint=did_you_mean(project, known).strip()
        or "the first run creates it, or `wandb.Api().create_project(name, entity)`.",
    )


def is_comparison(run: Any) -> bool:
    """Whether trackperm logged `run`."""
    return run.group == GROUP and run.job_type in KINDS


def from_page(url: str) -> tuple[str, str]:
    """Return ``entity/project`` and the run's id for the address of its page.

    Raise InputError if `url` is not such an address.
    """
    page = _PAGE.fullmatch(urlsplit(url).path)
    if page is None:
        raise InputError(
            f"`{url}` is not the address of a run's page; expected `https://HOST/ENTITY/PROJECT/runs/ID`",
            hint="copy it from the page of the run.",
        )
    entity, project, run_id = (unquote(part) for part in page.groups())
    return f"{entity}/{project}", run_id


def _look_up(store: Store, locator: str) -> tuple[str, str, Any]:
    """Return container and name in a locator, and the run that has the name as its id, or else None."""
    container, name = from_page(locator) if "://" in locator else _split(store, locator)
    path = f"{container}/{name}"
    with store.calls(f"looking up run `wandb:{path}`"):
        return container, name, store.run_or_none(path) if "/" not in name else None


def _split(store: Store, locator: str) -> tuple[str, str]:
    parts = locator.split("/")
    if len(parts) == 2 and all(parts):
        with store.calls("looking up the default entity") as api:
            return f"{api.default_entity}/{parts[0]}", parts[1]
    if len(parts) < 3 or not all(parts):
        raise InputError(
            f"`wandb:{locator}` is not a run; expected `wandb:ENTITY/PROJECT/RUN`",
            hint="RUN is the run's id or name. The address of its page names it too, and an offline run is"
            " named by its folder.",
        )
    return "/".join(parts[:2]), "/".join(parts[2:])


def _called(store: Store, container: str, name: str, locator: str) -> Any:
    """Return the only run of that name."""
    with store.calls(f"looking up runs called `{name}`") as api:
        exists = _exists(api, container)
        found = list(api.runs(container, filters={"display_name": name})) if exists else []
        runs = [run for run in found if run.name == name and not is_comparison(run)]
    if len(runs) == 1:
        return runs[0]
    if runs:
        lines = [
            f"wandb:{run.entity}/{run.project}/{run.id}  started {run.created_at}  {run.state}"
            for run in runs
        ]
        raise InputError(
            f"{len(runs)} runs of project `{container}` are called `{name}`:\n\n{listing(lines)}",
            hint="name one by its id.",
        )
    if not exists:
        require_project(store, container)
    with store.calls("listing runs") as api:
        newest = islice(api.runs(container, order="-created_at"), _MAX_NAMES)
        known = [run.name for run in newest if not is_comparison(run)]
    asked = f" (`{store.base_url}` was searched, not the host of the address)" if "://" in locator else ""
    raise InputError(
        f"project `{container}` has no run called `{name}`, and none with that id{asked}",
        hint=did_you_mean(name, known).strip() or "a run is named by its id, or by a name of its own.",
    )


def _exists(api: wandb.Api, container: str) -> bool:
    try:
        return len(api.runs(container, per_page=1)) >= 0
    except ValueError as error:
        if str(error).startswith("Could not find project"):
            return False
        raise
