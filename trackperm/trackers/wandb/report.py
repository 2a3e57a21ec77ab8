"""Reports of logged comparisons on W&B's pages, saved as drafts that the next call updates.

Texts are copied from the comparisons' runs; tables and pictures are shown from these runs. The newest
leaderboard on the same test set follows. A report is identified by its description, as W&B gives each a new
name. Only drafts are updated: a published report is not changed.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # pydantic warns about the library's own code
    import wandb_workspaces.reports.v2 as wr

from trackperm.errors import InputError
from trackperm.pairing import PairingReport
from trackperm.trackers.environment import environment
from trackperm.trackers.publication import LEADERBOARD, TEST_SET_TAG
from trackperm.trackers.references import TrackedRun, is_same_run, without_part
from trackperm.trackers.wandb.runs import find_comparison, find_run, is_complete, list_comparisons
from trackperm.trackers.wandb.store import Store, downloaded
from trackperm.trackers.wandb.write import newest_leaderboard, newest_result

_DRAFT = "runs/draft"
_MAX_TITLE = 128
_WIDTH = 24  # columns in a row of panels
_TABLES = ("table-file", "partitioned-table", "joined-table")


@dataclass(frozen=True)
class ReportSection:
    """Content of a finished comparison or leaderboard that a report shows.

    Attributes
    ----------
    run_id, name : str
        Id and name of the run.
    notes : str
        Description in Markdown; the verdict is its first line.
    signature : str
        Line with what is needed to reproduce the number.
    pairing : tuple of str
        Sentences on how examples were paired; empty for a leaderboard, whose notes contain them.
    metrics : tuple of str
        Names of the metrics, which are columns of the runs table.
    media : mapping of str to str
        W&B's types of tables, pictures and pages, by key.
    charts : mapping of str to mapping
        W&B's configurations of charts, by key.
    """

    run_id: str
    name: str
    notes: str
    signature: str
    pairing: tuple[str, ...]
    metrics: tuple[str, ...]
    media: Mapping[str, str]
    charts: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, store: Store, run: Any) -> ReportSection:
        """Read the content of a run of :class:`wandb.Api`.

        Raise InputError if the comparison is unfinished, or another version of trackperm wrote it.
        """
        path = f"wandb:{run.entity}/{run.project}/{run.id}"
        with store.calls(f"reading {run.job_type} `{path}`"):
            config, summary = run.rawconfig, dict(run.summary_metrics)
            if not is_complete(run):
                raise InputError(
                    f"{run.job_type} `{path}` is unfinished ({run.state})", hint="compare the runs again."
                )
            pairing = () if run.job_type == LEADERBOARD else _pairing(_result(run, path), path)
        charts = config.get("_wandb", {}).get("visualize", {})
        media = {
            key: value["_type"]
            for key, value in summary.items()
            if isinstance(value, Mapping) and "_type" in value
        }
        return cls(
            run_id=run.id,
            name=run.name,
            notes=run.notes,
            signature=config["trackperm.signature"],
            pairing=pairing,
            metrics=tuple(
                sorted(
                    key
                    for key, value in summary.items()
                    if isinstance(value, int | float) and not key.startswith("_")
                )
            ),
            media=media,
            charts={key: chart["panel_config"] for key, chart in charts.items() if f"{key}_table" in media},
        )


@dataclass(frozen=True)
class Draft:
    """A report that is not saved.

    Attributes
    ----------
    report : wandb_workspaces.reports.v2.Report
        The report.
    marker : str
        End of its description, which identifies it.
    """

    report: wr.Report
    marker: str


def draft_of(store: Store, reference: str, candidate: str | None = None) -> Draft:
    """Build the report of one logged comparison, or of all comparisons of a baseline and a candidate.

    The newest leaderboard on their test set is added. `reference` is the run of a comparison or leaderboard
    or, with a `candidate`, the baseline; the project of the candidate is searched for the comparisons. Raise
    InputError if the comparison does not exist or is unfinished.
    """
    if candidate is None:
        runs = [find_comparison(store, reference)]
        title, about = runs[0].name, [runs[0].id]
    else:
        pair = find_run(store, reference), find_run(store, candidate)
        runs = _comparisons_of(store, *pair)
        title, about = f"{pair[1].name} vs {pair[0].name}", [str(run.reference) for run in pair]
    sections = [ReportSection.of(store, run) for run in runs]
    boards = [ReportSection.of(store, run) for run in _newest_leaderboard(store, runs)]
    marker = f"trackperm-report-{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]}"
    report = wr.Report(
        entity=runs[0].entity,
        project=runs[0].project,
        title=title if len(title) <= _MAX_TITLE else title[: _MAX_TITLE - 1] + "…",
        description=f"Paired-permutation tests. {marker}",
        blocks=_blocks(sections, boards, runs[0].entity, runs[0].project),
    )
    return Draft(report, marker)


def specification(store: Store, draft: Draft) -> str:
    """Return the JSON that would be sent to W&B; ids of panels differ each time.

    Raise TrackerError if W&B does not answer the request for the project's id, or refuses it.
    """
    with store.calls("looking up the project's id"), environment(WANDB_BASE_URL=store.base_url):
        spec = draft.report._to_model().spec.model_dump_json(by_alias=True, exclude_none=True)
    return json.dumps(json.loads(spec), indent=2, ensure_ascii=False)


def save(store: Store, draft: Draft) -> tuple[str, bool]:
    """Save a report, in place of an earlier draft of it that this user can see.

    Return the address of its page, and whether it is new.
    """
    report = draft.report
    container = f"{report.entity}/{report.project}"
    # wandb prints that it has saved, unless it was configured to be silent when it was first used.
    quiet = redirect_stderr(io.StringIO())
    own = environment(WANDB_BASE_URL=store.base_url)
    with store.calls(f"saving a report in project `{container}`", writes=True), own, quiet:
        reports = store.fresh_api().reports(container)
        reports.variables["viewType"] = _DRAFT
        earlier = [found for found in reports if (found.description or "").endswith(draft.marker)]
        report.id = max(earlier, key=lambda found: str(found.updated_at)).id if earlier else ""
        report.save(draft=True)
        return str(report.url), not earlier


def _comparisons_of(store: Store, baseline: TrackedRun, candidate: TrackedRun) -> list[Any]:
    """List the comparisons of two runs, by name."""
    wanted = [str(baseline.reference), str(candidate.reference)]
    with store.calls(f"listing the comparisons in project `{candidate.container}`"):
        runs = [
            run
            for run in list_comparisons(store, candidate.container)
            if all(
                is_same_run(without_part(run.rawconfig.get(f"trackperm.{role}", "")), reference)
                for role, reference in zip(("baseline", "candidate"), wanted, strict=True)
            )
        ]
    if not runs:
        raise InputError(
            f"project `{candidate.container}` has no comparison of `{wanted[1]}` with `{wanted[0]}`",
            hint=f"`trackperm compare {' '.join(wanted)}` logs one there; others are named by their runs.",
        )
    return sorted(runs, key=lambda run: (run.name, run.id))


def _newest_leaderboard(store: Store, runs: Sequence[Any]) -> list[Any]:
    """Find the last logged finished leaderboard on the test sets of comparisons, if there is one."""
    if runs[0].job_type == LEADERBOARD:
        return []
    container = f"{runs[0].entity}/{runs[0].project}"
    test_sets = {run.rawconfig.get(TEST_SET_TAG) for run in runs} - {None}
    with store.calls(f"listing the leaderboards in project `{container}`"):
        newest = newest_leaderboard(store, container, test_sets)
    return [] if newest is None else [newest]


def _result(run: Any, path: str) -> dict[str, Any]:
    """Read the result that the run logged last, and check that the run's columns have its signature."""
    newest = newest_result(run)
    result: dict[str, Any] = {}
    if newest is not None:
        result = json.loads(downloaded(newest, "trackperm/comparison.json"))
    if result.get("signature") != run.rawconfig["trackperm.signature"]:
        raise InputError(f"comparison `{path}` lacks its result", hint="compare the runs again.")
    return result


