"""Policy files: what they are understood to say, and where they are wrong."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from trackperm.automation.policy.load import load_policies, read_policies
from trackperm.automation.policy.policy import json_schema
from trackperm.automation.policy.resolve import with_baseline
from trackperm.automation.policy.wording import hint_for_policies
from trackperm.cli import commands
from trackperm.errors import InputError, SpecError
from trackperm.statistic.written_spec import written_spec
from trackperm.trackers.references import RunReference

FULL = """\
policies:
  - name: nightly
    runs: [mlflow:digits, wandb:team/digits]
    only: {tags: {stage: test}, name: "cand-*"}
    baseline: {newest: {tags: {stage: prod}}}
    artifact: predictions.parquet
    statistics:
      - accuracy
      - {name: f1, parameters: {positive: 1}, columns: {label: y}}
      - ./own.yaml
    columns: {id: example}
    alpha: 0.05
    margin: 0.01
    correction: hommel
    log_to: mlflow:verdicts
    tracking_uri: http://127.0.0.1:5000
"""
OWN = "name: wrong\ngreater_is_better: false\ncounts: {wrong: prediction != label}\nscore: wrong\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "trackperm.yaml").write_text(FULL)
    return tmp_path


def edited(folder: Path, old: str, new: str) -> Path:
    assert old in FULL
    path = folder / "edited.yaml"
    path.write_text(FULL.replace(old, new, 1))
    return path


def problem(folder: Path, old: str, new: str) -> str:
    with pytest.raises(SpecError) as caught:
        load_policies(edited(folder, old, new))
    return str(caught.value).removeprefix(f"{folder}/")


def test_what_is_understood(folder: Path):
    policy = load_policies(folder / "trackperm.yaml").find()
    assert policy.runs == (RunReference("mlflow", "digits"), RunReference("wandb", "team/digits"))
    assert policy.log_to == RunReference("mlflow", "verdicts")
    assert [spec.name for spec in policy.specs] == ["accuracy", "f1", "wrong"]
    assert [spec.columns["id"] for spec in policy.specs] == ["example"] * 3
    assert policy.specs[1].columns["label"] == "y"
    assert (policy.fail_on, policy.if_no_baseline, policy.tag_runs) == ("regression", "error", False)
    assert policy.only.tags == {"stage": "test"}


def test_the_example_is_understood():
    found = load_policies(Path(__file__).parents[3] / "examples" / "trackperm.yaml")
    assert [policy.name for policy in found.policies] == ["nightly", "pull-request", "promotion", "files"]


def test_several_policies_are_found_by_name(folder: Path):
    path = edited(folder, "policies:\n", "policies:\n  - {name: quick, baseline: {run: mlflow:3f2a}}\n")
    found = load_policies(path)
    assert found.find("quick").runs == ()
    with pytest.raises(InputError, match="has 2 policies\n\nHint: `name` chooses one of `quick`"):
        found.find()
    with pytest.raises(InputError, match="no policy `weekly`"):
        found.find("weekly")


DECIDES = {
    "stage: prod": "stage: best",
    "predictions.parquet": "other.parquet",
    "positive: 1": "positive: 2",
    "label: y": "label: z",
    "id: example": "id: question",
    "alpha: 0.05": "alpha: 0.01",
    "margin: 0.01": "margin: 0.02",
    "correction: hommel": "correction: holm",
    "mlflow:verdicts": "mlflow:others",
    "      - accuracy\n": "",
    "    margin: 0.01\n": "    margin: 0.01\n    missing: drop\n",
    "    correction: hommel\n": "    correction: hommel\n    slices: group\n",
    "    columns": "    units: declared\n    columns",
    "    alpha: 0.05\n": "    alpha: 0.05\n    alternative: less\n    fail_on: not-shown-non-inferior\n",
}
DECIDES_NOTHING = {
    "name: nightly": "name: weekly",
    "[mlflow:digits, wandb:team/digits]": "mlflow:digits",
    "stage: test": "stage: dev",
    "    alpha: 0.05\n": "    alpha: 0.05\n    fail_on: not-shown-non-inferior\n",
    "http://127.0.0.1:5000": "http://localhost:5000",
    "    log_to": "    tag_runs: true\n    log_to",
    "    margin: 0.01\n": "    margin: 0.01\n    engine: duckdb\n",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("old", "new", "decides"),
    [*((*each, True) for each in DECIDES.items()), *((*each, False) for each in DECIDES_NOTHING.items())],
)
def test_the_digest_changes_with_what_decides_a_comparison(folder: Path, old: str, new: str, decides: bool):
    changed = load_policies(edited(folder, old, new)).find()
    assert (changed.digest != load_policies(folder / "trackperm.yaml").find().digest) is decides


def test_the_digest_depends_on_the_spec_not_on_where_it_lies(folder: Path, tmp_path: Path):
    digest = load_policies(folder / "trackperm.yaml").find().digest
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "trackperm.yaml").write_text(FULL)
    (elsewhere / "own.yaml").write_text(OWN)
    assert load_policies(elsewhere / "trackperm.yaml").find().digest == digest
    (elsewhere / "own.yaml").write_text(OWN.replace("!=", "=="))
    assert load_policies(elsewhere / "trackperm.yaml").find().digest != digest


@pytest.mark.parametrize("old", ["    alpha: 0.05\n", "http://127.0.0.1:5000", "stage: test"])
def test_rows_of_a_queue_are_kept_by_the_outcome_and_the_runs_too(folder: Path, old: str):
    changed = load_policies(edited(folder, old, DECIDES_NOTHING[old])).find()
    assert changed.queue_key != load_policies(folder / "trackperm.yaml").find().queue_key


ALIKE = """\
policies:
  - {name: loose, runs: mlflow:digits, baseline: {run: a.csv}, margin: 0.1}
  - {name: strict, runs: mlflow:digits, baseline: {run: a.csv}, margin: 0.1, tag_runs: true}
