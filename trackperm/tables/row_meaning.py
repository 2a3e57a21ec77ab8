"""Rows that are not examples: folds, epochs, values of several metrics, documents, boxes, summaries.

Their columns tell what they are. Messages say so in place of a column of ids, by which such rows would be
compared like examples.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence

import polars as pl

from trackperm.errors import TrackpermError
from trackperm.messages import listed
from trackperm.tables.columns.judge_names import names_judgement, names_reasons
from trackperm.tables.columns.names import (
    ANSWERS,
    BOXES,
    DOCUMENTS,
    EVALUATORS,
    INPUTS,
    ITEMS,
    LABELS,
    MEDIA,
    METRICS,
    PREDICTIONS,
    QUERIES,
    RANK,
    SCORE,
    SCORES,
    TOPIC,
    USERS,
    names_examples,
    names_id,
    words_of,
)
from trackperm.tables.columns.types import FIRST_ROWS, are_integers, is_binary, is_number, typed_columns
from trackperm.tables.examples_in_one_row import AGGREGATE, RUN_TYPE, examples_in_one_row
from trackperm.tables.lazy.query import Query
from trackperm.tables.polars_code import rewriting, text_of, without_ending
from trackperm.tables.table import ExampleTable, rows_repeat, shared_columns

_MOST_METRICS = 50
"""Most distinct names of metrics in a column."""

_RELEVANCE = frozenset(("relevant", "relevance", "hit", "click", "clicked", "purchased"))
"""Words in names of columns that say whether a retrieved document is relevant."""

_ENROLMENT = frozenset(("enroll", "enrol", "enrollment", "enrolment"))
"""Words in names of columns of the speakers that a verification knows."""

_LINKS = (
    ("head", "tail"),
    ("subject", "object", "predicate"),
    ("subject", "object", "relation"),
    ("src", "dst"),
    ("node", "neighbor"),
    ("mention", "entity"),
    ("mention", "candidate"),
    ("mention", "wikidata"),
    ("mention", "kb"),
    ("start", "entity", "end"),
)
"""First words of the columns of two things that a model links, and of others beside them."""

_IN_TEXTS = frozenset(("mention", "start"))
"""Those of things that were found in a text, which may stand beside them."""

_OF_THINGS = frozenset((
    "id", "ids", "uri", "url", "iri", "entity", "name", "node", "index", "idx", "text", "title", "label",
    "char", "pos", "position", "offset", "span", "token",
))  # fmt: skip
"""Words that may follow these: `head_id` and `mention_text` are things, `head_yaw` and `src_lang` are not."""

_MOST_COMMENTS = 100_000
"""Most comments that are compared between runs."""

_SENTENCE = r"\S+(?:\s+\S+){3}"
"""Words of a sentence, such as a translation in `dst`, which is no thing that is linked."""

_SACREBLEU = frozenset(("name", "score", "signature"))
"""Members of each metric that sacrebleu writes as JSON."""

_COMPARE_EXAMPLES = (
    "compare files with a row for each example, which most programs write beside it, such as"
    " `predictions.csv` or `samples_*.jsonl`"
)

_PROGRESS = re.compile(r"_?(global_)?(epochs?|steps?|iterations?|iter)", re.IGNORECASE)


def why_no_examples(tables: Sequence[ExampleTable]) -> str | None:
    """Say what the rows of the runs are if they are not examples, and what to compare, without a full stop.

    None if the columns that the runs share do not say so.
    """
    return next(_reasons(tables, {name.lower(): name for name in shared_columns(tables)}), None)


def why_several_metrics(table: ExampleTable, name: str, metrics: Sequence[str]) -> str:
    """Say that a column names the metrics of rows, and what to compare, without a full stop."""
    if len(metrics) == len(table):
        return (
            f"each row is the value of a metric of the whole run, which `{name}` names ({listed(metrics)}):"
            f" {_COMPARE_EXAMPLES}"
        )
    keep = rewriting(table.origin, f"filter(pl.col({text_of(name)}) == {text_of(metrics[0])})", "one_metric")
    return (
        f"rows have values of several metrics, which `{name}` names ({listed(metrics)}): keep the rows of one"
        f" metric in each run, as `{keep}` of polars does"
    )


def several_metrics(
    tables: Sequence[ExampleTable], usual: Collection[str], unique: Collection[str] = METRICS
) -> Iterator[tuple[ExampleTable, str, list[str]]]:
    """Yield each run and column that names several metrics, and these.

    `usual` are the names of such columns in lower case. Values of which most occur once, or of which there
    are more than 50, are no names of metrics; those of a column in `unique`, such as `metric`, are, if they
    are not both.
    """
    for table in tables:
        for name in table.columns:
            if name.lower() not in usual:
                continue
            if len(metrics := _names_of_metrics(table, name, may_be_unique=name.lower() in unique)) > 1:
                yield table, name, metrics


def have_metrics_of_examples(tables: Sequence[ExampleTable], scores: Sequence[str]) -> bool:
    """Whether each example has one row with its own metric, whose score is 0 or 1, in each run.

    So it is if all scores are 0 or 1, true or false, and a column of ids or inputs has no value twice, and
    none of these that means an example has.
    """
    shared = [name for name in shared_columns(tables) if name.lower() not in (*METRICS, *EVALUATORS)]
    ids = [name for name in shared if names_id(name) or name.lower() in INPUTS]
    repeated = [name for name in ids if rows_repeat(tables, [name], if_unknown=False)]
    if len(repeated) == len(ids) or any(names_examples(name) or name in INPUTS for name in repeated):
        return False
    return bool(scores) and all(is_binary(table, name) for table in tables for name in scores)


def progress_of_training(tables: Sequence[ExampleTable]) -> str | None:
    """Return the column that numbers the rows of a training, such as `epoch`; None for other rows."""
    names = {name.lower(): name for name in shared_columns(tables)}
    progress = [name for name in names.values() if _PROGRESS.fullmatch(name.strip())]
    return progress[0] if progress and _are_measurements(tables, names, progress) else None


def retrieved_documents(tables: Sequence[ExampleTable]) -> tuple[str, str] | None:
    """Return the columns of documents and queries if rows are documents that were retrieved for queries.

    So are items that were recommended to users, unless the scores are integers, such as ratings by the users,
    or a column beside them is the id, the input or the label of an example, such as a message about an item.
    A query has several rows, or there is a column of ranks. Scores fall in the rows of a `topic` without
    ranks. An answer beside the document is what a model says about it.
    """
    names = {name.lower(): name for name in shared_columns(tables)}
    if SCORE not in names or names.keys() & ANSWERS:
        return None
    query, document = (_first(usual, names) for usual in (QUERIES, DOCUMENTS))
    if query is None or document is None:
        query, document = (_first(usual, names) for usual in (USERS, ITEMS))
        others = [name for name in names.values() if name not in (query, document)]
        if are_integers(SCORE, tables) or any(_is_of_example(tables, name) for name in others):
            return None
    if query is None or document is None:
        return None
    if RANK not in names:
        if not rows_repeat(tables, [query], if_unknown=False):
            return None
        if query.lower() == TOPIC and not all(_falls(table, query) for table in tables):
            return None
    return document, query


def verification_trials(tables: Sequence[ExampleTable]) -> str | None:
    """Return the column of enrolled speakers if rows are trials of a verification, without labels."""
    names = shared_columns(tables)
    known = {name.lower() for name in names}
    if SCORE not in known or known & {*ANSWERS, *LABELS}:
        return None
    return next((name for name in names if not _ENROLMENT.isdisjoint(words_of(name))), None)


def scored_links(tables: Sequence[ExampleTable]) -> tuple[str, str] | None:
    """Return the columns of two things that a model links, without labels: triples of a graph, entities.

    Sentences are no such things, such as a source and its translation; nor is a triple beside the question or
    the image of an example.
    """
    names = shared_columns(tables)
    known = {name.lower() for name in names}
    if SCORE not in known or known & {*ANSWERS, *LABELS}:
        return None
    if any(names_judgement(name) and not _are_comments_of_data(tables, name) for name in names):
        return None
    first = {
        words[0]: name
        for name in reversed(names)
        if (words := words_of(name)) and _OF_THINGS.issuperset(words[1:])
    }
    found = next(((first[each[0]], first[each[1]]) for each in _LINKS if first.keys() >= {*each}), None)
    if found is None or all(_are_sentences(tables, name) for name in found):
        return None
    are_asked = known & {*INPUTS, *MEDIA} - {name.lower() for name in found}
    is_in_text = words_of(found[0])[0] in _IN_TEXTS
    return None if are_asked and not is_in_text else found


def _are_comments_of_data(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether texts with the name of reasons are not those of a judge, as they are the same in all runs."""
    if not names_reasons(name) or len(tables) < 2 or rows_repeat(tables, [name], if_unknown=True):
        return False
    counts = [table.counts_of_few(name, _MOST_COMMENTS) for table in tables]
    values = [{*each[name]} for each in counts if each is not None]
    return len(values) == len(tables) and all(each == values[0] for each in values)


