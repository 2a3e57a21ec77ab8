"""Fuzz what reads files and bodies: all formats, specs, policies and webhooks, in bounded memory and time.

``python tests/fuzz/fuzz_files.py SECONDS SEED FOLDER`` changes the samples of the tests at random. Each input
is read, or refused by one error of trackperm; anything else is a finding, kept in the folder once for each
place in the code. Inputs are tried in a process of their own, for some end it. With files in place of
this, it shows what becomes of them: ``fuzz_files.py .fuzz/findings/files-csv-1``.
"""

from __future__ import annotations

import faulthandler
import gzip
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.mutations import mutated
from tables.test_registry import SAMPLES
from tables.wandb.test_run_log import field, framed, history

import trackperm
from trackperm.automation.policy.load import read_policies
from trackperm.automation.webhooks.receive import _reference
from trackperm.errors import RefusedRequestError, TrackpermError
from trackperm.statistic.problems import problems
from trackperm.tables import read_examples
from trackperm.tables.columns.types import typed_columns, unusable
from trackperm.tables.registry import detect_format
from trackperm.tables.wandb.run_folder import RunFolder
from trackperm.tables.wandb.run_log import LoggedArtifact, RunLog

ROOT = Path(__file__).parents[2]
SECONDS = 10.0  # of the processor, for one input
MEGABYTES = 6000  # of address space, most of it libraries and threads
HANGS = 60.0  # seconds

TABLE = {"_type": "table-file", "path": "media/a", "nrows": 2, "artifact_path": "wandb-client-artifact://c/a"}
ENTRY = field(1, "a.csv") + field(2, "digest") + field(4, 7) + field(6, "/nowhere/a.csv")
ARTIFACT = field(4, "dataset") + field(5, "x") + field(6, "d") + field(15, "c") + field(12, field(4, ENTRY))
RECORD = (
    field(17, field(1, "id") + field(6, "group") + field(7, "job") + field(8, "name") + field(10, "tag"))
    + history(field(2, "a") + field(2, "b") + field(16, json.dumps(TABLE)), field(1, "x") + field(5, 4))
    + field(5, field(1, field(1, "_wandb") + field(16, json.dumps({"visualize": {"a": {}}}))))
    + field(8, ARTIFACT)
    + field(18, field(1, 1))
)

RANKING, QRELS = "301 Q0 a 1 2.5 bm25\n301 Q0 b 2 1.5 bm25\n", "301 0 a 1\n302 0 b 0\n"
TABLES: dict[str, bytes] = {}
"""Samples by their names, once there are `seeds`."""

Check = Callable[[Path], None]


class Seed(NamedTuple):
    """A file that is changed, and what reads it."""

    reader: str
    name: str
    check: Check
    content: bytes


class TooSlowError(BaseException):
    """An input that takes too much processor time; no `Exception`, which some readers take for a refusal."""


def table(path: Path) -> None:
    """Read a file as a run and use its columns, and compare it with itself."""
    parts = [None]
    try:
        read_examples(path)
    except trackperm.errors.ChoiceError as error:
        parts = list(error.parts[:2])
    except TrackpermError:
        return
    for part in parts:
        try:
            found = read_examples(path, part=part)
            for name in found.columns:
                if unusable(found, name) is None:
                    typed_columns(found, found, [name])
            trackperm.compare(found, found)
        except TrackpermError as error:
            assert str(error)


def ranking(path: Path) -> None:
    """Read a file as a ranking, and as the judgements of one."""
    beside = path.with_name("beside")
    for run, judged, other in ((path, beside, QRELS), (beside, path, RANKING)):
        beside.write_text(other)
        try:
            read_examples(run, part="AP", references=trackperm.tables.References(judged))
        except TrackpermError as error:
            assert str(error)


def labels(path: Path) -> None:
    """Read a file as reference answers, and with such of another file."""
    beside = path.with_name("beside")
    beside.write_bytes(TABLES["csv"])
    for run, gold in ((beside, path), (path, beside)):
        for by_position in (False, True):
            try:
                read_examples(run, references=trackperm.tables.References(gold, by_position=by_position))
            except TrackpermError as error:
                assert str(error)


def within(make: Callable[[Path], object], name: str) -> Check:
    """Return what reads a folder of which one file is changed."""

    def check(path: Path) -> None:
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent, "run")
            make(folder)
            (folder / name).write_bytes(path.read_bytes())
            table(folder)

    return check


def manifest(path: Path) -> None:
    """Read the list of an artifact's files as a run's folder does, which need not hold what is meant."""
    folder = RunFolder(path, RunLog(), "run")
    artifact = LoggedArtifact("a", "dataset", "d", "c", False, {}, str(path))
    folder._entries(artifact)


def run_log(path: Path) -> None:
    """Read a record of a run's log, whose checksums hide what is changed in a whole log."""
    log = path.with_name("run-x.wandb")
    log.write_bytes(framed([path.read_bytes()]))
    try:
        RunFolder.open(log, "run").read(None, "", detect_format)
    except TrackpermError as error:
        assert str(error)


def spec(path: Path) -> None:
    problems(path)


def policy(path: Path) -> None:
    read_policies(path)


def webhook(path: Path) -> None:
    for route in ("/wandb", "/mlflow"):
        try:
            _reference(route, path.read_bytes())
        except RefusedRequestError as error:
            assert str(error)


