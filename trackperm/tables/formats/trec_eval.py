"""Measures of each query as ``trec_eval -q`` and ``ir_measures -q`` print them: three fields on a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from trackperm.errors import SourceError
from trackperm.tables.formats.header_detection import whole_lines
from trackperm.tables.formats.trec import is_number
from trackperm.tables.json_values import table
from trackperm.tables.source import Source, SourceFile, chosen_part
from trackperm.tables.table import ExampleTable

_ALL = "all"
"""Name that stands for all queries, in lines of a mean or a total."""

_WIDTH = 22
"""Characters to which trec_eval fills the name of a measure with spaces."""

_TEXTS = ("runid", "relstring")
"""Names of what trec_eval says in words."""

_MEASURE = re.compile(
    r"(gm_)?map(_cut_\d+)?|ndcg(_cut_\d+|_rel)?|(P|recall|success|iprec_at_recall|relative_P)_[\d.]+"
    r"|recip_rank|(gm_)?bpref|Rprec(_mult_[\d.]+)?|11pt_avg|num_(ret|rel|rel_ret|nonrel_judged_ret|q)|runid|relstring"
    r"|set_(P|recall|map|F(_[\d.]+)?|relative_P)|infAP|binG|G|utility"
    r"|(AP|MAP|RR|MRR|n?DCG|NDCG|Rprec|Bpref|infAP|ERR|RBP|Judged|Set(P|R|F|AP)|Num(Ret|Rel|Q)|Accuracy"
    r"|(alpha_|α_)n?DCG|n?ERR_IA|n?NRBP|AP_IA|Compat|BPM|INSQ|INST|SDCG|NERR\d+)(\([^\t]*\))?(@\d+)?"
    r"|(P|R|Success|P_IA|StRecall|RBR)(\([^\t]*\))?@\d+|IPrec@[\d.]+"
)
"""Names of measures, as the two programs write them."""

_COUNT = re.compile("num_.*|Num(Ret|Rel|Q)")
_HINT = "`trec_eval -q` writes `measure query value` on a line, and `ir_measures -q` `query measure value`."


def read_trec_eval(file: SourceFile) -> ExampleTable:
    """Read a row for each query, by its `id`, with a column for each measure, or the one that is chosen.

    Lines of all queries together are left out. Raise SourceError if there are no others, a query has two
    values of a measure, or a line has another number of fields.
    """
    place = _place_of_measures(file)
    values: dict[str, dict[str, str]] = {}
    measures = dict[str, None]()
    for number, line in enumerate(file.text.split("\n"), start=1):
        fields = [field.strip() for field in line.split("\t")]
        if fields == [""]:
            continue
        if len(fields) != 3:
            raise SourceError(
                f"`{file.origin}`, line {number}: {len(fields)} fields; expected 3 with tabs between them",
                hint=_HINT,
            )
        measure, query = fields[:2] if place == 0 else fields[1::-1]
        if query == _ALL:
            continue
        if measure in values.setdefault(query, {}):
            raise SourceError(
                f"`{file.origin}`, line {number}: `{measure}` of query `{query}` is there twice"
            )
        values[query][measure] = fields[2]
        measures[measure] = None
    if not values:
        raise SourceError(
            f"`{file.origin}` has values of all queries together alone; expected values of each query",
            hint=_HINT,
        )
    if file.part is not None:
        measures = {chosen_part(file, list(measures), "measure"): None}
    ids = list(values)
    columns = {name: _numbers([values[query].get(name) for query in ids]) for name in measures}
    read = table({"id": ids, **columns}, lambda index: f"query {ids[index]}", file.origin)
    return replace(
        read,
        metrics={name: name for name in measures} if len(measures) == 1 else {},
        greater_is_better={name: True for name in measures if not _COUNT.fullmatch(name)},
    )


def _numbers(texts: Sequence[str | None]) -> Sequence[str | float | None]:
    try:
        return [None if text is None else float(text) for text in texts]
    except ValueError:
        return texts


def _place_of_measures(file: SourceFile) -> int | None:
    """Return the field of the measures, 0 for trec_eval and 1 for ir_measures; None for other files."""
    lines = [line.split("\t") for line in whole_lines(file) if line.strip()]
    if not lines or any(len(fields) != 3 for fields in lines):
        return None
    if not all(is_number(value) or name.strip() in _TEXTS for name, _, value in lines):
        return None
    if all(len(name) >= _WIDTH and name.endswith(" ") for name, *_ in lines):
        return 0
    places = (place for place in (0, 1) if all(_MEASURE.fullmatch(fields[place].strip()) for fields in lines))
    return next(places, None)


TREC_EVAL = Source(
    "trec-eval",
    "measures of trec_eval",
    lambda file: "\t" in file.first_line and _place_of_measures(file) is not None,
    read_trec_eval,
    part="measure",
)