"""


def test_two_policies_that_compare_the_same_runs_in_one_way_are_refused(tmp_path: Path):
    path = tmp_path / "trackperm.yaml"
    path.write_text(ALIKE)
    with pytest.raises(SpecError, match=r"yaml:3:\d+: the policy `loose` compares and judges"):
        load_policies(path)
    for old, new in {
        "strict, runs: mlflow:digits,": "strict,",
        "tag_runs: true": "fail_on: not-shown-non-inferior",
        "tag_runs: true}": "if_no_baseline: pass}",
    }.items():
        path.write_text(ALIKE.replace(old, new))
        assert len(load_policies(path).policies) == 2


def test_an_invalid_address(folder: Path):
    said = problem(folder, "http://127.0.0.1:5000", "http://[::1/hunter2")
    assert "`tracking_uri` is not a valid address (Invalid IPv6 URL)" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        ("`--missing drop` or `--slice COLUMN`", "`missing: drop` or `slices: COLUMN`"),
        (
            "`--id NAME` names the ids; `--label`",
            "`columns: {id: NAME}` names the ids; `columns`",
        ),
        ("`--by-position` pairs rows", "`--by-position` pairs rows"),
    ],
)
def test_hints_name_the_keys_of_policies(hint: str, said: str):
    assert hint_for_policies(InputError("wrong", hint=hint)) == said


def test_another_process_gets_the_same_policy(folder: Path):
    policy = load_policies(folder / "trackperm.yaml").find()
    copy = pickle.loads(pickle.dumps(policy))
    assert (copy.digest, copy.runs, copy.baseline) == (policy.digest, policy.runs, policy.baseline)
    assert [written_spec(spec) for spec in copy.specs] == [written_spec(spec) for spec in policy.specs]


def test_another_baseline_makes_another_policy(folder: Path):
    policy = load_policies(folder / "trackperm.yaml").find()
    other = with_baseline(policy, "mlflow:3f2a")
    assert (other.baseline.run, other.specs) == ("mlflow:3f2a", policy.specs)
    assert other.digest != policy.digest
    assert policy.baseline.newest is not None, "the policy itself stays as it is"
    for url in ("https://host/a.parquet", "s3://bucket/a.parquet::part"):
        assert with_baseline(policy, url).baseline.run == url


REFUSED: dict[str, tuple[str, str, str]] = {
    "unknown key": ("alpha: 0.05", "alhpa: 0.05", "edited.yaml:12:5: unknown key `alhpa`"),
    "unknown key inside": ("tags: {stage: prod}", "tag: {stage: prod}", "keys are `tags`, `name`. Did you"),
    "key of a statistic": ("columns: {label: y}", "column: {label: y}", "yaml:9:47: unknown key `column`"),
    "twice": ("alpha: 0.05", "alpha: 0.05\n    alpha: 0.1", "the key `alpha` is already in line 12"),
    "not between": ("alpha: 0.05", "alpha: 0.7", "yaml:12:12: expected a number less than 0.5, found 0.7"),
    "not finite": ("alpha: 0.05", "alpha: .nan", "yaml:12:12: expected a finite number, found nan at"),
    "no number": ("margin: 0.01", "margin: small", "edited.yaml:13:13: expected a number, found text"),
    "no margin": ("margin: 0.01", "margin: 0", "expected a number greater than 0, found 0"),
    "needs a margin": (
        "margin: 0.01",
        "fail_on: not-shown-non-inferior",
        "edited.yaml:13:14: `not-shown-non-inferior` needs a `margin`",
    ),
    "word": ("correction: hommel", "correction: holme", "found `holme` at `$.policies[0].correction`"),
    "two rules": (
        "newest: {tags: {stage: prod}}",
        "run: mlflow:a, branch: main",
        "edited.yaml:5:15: expected one of `run`, `newest`, `alias`, `champion`, `branch`, found `run` and",
    ),
    "no rule": ("newest: {tags: {stage: prod}}", "", "`branch`, found none"),
    "extra": (
        "newest: {tags: {stage: prod}}",
        "run: mlflow:a, among: mlflow:b",
        "`among` does not go with `run`",
    ),
    "no experiment": ("[mlflow:digits, wandb:team/digits]", "digits", "such as `mlflow:NAME` or `wandb:"),
    "a number as experiment": (
        "[mlflow:digits, wandb:team/digits]",
        "[3]",
        "edited.yaml:3:12: expected an experiment or project, such as `mlflow:NAME` or `wandb:NAME`,"
        " found an integer at `$.policies[0].runs[0]`",
    ),
    "a list as experiment": (
        "mlflow:verdicts",
        "[mlflow:e]",
        "edited.yaml:15:13: expected an experiment or project, such as `mlflow:NAME` or `wandb:NAME`,"
        " found a list at `$.policies[0].log_to`",
    ),
    "unknown tracker": ("mlflow:verdicts", "mlfow:verdicts", "found `mlfow:verdicts` at `$.policies[0].log"),
    "number as tag": ("stage: test", "stage: 3", "edited.yaml:4:26: expected text, found an integer"),
    "name": ("name: nightly", "name: Night_ly", "lower-case letters, digits and hyphens, found `Night_ly`"),
    "statistic": ("- accuracy", "- acuracy", "edited.yaml:8:9: no statistic is called `acuracy`"),
    "file": ("./own.yaml", "./missing.yaml", "edited.yaml:10:9: `./missing.yaml` does not exist"),
    "parameter": ("positive: 1", "positiv: 1", "yaml:9:9: the statistic `f1` has no parameter `positiv`"),
    "better alone": (
        "margin: 0.01",
        "alternative: greater",
        "edited.yaml:13:18: by `accuracy` the alternative `greater` shows that a candidate is better, never",
    ),
    "lower alone": (
        "margin: 0.01",
        "alternative: less",
        "edited.yaml:13:18: by `wrong` the alternative `less` shows that a candidate is better, never",
    ),
    "another version": (
        "policies:\n",
        "version: 2\npolicies:\n",
        "edited.yaml:1:10: expected one of `1`, found `2` at `$.version`",
    ),
    "a name twice": (
        "policies:\n",
        "policies:\n  - {name: nightly, baseline: {run: x.csv}}\n",
        "edited.yaml:3:11: another policy is called `nightly` already",
    ),
    "a statistic twice": ("- accuracy", "- accuracy\n      - accuracy", "another statistic is called `acc"),
    "by other columns": (
        "- accuracy",
        "- accuracy\n      - {name: accuracy, columns: {label: other}}",
        "another statistic is called `accuracy` already",
    ),
    "a path of no file": ("- accuracy", f"- {'a' * 5000}.yaml", "File name too long"),
    "no policies": (FULL, "policies: []\n", "edited.yaml:1:11: the list of policies is empty"),
}


MISSPELT = {
    "capitals": ("MLflow:g/base", "expected `mlflow:g/base` at `$.policies[0].baseline.run`"),
    "spaces": ("mlflow : g/base", "expected `mlflow:g/base`"),
    "two colons": ("mlflow::g/base", "expected `mlflow:g/base`"),
    "no run": ("WandB:", "expected `wandb:<run id>`"),
    "a model": ("Models:/digits/3", "expected `models:/digits/3`"),
    "unknown": ("mlfow:g/base", "`mlfow` is not a tracker; expected one of `mlflow`, `wandb`"),
    "an id": ("0123456789abcdef" * 2, "looks like the id of a run; expected `mlflow:RUN` or `wandb:RUN`"),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", MISSPELT)
def test_a_baseline_that_names_no_file_is_refused(folder: Path, case: str):
    """Regression: it was a file that does not exist, and `if_no_baseline: pass` passed every candidate."""
    written, expected = MISSPELT[case]
    assert expected in problem(folder, "newest: {tags: {stage: prod}}", f"run: '{written}'")
    as_file = edited(folder, "newest: {tags: {stage: prod}}", f"run: './{written}'")
    assert str(load_policies(as_file).find().baseline) == f"the file ./{written}"


@pytest.mark.sample(6)
@pytest.mark.parametrize("blank", ["''", "' '"])
@pytest.mark.parametrize(
    "rule",
    [
        "run: {}",
        "branch: {}",
        "champion: {}",
        "alias: {}",
        "newest: {{name: {}}}",
        "newest: {{tags: {{a: {}}}}}",
        "newest: {{tags: {{{}: a}}}}",
        "branch: main, branch_tag: {}",
        "newest: {{}}, among: {}",
    ],
)
def test_empty_values_in_a_baseline_rule_are_refused(folder: Path, rule: str, blank: str):
    """Regression: nothing was found by them, and `if_no_baseline: pass` passed every candidate."""
    said = problem(folder, "newest: {tags: {stage: prod}}", rule.format(blank))
    assert "edited.yaml:5:" in said
    assert "expected text that is not empty, found '" in said or "expected an experiment or project" in said


@pytest.mark.parametrize("key", ["artifact", "cluster", "metric", "slices", "tracking_uri"])
def test_other_empty_keys_are_refused(folder: Path, key: str):
    path = folder / "empty.yaml"
    path.write_text(f"policies: [{{name: p, baseline: {{run: a.csv}}, {key}: ' '}}]")
    with pytest.raises(SpecError, match="expected text that is not empty, found ' '"):
        load_policies(path)


def test_the_check_says_what_a_baseline_is_taken_for(folder: Path):
    path = folder / "taken.yaml"
    rules = ["own.yaml", "none.csv", "g/base", "mlflow:g/base", "spark:a.b"]
    lines = [f"  - {{name: p{number}, baseline: {{run: '{rule}'}}}}\n" for number, rule in enumerate(rules)]
    path.write_text("policies:\n" + "".join(lines))
    printed = CliRunner().invoke(commands.app, ["policy", "check", str(path)]).stdout
    assert [line[14:] for line in printed.splitlines() if line.startswith(("  with ", "              "))] == [
        "the file own.yaml",
        "the file none.csv, which does not exist",
        "the file g/base, which does not exist",
        "if it is a run of a tracker: `mlflow:g/base`, for example",
        "the run mlflow:g/base",
        "the table spark:a.b",
    ]


@pytest.mark.sample(12)
@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_place(folder: Path, case: str):
    old, new, expected = REFUSED[case]
    assert expected in problem(folder, old, new)


def test_a_broken_spec_is_shown_where_it_is_broken(folder: Path):
    (folder / "own.yaml").write_text(OWN.replace("score: wrong", "score: wrnog"))
    with pytest.raises(SpecError, match=r"own.yaml:4:8: unknown name `wrnog`"):
        load_policies(folder / "trackperm.yaml")


@pytest.mark.parametrize(
    "uri",
    [
        "http://ada:lovelace@127.0.0.1:5000",
        "https://lovelace@mlflow.example.org",
        "postgresql://ada:lovelace@db/mlflow",
        "postgresql://db/mlflow?user=ada&password=lovelace",
        "postgresql://ada:love/lovelace@db/mlflow",
        "http://127.0.0.1:5000/?access_token=lovelace",
    ],
)
def test_credentials_are_refused_and_not_repeated(folder: Path, uri: str):
    said = problem(folder, "http://127.0.0.1:5000", uri)
    assert said.startswith("edited.yaml:16:19: credentials in `tracking_uri`")
    assert "lovelace" not in said
    assert "MLFLOW_TRACKING_PASSWORD" in said


@pytest.mark.parametrize(
    "url", ["https://ada:lovelace@host/a.parquet", "https://host/a?X-Amz-Signature=lovelace"]
)
def test_credentials_of_a_baseline_are_refused_and_not_repeated(folder: Path, url: str):
    said = problem(folder, "newest: {tags: {stage: prod}}", f'run: "{url}"')
    assert said.startswith("edited.yaml:5:21: credentials in `run` at `$.policies[0].baseline.run`\n\nHint: ")
    assert "lovelace" not in said


def test_a_line_that_is_shown_has_no_credentials(folder: Path):
    path = folder / "line.yaml"
    path.write_text('policies: [{name: a, baseline: {run: "http://h/a?token=lovelace"}, alhpa: 1}]')
    for option in ([], ["--format", "json"]):
        result = CliRunner().invoke(commands.app, ["policy", "check", str(path), *option])
        assert "http://h/a?token=…" in result.output
        assert "lovelace" not in result.output


def test_check_names_what_it_wants(folder: Path):
    for path in (folder / "nowhere.yaml", folder):
        result = CliRunner().invoke(commands.app, ["policy", "check", str(path)])
        assert "Hint: policies are in a YAML file, such as `trackperm.yaml`." in result.stderr


def test_everything_wrong_is_listed(folder: Path):
    path = edited(folder, "alpha: 0.05", "alhpa: 0.05")
    path.write_text(path.read_text().replace("hommel", "homm"))
    found = read_policies(path)
    assert isinstance(found, list)
    assert [error.message.removeprefix(f"{path}:").split(" at ")[0] for error in found] == [
        "12:5: unknown key `alhpa`",
        "14:17: expected one of `holm`, `tarone-holm`, `hommel`, `bonferroni`, `bh`, `by`, `none`,"
        " found `homm`",
    ]


def check_schema(data: Any) -> None:
    jsonschema.Draft202012Validator(json_schema()).validate(data)


def test_the_schema_takes_what_is_taken_and_refuses_what_is_not():
    jsonschema.Draft202012Validator.check_schema(json_schema())
    check_schema(yaml.safe_load(FULL))
    for old, new in (
        ("alpha: 0.05", "alhpa: 0.05"),
        ("alpha: 0.05", "alpha: 0.7"),
        ("newest: {tags: {stage: prod}}", "run: mlflow:a, branch: main"),
        ("mlflow:verdicts", "verdicts"),
        ("name: nightly", "name: Nightly"),
    ):
        with pytest.raises(jsonschema.ValidationError):
            check_schema(yaml.safe_load(FULL.replace(old, new, 1)))


CHECKED = """\
{path}: ok, 1 policy

