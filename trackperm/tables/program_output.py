"""Text that programs print for people, recognised by its first line, and commands that make tables of it."""

from __future__ import annotations

import re
import shlex

from trackperm.tables.polars_code import without_ending

_KALDI = (
    r"""awk 'BEGIN {{print "id\terrors\twords"}} $2 == "#csid" """
    r"""{{print $1 "\t" $4 + $5 + $6 "\t" $3 + $4 + $6}}' {file} > {name}.tsv"""
)
_SPEECHBRAIN = (
    r"(echo id,errors,words; sed -n 's/^\([^,]*\), %WER [^[]*\[ \([0-9]*\) \/ \([0-9]*\), .*/\1,\2,\3/p'"
    " {file}) > {name}.csv"
)
_FAIRSEQ = r"(printf 'id\tlog_probability\tprediction\n'; sed -n 's/^D-//p' {file}) > {name}.tsv"

_PROGRAMS = (
    (re.compile(r"\S+\s+ref\s.*"), "Kaldi's alignment of each utterance", _KALDI),
    (re.compile(r"%WER [0-9.]+ \[ .*\]"), "SpeechBrain's report of word errors", _SPEECHBRAIN),
    (re.compile(r"[STHDP]-[0-9]+\t.*"), "what fairseq-generate prints", _FAIRSEQ),
)


def way_to_table(origin: str, first_line: str) -> str | None:
    """Say which program wrote a text file, and how a table is made of it, without a full stop."""
    for pattern, what, command in _PROGRAMS:
        if pattern.fullmatch(first_line.strip()):
            made = command.format(file=shlex.quote(origin), name=shlex.quote(without_ending(origin)))
            return f"`{origin}` is {what}: `{made}` makes a table of it"
    return None
