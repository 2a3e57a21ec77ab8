"""Options of messages, written for each reader: the command line, Python, policies, pages."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import click
import pytest
import typer

import trackperm
from trackperm import server
from trackperm.automation.policy.wording import in_policies
from trackperm.cli import commands
from trackperm.errors import InputError
from trackperm.option_names import ARGUMENTS, COLUMNS, LABELS, NAMES, PAIRS, in_python, on_pages
from trackperm.server.jobs.store import error_values

ON_THE_COMMAND_LINE_ALONE = {
    *("compat", "data", "format", "output", "github", "health", "health-port", "host", "port", "interval"),
    *(
        "intervals",
        "lease",
        "log",
        "once",
        "queue-only",
        "replace",
        "retry-refused",
        "save",
        "since",
        "spend",
        "stars",
    ),
    *("install-completion", "show-completion", "status", "version", "help"),
}

FORMS = [
    ("`--missing drop`", '`missing="drop"`', "`missing: drop`", "`Examples that a run lacks: drop`"),
    ("`--margin 1e-05`", "`margin=1e-05`", "`margin: 1e-05`", "`Margin: 1e-05`"),
    ("`--repeats mean`", '`repeats="mean"`', "`repeats: mean`", "`Rows of one example: mean`"),
    ("`--id a,b`", '`columns={"id": "a,b"}`', "`columns: {id: a,b}`", "`Columns of other names: id=a,b`"),
    (
        "`--id q`, `--label a` and `--prediction p` name columns",
        '`columns={"id": "q", "label": "a", "prediction": "p"}` name columns',
        "`columns: {id: q, label: a, prediction: p}` name columns",
        None,
    ),
    ("`--column score=acc`", '`columns={"score": "acc"}`', "`columns: {score: acc}`", None),
    ("`--set k=5`", '`parameters={"k": 5}`', "`parameters: {k: 5}`", "`Parameters: k=5`"),
    ("`--set \"positive='1'\"`", '`parameters={"positive": "1"}`', None, None),
    ("`--set positive=true`", '`parameters={"positive": True}`', None, None),
    ("`--slice lang`", '`slices=["lang"]`', "`slices: lang`", "`trackperm compare --slice lang`"),
    ("`--by-position`", "`by_position=True`", "`--by-position`", "`--by-position`"),
    ("`--tag-runs`", "`tag_runs=True`", "`tag_runs: true`", "`--tag-runs`"),
    ("`--artifact 'a b'`", '`artifact="a b"`', None, None),
    ("`--samples 10`", "`n_samples=10`", None, None),
    ("`--memory 2GiB`", '`memory_budget="2GiB"`', None, None),
    ("`--unit`", "`unit`", "`unit`", "`What is exchanged`"),
    ("`--no-log`", "`trackperm.compare`", None, None),
    ("`--log-to mlflow:E`", '`trackperm.log(result, trackperm.open_tracker("mlflow"), "E")`', None, None),
    ("`trackperm family mlflow:ID`", '`trackperm.family("mlflow:ID")`', None, None),
    (
        "`trackperm power --difference 0.03 --discordance 0.1`",
        "`trackperm.power(difference=0.03, discordance=0.1)`",
        None,
        None,
    ),
    ("was it written with `--no-log-samples`?", "was it written with `--no-log-samples`?", None, None),
]


@pytest.mark.parametrize(("written", "python", "policy", "page"), FORMS)
def test_forms(written: str, python: str, policy: str | None, page: str | None):
    assert in_python(written) == python
    assert policy is None or in_policies(written) == policy
    assert page is None or on_pages(written) == page


def test_errors_speak_to_their_reader():
    error = InputError("`--unit row` does not fit", hint="`--missing drop` leaves them out.")
    assert str(error) == '`unit="row"` does not fit\n\nHint: `missing="drop"` leaves them out.'
    assert error.on_command_line() == "`--unit row` does not fit\n\nHint: `--missing drop` leaves them out."
    assert error_values(error) == {
        "message": "`What is exchanged: row` does not fit",
        "hint": "`Examples that a run lacks: drop` leaves them out.",
    }


def options(command: click.Command) -> set[str]:
    own = {name[2:] for each in command.params for name in each.opts if name.startswith("--")}
    return own.union(*(options(each) for each in getattr(command, "commands", {}).values()))


def test_every_option_has_a_form_in_python_or_none_on_purpose():
    known = {*NAMES, *ARGUMENTS, *COLUMNS, *PAIRS, "slice", "log-to"}
    assert options(typer.main.get_command(commands.app)) - known == ON_THE_COMMAND_LINE_ALONE - {"help"}


def test_arguments_are_those_of_public_functions():
    functions = [getattr(trackperm, name) for name in trackperm.__all__]
    functions = [each for each in functions if inspect.isfunction(each)]
    parameters = {name for each in functions for name in inspect.signature(each).parameters}
    arguments = {text.removesuffix("=True") for text in ARGUMENTS.values() if text.endswith("=True")}
    assert {*NAMES.values(), *PAIRS.values(), *arguments, "slices"} <= parameters


def test_labels_are_those_of_the_pages():
    folder = Path(server.__file__).parent / "templates"
    pages = "".join(path.read_text() for path in folder.glob("*.html"))
    fields = dict(re.findall(r'<label for="(\w+)">([^<]*)</label>', pages))
    groups = dict(re.findall(r'id="(\w+)"[^>]*><legend>([^<]*)<', pages))
    for option, label in LABELS.items():
        group = "columns" if option in (*COLUMNS, "column") else PAIRS.get(option)
        if option == "baseline":  # on a leaderboard it is called otherwise
            assert label in pages
        else:
            assert label == (fields[option.replace("-", "_")] if group is None else groups[group])