nightly
  compares    the finished runs of mlflow:digits, wandb:team/digits (stage=test, name cand-*)
  with        the newest finished run before the candidate (stage=prod)
  by          accuracy, f1, wrong
  at          alpha 0.05, margin 0.01, correction hommel, artifact predictions.parquet
  fails on    a candidate that is significantly worse
  logs to     mlflow:verdicts
  tracker     http://127.0.0.1:5000
  digest      {digest}
"""


def test_check_prints_what_it_understood(folder: Path):
    path = folder / "trackperm.yaml"
    result = CliRunner().invoke(commands.app, ["policy", "check", str(path)])
    digest = load_policies(path).find().digest[:12]
    assert (result.exit_code, result.stdout) == (0, CHECKED.format(path=path, digest=digest))


def test_check_as_json_and_with_errors(folder: Path):
    good, bad = folder / "trackperm.yaml", edited(folder, "alpha: 0.05", "alhpa: 0.05")
    result = CliRunner().invoke(commands.app, ["policy", "check", str(good), str(bad)])
    assert result.exit_code == 2
    assert f"{bad}: 1 problem" in result.stderr
    assert f"{bad}:12:5: unknown key `alhpa`" in result.stderr
    result = CliRunner().invoke(commands.app, ["policy", "check", str(good), str(bad), "--format", "json"])
    first, second = json.loads(result.stdout)
    assert (first["ok"], second["ok"], result.exit_code) == (True, False, 2)
    assert first["policies"][0]["runs"] == ["mlflow:digits", "wandb:team/digits"]
    assert len(second["problems"]) == 1


def test_schema_command():
    result = CliRunner().invoke(commands.app, ["policy", "schema"])
    assert json.loads(result.stdout) == json_schema()
