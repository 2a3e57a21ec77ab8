from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import reference_data
from support.broken_files import check_refused
from support.cli_comparison import check_reference, compared

from trackperm.errors import PairingError, SourceError
from trackperm.tables import read_examples

SCTK = reference_data.DATA / "structured_counts/sctk"

SYSTEM = (
    '<SYSTEM title="a.ctm" ref_fname="r.stm" hyp_fname="a.ctm" format="2.4" frag_corr="FALSE" opt_del="TRUE"'
    ' weight_ali="FALSE" weight_filename="">'
)
# In the layout of SCTK's own test data: `>` in a value, `:` in a word, a word that may be left out, a tag.
SGML = f"""\
{SYSTEM}
<SPEAKER id="s1">
<PATH id="(s1-000)" word_cnt="3" labels="<o,wa>" file="f" channel="1" sequence="0" R_T1="0.000" R_T2="1.000">
C,"at","at",0.1+0.2,0.5:S,"3:15","3;tag",0.2+0.3,0.5:D,"a\\;s",,,:I,,"x",0.4+0.5,0.5
</PATH>
<PATH id="(s1-001)" word_cnt="0" labels="<o>" file="f" channel="1" sequence="1" R_T1="1.000" R_T2="2.000">
</PATH>
<PATH id="(s1-002)" word_cnt="2" labels="<o>" file="f" channel="1" sequence="2" R_T1="2.000" R_T2="3.000">
C,"(uh)",,,:C,"yes","yes",2.1+2.2,0.5
</PATH>
</SPEAKER>
</SYSTEM>
"""
PRA = """\


\t\tDUMP OF SYSTEM ALIGNMENT STRUCTURE

System name:   a.ctm

Speakers:\x20
    0:  s1

Speaker sentences   0:  s1   #utts: 2
id: (s1-000)
Scores: (#C #S #D #I) 1 1 1 1
REF:  at 3:15 A;S *\x20
HYP:  at 3    *** X\x20
Eval:    S    D   I\x20

id: (s1-002)
Scores: (#C #S #D #I) 2 0 0 0
REF:  (uh) yes\x20
HYP:  ***  yes\x20
Eval:          \x20
"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "x.dat"
    path.write_text(SGML)
    return path


def test_columns_of_sgml(report: Path) -> None:
    table = read_examples(report)
    assert table.frame.to_dict(as_series=False) == {
        "id": ["s1-000", "s1-001", "s1-002"],
        "correct": [1, 0, 2],
        "substitutions": [1, 0, 0],
        "deletions": [1, 0, 0],
        "insertions": [1, 0, 0],
        "errors": [3, 0, 0],
        "words": [3, 0, 2],
        "reference": ["at 3:15 a;s", "", "(uh) yes"],
        "hypothesis": ["at 3 x", "", "yes"],
        "segment": ["f 1 0.000 1.000", "f 1 1.000 2.000", "f 1 2.000 3.000"],
    }
    assert table.facts == {"scoring": "frag_corr=FALSE, opt_del=TRUE, weight_ali=FALSE", "reference": "r.stm"}


def test_utterances_of_other_audio_are_refused(report: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text(SGML.replace('R_T1="1.000"', 'R_T1="1.500"').replace("r.stm", "q.stm"))
    with pytest.raises(PairingError, match=r"`segment` differs between the runs on 1 of 3 examples"):
        compared(report, other, "--metric", "errors")
    other.write_text(SGML.replace("r.stm", "q.stm"))
    found = compared(report, other, "--metric", "errors")
    assert "reference differs: `r.stm` in the baseline, `q.stm` in the candidate" in found["pairing"]["notes"]


def test_pra_has_the_same_counts(report: Path, tmp_path: Path) -> None:
    other = tmp_path / "pra"
    other.write_text(PRA)
    columns = read_examples(other).frame.to_dict(as_series=False)
    same = read_examples(report).frame.to_dict(as_series=False)
    assert columns == {name: [same[name][0], same[name][2]] for name in columns}
    assert "words" in columns


def test_several_systems_are_refused_until_one_is_chosen(report: Path) -> None:
    report.write_text(SGML + SGML.replace("a.ctm", "b.ctm").replace('S,"3:15","3;tag"', 'C,"3:15","3:15"'))
    with pytest.raises(SourceError, match="has 2 systems"):
        read_examples(report)
    assert read_examples(report, part="a.ctm").frame["errors"].to_list() == [3, 0, 0]
    assert read_examples(report, part="b.ctm").frame["errors"].to_list() == [2, 0, 0]
    report.write_text(SGML + SGML)
    with pytest.raises(SourceError, match=r"two systems `a\.ctm`"):
        read_examples(report)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</SPEAKER>\n</SYSTEM>\n", "", r"is truncated: <SPEAKER> is not closed"),
        ("</SPEAKER>\n", "", r"line \d+: </SYSTEM> closes an element that is not open"),
        ('I,,"x"', 'T,"y","x"', r"line 3, utterance `\(s1-000\)`: `T,.* is not an item"),
        ('D,"a\\;s"', 'D,"a\\;s', r"line 3, utterance `\(s1-000\)`: .* is not an item"),
        ("(s1-001)", "(s1-000)", r"has 2 utterances `s1-000`"),
        ('id="(s1-001)" ', "", r"line 6: a PATH without"),
    ],
)
def test_broken_sgml_is_refused(report: Path, old: str, new: str, message: str) -> None:
    check_refused(report, SGML, old, new, message)


def test_cut_within_an_alignment(report: Path) -> None:
    report.write_text(SGML[: SGML.index(":I,,")])
    with pytest.raises(SourceError, match="without its end"):
        read_examples(report)
    report.write_text(SYSTEM + "\n</SYSTEM>\n")
    with pytest.raises(SourceError, match="without an utterance"):
        read_examples(report)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Scores: (#C #S #D #I) 1 1 1 1\n", "", r"line 16: utterances and their scores do not alternate"),
        ("(#C #S #D #I) 1 1 1 1", "(#C #S #D #I) 1 1 1", r"line 12: utterances and their scores"),
        ("id: (s1-002)\n", "", r"line 17: utterances and their scores do not alternate"),
        ("Scores: (#C #S #D #I) 2 0 0 0\n", "", r"is truncated: utterance `s1-002` has no scores"),
        ("s1-002", "s1-000", r"has 2 utterances `s1-000`"),
    ],
)
def test_broken_pra_is_refused(report: Path, old: str, new: str, message: str) -> None:
    check_refused(report, PRA, old, new, message)


@reference_data.needs_data
class TestPublished:
    @pytest.mark.parametrize("name", ["file1.sgml", "file2.sgml", "lvc_hyp.ctm.filt.sgml", "test1.sgml"])
    def test_counts(self, name: str) -> None:
        frame = read_examples(SCTK / name).frame
        found = dict(zip((f"({id_})" for id_ in frame["id"]), frame["errors"], strict=True))
        assert found == reference_data._word_errors(name)
        kinds = [kind for line in (SCTK / name).read_text().splitlines() for kind in _kinds(line)]
        for column, kind in zip(("correct", "substitutions", "deletions", "insertions"), "CSDI", strict=True):
            assert frame[column].sum() == kinds.count(kind)
        assert frame["words"].sum() == len(kinds) - kinds.count("I")

    def test_references_are_those_of_the_transcript(self) -> None:
        """Where the transcript has alternatives, `{ a / b }`, the one that sclite chose for this system."""
        frame = read_examples(SCTK / "test1.sgml").frame
        found = dict(zip(frame["id"], frame["reference"], strict=True))
        lines = [line.rpartition("(") for line in (SCTK / "csrnab.ref").read_text().lower().splitlines()]
        expected = {id_.rstrip(" )"): " ".join(words.split()) for words, _, id_ in lines}
        differ = {id_ for id_ in found if found[id_] != expected[id_]}
        assert differ == {id_ for id_ in found if "{" in expected[id_]}
        assert len(differ) == 6

    def test_reference_pvalues(self) -> None:
        """Fewer errors are better: the reference counts errors, so the alternatives are turned around."""
        check_reference(
            "sctk/itmono_8__vs__itword_20", SCTK / "file2.sgml", SCTK / "file1.sgml", "--metric", "errors",
        )  # fmt: skip
        found = compared(SCTK / "file2.sgml", SCTK / "file1.sgml", "-s", "pooled_error_rate")
        expected = reference_data.reference("sctk/itmono_8__vs__itword_20")
        assert found["pvalue"] == expected.pvalue("two-sided")
        assert found["difference"] == pytest.approx(2 / 11)

    def test_identical_systems(self) -> None:
        files = [SCTK / f"{name}.ctm.filt.sgml" for name in ("lvc_hyp", "lvc_hyp2")]
        found = check_reference("sctk/lvc_hyp__vs__lvc_hyp2", *files, "-s", "pooled_error_rate")
        assert found["pvalue"] == 1
        assert found["n_discordant"] == 0


def _kinds(line: str) -> list[str]:
    return [] if line.startswith("<") else re.findall(r"(?:^|:)([CSDI]),(?=[\",])", line)