def _reasons(tables: Sequence[ExampleTable], names: dict[str, str]) -> Iterator[str]:
    if {"fit_time", "score_time"} <= names.keys() and any(name.startswith("test_") for name in names):
        yield (
            "rows with `fit_time` and `score_time` are folds of a cross-validation, whose scores are not"
            " independent: log the prediction of each example, as from `cross_val_predict`, and compare these"
        )
    if (progress := progress_of_training(tables)) is not None:
        yield (
            f"`{progress.strip()}` numbers the rows of a training, which are not examples: log the prediction"
            " of each example of a test set, and compare these"
        )
    if RUN_TYPE in names and (table := _with_aggregates(tables, names[RUN_TYPE])) is not None:
        change = f"filter(pl.col({text_of(names[RUN_TYPE])}) != {text_of(AGGREGATE)})"
        runs = rewriting(table.origin, change, f"{without_ending(table.origin)}-runs")
        yield (
            f"rows whose `{names[RUN_TYPE]}` is `{AGGREGATE}` are means and deviations of other rows: leave"
            f" them out in each run, as `{runs}` of polars does"
        )
    if names.keys() >= _SACREBLEU:
        yield (
            "each row is sacrebleu's score of a whole test set, by the metric in `name`: compare the outputs"
            " themselves, as a column `prediction`, by `--statistic bleu`, `chrf` or `ter`, with the"
            " references by `--labels`"
        )
    if not have_metrics_of_examples(tables, [name for name in SCORES if name in names.values()]):
        for table, name, metrics in several_metrics(tables, (*METRICS, *EVALUATORS)):
            yield why_several_metrics(table, name, metrics)
    if (retrieved := retrieved_documents(tables)) is not None:
        document, query = retrieved
        kind, found = (
            ("items", "recommended to") if query.lower() in USERS else ("documents", "retrieved for")
        )
        said = f"rows are {kind}, `{document}`, that were {found} a `{query}`, and their scores do not say"
        judged = [name for name in names.values() if not _RELEVANCE.isdisjoint(words_of(name))]
        if judged and is_number(judged[0], tables):
            metric, id_ = shlex.quote(judged[0]), shlex.quote(query)
            yield (
                f"{said} whether they are relevant, as `{judged[0]}` does: `--metric {metric}` with `--id"
                f" {id_}` and `--repeats mean` compares its means of each `{query}`"
            )
        yield (
            f"{said} whether they are relevant: write each run in TREC's format, `QUERY Q0 DOCUMENT RANK"
            " SCORE NAME`, and compare these with `--labels QRELS`"
        )
    if (enrolled := verification_trials(tables)) is not None:
        yield (
            f"rows are trials of a verification, by `{enrolled}`, and their scores do not say whether it is"
            " right: add a column `label` with the two kinds of trials, and compare these with `--statistic"
            " roc_auc`"
        )
    if (linked := scored_links(tables)) is not None:
        yield (
            f"rows link `{linked[0]}` to `{linked[1]}`, and their scores do not say whether that is right:"
            " add a column `label` with the two kinds of links, and compare these with `--statistic roc_auc`"
        )
    boxes = [names[each] for each in BOXES if each in names]
    if boxes and SCORE in names:
        yield (
            f"rows are boxes, by `{boxes[0]}`, and their scores are the confidence of a detector: compute a"
            " score of each image, such as its average precision, and compare these"
        )
    if (around := _around_examples(tables)) is not None:
        yield around
    elif (summary := _summary(tables, names)) is not None:
        yield (f"the only row of each run is a summary, as `{summary}` is: {_COMPARE_EXAMPLES}")


