"""Logging of comparisons by the command line, with alerts and tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from trackperm.cli.output import echo
from trackperm.cli.progress import working
from trackperm.errors import InputError

if TYPE_CHECKING:
    from trackperm.comparison import Comparison, RunData
    from trackperm.trackers.base import Tracker


@dataclass(frozen=True)
class Destination:
    """Values of ``--log-to``, ``--log/--no-log``, ``--alert`` and ``--tag-runs``.

    Attributes
    ----------
    tracker : Tracker or None
        Tracker to log to; None for that of the candidate.
    container : str or None
        Experiment or project in that tracker.
    wanted : bool
        Whether results are logged.
    alert, tag_runs : bool
        Options of :func:`trackperm.log`.
    """

    tracker: Tracker | None
    container: str | None
    wanted: bool
    alert: bool
    tag_runs: bool

    @classmethod
    def of(
        cls, log_to: str | None, tracking_uri: str | None, *, log: bool, alert: bool, tag_runs: bool
    ) -> Destination:
        """Open the tracker that `log_to` names; refuse options that contradict each other."""
        options = {"--log-to": log_to is not None, "--alert": alert, "--tag-runs": tag_runs}
        for name, is_wanted in options.items():
            if not log and is_wanted:
                raise InputError(f"`--no-log` and `{name}` contradict each other", hint="give one of them.")
        tracker, container = (None, None) if log_to is None else _target(log_to, tracking_uri)
        return cls(tracker, container, log, alert, tag_runs)

    def require_options(self, candidate: RunData) -> None:
        """Refuse options that the tracker does not support, before the tests run."""
        from trackperm.trackers.base import require_options

        if not (self.alert or self.tag_runs):
            return
        tracker = self.tracker or candidate.tracker
        if tracker is None:
            raise InputError(
                "`--alert` and `--tag-runs` need a tracker, and the candidate is not in one",
                hint="name a place by `--log-to`.",
            )
        require_options(tracker, alert=self.alert, tag_runs=self.tag_runs)

    def log(self, comparisons: Sequence[Comparison]) -> None:
        """Log `comparisons`, and report where."""
        for comparison in comparisons if self.wanted else ():
            if self.tracker is None and comparison.candidate_run is None:
                if comparison.baseline_run is not None:
                    typer.echo("not logged: the candidate is not in a tracker; add `--log-to`", err=True)
                continue
            # Imported late: comparisons of files are not logged, and do not need the ledger.
            from trackperm.ledger.comparison_publication import look_sentence
            from trackperm.ledger.log import log

            with working("logging"):
                published = log(
                    comparison, self.tracker, self.container, alert=self.alert, tag_runs=self.tag_runs
                )
            verb = "logged" if published.created else "already logged, updated"
            typer.echo(f"{verb}: {published.run.url or published.run.reference}", err=True)
            if published.look is not None:
                typer.echo(look_sentence(published.look, published.in_leaderboards), err=True)


def install_chart(
    entity: Annotated[str, typer.Argument(metavar="wandb:ENTITY", help="A user or team at W&B.")],
    tracking_uri: Annotated[str | None, typer.Option(metavar="URI", help="W&B's server.")] = None,
) -> None:
    """Install a chart of the null distribution at W&B, and print the environment variable that enables it."""
    from trackperm.trackers.references import RunReference
    from trackperm.trackers.wandb.tracker import WandbTracker

    reference = RunReference.parse(entity)
    if reference.scheme != "wandb":
        raise InputError(f"`{entity}` is not a user or team at W&B", hint="write `wandb:ENTITY`.")
    echo(f"export TRACKPERM_WANDB_CHART={WandbTracker(tracking_uri).install_chart(reference.locator)}")


def _target(log_to: str, tracking_uri: str | None) -> tuple[Tracker, str]:
    from trackperm.trackers.base import open_tracker
    from trackperm.trackers.references import RunReference

    target = RunReference.parse(log_to)
    if target.scheme == "file":
        raise InputError(
            f"`--log-to {log_to}` does not name a tracker",
            hint="write `--log-to mlflow:EXPERIMENT` or `--log-to wandb:ENTITY/PROJECT`.",
        )
    return open_tracker(target.scheme, tracking_uri), target.locator
