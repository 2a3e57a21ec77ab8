"""Reports at W&B: what they say, that their drafts are replaced, and what they are not made of."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from support.command_line import call_trackperm
from support.comparisons import answers, check_golden, without_digests
from support.wandb_standin import Standin, environment
from support.wandb_standin.state import RunRecord
from typer.testing import CliRunner, Result

import trackperm
from trackperm.cli import commands
from trackperm.comparison import Comparison
from trackperm.errors import InputError, TrackerError
from trackperm.ledger.comparison_publication import publication
from trackperm.trackers.wandb.tracker import WandbTracker

pytestmark = [
    pytest.mark.extended,
    pytest.mark.tracker,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of pydantic, at wandb-workspaces
]

GOLDEN = Path(__file__).parents[2] / "golden" / "wandb_report.json"
RUNS = {"baseline": "logistic", "candidate": "forest"}


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return trackperm.compare(answers([False] * 20 + [True] * 4), answers([True] * 20 + [False] * 4))


@pytest.fixture(scope="module")
def logged(
    wandb_server: Standin, comparison: Comparison, tmp_path_factory: pytest.TempPathFactory
) -> RunRecord:
    """The run of a comparison as trackperm logs it, once for all tests, which copy it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(tmp_path_factory.mktemp("logged"), wandb_server).items():
            patch.setenv(name, value)
        found = publication(comparison)
        references = {f"trackperm.{role}": f"wandb:team/original/{name}" for role, name in RUNS.items()}
        found = dataclasses.replace(found, tags={**found.tags, **references})
        add_run(wandb_server, "original", "forest")
        published = WandbTracker(wandb_server.url).publish(found, "team/original")
        return wandb_server.run(published.run.reference.locator)


def add_run(standin: Standin, project: str, name: str) -> str:
    key = ("team", project, name)
    standin.state.runs[key] = RunRecord(key, name, state="finished")
    return f"wandb:{'/'.join(key)}"


class Project:
    """A project of two runs and copies of their comparison."""

    def __init__(self, standin: Standin, logged: RunRecord) -> None:
        self.standin = standin
        self.name = f"reports-{uuid4().hex[:8]}"
        self.runs = [add_run(standin, self.name, name) for name in RUNS.values()]
        self._logged = logged
        self.comparison = self.add("accuracy: forest vs logistic")

    @property
    def record(self) -> RunRecord:
        return self.standin.run(self.comparison.partition(":")[2])

    def add(self, name: str, **config: str) -> str:
        """Add a comparison that differs from the logged one in its name and config."""
        run_id = f"trackperm-{uuid4().hex}"
        made = copy.deepcopy(self._logged)
        made.key, made.display_name = ("team", self.name, run_id), name
        entries = json.loads(made.config.replace("team/original/", f"team/{self.name}/"))
        made.config = json.dumps(entries | {key: {"value": value} for key, value in config.items()})
        self.standin.state.runs[made.key] = made
        return f"wandb:{'/'.join(made.key)}"

    def reports(self) -> list[dict[str, Any]]:
        kept = self.standin.state.reports.values()
        return [dict(report) for report in kept if report["projectName"] == self.name]

    def report(self, *arguments: object) -> Result:
        command = ["report", "wandb", *map(str, arguments), "--tracking-uri", self.standin.url]
        result = CliRunner().invoke(commands.app, command)
        if result.exception is not None:
            raise result.exception
        return result


@pytest.fixture
def project(standin: Standin, logged: RunRecord) -> Project:
    return Project(standin, logged)


@pytest.fixture
def text(project: Project, tmp_path: Path) -> str:
    """Return the specification of a report without saving it at W&B."""
    project.report(project.comparison, "--no-save", "-o", tmp_path / "spec.json")
    assert not project.reports()
    return (tmp_path / "spec.json").read_text(encoding="utf-8")


def blocks(spec: str, kind: str) -> list[Any]:
    return [block for block in json.loads(spec)["blocks"] if block["type"] == kind]


def markdown(spec: str) -> list[str]:
    return [block["content"] for block in blocks(spec, "markdown-block")]


def headings(spec: str) -> list[str]:
    return [heading["children"][0]["text"] for heading in blocks(spec, "heading")]


def panels(spec: str) -> list[dict[str, Any]]:
    grids = [block["metadata"] for block in blocks(spec, "panel-grid")]
    return [panel for grid in grids for panel in grid["panelBankSectionConfig"]["panels"]]


