"""Serve the demo site on this machine, from the command line or inside a test.

    cd examples && python -m demo_site.server --port 0 --seeds seeds.jsonl

prints the address on a line and serves until it is interrupted; in Python,

    with DemoSite() as site:
        site.seeds(Path("seeds.jsonl"))

does so in threads of this process. Only loopback addresses are listened on.
"""

from __future__ import annotations

import argparse
import socket
import socketserver
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from demo_site.responses import Ending, SiteResponses
from demo_site.seeds import seed_lines

if TYPE_CHECKING:
    from types import TracebackType

    from demo_site.responses import SiteResponse

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_IDLE_SECONDS = 30.0


class DemoSite:
    """The demo site, served from `__enter__` or `start` until `__exit__` or `stop`.

    *pause* is how long, in seconds, the slow page waits between head and body. Port 0 takes a free one.
    Raises ValueError for an address that is not a loopback one, and OSError where it cannot be bound.
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, pause: float = 1.5) -> None:
        if not ip_address(host).is_loopback:
            raise ValueError(f"{host} is no loopback address: the demo site is for this machine only.")
        self._server = _Server(host, port, pause)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The address of the first page; it ends in a slash."""
        return self._server.url

    @property
    def requests(self) -> tuple[str, ...]:
        """The targets requested up to now, in the order in which they came."""
        return tuple(self._server.requested)

    def seeds(self, path: Path) -> Path:
        """Write the seeds of the site to *path* as JSON Lines; return *path*."""
        path.write_text("".join(seed_lines(self.url)), encoding="utf-8")
        return path

    def wire(self, target: str) -> bytes:
        """Return the bytes that an unconditional GET of *target* gets."""
        return self._server.responses.respond(target, {}).wire

    def start(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close every connection and stop serving; nothing of it is left running."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.hang_up()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, pause: float) -> None:
        super().__init__((host, port), _Handler)
        self.url = f"http://{host}:{self.server_address[1]}/"
        self.responses = SiteResponses(self.url)
        self.pause = pause
        self.requested: list[str] = []
        self.stopping = threading.Event()
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection; one that is to be reset gets no orderly end first."""
        self._open.discard(request)
        if (
            request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, len(_RESET_ON_CLOSE))
            == _RESET_ON_CLOSE
        ):
            self.close_request(request)
        else:
            super().shutdown_request(request)

    def hang_up(self) -> None:
        """End the connections that are still open, so that their threads end."""
        self.stopping.set()
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:  # it has just ended by itself
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that goes away in the middle is no fault here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    server: _Server

    def do_GET(self) -> None:
        self.server.requested.append(self.path)
        self._send(self.server.responses.respond(self.path, dict(self.headers.items())))

    def _send(self, response: SiteResponse) -> None:
        for number, piece in enumerate(response.pieces):
            if number:
                self.server.stopping.wait(self.server.pause)
            self.wfile.write(piece)
        if response.ending is not Ending.KEEP:
            self.close_connection = True
        if response.ending is Ending.RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the base class gives
        """Say nothing: the crawl reports what came."""


def main(arguments: list[str]) -> int:
    """Serve as *arguments* say until interrupted."""
    parser = argparse.ArgumentParser(description="Serve the demo site on this machine.")
    parser.add_argument(
        "--port", type=int, default=0, help="port to listen on; 0 (the default) takes a free one"
    )
    parser.add_argument("--seeds", type=Path, help="write the site's seeds to this file, as JSON Lines")
    options = parser.parse_args(arguments)
    with DemoSite(port=options.port) as site:
        if options.seeds is not None:
            site.seeds(options.seeds)
        sys.stdout.write(f"{site.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
