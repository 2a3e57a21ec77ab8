"""The 62 tests of `reference_pvalues.json`, with their integer inputs read from the data themselves.

The data are third-party files that the project does not copy: they stand in `../shared/data` beside it,
or where the environment variable TRACKPERM_REFERENCE_DATA points. Where they are absent, `available()` is
False and the tests that need them skip. Plain Python, so that nothing here shares code with what it tests.
"""

from __future__ import annotations

import csv
import json
import os
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import lcm
from pathlib import Path
from typing import Any

import pytest

_BESIDE_PROJECT = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
DATA = Path(os.environ.get("TRACKPERM_REFERENCE_DATA", _BESIDE_PROJECT))
ABSENT = f"the reference data are not at {DATA} (set TRACKPERM_REFERENCE_DATA)"

Counts = tuple[int, ...]  # of one system on one example
Systems = tuple[list[Counts], list[Counts]]  # candidate u, baseline v


@dataclass(frozen=True)
class Reference:
    """One published comparison: its inputs, and what an exact test must answer.

    `statistic` is "difference" (counts: score), "f1" or "precision" (counts: tp, pred, gold); the observed
    value is candidate minus baseline. The numerators are over 2 ** `n_discordant`.
    """

    id: str
    statistic: str
    count_names: tuple[str, ...]
    candidate: list[Counts]
    baseline: list[Counts]
    n_examples: int
    n_discordant: int
    observed: Fraction
    two_sided: int
    greater: int
    less: int
    entry: dict[str, Any]

    def pvalue(self, alternative: str) -> Fraction:
        numerators = {"two-sided": self.two_sided, "greater": self.greater, "less": self.less}
        return Fraction(numerators[alternative], 2**self.n_discordant)


def available() -> bool:
    return (DATA / "reference_pvalues.json").is_file()


needs_data = pytest.mark.skipif(not available(), reason=ABSENT)


def ids() -> list[str]:
    return list(_entries()) if available() else []


def spread(identifiers: Iterable[str], every: int) -> list[object]:
    """Parameters of a test: one identifier in so many, the others in the slow tests."""
    return [
        pytest.param(name, marks=[pytest.mark.slow] if number % every else [])
        for number, name in enumerate(identifiers)
    ]


@cache
def reference(identifier: str) -> Reference:
    entry = _entries()[identifier]
    candidate, baseline = _read_systems(entry)
    source, kind = identifier.split("/")[:2]
    statistic = (
        {"F1": "f1", "precision": "precision"}.get(kind, "difference") if source == "wnut17" else "difference"
    )
    observed = entry["observed"]
    return Reference(
        id=identifier,
        statistic=statistic,
        count_names=("score",) if statistic == "difference" else ("tp", "pred", "gold"),
        candidate=candidate,
        baseline=baseline,
        n_examples=entry["N"],
        n_discordant=entry["k_swappable"],
        observed=Fraction(observed["integer"] if "integer" in observed else observed["fraction"]),
        two_sided=int(entry["p_two_sided"]["numerator"]),
        greater=int(entry["p_greater"]["numerator"]),
        less=int(entry["p_less"]["numerator"]),
        entry=entry,
    )


@cache
def _entries() -> dict[str, dict[str, Any]]:
    document = json.loads((DATA / "reference_pvalues.json").read_text(encoding="utf-8"))
    return {entry["id"]: entry for entry in document["entries"]}


