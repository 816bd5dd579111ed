"""The floor: fetch, digest, compress and write, and nothing else that a crawl does.

    python -m benchmarks.bare URLS OUT

fetches the list URLS over the crawl's own wire, 256 at once, and appends a response record for each to
one WARC file in OUT, with the two digests, as a gzip member. No politeness, frontier, index or repair.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import uuid
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import uvloop
from isal import igzip_lib

from amicrawl.clock import warc_date
from amicrawl.config import TlsPolicy
from amicrawl.fetch import Guard, Limits, Wire, WireRequest
from amicrawl.record.deduplication import labelled
from amicrawl.record.warc import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.capture import Capture

WORKERS = 256


def member(capture: Capture) -> bytes:
    """Return the response record of *capture* as a gzip member."""
    body = b"".join(capture.body.blocks())
    block = hashlib.sha1(capture.head, usedforsecurity=False)
    block.update(body)
    payload = hashlib.sha1(body, usedforsecurity=False)
    fields = (
        "WARC/1.1\r\nWARC-Type: response\r\n"
        f"WARC-Record-ID: <urn:uuid:{uuid.uuid4()}>\r\n"
        f"WARC-Date: {warc_date(capture.started)}\r\n"
        f"WARC-Target-URI: {capture.url}\r\n"
        f"WARC-Payload-Digest: {labelled(payload.digest())}\r\n"
        f"WARC-Block-Digest: {labelled(block.digest())}\r\n"
        "Content-Type: application/http;msgtype=response\r\n"
        f"Content-Length: {len(capture.head) + len(body)}\r\n\r\n"
    )
    record = b"".join([fields.encode(), capture.head, body, b"\r\n\r\n"])
    return igzip_lib.compress(record, LEVEL, igzip_lib.COMP_GZIP)


async def work(wire: Wire, urls: Iterator[str], file: BinaryIO) -> None:
    """Take URLs until there are none."""
    for url in urls:
        capture = await wire.fetch(WireRequest(url=url))
        if capture.failure is None:
            file.write(member(capture))
        capture.body.close()


async def archive(urls: Iterator[str], file: BinaryIO) -> None:
    """Archive *urls* into *file*."""
    guard = Guard((ip_network("127.0.0.0/8"),))
    async with Wire(Limits(), guard=guard, tls=TlsPolicy.RECORD) as wire:
        await asyncio.gather(*(work(wire, urls, file) for _ in range(WORKERS)))


if __name__ == "__main__":
    listed, directory = Path(sys.argv[1]), Path(sys.argv[2])
    with (directory / "bare.warc.gz").open("wb") as output:
        uvloop.run(archive(iter(listed.read_text().split()), output))