def _with_aggregates(tables: Sequence[ExampleTable], column: str) -> ExampleTable | None:
    """Return the first run with aggregates beside other rows, by the values of a column."""
    for table in tables:
        counts = table.counts_of_few(column, _MOST_METRICS)
        values = [] if counts is None else counts[column].drop_nulls().to_list()
        if AGGREGATE in values and len(values) > 1:
            return table
    return None


def _summary(tables: Sequence[ExampleTable], names: Mapping[str, str]) -> str | None:
    """Return a number in the only row of each run, if nothing in it is the id or a text of an example."""
    if any(isinstance(table.data, Query) or len(table) != 1 for table in tables):
        return None
    of_examples = {*ANSWERS, *INPUTS, *LABELS, *PREDICTIONS}
    if any(lower in of_examples or names_examples(lower) for lower in names):
        return None
    return next((name for name in names.values() if is_number(name, tables)), None)


def _around_examples(tables: Sequence[ExampleTable]) -> str | None:
    """Say that the only row of each run holds the examples, whose rows are not of another kind themselves."""
    inside = examples_in_one_row(tables)
    try:
        is_other = inside is not None and why_no_examples([inside.table]) is not None
    except TrackpermError:
        is_other = False
    return None if inside is None or is_other else inside.sentence(tables[0].origin)


