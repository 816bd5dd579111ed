"""The quick summary: what needs no keys, as the whole summary has it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from amicrawl.archive.report.parquet import count_narrow
from amicrawl.archive.report.reading import read_counts
from amicrawl.cli import app
from amicrawl.errors import DamagedFileError, ExitCode, InputError

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = {
    "url_surtkey": pa.string(),
    "url": pa.string(),
    "fetch_time": pa.timestamp("ms"),
    "fetch_status": pa.int16(),
    "content_mime_type": pa.string(),
    "warc_record_length": pa.int64(),
}
ROW = st.fixed_dictionaries(
    {
        "fetch_time": st.none() | st.datetimes(datetime(1996, 1, 1), datetime(2031, 1, 1)),  # noqa: DTZ001
        "fetch_status": st.none() | st.sampled_from([200, 301, 404, 503, -1, 7, 999, 1000]),
        "content_mime_type": st.none() | st.sampled_from(["text/html", "", "Text/CSS", "warc/revisit"]),
        "warc_record_length": st.none() | st.integers(-5, 2**62),
    }
)


def table(path: Path, rows: list[dict[str, object]]) -> str:
    whole = [{"url_surtkey": "com,a)/", "url": "http://a.com/", **row} for row in rows]
    arrays = [
        pa.array([row[name] for row in whole], kind) if name != "fetch_time" else _times(whole)
        for name, kind in COLUMNS.items()
    ]
    pq.write_table(pa.table(arrays, names=list(COLUMNS)), path)
    return str(path)


def _times(rows: list[dict[str, object]]) -> Any:
    return pa.array([row["fetch_time"] for row in rows], pa.timestamp("us")).cast(
        pa.timestamp("ms"), safe=False
    )


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(ROW, max_size=20))
def test_it_has_the_figures_of_the_whole_summary(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]
) -> None:
    path = table(tmp_path_factory.mktemp("quick") / "t.parquet", rows)
    quick, whole = count_narrow([path]), read_counts([path]).counts
    for name in ("captures", "bytes", "unsized", "first", "last", "by_mime_status", "by_month"):
        assert getattr(quick, name) == getattr(whole, name), name
    assert quick.skipped.total() == whole.skipped.total()


def test_parts_of_a_table_count_together(tmp_path: Path) -> None:
    row = {"fetch_status": 200, "content_mime_type": "text/html", "warc_record_length": 10}
    for number in (1, 2):
        moment = {"fetch_time": datetime(2012, number, 3)}  # noqa: DTZ001  # the column has no zone
        table(tmp_path / f"{number}.parquet", [row | moment] * number)
    done = CliRunner().invoke(app, ["summary", "--quick", "--json", "--text", str(tmp_path)])
    assert done.exit_code == 0
    told = json.loads(done.stdout[: done.stdout.index("\n}") + 2])
    assert (told["captures"], told["bytes"]) == (3, 30)
    assert (told["first"], told["last"]) == ("20120103000000", "20120203000000")
    assert told["mimestatus"]["HTML"]["2XX"] == 3
    assert told["yearmonth"]["2012"]["02"] == 2
    assert "Year and Month Distribution" in done.stdout
    assert "Hosts" not in done.stdout


def test_what_is_no_table_is_refused_with_a_sentence(tmp_path: Path) -> None:
    pq.write_table(pa.table({"url": ["http://a/"]}), tmp_path / "other.parquet")
    with pytest.raises(InputError, match=r"fetch_time.*--quick"):
        count_narrow([str(tmp_path / "other.parquet")])
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DamagedFileError):
        count_narrow([str(tmp_path / "torn.parquet")])


def test_it_cannot_list_hosts() -> None:
    done = CliRunner().invoke(app, ["summary", "--quick", "--report", "x.parquet"])
    assert getattr(done.exception, "exit_code", None) == ExitCode.USAGE


def test_a_name_with_an_asterisk_is_no_pattern(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {
            "fetch_time": datetime(2026, 1, 1),  # noqa: DTZ001
            "fetch_status": 200,
            "content_mime_type": "text/html",
            "warc_record_length": 10,
        }
    ]
    table(tmp_path / "ab.parquet", rows)
    for name in ("a*.parquet", "a?.parquet", "a[b].parquet"):
        assert count_narrow([table(tmp_path / name, rows)]).captures == 1, name