def comparable(spec: str) -> str:
    """Leave out what differs between any two: ids that are drawn, the project, digests of releases."""
    spec = re.sub(r'("(?:__id__|id)": ?)"[a-z0-9]+"', r'\1"…"', spec)
    spec = re.sub(r"(trackperm|reports)-[0-9a-f]{8,32}", r"\1-…", spec)
    spec = re.sub(r'"id": ?"UHJvamVjdEludGVybmFsSWQ6[^"]*"', '"id": "…"', spec)
    return json.dumps(json.loads(without_digests(spec)), indent=1, ensure_ascii=False) + "\n"


class TestContents:
    def test_as_it_was(self, text: str):
        check_golden(comparable(text), GOLDEN)

    def test_verdict_first_then_all_that_the_comparison_says(self, text: str, comparison: Comparison):
        assert "\n\n".join(markdown(text)) == publication(comparison).description
        assert markdown(text)[0].startswith("**▲ candidate is better than baseline by accuracy")
        assert headings(text) == ["Results", "accuracy: forest vs logistic", "Pairing", "Signature"]
        assert all(line in text for line in comparison.pairing.lines())
        assert comparison.signature in text

    def test_panels_show_what_the_run_has_and_no_other_run(self, text: str, project: Project):
        summary = project.record.read_summary()
        grids = [block["metadata"] for block in blocks(text, "panel-grid")]
        filters = [grid["runSets"][0]["filters"]["filters"] for grid in grids]
        run_id = project.comparison.rpartition("/")[2]
        assert [(part["key"]["name"], part["op"], part["value"]) for (part,) in filters] == [
            ("name", "IN", [run_id])
        ] * 2
        columns = grids[0]["runSets"][0]["runFeed"]["columnOrder"]
        assert columns == [f"summary:{name}" for name in sorted(summary) if name.startswith("accuracy/")]
        assert "summary:accuracy/p_value" in columns
        media = {key for panel in panels(text) for key in panel["config"].get("mediaKeys", ())}
        assert media == {"verdict", "trackperm_report"} <= summary.keys()
        tables = re.findall(r'"(results|discordant)"', json.dumps(panels(text)))
        assert {*tables} == {"results", "discordant"} <= summary.keys()

    def test_the_chart_is_that_of_the_run(self, text: str, project: Project):
        (shown,) = (panel["config"] for panel in panels(text) if panel["viewType"] == "Vega2")
        (logged,) = json.loads(project.record.config)["_wandb"]["value"]["visualize"].values()
        for name in ("panelDefId", "fieldSettings", "stringSettings"):
            assert shown[name] == logged["panel_config"][name]
        assert '"null_distribution_table"' in json.dumps(shown["userQuery"])


