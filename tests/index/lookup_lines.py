"""Index lines for tests of looking up: pages and times in a number that can be counted by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from amicrawl.archive.index.zipnum.writer import WrittenCluster, write_zipnum
from amicrawl.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def line(key: str, timestamp: str, **fields: str) -> bytes:
    """Return a CDXJ line, without LF, of the capture of a page."""
    host, _, path = key.partition(")")
    url = "http://" + ".".join(reversed(host.split(","))) + path
    told = {"url": url, "mime": "text/html", "status": "200", "digest": "A" * 32} | fields
    return f"{key} {timestamp} {json.dumps(told)}".encode()


def pages(count: int, host: str = "com,example") -> list[bytes]:
    """Return sorted lines of *count* pages of one host, a second apart."""
    return [line(f"{host})/p{number:06}", f"20200101{number:06}") for number in range(count)]


def cluster(
    lines: Iterable[bytes], directory: Path, *, block: int = 5, shard: int = 10
) -> WrittenCluster:
    """Write a small cluster."""
    return write_zipnum(lines, directory, disk=Disk(), block_lines=block, shard_lines=shard)


def plain(lines: Sequence[bytes], path: Path) -> Path:
    """Write a plain file of lines."""
    path.write_bytes(b"".join(each + b"\n" for each in lines))
    return path
