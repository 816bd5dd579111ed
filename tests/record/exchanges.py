"""Exchanges to store, an archive to store them in, and what must hold of a directory afterwards."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow.parquet as pq
from fastwarc.cli import _verify_digests
from faulty_disks import QuickDisk
from warcio.archiveiterator import ArchiveIterator

from amicrawl.capture import BytesBody, Capture, Failure
from amicrawl.clock import unix_ms
from amicrawl.config import CrawlConfig
from amicrawl.disk import Disk
from amicrawl.listing.files import DEFAULT_PREFIX
from amicrawl.record import Archive, CaptureItem
from amicrawl.record.warc import record_ids
from amicrawl.record.writer import WarcWriter
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from amicrawl.listing import SealedFile

Read = TypeVar("Read")

BEGAN = datetime(2026, 1, 1, 12, 0, 0, 123000, tzinfo=UTC)
HEAD = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: "v1"\r\n\r\n'
NOT_MODIFIED = b"HTTP/1.1 304 Not Modified\r\nDate: Thu, 01 Jan 2026 12:00:00 GMT\r\n\r\n"
REQUEST = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
CONDITIONAL_REQUEST = b'GET / HTTP/1.1\r\nHost: example.org\r\nif-none-match: "v1"\r\n\r\n'


def capture(url: str = "http://example.org/", **changes: Any) -> Capture:
    """Return an ordinary exchange, but for *changes*; `body` may be given as bytes."""
    body = changes.pop("body", b"<p>hello</p>")
    values: dict[str, Any] = {
        "url": url,
        "started_ms": unix_ms(BEGAN),
        "duration_ms": 77,
        "ttfb_ms": 30,
        "request": REQUEST,
        "head": HEAD,
        "body": BytesBody(body) if isinstance(body, bytes) else body,
        "status": 200,
        "ip_address": "192.0.2.7",
        "protocol": "http/1.1",
    }
    return Capture(**(values | changes))


def failed(url: str = "http://example.org/", **changes: Any) -> Capture:
    """Return a fetch that brought no response."""
    values: dict[str, Any] = {
        "url": url,
        "started_ms": unix_ms(BEGAN),
        "duration_ms": 5,
        "failure": Failure.CONNECTION_REFUSED,
        "failure_detail": "Failed to connect",
    }
    return Capture(**(values | changes))


def item(made: Capture | None = None, seed: Seed | None = None, **changes: Any) -> CaptureItem:
    """Return an item for *made*, whose seed says nothing unless given."""
    made = made or capture()
    return CaptureItem(made, seed or Seed(made.url), **changes)


def pages(count: int, *, first: int = 0, size: int = 300) -> list[CaptureItem]:
    """Return *count* items with different URLs and bodies, every fifth a failure."""
    items = []
    for number in range(first, first + count):
        url = f"http://h{number % 3}.example/{number}"
        if number % 5 == 4:
            items.append(item(failed(url)))
            continue
        body = f"<p>{number}</p>".encode() + random.Random(number).randbytes(size)
        made = capture(url, body=body, started_ms=unix_ms(BEGAN) + number)
        items.append(item(made, Seed(url, meta_json=f'{{"n":"{number}"}}')))
    return items


def numbered_bytes(seed: int = 0) -> Callable[[int], bytes]:
    """Return a source of randomness that gives the same bytes each time."""
    return random.Random(seed).randbytes


def open_archive(directory: Path, *, disk: Disk | None = None, **settings: Any) -> Archive:
    """Return an archive in *directory* with small files and a clock that stands still."""
    sealed: Callable[[SealedFile], None] | None = settings.pop("on_sealed", None)
    monotonic: Callable[[], float] = settings.pop("monotonic", lambda: 0.0)
    prefix: str = settings.pop("prefix", DEFAULT_PREFIX)
    randomness: Callable[[int], bytes] = settings.pop("random", os.urandom)
    config = CrawlConfig(**({"warc_size": 2000} | settings))
    return Archive(
        directory,
        config=config,
        now=lambda: BEGAN,
        monotonic=monotonic,
        random=randomness,
        prefix=prefix,
        on_sealed=sealed,
        disk=disk or QuickDisk(),
    )


def open_writer(directory: Path, **changes: Any) -> WarcWriter:
    """Return a writer in *directory* whose output is the same each time."""
    values: dict[str, Any] = {
        "max_size": 1_000_000,
        "warcinfo": {"software": "test/1"},
        "ids": record_ids(numbered_bytes()),
        "now": lambda: BEGAN,
        "disk": Disk(),
    }
    return WarcWriter(directory, **(values | changes))


def table_rows(directory: Path) -> list[dict[str, Any]]:
    """Return the rows of the index in *directory*, as pyarrow reads them."""
    return pq.read_table(directory / "captures.parquet").to_pylist()


def member_at(directory: Path, row: dict[str, Any]) -> bytes:
    """Return what the pointer of *row* inflates to; fails unless that is one whole gzip member."""
    with (directory / row["warc_file"]).open("rb") as file:
        file.seek(row["warc_offset"])
        return gzip.decompress(file.read(row["warc_length"]))


def _once(read: Callable[[Path], Read]) -> Callable[[Path], Read]:
    """Return *read*, whose results are kept: a file that is the same to the byte is not read again."""
    kept_results: dict[bytes, Read] = {}

    @wraps(read)
    def respond(path: Path) -> Read:
        content = hashlib.sha256(path.read_bytes()).digest()
        if content not in kept_results:
            kept_results[content] = read(path)
        return kept_results[content]

    return respond


@_once
def foreign_verdicts(path: Path) -> tuple[list[str], list[Any], list[Any]]:
    """Return the types of the records of *path*, warcio's verdicts on their digests, and fastwarc's.

    A verdict is True, False, or None where there was nothing to verify.
    """
    types, by_warcio = [], []
    with path.open("rb") as file:
        for found in ArchiveIterator(file, check_digests=True):
            types.append(found.rec_type)
            stream = found.content_stream()
            while stream.read(65536):
                pass
            by_warcio.append(found.digest_checker.passed)
    verify: Any = _verify_digests
    results = verify(str(path), verify_payloads=True, decompress_alg="auto")
    by_fastwarc = [(result["block_digest_ok"], result["payload_digest_ok"]) for result in results]
    return types, by_warcio, by_fastwarc


@_once
def _responses_of(path: Path) -> dict[int, tuple[str, str, str]]:
    """Return type, id and URL of every response and revisit in *path*, by offset."""
    found = {}
    with path.open("rb") as file:
        iterator = ArchiveIterator(file, no_record_parse=True)
        for entry in iterator:
            if entry.rec_type in {"response", "revisit"}:
                names = ("WARC-Record-ID", "WARC-Target-URI")
                entry_id, url = (entry.rec_headers.get_header(name) for name in names)
                found[iterator.get_record_offset()] = (entry.rec_type, entry_id, url)
    return found


def stored_records(directory: Path) -> dict[tuple[str, int], tuple[str, str, str]]:
    """Return type, id and URL of every response and revisit in the sealed files, by file and offset."""
    return {
        (path.name, offset): response
        for path in sorted(directory.glob("*.warc.gz"))
        for offset, response in _responses_of(path).items()
    }


def check_agreement(directory: Path) -> None:
    """Fail unless every row points at exactly its record, and every stored record has one row."""
    rows = table_rows(directory)
    pointed = {}
    for row in rows:
        if not row["warc_file"]:
            assert (row["status"], row["warc_offset"], row["warc_length"]) == (0, 0, 0)
            assert row["error"]
            continue
        raw = member_at(directory, row)
        head, _, rest = raw.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        assert len(rest) == int(fields["Content-Length"]) + 4
        key = (row["warc_file"], row["warc_offset"])
        assert key not in pointed, f"two rows point at {key}"
        pointed[key] = (fields["WARC-Type"], row["record_id"], row["url"])
    assert pointed == stored_records(directory)


def names_in(directory: Path) -> list[str]:
    """Return the names of the files in *directory*, in order."""
    return sorted(path.name for path in directory.iterdir())


def urls_of(items: Iterable[CaptureItem]) -> list[str]:
    """Return the URLs of *items*, in order."""
    return [entry.capture.url for entry in items]