class TestDrafts:
    def test_what_is_saved_is_what_was_written_to_a_file(self, text: str, project: Project):
        result = project.report(project.comparison)
        (saved,) = project.reports()
        assert (saved["type"], saved["displayName"]) == ("runs/draft", project.record.display_name)
        assert comparable(saved["spec"]) == comparable(text)
        assert result.stdout.startswith(f"{project.standin.url}/team/{project.name}/reports/")
        assert result.stdout.endswith(f"--{saved['id']}\n")
        assert result.stderr == "saved as a draft\n"

    def test_again_it_replaces_the_draft(self, project: Project):
        first = project.report(project.comparison)
        (saved,) = project.reports()
        project.record.notes = "**undecided**, p = 0.3\n\nand so on"
        again = project.report(project.comparison)
        (replaced,) = project.reports()
        assert (again.stdout, replaced["id"]) == (first.stdout, saved["id"])
        assert again.stderr == "replaced the earlier draft\n"
        assert markdown(replaced["spec"]) == ["**undecided**, p = 0.3", "and so on"]

    def test_what_is_published_or_of_another_comparison_stays(self, project: Project):
        project.report(project.comparison)
        (saved,) = project.reports()
        published = {**saved, "type": "runs"}
        project.standin.state.reports[saved["id"]] = published
        other = project.add("another")
        for _ in range(2):
            project.report(project.comparison)
            project.report(other)
        kept, *drafts = project.reports()
        assert kept == published
        assert [draft["displayName"] for draft in drafts] == [saved["displayName"], "another"]

    def test_all_comparisons_of_two_runs(self, project: Project):
        project.add("f1: forest vs logistic")
        project.add("of part of a run", **{"trackperm.candidate": f"{project.runs[1]}::scorer"})
        project.add("of another run", **{"trackperm.candidate": "wandb:team/original/forest"})
        project.report(*project.runs)
        (saved,) = project.reports()
        assert saved["displayName"] == "forest vs logistic"
        names = ("accuracy: forest vs logistic", "f1: forest vs logistic", "of part of a run")
        sections = [text for name in names for text in (name, "Pairing", "Signature")]
        assert headings(saved["spec"]) == ["Results", *sections]
        assert markdown(saved["spec"])[0].count("**▲ ") == 3

    def test_the_newest_leaderboard_on_the_test_set_is_shown_as_well(self, project: Project):
        frames = {str(i): answers([True] * i + [False] * (24 - i)) for i in (3, 9, 20)}
        tracker, container = WandbTracker(project.standin.url), f"team/{project.name}"
        boards = [trackperm.leaderboard(frames, statistic) for statistic in ("accuracy", "error_rate")]
        logged = [trackperm.log(board, tracker, container).run for board in boards]
        trackperm.log(
            trackperm.leaderboard({name: rows.head(9) for name, rows in frames.items()}), tracker, container
        )
        project.report(project.comparison)
        project.report(logged[1].reference)
        of_comparison, of_board = project.reports()
        own = [project.record.display_name, "Pairing", "Signature"]
        assert headings(of_comparison["spec"]) == ["Results", *own, logged[1].name, "Signature"]
        assert headings(of_board["spec"]) == [logged[1].name, "Signature"]
        for saved in (of_comparison, of_board):
            shown = panels(saved["spec"])
            assert all(f'"{key}"' in json.dumps(shown) for key in ("board", "pairs"))
            media = {key for panel in shown for key in panel["config"].get("mediaKeys", ())}
            assert {"leaderboard", "trackperm_leaderboard"} <= media
        assert "is better than both others" in markdown(of_board["spec"])[0]
        trackperm.log(boards[0], tracker, container)
        project.report(project.comparison)
        assert logged[0].name in headings(project.reports()[0]["spec"]), "the one that was logged last"

    @pytest.mark.slow
    def test_on_the_command_line(self, project: Project, tmp_path: Path):
        env = environment(tmp_path, project.standin)
        result = call_trackperm(tmp_path, "report", "wandb", project.comparison, env=env)
        assert (result.returncode, result.stderr) == (0, "saved as a draft\n")
        assert re.fullmatch(rf"{project.standin.url}/team/{project.name}/reports/\S+\n", result.stdout)


class TestRefusals:
    def test_runs_that_are_not_comparisons(self, project: Project):
        with pytest.raises(InputError, match="is not a comparison that trackperm logged"):
            project.report(project.runs[0])
        with pytest.raises(InputError, match=f"no run with the id `team/{project.name}/nothing`"):
            project.report(f"wandb:team/{project.name}/nothing")
        with pytest.raises(InputError, match=rf"no comparison of `{project.runs[0]}` with"):
            project.report(*reversed(project.runs))

    def test_an_unfinished_comparison(self, project: Project):
        project.record.tags.append("unfinished")
        for arguments in ([project.comparison], project.runs):
            with pytest.raises(InputError, match="is unfinished"):
                project.report(*arguments)

    def test_the_result_of_something_else(self, project: Project):
        project.comparison = project.add("changed", **{"trackperm.signature": "f1|n:5"})
        with pytest.raises(InputError, match="lacks its result"):
            project.report(project.comparison)
        project.record.logged.clear()
        with pytest.raises(InputError, match="lacks its result"):
            project.report(project.comparison)

    def test_what_is_not_at_wandb(self, project: Project, tmp_path: Path):
        with pytest.raises(InputError, match="is not a run at W&B"):
            project.report("mlflow:3f2a")
        folder = tmp_path / "offline-run-20261121_120000-abcdefgh"
        folder.mkdir()
        (folder / "run-abcdefgh.wandb").touch()
        with pytest.raises(InputError, match="is an offline run"):
            project.report(f"wandb:{folder}")

    def test_without_permission(self, project: Project):
        project.standin.fail("#upsertView", [403])
        with pytest.raises(TrackerError, match="denies permission, while saving a report in project"):
            project.report(project.comparison)
        assert not project.reports()