def seeds() -> list[Seed]:
    """Return each file that is changed."""
    found: list[Seed] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, (make, reader)) in enumerate(SAMPLES.items()):
            path, called = Path(folder, str(number)), name.replace(" ", "-")
            make(path)
            if path.is_file():
                found.append(Seed(reader, called, table, path.read_bytes()))
                TABLES[called] = path.read_bytes()
            for file in path.iterdir() if path.is_dir() else ():
                check = within(make, file.name)
                found.append(Seed(reader, f"{called}-{file.name}", check, file.read_bytes()))
    specs = [path.read_bytes() for path in ROOT.glob("trackperm/statistic/builtin/*.yaml")]
    event = {"entity": "model_version", "action": "created", "data": {"run_id": "0" * 32, "version": 1}}
    others: dict[str, tuple[Check, list[bytes]]] = {
        "ranking": (ranking, [RANKING.encode(), QRELS.encode()]),
        "labels": (labels, [TABLES[name] for name in ("csv", "jsonl", "parquet", "conll")]),
        "gzip": (table, [gzip.compress(TABLES["csv"])]),
        "manifest": (manifest, [gzip.compress(json.dumps({"path": "a.csv", "size": 7}).encode())]),
        "spec": (spec, specs),
        "policy": (policy, [(ROOT / "examples" / "trackperm.yaml").read_bytes()]),
        "run-log": (run_log, [RECORD]),
        "webhook": (webhook, [json.dumps(body).encode() for body in (event, {"run": "a/b/c"})]),
    }
    for name, (check, contents) in others.items():
        found += [Seed(name, name, check, content) for content in contents]
    return found


def by_reader(files: list[Seed]) -> list[list[Seed]]:
    """Group seeds, so that what has many samples gets no more inputs than what has one."""
    return [[seed for seed in files if seed.reader == name] for name in {seed.reader: None for seed in files}]


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise TooSlowError(f"more than {SECONDS} s")


def tried(check: Check, path: Path) -> BaseException | None:
    """Return what `check` raises, or that it takes too long."""
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            check(path)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of polars is no `Exception`
        return error
    return None


def work(seconds: float, seed: int, folder: Path, findings: Path) -> None:
    """Try inputs for some time; the last one lies in `folder`, whatever becomes of this process."""
    faulthandler.enable()
    signal.signal(signal.SIGPROF, _interrupt)
    resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES * 2**20,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rng, started, n_inputs = random.Random(seed), time.monotonic(), 0
    files = seeds()
    contents, readers = [seed.content for seed in files], by_reader(files)
    while time.monotonic() - started < seconds:
        _, name, check, content = rng.choice(rng.choice(readers))
        path = folder / name
        path.write_bytes(mutated(rng, content, contents))
        (folder / "name").write_text(name)
        error = tried(check, path)
        n_inputs += 1
        if error is not None:
            said = "".join(traceback.format_exception(error))
            keep(path, findings, f"{type(error).__name__} at {_place(error)}", said)
        path.unlink()
    print(f"{n_inputs} inputs")


def keep(path: Path, findings: Path, place: str, said: str) -> None:
    """Keep an input and what was raised, unless there is one of that place."""
    if any(place in text.read_text() for text in findings.glob("files-*.txt")):
        return
    kept = findings / f"files-{path.name}-{len(list(findings.glob('files-*.txt'))) + 1}"
    kept.write_bytes(path.read_bytes())
    Path(f"{kept}.txt").write_text(f"{place}\n{said}", errors="backslashreplace")


def _place(error: BaseException) -> str:
    """Name the innermost place in trackperm or here that an error comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    frame = next(
        frame for frame in reversed(frames) if str(ROOT) in frame.filename and ".venv" not in frame.filename
    )
    return f"{Path(frame.filename).relative_to(ROOT)}:{frame.name}:{frame.lineno}"


def supervise(seconds: float, seed: int, findings: Path) -> int:
    """Run workers until the time is up; return how many findings there are."""
    findings.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--work", str(left), str(seed), folder, str(findings)]
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace")
            try:
                _, said = process.communicate(timeout=left + HANGS)
                place = f"the process ended with {process.returncode}"
            except subprocess.TimeoutExpired:
                process.kill()
                _, said = process.communicate()
                place = "the process hung"
            name = Path(folder, "name")
            last = Path(folder, name.read_text()) if name.exists() else name
            if process.returncode and last.exists():
                lines = [line.strip() for line in said.splitlines() if "/trackperm/" in line]
                keep(last, findings, f"{place} {lines[0] if lines else ''}", said)
            elif process.returncode:  # before there was an input
                raise RuntimeError(said)
        seed += 1
    found = sorted(findings.glob("files-*.txt"))
    for finding in found:
        print(f"{finding.with_suffix('')}: {finding.read_text().splitlines()[0]}")
    return len(found)


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--work"]:
        work(float(arguments[1]), int(arguments[2]), Path(arguments[3]), Path(arguments[4]))
        return 0
    if len(arguments) == 3 and all(argument.isdecimal() for argument in arguments[:2]):
        return min(supervise(float(arguments[0]), int(arguments[1]), Path(arguments[2])), 1)
    checks = {seed.name: seed.check for seed in seeds()}
    for argument in arguments:
        found = next(
            check for name, check in checks.items() if Path(argument).name.startswith(f"files-{name}-")
        )
        found(Path(argument))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