def _read_systems(entry: dict[str, Any]) -> Systems:
    """Dispatch on the identifier, `source/[kind/]A__vs__B`, to the reader of that source."""
    source, *kinds, names = entry["id"].split("/")
    candidate, _, baseline = names.partition("__vs__")
    if source == "gsm8k":
        return _gsm8k(candidate), _gsm8k(baseline)
    if source == "lm_eval":
        return _lm_eval(candidate.removesuffix("_tuned"))
    if source == "inspect":
        return _inspect(candidate.removeprefix("arc_easy_"), baseline)
    if source == "wnut17":
        return _wnut17(kinds[0], candidate), _wnut17(kinds[0], baseline)
    if source == "squad2":
        return _squad2(kinds[0], candidate, baseline, entry)
    if source in ("classic", "exactRankTests"):
        return _CLASSICS[names]()
    if source == "urbano":
        collection, _, candidate = candidate.rpartition("_")
        return _trec(collection, candidate), _trec(collection, baseline)
    if source == "wmt17_ter":
        return _ter(candidate), _ter(baseline)
    if source == "aeon_ucr":
        return _aeon(kinds[0], candidate), _aeon(kinds[0], baseline)
    if source == "sctk":
        return _sctk(candidate, baseline)
    raise LookupError(entry["id"])


def _scores(values: Iterable[int | Fraction]) -> list[Counts]:
    """One integer count per example; a score that is not an integer is an error of this module."""
    exact = [Fraction(value) for value in values]
    assert all(value.denominator == 1 for value in exact)
    return [(value.numerator,) for value in exact]


