"""Tarpits: hosts that accept and say nothing, or a byte a second, beside hosts that respond.

    python -m benchmarks.tarpits [--tarpits 500] [--hosts 2000] [--https] [--processes 1] [--shuffled]

Each good host has robots.txt and four pages, the first lines of the list are the tarpits. Printed are
the seconds until the server had sent all good pages, the most connections it had open, and the peak
memory of the crawl, which is then killed: the tarpits would only run into their time limits.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from benchmarks.server import make_tls

ROOT = Path(__file__).parents[1]
OUT = ROOT / "benchmarks" / "out" / "tarpits"
PAGES = 4
_BODY = b"<html><title>page</title><p>text</p></html>"
_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_BODY),
    _BODY,
)
_ROBOTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\nUser-agent: *\n"
_GIVE_UP = 120


class Hosts:
    """The servers: those at 127.1.0.0/16 are tarpits, every second of which drips."""

    def __init__(self, pages: int) -> None:
        """Expect *pages* good pages."""
        self.pages = pages
        self.sent = self.open = self.most_open = 0
        self.done = threading.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        address = writer.get_extra_info("sockname")[0]
        try:
            if address.startswith("127.1."):
                await self._hold(writer, drips=int(address.rpartition(".")[2]) % 2 == 0)
            while request := await reader.readuntil(b"\r\n\r\n"):
                is_robots = request.startswith(b"GET /robots.txt")
                writer.write(_ROBOTS if is_robots else _PAGE)
                self.sent += not is_robots
                if self.sent == self.pages:
                    self.done.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()

    @staticmethod
    async def _hold(writer: asyncio.StreamWriter, *, drips: bool) -> None:
        while True:
            await asyncio.sleep(1)
            if drips:
                writer.write(b"H")
                await writer.drain()


def listening(hosts: Hosts, *, https: bool) -> int:
    """Serve *hosts* on a thread; return the port."""
    ready: list[int] = []
    is_ready = threading.Event()

    async def run() -> None:
        tls = make_tls() if https else None
        server = await asyncio.start_server(hosts.serve, "0.0.0.0", 0, backlog=65_535, ssl=tls)
        ready.append(server.sockets[0].getsockname()[1])
        is_ready.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    is_ready.wait()
    return ready[0]


def peak_rss(process: int) -> int:
    """Return the peak memory of *process* and of its children, in MiB."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    status = Path(f"/proc/{process}/status").read_text()
    own = next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    return own + sum(map(peak_rss, map(int, children)))


def url_of(scheme: str, network: int, number: int, port: int) -> str:
    """Return the URL of host *number* of 127.*network*.0.0/16, without a path."""
    return f"{scheme}://127.{network}.{1 + number // 200}.{1 + number % 200}:{port}"


def main() -> int:
    """Measure one crawl."""
    parser = argparse.ArgumentParser(prog="benchmarks.tarpits", description=__doc__)
    parser.add_argument("--tarpits", type=int, default=500)
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--https", action="store_true")
    parser.add_argument("--shuffled", action="store_true", help="tarpits and hosts in any order")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    hosts = Hosts(options.hosts * PAGES)
    port = listening(hosts, https=options.https)
    scheme = "https" if options.https else "http"
    urls = [f"{url_of(scheme, 1, number, port)}/page" for number in range(options.tarpits)]
    urls += [
        f"{url_of(scheme, 2, n, port)}/page/{page}"
        for page in range(PAGES)
        for n in range(options.hosts)
    ]
    if options.shuffled:
        random.Random(1).shuffle(urls)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "urls.txt").write_text("\n".join(urls))
    command = [str(Path(sys.executable).with_name("amicrawl")), "crawl", str(OUT / "urls.txt")]
    command += ["-o", str(OUT / "out"), "--delay", "0", "-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8"]
    command += ["-s", "AMICRAWL_TLS=record"]
    if options.processes > 1:
        command += ["--processes", str(options.processes)]
    with (OUT / "log.txt").open("wb") as log:
        began = time.perf_counter()
        crawl = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        is_done = hosts.done.wait(_GIVE_UP)
        took = time.perf_counter() - began
        memory = peak_rss(crawl.pid) if crawl.poll() is None else 0
        os.killpg(crawl.pid, signal.SIGKILL)
        crawl.wait()
    print(
        f"{options.tarpits} tarpits {'among' if options.shuffled else 'before'} {options.hosts} hosts, "
        f"{scheme}, {options.processes} processes: {hosts.sent:,} of {hosts.pages:,} good pages in "
        f"{took:.1f} s; {hosts.most_open} connections, {memory} MiB"
    )
    return 0 if is_done else 1


if __name__ == "__main__":
    sys.exit(main())