def _are_measurements(tables: Sequence[ExampleTable], names: dict[str, str], progress: Sequence[str]) -> bool:
    """Whether all columns are numbers that describe a training step, without ids or answers."""
    others = [name for name in names.values() if name not in progress]
    of_examples = {*INPUTS, *LABELS, *PREDICTIONS}
    if not others or any(name.lower() in of_examples or names_examples(name) for name in others):
        return False
    if not all(is_number(name, tables) for name in (*progress, *others)):
        return False
    return any(not any(table.repeats([name]) for table in tables) for name in progress)


def _names_of_metrics(table: ExampleTable, name: str, *, may_be_unique: bool) -> list[str]:
    """Return the names of metrics in a column; empty if it holds other values."""
    most = len(table) // 2
    most = max(most, _MOST_METRICS) if may_be_unique else min(most, _MOST_METRICS)
    counts = None if is_number(name, [table]) else table.counts_of_few(name, most + 1)  # one may be null
    if counts is None:
        return []
    values = counts[name].drop_nulls()
    return sorted(map(str, values)) if len(values) <= most else []


def _is_of_example(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether a column is the id, the input or the label of an example, or a text without repeats."""
    if names_examples(name) or name.lower() in (*INPUTS, *LABELS):
        return True
    return not is_number(name, tables) and not rows_repeat(tables, [name], if_unknown=False)


def _first(usual: Sequence[str], names: Mapping[str, str]) -> str | None:
    return next((names[each] for each in usual if each in names), None)


def _are_sentences(tables: Sequence[ExampleTable], name: str) -> bool:
    """Whether most values of a column in the first rows of each run have four words or more."""
    try:
        read = [table.head(FIRST_ROWS).only((name,)).polars_column(name) for table in tables]
    except TrackpermError:
        return False
    if any(values.dtype != pl.String for values in read):
        return False
    return all(2 * values.str.contains(_SENTENCE).sum() > len(values) for values in read)


def _falls(table: ExampleTable, query: str) -> bool:
    """Whether scores never rise from one row of a query to the next."""
    head = table.head(FIRST_ROWS).only((query, SCORE))
    try:
        typed, _, _ = typed_columns(head, head, [query, SCORE])
        queries, scores = (typed.frame.get_column(name).to_polars() for name in (query, SCORE))
        steps = pl.DataFrame({"query": queries, "score": scores.cast(pl.Float64)}).select(
            pl.col("score").diff().over("query")
        )
    except (TrackpermError, pl.exceptions.PolarsError):
        return False
    return not (steps["score"] > 0.0).any()
