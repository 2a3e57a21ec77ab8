"""Files made to be slow: each is read, or refused, in time proportional to its size."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import pytest

from trackperm.errors import SourceError
from trackperm.tables import read_examples

SECONDS = 5.0  # of the processor; each takes well below one where the time is linear

NAMES = [f"n{i}" for i in range(60_000)]
TWICE = "{" + ",".join(f'"{name}":1' for name in [*NAMES, NAMES[-1]]) + "}"
UTTERANCE = '<PATH id="({})" labels="<o>">\nC,"at","at"\n</PATH>\n' + 600 * " " + "\n"
REPORT = (
    '<SYSTEM title="a" ref_fname="r" hyp_fname="h">\n<SPEAKER id="a">\n'
    + "".join(UTTERANCE.format(i) for i in range(12_000))
    + "</SPEAKER>\n</SYSTEM>\n"
)
FILES = {
    "comments before what is no report": "<!-- -->" * 40 + ",b\n1,2\n",
    "a member twice among many": TWICE,
    "a member twice on a line among many": "{}\n" + TWICE,
    "a column twice among many": ",".join([*NAMES[:20_000], NAMES[19_999]]) + '\n"1"' + ",1" * 20_000 + "\n",
    "a column of `log_table` twice among many": json.dumps(
        {"columns": [*NAMES[:30_000], NAMES[29_999]], "data": []}
    ),
    "many digits in a first row": "1" * 60_000 + "x,b\n1,2\n",
    "blanks within the id of a sentence": "# sent_id = a" + " " * 50_000 + "b\n"
    "1\tEU\t_\tPROPN\t_\t_\t0\troot\t_\t_\n",
    "many utterances": REPORT,
    "a metric of HELM with much of bookkeeping in its name": json.dumps(
        [{"instance_id": 1, "stats": [{"name": {"name": 20_000 * "_runtime" + "\n"}, "count": 1, "sum": 1}]}]
    ),
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_time_is_linear(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.dat"
    path.write_text(text)
    started = time.process_time()
    with contextlib.suppress(SourceError):
        read_examples(path)
    assert time.process_time() - started < SECONDS
