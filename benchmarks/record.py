"""What it costs to append a page to a WARC file, beside warcio's writer: `python -m benchmarks.record`.

Both get the same exchanges from memory, write a request and a response record for each, with digests and
one gzip member a record, into a file of the same disk. The unit is microseconds of processor time a
page, user and system time of all threads. Neither forces anything to disk before the end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from amicrawl.capture import BytesBody, Capture
from amicrawl.clock import unix_ms
from amicrawl.disk import Disk
from amicrawl.record import CaptureItem
from amicrawl.record.archive import WarcStage
from amicrawl.record.warc import record_ids
from amicrawl.record.writer import WarcWriter
from amicrawl.seed import Seed
from benchmarks.contents import response_urls
from benchmarks.crawlers import ROOT
from benchmarks.pages import Pages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OUT = ROOT / "benchmarks" / "out"
GROUP = 32
"""Pages that are written at once, as a crawl that is busy does."""
BEGAN = datetime(2024, 6, 30, 20, 48, tzinfo=UTC)


def captures(count: int) -> list[Capture]:
    """Return that many exchanges."""
    pages = Pages()
    return [_capture(number, pages.page(number)) for number in range(count)]


def _capture(number: int, page: bytes) -> Capture:
    head = (
        "HTTP/1.1 200 OK\r\nDate: Sun, 30 Jun 2024 20:48:00 GMT\r\nServer: benchmark\r\n"
        f"Content-Type: text/html; charset=utf-8\r\nContent-Length: {len(page)}\r\n"
        f'ETag: "page-{number}"\r\nCache-Control: max-age=600\r\nVary: Accept-Encoding\r\n\r\n'
    )
    request = (
        f"GET /page/{number} HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: benchmark\r\n"
        "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Encoding: gzip\r\n\r\n"
    )
    return Capture(
        url=f"http://www.example.org/page/{number}",
        started_ms=unix_ms(BEGAN) + number,
        duration_ms=20,
        request=request.encode(),
        head=head.encode(),
        body=BytesBody(page),
        status=200,
        ip_address="192.0.2.1",
        protocol="http/1.1",
    )


def append_ours(exchanges: Sequence[Capture], directory: Path) -> None:
    """Write *exchanges* as the crawl does."""
    ids = record_ids(os.urandom)
    writer = WarcWriter(
        directory, max_size=1024**3, warcinfo={}, ids=ids, now=lambda: datetime.now(UTC), disk=Disk()
    )
    stage = WarcStage(writer, ids=ids)
    for start in range(0, len(exchanges), GROUP):
        for capture in exchanges[start : start + GROUP]:
            stage.add(CaptureItem(capture=capture, seed=Seed(capture.url)))
        stage.commit(sync=False)
    writer.seal()


def append_with_warcio(exchanges: Sequence[Capture], directory: Path) -> None:
    """Write *exchanges* as warcio's documentation does."""
    with (directory / "warcio.warc.gz").open("wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version="1.1")
        for capture in exchanges:
            fields = {
                "WARC-Date": capture.started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "WARC-IP-Address": capture.ip_address,
                "WARC-Protocol": capture.protocol,
            }
            body = b"".join(capture.body.blocks())
            response = writer.create_warc_record(
                capture.url,
                "response",
                BytesIO(body),
                # With it, warcio has no need to copy the body once more.
                length=len(body),
                http_headers=_headers(capture.head),
                warc_headers_dict=fields,
            )
            request = writer.create_warc_record(
                capture.url,
                "request",
                http_headers=_headers(capture.request),
                warc_headers_dict=dict(fields),
            )
            writer.write_request_response_pair(request, response)


def _headers(head: bytes) -> StatusAndHeaders:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    protocol, _, rest = first.partition(" ")
    is_request = not protocol.startswith("HTTP/")
    fields = [tuple(line.split(": ", 1)) for line in lines]
    return StatusAndHeaders(
        first if is_request else rest, fields, protocol=protocol, is_http_request=is_request
    )


def measure(
    append: Callable[[Sequence[Capture], Path], None], exchanges: Sequence[Capture]
) -> dict[str, float]:
    """Return what *append* took for *exchanges*, once it is sure that all of them are there."""
    # Header fields are parsed once and kept; each writer gets them unparsed.
    for capture in exchanges:
        capture.__dict__.pop("fields", None)
    with tempfile.TemporaryDirectory(dir=OUT) as name:
        directory = Path(name)
        began = time.process_time()
        append(exchanges, directory)
        took = time.process_time() - began
        files = sorted(directory.glob("*.warc.gz"))
        found = [url for path in files for url in response_urls(path)]
        if found != [capture.url for capture in exchanges]:
            raise RuntimeError(f"{append.__name__} wrote {len(found)} responses of {len(exchanges)}.")
        size = sum(path.stat().st_size for path in files)
    return {"us_per_page": took / len(exchanges) * 1e6, "bytes_per_page": size / len(exchanges)}


def compare(pages: int, rounds: int) -> dict[str, Any]:
    """Let both writers take turns; return the medians and every turn."""
    exchanges = captures(pages)
    writers = {"amicrawl": append_ours, "warcio": append_with_warcio}
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in writers}
    for _ in range(rounds):
        for name, append in writers.items():
            turns[name].append(measure(append, exchanges))
    medians = {
        name: {key: statistics.median(turn[key] for turn in each) for key in each[0]}
        for name, each in turns.items()
    }
    return {"pages": pages, "medians": medians, "rounds": turns}


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.record", description="Measure WARC writers side by side."
    )
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    OUT.mkdir(exist_ok=True)
    report = compare(options.pages, options.rounds)
    (OUT / "record.json").write_text(json.dumps(report, indent=2) + "\n")
    print("\nWARC append      us/page   archive B/page")
    for name, figures in report["medians"].items():
        print(f"{name:<12} {figures['us_per_page']:>11,.0f} {figures['bytes_per_page']:>16,.0f}")
    ours, theirs = (report["medians"][name]["us_per_page"] for name in ("amicrawl", "warcio"))
    print(f"amicrawl appends {theirs / ours:.2f} x as many pages per CPU second as warcio.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