def _pairing(result: Mapping[str, Any], path: str) -> tuple[str, ...]:
    try:
        return tuple(PairingReport(**result["pairing"]).lines())
    except (KeyError, TypeError) as error:
        raise InputError(
            f"comparison `{path}` was logged by another version of trackperm: {error}",
            hint="compare the runs again.",
        ) from error


def _blocks(
    sections: Sequence[ReportSection], boards: Sequence[ReportSection], entity: str, project: str
) -> list[Any]:
    def runs(*shown: ReportSection, columns: bool = False) -> Any:
        ids = ", ".join(repr(section.run_id) for section in shown)
        metrics = [f"summary:{name}" for section in shown for name in section.metrics]
        return wr.Runset(
            entity=entity,
            project=project,
            name="comparisons",
            filters=f"Metric('ID') in [{ids}]",
            visible_columns=list(dict.fromkeys(metrics)) if columns else [],
            lock_columns=columns or None,
        )

    verdicts = [section.notes.split("\n")[0] for section in sections]
    blocks: list[Any] = [
        wr.MarkdownBlock("\n\n".join(verdicts)),
    ]
    if any("results" in section.media for section in sections):
        grid = wr.PanelGrid(runsets=[runs(*sections, columns=True)], panels=[_table("results", 6)])
        blocks += [wr.H2("Results"), grid]
    for section in (*sections, *boards):
        blocks += [
            wr.H2(section.name),
            wr.MarkdownBlock("\n".join(section.notes.split("\n")[1:]).strip()),
            wr.PanelGrid(runsets=[runs(section)], hide_run_sets=True, panels=_panels(section)),
            *([wr.H3("Pairing"), wr.UnorderedList(list(section.pairing))] if section.pairing else []),
            wr.H3("Signature"),
            wr.P([wr.InlineCode(section.signature)]),
        ]
    blocks.append(
        wr.P(
            "Texts are copied from the runs of these comparisons; tables, charts and columns are read from "
            "them. The same command updates a draft and replaces edits."
        )
    )
    return blocks


def _panels(section: ReportSection) -> list[Any]:
    """Return panels with what the comparison's run has logged, except its results."""
    of_charts = {f"{key}_table" for key in section.charts}
    panels = [
        wr.CustomChart(
            query={"summaryTable": {"tableKey": f"{key}_table"}},
            chart_name=chart["panelDefId"],
            chart_fields=dict(sorted(chart["fieldSettings"].items())),
            chart_strings=dict(sorted(chart["stringSettings"].items())),
            layout=wr.Layout(w=_WIDTH // 2, h=8),
        )
        for key, chart in sorted(section.charts.items())
    ]
    for key, kind in sorted(section.media.items()):
        if kind == "image-file":
            panels.append(wr.MediaBrowser(media_keys=[key], layout=wr.Layout(w=_WIDTH // 2, h=8)))
        elif kind == "html-file":
            panels.append(wr.MediaBrowser(media_keys=[key], layout=wr.Layout(w=_WIDTH, h=16)))
        elif kind in _TABLES and key not in of_charts and key != "results":
            panels.append(_table(key, 10))
    return panels


def _table(key: str, height: int) -> Any:
    return wr.WeavePanelSummaryTable(table_name=key, layout=wr.Layout(w=_WIDTH, h=height))