def _csv(path: str) -> list[dict[str, str]]:
    with (DATA / path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- accuracy: one 0/1 score per example ----------------------------------------------------------


def _gsm8k(system: str) -> list[Counts]:
    rows = _jsonl(DATA / "per_example/gsm8k_openai/example_model_solutions_3sys.jsonl")
    return _scores(int(row[system]["is_correct"]) for row in rows)


def _lm_eval(task: str) -> Systems:
    """The earlier run of each task is the tuned model; documents align by hash."""
    candidate: dict[str, int] = {}
    baseline: dict[str, int] = {}
    by_subtask: dict[str, list[Path]] = {}
    for path in sorted((DATA / "per_example/lm_eval_pyfade").glob(f"samples_{task}_*.jsonl")):
        by_subtask.setdefault(path.stem.rpartition("_")[0], []).append(path)
    for tuned, base in by_subtask.values():
        candidate |= {row["doc_hash"]: int(row["exact_match"]) for row in _jsonl(tuned)}
        baseline |= {row["doc_hash"]: int(row["exact_match"]) for row in _jsonl(base)}
    assert candidate.keys() == baseline.keys()
    return _scores(candidate.values()), _scores(baseline[document] for document in candidate)


def _inspect(candidate: str, baseline: str) -> Systems:
    """Choice scorer, C or I, on the samples (id, epoch) that both logs hold."""

    def grades(system: str) -> dict[tuple[int, int], int]:
        path = DATA / f"per_example/every_eval_ever/inspect/data_arc_{system}.json"
        log = json.loads(path.read_text(encoding="utf-8"))
        grade = {"C": 1, "I": 0}
        return {(s["id"], s["epoch"]): grade[s["scores"]["choice"]["value"]] for s in log["samples"]}

    u, v = grades(candidate), grades(baseline)
    common = sorted(u.keys() & v.keys())
    return _scores(u[sample] for sample in common), _scores(v[sample] for sample in common)


# --- WNUT-17: entity spans and tokens of 1,287 sentences ------------------------------------------


def _wnut17(kind: str, system: str) -> list[Counts]:
    gold = _tags("emerging.test.annotated")
    (path,) = (DATA / "structured_counts/wnut17/submissions").glob(f"{system}*")
    predicted = _tags(f"submissions/{path.name}")
    assert [len(tags) for tags in gold] == [len(tags) for tags in predicted]
    pairs = list(zip(gold, predicted, strict=True))
    if kind == "token_accuracy":
        return _scores(sum(map(str.__eq__, g, p)) for g, p in pairs)
    spans = [(_chunks(g), _chunks(p)) for g, p in pairs]
    if kind == "recall":
        return _scores(len(g & p) for g, p in spans)
    return [(len(g & p), len(p), len(g)) for g, p in spans]


@cache
def _tags(name: str) -> list[list[str]]:
    """Tags by sentence, the last field of each line: tabs or spaces, LF or CRLF, blank lines between."""
    sentences: list[list[str]] = [[]]
    lines = (DATA / "structured_counts/wnut17" / name).read_bytes().decode("utf-8").split("\n")
    for line in lines:
        fields = re.split(r"[\t ]", line.rstrip("\r"))
        if fields != [""]:
            sentences[-1].append(fields[-1])
        elif sentences[-1]:
            sentences.append([])
    return [tags for tags in sentences if tags]


def _chunks(tags: list[str]) -> set[tuple[str, int, int]]:
    """Entity spans (type, start, end) as conlleval reads them: an I- after O or another type starts one."""
    spans = set()
    start, kind = 0, ""
    for position, tag in enumerate([*tags, "O"]):
        prefix, _, current = tag.partition("-")
        if kind and (prefix != "I" or current != kind):
            spans.add((kind, start, position))
            kind = ""
        if current and not kind:
            start, kind = position, current
    return spans


# --- SQuAD 2.0: official normalisation, ids present in both prediction files ----------------------

_SQUAD_FILES = {"bidaf_char": "charembdev.csv", "qanet": "qanetdev.csv"}


def _squad2(kind: str, candidate: str, baseline: str, entry: dict[str, Any]) -> Systems:
    gold = _squad_answers()
    u, v = _squad_predictions(candidate), _squad_predictions(baseline)
    common = sorted(u.keys() & v.keys())
    if kind != "tokenF1_small":
        score: Callable[[str, list[str]], int] = {"EM": _exact_match, "AvNA": _answer_vs_none}[kind]
        return (
            _scores(score(u[question], gold[question]) for question in common),
            _scores(score(v[question], gold[question]) for question in common),
        )
    questions = entry["ids"]
    f1_u = [_token_f1(u[question], gold[question]) for question in questions]
    f1_v = [_token_f1(v[question], gold[question]) for question in questions]
    scale = lcm(*(value.denominator for value in f1_u + f1_v))
    assert scale == entry["scale"]
    return _scores(scale * value for value in f1_u), _scores(scale * value for value in f1_v)


@cache
def _squad_answers() -> dict[str, list[str]]:
    path = DATA / "structured_counts/squad2_cs224n/dev-v2.0.json"
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    return {
        question["id"]: [answer["text"] for answer in question["answers"]] or [""]
        for article in articles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    }


@cache
def _squad_predictions(system: str) -> dict[str, str]:
    rows = _csv(f"structured_counts/squad2_cs224n/{_SQUAD_FILES[system]}")
    return {row["Id"]: row["Predicted"] for row in rows}


def _tokens(answer: str) -> list[str]:
    """Lower case, no punctuation, no articles: `normalize_answer` of the official script, split."""
    without_punctuation = "".join(c for c in answer.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", without_punctuation).split()


def _exact_match(prediction: str, gold: list[str]) -> int:
    return int(any(_tokens(prediction) == _tokens(answer) for answer in gold))


def _answer_vs_none(prediction: str, gold: list[str]) -> int:
    return int((prediction == "") == (gold == [""]))


def _token_f1(prediction: str, gold: list[str]) -> Fraction:
    def f1(answer: str) -> Fraction:
        predicted, expected = _tokens(prediction), _tokens(answer)
        if not predicted or not expected:
            return Fraction(predicted == expected)
        common = sum((Counter(predicted) & Counter(expected)).values())
        return Fraction(2 * common, len(predicted) + len(expected))

    return max(f1(answer) for answer in gold)


# --- published paired tests: real scores, scaled to integers --------------------------------------


def _paired_columns(path: str, candidate: str, baseline: str, scale: int) -> Systems:
    rows = _csv(f"reference_pvalues/{path}")
    return (
        _scores(scale * Fraction(row[candidate]) for row in rows),
        _scores(scale * Fraction(row[baseline]) for row in rows),
    )


def _student_sleep() -> Systems:
    rows = _csv("reference_pvalues/classics/sleep.csv")
    extra = {(row["group"], row["ID"]): 10 * Fraction(row["extra"]) for row in rows}
    people = sorted({row["ID"] for row in rows}, key=int)
    return _scores(extra["2", who] for who in people), _scores(extra["1", who] for who in people)


def _na_dropped() -> Systems:
    """The R documentation's x = c(1, 2, 3, 4, NA) and y = c(1, 2, 1, 2, 3), without the pair that has NA."""
    return _scores([1, 2, 3, 4]), _scores([1, 2, 1, 2])


_CLASSICS: dict[str, Callable[[], Systems]] = {
    "darwin_zea_mays": lambda: _paired_columns("classics/ZeaMays.csv", "cross", "self", 8),
    "lakes_mlxtend": lambda: _paired_columns("classics/lakes_mlxtend.csv", "1980", "1990", 100),
    "ipat_pesarin_salmaso": lambda: _paired_columns("pesarin_salmaso/ipat.csv", "YB", "YA", 1),
    "student_sleep": _student_sleep,
    "na_dropped": _na_dropped,
}


def _trec(collection: str, run: str) -> list[Counts]:
    scale = {"adhoc8_ap": 10_000, "adhoc8_p10": 10}[collection]
    rows = _csv(f"reference_pvalues/urbano_trec/{collection}.csv")
    return _scores(scale * Fraction(row[run]) for row in rows)


def _ter(system: str) -> list[Counts]:
    rows = _csv("reference_pvalues/sacrebleu_wmt17/ter_edits_derived.csv")
    (column,) = (name for name in rows[0] if name.startswith(f"newstest2017.{system}."))
    return _scores(int(row[column]) for row in rows)


# --- classifiers over data sets and resamples -----------------------------------------------------


def _aeon(kind: str, classifier: str) -> list[Counts]:
    rows = {row["Resamples:"]: row for row in _csv(f"cv_folds/aeon_ucr/{classifier}_accuracy.csv")}
    if kind == "ACSF1_30_resamples":  # 100 test cases each
        return _scores(100 * Fraction(rows["ACSF1"][str(resample)]) for resample in range(30))
    assert kind == "112_datasets_default_split"
    return _scores(10_000 * round(Fraction(rows[name]["0"]), 4) for name in sorted(rows))


# --- sclite: word errors per utterance ------------------------------------------------------------

_SCTK_FILES = {
    "itmono_8": "file1.sgml",
    "itword_20": "file2.sgml",
    "lvc_hyp": "lvc_hyp.ctm.filt.sgml",
    "lvc_hyp2": "lvc_hyp2.ctm.filt.sgml",
}


def _sctk(candidate: str, baseline: str) -> Systems:
    u, v = _word_errors(_SCTK_FILES[candidate]), _word_errors(_SCTK_FILES[baseline])
    assert u.keys() == v.keys()
    return _scores(u.values()), _scores(v[utterance] for utterance in u)


def _word_errors(name: str) -> dict[str, int]:
    """Substitutions, deletions and insertions by utterance; attribute values hold `>`, words hold `:`."""
    text = (DATA / "structured_counts/sctk" / name).read_text(encoding="latin-1")
    paths = re.findall(r'<PATH((?:\s+\w+="[^"]*")*)\s*>\n(.*?)</PATH>', text, flags=re.DOTALL)
    assert len(paths) == text.count("<PATH")
    errors: dict[str, int] = {}
    for attributes, alignment in paths:
        (utterance,) = re.findall(r'\bid="([^"]*)"', attributes)
        labels = re.findall(r'(?:^|:)([CSDI]),(?=["?,])', alignment.strip())
        assert utterance not in errors
        errors[utterance] = sum(label != "C" for label in labels)
    return errors
