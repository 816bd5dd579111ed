"""Reading what a crawl left, by foreign tools only: pyarrow for the index, warcio for a record."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastwarc.cli
import pyarrow.parquet as pq
import pytest
import warcio.cli
from warcio.archiveiterator import ArchiveIterator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOOLS = Path(sys.executable).parent


def rows(directory: Path) -> list[dict[str, Any]]:
    """Return the index as one dictionary a row."""
    return pq.read_table(directory / "captures.parquet").to_pylist()


def member(directory: Path, row: dict[str, Any]) -> bytes:
    """Return the record that *row* points at, inflated, as the columns are documented to be used."""
    with (directory / row["warc_file"]).open("rb") as file:
        file.seek(row["warc_offset"])
        return gzip.decompress(file.read(row["warc_length"]))


def record(directory: Path, row: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    """Return header fields and block of the record that *row* points at."""
    return split(member(directory, row))


def split(raw: bytes) -> tuple[dict[str, str], bytes]:
    """Return header fields and block of a record; checks that nothing stands behind it."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "WARC/1.1", lines[0]
    fields = dict(line.split(": ", 1) for line in lines[1:])
    size = int(fields["Content-Length"])
    assert rest[size:] == b"\r\n\r\n"
    return fields, rest[:size]


def records(directory: Path) -> Iterator[Any]:
    """Yield every record of every sealed file, as warcio reads them."""
    for path in sorted(directory.glob("*.warc.gz")):
        with path.open("rb") as file:
            yield from ArchiveIterator(file, no_record_parse=True)


def check_sealed(path: Path) -> None:
    """Fail unless three independent readers find *path* whole."""
    run_clean("gzip", "-t", str(path))
    check_by_warcio(path)
    check_by_fastwarc(path)


def check_by_warcio(path: Path) -> None:
    """Fail unless warcio finds all digests of *path* right."""
    _call_clean(warcio.cli.main, "check", str(path))


def check_by_fastwarc(path: Path) -> None:
    """Fail unless fastwarc finds all digests of *path* right.

    Where there are revisits, those of payloads are left out: it takes a revisit's for its body.
    """
    has_revisits = b"\r\nWARC-Type: revisit\r\n" in inflate_all(path)
    _call_clean(fastwarc.cli.main, "check", *(() if has_revisits else ("-p",)), "-q", str(path))


def run_clean(*line: str) -> None:
    """Fail, with what it said, unless a command ends with 0."""
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"


def _call_clean(main: Callable[[list[str]], object], *line: str) -> None:
    """Fail, with what it said, unless the command that begins in *main* ends with 0.

    In this process: to start another takes ten times as long as to check a file of a test.
    """
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit) as ended:
        main(list(line))
    assert not ended.value.code, f"{line}: {said.getvalue()}"


def read_block(item: Any) -> bytes:
    """Return the block of a record read by warcio."""
    return bytes(item.raw_stream.read())


def inflate_all(path: Path) -> bytes:
    """Return all of *path*, inflated."""
    return gzip.GzipFile(fileobj=io.BytesIO(path.read_bytes())).read()
