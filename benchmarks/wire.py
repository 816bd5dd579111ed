"""The wire alone: CPU per page, beside a bare protocol that reads the same pages and keeps nothing.

    python -m benchmarks.wire [--pages 20000] [--rounds 3] [--hosts 200] [--in-flight 200] [--plain-only]

Every measurement is a process of its own; rounds are interleaved. Hosts are addresses of 127.0.0.0/8,
and each page is fetched from the next one, on a kept connection where there is one. The server, another
process, responds to every request with the same 26 KB.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import resource
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, cast

import trustme
import uvloop

from amicrawl.config import TlsPolicy
from amicrawl.fetch import Guard, Limits, Wire, WireRequest
from benchmarks.pages import Pages
from benchmarks.server import addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

_ROOT = Path(__file__).resolve().parent.parent
_FIELDS = (
    b"Date: Sun, 22 Nov 2026 10:00:00 GMT\r\nServer: benchmark\r\n"
    b"Content-Type: text/html; charset=utf-8\r\n"
    b'Last-Modified: Sun, 30 Jun 2024 20:48:00 GMT\r\nETag: "page"\r\nCache-Control: max-age=600\r\n'
    b"Vary: Accept-Encoding\r\nX-Content-Type-Options: nosniff\r\n"
)
REQUESTED = [
    (b"User-Agent", b"amicrawl-benchmark"),
    (b"Accept", b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    (b"Accept-Language", b"en"),
    (b"Accept-Encoding", b"gzip, deflate, br"),
]


class _Server(asyncio.Protocol):
    response = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        for _ in range(data.count(b"\r\n\r\n")):
            self._transport.write(self.response)


async def _serve(certificate: str) -> None:
    page = Pages().page(1)
    _Server.response = b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (_FIELDS, len(page), page)
    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Server, "0.0.0.0", 0, ssl=context, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


class _Bare(asyncio.Protocol):
    """What no client can do without: send, and count what comes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self, request: bytes, size: int) -> asyncio.Future[None]:
        self._left = size
        self._blocks: list[bytes] = []
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._done

    def data_received(self, data: bytes) -> None:
        self._blocks.append(data)
        self._left -= len(data)
        if self._left <= 0:
            self._done.set_result(None)


Send = "Callable[[str], Coroutine[None, None, None]]"


async def _bare(args: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    context = ssl._create_unverified_context() if args.https else None  # noqa: SLF001
    size = len(_Server.response) or args.size
    idle: dict[str, list[_Bare]] = {}

    async def send(address: str) -> None:
        waiting = idle.setdefault(address, [])
        if waiting:
            connection = waiting.pop()
        else:
            _, connection = await loop.create_connection(_Bare, address, args.port, ssl=context)
        head = b"".join(b"%b: %b\r\n" % field for field in REQUESTED)
        await connection.send(b"GET / HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (address.encode(), head), size)
        waiting.append(connection)

    await _keep_requesting(send, args)


async def _wire(args: argparse.Namespace) -> None:
    scheme = "https" if args.https else "http"
    guard = Guard((ip_network("127.0.0.0/8"),))
    async with Wire(Limits(), guard=guard, tls=TlsPolicy.RECORD, keep=8192) as wire:

        async def send(address: str) -> None:
            capture = await wire.fetch(
                WireRequest(url=f"{scheme}://{address}:{args.port}/", fields=REQUESTED)
            )
            assert capture.status == 200, capture
            capture.body.close()

        await _keep_requesting(send, args)


async def _keep_requesting(
    send: Callable[[str], Coroutine[None, None, None]], args: argparse.Namespace
) -> None:
    hosts = itertools.cycle(addresses(args.hosts))
    pages = iter(range(args.pages))

    async def work() -> None:
        for _ in pages:
            await send(next(hosts))

    began = time.process_time()
    await asyncio.gather(*(work() for _ in range(args.in_flight)))
    print(json.dumps({"us": (time.process_time() - began) / args.pages * 1e6}))


def _measure(what: str, args: argparse.Namespace, *, certificate: str, size: int) -> float:
    here = [sys.executable, "-m", "benchmarks.wire"]
    with subprocess.Popen(
        [*here, "--serve", certificate],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        options = ["--pages", args.pages, "--hosts", args.hosts, "--in-flight", args.in_flight]
        options += ["--port", port, "--size", size, *(["--https"] if certificate else [])]
        command = [*here, "--client", what, *map(str, options)]
        reply = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout
        server.communicate("")
    return float(json.loads(reply)["us"])


def _schemes(folder: Path, *, plain_only: bool) -> Iterator[tuple[str, str]]:
    yield "http", ""
    if not plain_only:
        issued = trustme.CA().issue_cert(*addresses(1))
        file = folder / "server.pem"
        issued.private_key_and_cert_chain_pem.write_to_path(str(file))
        yield "https", str(file)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--in-flight", type=int, default=200)
    parser.add_argument("--plain-only", action="store_true")
    for hidden in ("--serve", "--client"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--https", action="store_true", help=argparse.SUPPRESS)
    for hidden in ("--port", "--size"):
        parser.add_argument(hidden, type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if args.serve is not None:
        uvloop.run(_serve(args.serve))
        return
    if args.client:
        uvloop.run({"bare": _bare, "wire": _wire}[args.client](args))
        return
    page = len(Pages().page(1))
    size = page + len(b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n" % (_FIELDS, page))
    with tempfile.TemporaryDirectory() as folder:
        for scheme, certificate in _schemes(Path(folder), plain_only=args.plain_only):
            found: dict[str, list[float]] = {"bare": [], "wire": []}
            for _ in range(args.rounds):
                for what, costs in found.items():
                    costs.append(_measure(what, args, certificate=certificate, size=size))
            medians = ", ".join(
                f"{what} {statistics.median(costs):.1f}" for what, costs in found.items()
            )
            print(f"{scheme}, {args.hosts} hosts, {args.in_flight} in flight: us a page: {medians}")


if __name__ == "__main__":
    main()
