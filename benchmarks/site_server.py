"""The made-up site, served: a process of its own, and cheap enough not to be the limit.

    python -m benchmarks.site_server PAGES LOG      serves until its standard input ends
    python -m benchmarks.site_server PAGES          says how many pages a second of CPU it can make

It listens on both addresses of the site with one port, which it prints on a line. At the end it writes
every request it was sent to LOG, one a line: the address that was contacted, and the target.
"""

from __future__ import annotations

import asyncio
import re
import socket
import sys
import time
from pathlib import Path
from typing import cast

import uvloop

from benchmarks.site import OFF, ON, Site

_REQUEST = re.compile(rb"GET ([!-~]+) HTTP/1\.[01]\r\n")
_HEAD_LIMIT = 65_536


class Responding(asyncio.Protocol):
    """One connection to *address*; what it is requested is put into *log*."""

    def __init__(self, site: Site, address: str, log: list[str]) -> None:
        self._site = site
        self._address = address
        self._host = address.encode()
        self._log = log
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # uvloop's transports do what asyncio's do and are none of them.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Respond to every request that is complete."""
        self._pending += data
        while (end := self._pending.find(b"\r\n\r\n")) >= 0:
            head, self._pending = self._pending[: end + 2], self._pending[end + 4 :]
            match = _REQUEST.match(head)
            if match is None:
                self._log.append(f"{self._address} ?{head[:200]!a}\n")
                self._transport.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                continue
            self._log.append(f"{self._address} {match[1].decode()}\n")
            self._transport.write(self._site.respond(match[1], self._host))
        if len(self._pending) > _HEAD_LIMIT:
            self._transport.abort()


async def serve(pages: int, log: Path) -> None:
    """Serve a site of *pages* pages until standard input ends, then write *log*."""
    loop = asyncio.get_running_loop()
    requests: list[str] = []
    with socket.create_server((ON, 0)) as free:
        port = free.getsockname()[1]
    site = Site(pages, port=port)
    for address in (ON, OFF):
        await loop.create_server(
            lambda address=address: Responding(site, address, requests),  # type: ignore[misc]
            address,
            port,
            backlog=512,
        )
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)
    await loop.run_in_executor(None, log.write_text, "".join(requests))


def speed(pages: int) -> float:
    """Return how many pages can be made in a second of CPU."""
    site = Site(pages, port=80)
    targets = [path.encode() for path in sorted(site.truth) if path.endswith(".html")]
    began = time.process_time()
    for target in targets:
        site.respond(target, b"127.0.0.1")
    return len(targets) / (time.process_time() - began)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        uvloop.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
    else:
        print(f"{speed(int(sys.argv[1])):,.0f} pages per CPU second")
