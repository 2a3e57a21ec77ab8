"""All formats that can be read, in the order in which they are tried on a file."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from trackperm.errors import SourceError, TrackpermError
from trackperm.messages import listed
from trackperm.tables.formats.arrow import ARROW
from trackperm.tables.formats.conll import CONLL
from trackperm.tables.formats.conllu import CONLLU
from trackperm.tables.formats.delimited import DELIMITED
from trackperm.tables.formats.evalb import EVALB
from trackperm.tables.formats.headerless import HEADERLESS
from trackperm.tables.formats.helm import HELM
from trackperm.tables.formats.hugging_face import SAVED_DATASET, SAVED_SPLITS
from trackperm.tables.formats.inspect import INSPECT_LOG
from trackperm.tables.formats.json_lines import JSON_LINES
from trackperm.tables.formats.json_object import JSON_OBJECT
from trackperm.tables.formats.json_records import JSON_RECORDS
from trackperm.tables.formats.junit import JUNIT
from trackperm.tables.formats.lighteval import LIGHTEVAL
from trackperm.tables.formats.lm_eval import LM_EVAL, LM_EVAL_OUTPUT
from trackperm.tables.formats.log_table import LOG_TABLE
from trackperm.tables.formats.npz import NPZ
from trackperm.tables.formats.parquet import PARQUET, PARQUET_PARTS
from trackperm.tables.formats.promptfoo import PROMPTFOO
from trackperm.tables.formats.sclite import SCLITE, SCLITE_PRA
from trackperm.tables.formats.squad import SQUAD, SQUAD_PREDICTIONS
from trackperm.tables.formats.swe_bench import SWE_BENCH
from trackperm.tables.formats.terminal_bench import TERMINAL_BENCH
from trackperm.tables.formats.trec import TREC
from trackperm.tables.formats.trec_eval import TREC_EVAL
from trackperm.tables.formats.trn import TRN
from trackperm.tables.formats.wandb_table import WANDB_TABLE
from trackperm.tables.json_values import parsed, table
from trackperm.tables.polars_code import text_of
from trackperm.tables.row_meaning import why_no_examples
from trackperm.tables.source import Source, SourceFile
from trackperm.tables.wandb.run_folder import wandb_run

GROUP = "trackperm.sources"

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""First bytes of text in UTF-16."""

_NPY = b"\x93NUMPY"
"""First bytes of an array that `numpy.save` writes."""


@cache
def sources() -> tuple[Source, ...]:
    """Return all formats: those of installed packages before the built-in ones.

    Raise SourceError if an entry point is not a :class:`~trackperm.tables.source.Source`.
    """
    installed = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        source = entry.load()
        if not isinstance(source, Source):
            raise SourceError(
                f"the entry point `{entry.name}` of `{GROUP}`, {entry.value!r}, is not a `Source`",
                hint="an entry point names an instance of `trackperm.tables.source.Source`.",
            )
        installed.append(source)
    return (*installed, *_OWN)


def detect_format(file: SourceFile) -> Source:
    """Return the format of a file.

    Raise SourceError if no format recognises it.
    """
    found = next((source for source in sources() if source.recognises(file)), None)
    if found is not None:
        return found
    if file.path.is_dir():
        folder = file.origin.rstrip("/")
        paths = [f"{folder}/{entry.name}" for entry in sorted(file.path.iterdir())]
        raise SourceError(
            f"`{file.origin}` is a directory that cannot be read as one table",
            hint=f"name a file or folder in it: {listed(paths)}." if paths else "it is empty.",
        )
    if not file.head.strip():
        raise SourceError(f"`{file.origin}` is blank")
    raise SourceError(
        f"`{file.origin}` is not in a known format{_what_it_is(file)}",
        hint=_way_on(file)
        or f"known formats: {', '.join(dict.fromkeys(source.title for source in sources()))}.",
    )


def _way_on(file: SourceFile) -> str | None:
    """Say how files of spreadsheets, arrays and objects become tables that can be read; None for others."""
    if file.head.startswith(_UTF_16):
        return "save it as UTF-8, in Excel as `CSV UTF-8`, or convert it by `iconv -f UTF-16 -t UTF-8`."
    if any(name.startswith("xl/") for name in file.members):
        code = f"pl.read_excel({text_of(file.origin)}).write_csv({text_of('run.csv')})"
        return f"it is a workbook of Excel: save its sheet as `CSV UTF-8`, or by `{code}` of polars."
    if file.head.startswith(_NPY):
        code = f'np.savez("run.npz", prediction=np.load({text_of(file.origin)}), label=labels)'
        return (
            f"`{code}` writes a table with the labels, where each prediction is one value; of scores of"
            " classes, `.argmax(-1)` is the predicted class."
        )
    return _examples_inside(file)


def _examples_inside(file: SourceFile) -> str | None:
    """Say where a JSON object holds examples, or what else it is; None if it cannot be told."""
    if not isinstance(file.document, dict):
        return None
    try:
        row = table({name: [value] for name, value in file.document.items()}, "row {}".format, file.origin)
        reason = why_no_examples([row])
    except TrackpermError:
        return None
    return None if reason is None else f"{reason}."


def _what_it_is(file: SourceFile) -> str:
    if file.head.startswith(_UTF_16):
        return ": it is UTF-16 text; expected UTF-8"
    if file.head.startswith(_NPY):
        return ": it is one array of NumPy, which has neither labels nor ids"
    if not file.is_json:
        return ""
    if isinstance(file.document, dict):
        return f": it is a JSON object with {listed(list(file.document)[:10])}, which would be one row"
    if file.document is not None:
        return ": it is a JSON array without objects"
    try:
        parsed(file.text)
    except ValueError as error:
        return f": it begins like JSON, but is not valid ({error})"
    return ""


GENERAL = (SQUAD, SQUAD_PREDICTIONS, JSON_RECORDS, JSON_OBJECT, JSON_LINES, HEADERLESS, DELIMITED)
"""Formats that JSON files without predictions can have as well, such as settings and test data."""

# Ordered from specific to general: the first format that recognises a file reads it.
_OWN = (
    LM_EVAL,
    INSPECT_LOG,
    HELM,
    LIGHTEVAL,
    PROMPTFOO,
    TERMINAL_BENCH,
    SWE_BENCH,
    SQUAD,
    SQUAD_PREDICTIONS,
    EVALB,
    SCLITE,
    SCLITE_PRA,
    TRN,
    CONLLU,
    TREC,
    TREC_EVAL,
    CONLL,
    PARQUET,
    PARQUET_PARTS,
    ARROW,
    SAVED_DATASET,
    SAVED_SPLITS,
    NPZ,
    JUNIT,
    WANDB_TABLE,
    wandb_run(detect_format),
    LM_EVAL_OUTPUT,
    LOG_TABLE,
    JSON_RECORDS,
    JSON_OBJECT,
    JSON_LINES,
    HEADERLESS,
    DELIMITED,
)
