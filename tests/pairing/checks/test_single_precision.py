"""Labels in single precision in one run, and in double precision in the other."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import trackperm
from trackperm.errors import PairingError

SHORT = [13.01, 9.69, 7.28, 10.5]
LONG = [13.0123456789, 9.69, 7.28, 10.5]


@pytest.mark.sample(3)
@pytest.mark.parametrize("labels", [SHORT, LONG])
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_the_cast_of_the_hint(
    labels: list[float], ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It makes the runs comparable."""
    monkeypatch.chdir(tmp_path)
    old = pl.DataFrame({"id": range(4), "prediction": [13.0, 9.0, 7.0, 10.0], "label": labels})
    new = old.with_columns(pl.col("prediction", "label").cast(pl.Float32))
    {"parquet": old.write_parquet, "csv": old.write_csv, "jsonl": old.write_ndjson}[ending](f"old.{ending}")
    new.write_parquet("new.parquet")
    runs = {"old": f"old.{ending}", "new": "new.parquet"}
    with pytest.raises(PairingError, match="`label` differs between the runs on 3 of 4") as caught:
        trackperm.compare(*runs.values(), "mae")
    hint = caught.value.hint or ""
    assert hint.startswith("They are equal in the single precision (float32) of `new.parquet`: `pl.read_")
    eval(code := hint.split("`")[3], {"pl": pl})
    rewritten = Path(code.rpartition("(")[2].split('"')[1])
    side = rewritten.name.split("-")[0]
    assert trackperm.compare(*({**runs, side: rewritten}).values(), "mae").difference == pytest.approx(0)


def test_other_labels() -> None:
    old = pl.DataFrame({"id": range(4), "prediction": SHORT, "label": SHORT})
    new = old.with_columns(pl.col("label").cast(pl.Float32) + 1)
    with pytest.raises(PairingError, match="`label` differs between the runs on 4 of 4") as caught:
        trackperm.compare(old, new, "mae")
    assert "single precision" not in str(caught.value)
