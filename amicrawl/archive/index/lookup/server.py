"""A CDX server for one's own use: requests over HTTP, responses from local indexes.

`/cdx` serves GET and HEAD; nothing else is there, and no path of a request ever names a file. A request
costs a bounded amount of work and of memory, connections are limited in number and in time, and an
response is sent once it is complete, so that an error never hides behind a status of 200.

On a loopback address, requests that name another host are refused: a page on the web cannot have a
browser read the archive by giving its own name our address. There is no encryption and no log in.
"""

from __future__ import annotations

import json
import re
import socket
import socketserver
import sys
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from amicrawl.archive.index.lookup.query import FORMATS, Bounds, count_pages, response_lines
from amicrawl.archive.index.lookup.request import request_of
from amicrawl.errors import AmicrawlError, OutputError, UsageError
from amicrawl.urls import is_loopback

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.archive.index.lookup.source import IndexSource

BOUNDS = Bounds(scanned=500_000, lines=100_000, octets=32 * 1024**2)
"""What one request may cost."""
MOST_CONNECTIONS = 32
"""Connections that are served at a time; further ones are closed."""
MOST_RESPONSES = 4
"""Requests that are worked on at a time; further ones get 503."""
PATH = "/cdx"

HEAD_SECONDS = 10.0
"""From the connection to the end of the request's head."""

_SECONDS = 20.0
_RESPONSE_SECONDS = 60.0
_SLOWEST = 64 * 1024
"""Bytes a second with which a response has to be taken."""
_MAKING_ROOM = 2.0
_PIECE = 64 * 1024
_ABSOLUTE = re.compile("http://([^/?#]+)", re.IGNORECASE)
_HELP = (
    f"A CDX server. Request {PATH}?url=URL for the captures of a URL; url=*.HOST for those of a domain, "
    "url=URL* for those below it.\n"
)

_Response = tuple[HTTPStatus, str, bytes]
"""Status, media type and body."""


class CdxServer(ThreadingHTTPServer):
    """The server; `serve_forever` responds until `shutdown`."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 2 * MOST_CONNECTIONS

    def __init__(
        self,
        address: tuple[str, int],
        sources: Sequence[IndexSource],
        *,
        bounds: Bounds = BOUNDS,
        head_seconds: float = HEAD_SECONDS,
    ) -> None:
        """Listen on host and port *address*; OutputError where that cannot be done."""
        host, port = address
        self.sources = sources
        self.bounds = bounds
        self.responses = threading.BoundedSemaphore(MOST_RESPONSES)
        """One for each response in work."""
        self.is_private = is_loopback(host)
        self._connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._head_seconds = head_seconds
        self._lock = threading.Lock()
        self._due: dict[socket.socket, float] = {}
        """When each connection is closed, whatever it does; those that wait for a head, oldest first."""
        self._responding: set[socket.socket] = set()
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), CdxHandler)
        except OSError as error:
            raise OutputError(
                f"{host}, port {port}, cannot be listened on: {error.strerror or error}. Choose others."
            ) from error

    def server_bind(self) -> None:
        """Bind, without a look-up of the address's name, as the class above would."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, or close it when there are too many."""
        if not self._connections.acquire(blocking=False) and not (
            self._closed_oldest() and self._connections.acquire(timeout=_MAKING_ROOM)
        ):
            self.shutdown_request(request)
            return
        with self._lock:
            self._due[request] = time.monotonic() + self._head_seconds
        try:
            super().process_request(request, client_address)
        except Exception:
            # No thread began. An interrupt, though, may come after one has, which lets go by itself.
            self._forget(request)
            self._connections.release()
            raise

    def has_head(self, request: socket.socket, *, octets: int = 0) -> None:
        """Give *request*, whose head is whole, the time that a response of so many *octets* may take."""
        with self._lock:
            self._responding.add(request)
            self._due[request] = time.monotonic() + _RESPONSE_SECONDS + octets / _SLOWEST

    def service_actions(self) -> None:
        """Close what is late; called twice a second."""
        now = time.monotonic()
        with self._lock:
            for request in [each for each, due in self._due.items() if due < now]:
                _hang_up(request)

    def _closed_oldest(self) -> bool:
        """Close the connection that has waited longest for a head; False where there is none."""
        with self._lock:
            for request in self._due:
                if request not in self._responding:
                    _hang_up(request)
                    return True
        return False

    def _forget(self, request: socket.socket) -> None:
        with self._lock:
            self._due.pop(request, None)
            self._responding.discard(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._forget(request)
        super().shutdown_request(request)

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: Any
    ) -> None:
        """Pass over what a client does to its connection; say everything else."""
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class CdxHandler(BaseHTTPRequestHandler):
    """One connection."""

    server: CdxServer
    server_version = "amicrawl"
    sys_version = ""
    protocol_version = "HTTP/1.0"  # one request a connection: an idle client holds nothing
    timeout: ClassVar[float] = _SECONDS

    def parse_request(self) -> bool:
        """Read the fields of a request."""
        is_whole = super().parse_request()
        self.server.has_head(self.connection)
        return is_whole

    def do_GET(self) -> None:
        """Respond to a request."""
        status, media_type, body = self._response()
        self.server.has_head(self.connection, octets=len(body))
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        self.end_headers()
        if self.command == "HEAD":
            return
        # The time that a connection has is for each write: the whole body at once would have to be
        # taken within it.
        for start in range(0, len(body), _PIECE):
            self.wfile.write(body[start : start + _PIECE])

    def do_HEAD(self) -> None:
        """Respond with the header only."""
        self.do_GET()

    def _refuse(self) -> None:
        self.send_response(HTTPStatus.METHOD_NOT_ALLOWED)
        self.send_header("Allow", "GET, HEAD")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _refuse  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing of single requests."""

    def _response(self) -> _Response:
        """Return status, media type and body."""
        host, target = _host_and_path(self.path, self.headers.get("Host", ""))
        if self.server.is_private and not _names_this_machine(host):
            return _error(
                HTTPStatus.MISDIRECTED_REQUEST, "This server responds at its own address only."
            )
        path, _, query = target.partition("?")
        if path == "/":
            return HTTPStatus.OK, "text/plain; charset=utf-8", _HELP.encode()
        if path != PATH:
            return _error(HTTPStatus.NOT_FOUND, f"There is nothing here but {PATH}.")
        return self._response_to_query(query)

    def _response_to_query(self, query: str) -> _Response:
        if not self.server.responses.acquire(blocking=False):
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, "Too many requests at once. Try again.")
        try:
            # Clients send URLs as they were typed, and the class above reads their bytes as Latin-1.
            typed = query.encode("latin-1").decode("utf-8", "replace")
            parameters = parse_qs(typed, keep_blank_values=True, max_num_fields=100)
            return _response_to(parameters, self.server.sources, self.server.bounds)
        except ValueError as error:
            return _error(HTTPStatus.BAD_REQUEST, f"The query cannot be read: {error}.")
        except UsageError as error:
            return _error(HTTPStatus.BAD_REQUEST, str(error))
        except AmicrawlError as error:
            # The name of the file is for the operator, not for clients.
            sys.stderr.write(f"amicrawl: {error}\n")
            return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "The index cannot be read.")
        finally:
            self.server.responses.release()


def _response_to(
    parameters: dict[str, list[str]], sources: Sequence[IndexSource], bounds: Bounds
) -> _Response:
    request = request_of(parameters)
    if request.counts_pages:
        pages = count_pages(request, sources)
        found = {"pages": pages.pages, "pageSize": pages.page_size, "blocks": pages.blocks}
        return HTTPStatus.OK, "application/json", json.dumps(found).encode() + b"\n"
    body = b"".join(response_lines(request, sources, bounds=bounds))
    return HTTPStatus.OK, FORMATS[request.output][0], body


def _error(status: HTTPStatus, message: str) -> _Response:
    return status, "application/json", json.dumps({"message": message}).encode() + b"\n"


def _hang_up(request: socket.socket) -> None:
    """End *request* under the thread that reads or writes it, which then closes it."""
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


def _host_and_path(target: str, host: str) -> tuple[str, str]:
    """Return the host that a request names, and its path and query, from its target and its Host field.

    A target in absolute form replaces the Host field (RFC 9112, 3.2.2).
    """
    absolute = _ABSOLUTE.match(target)
    if absolute is None:
        return host, target
    path = target[absolute.end() :]
    return absolute[1], path if path.startswith("/") else f"/{path}"


def _names_this_machine(host: str) -> bool:
    """Return whether a Host field names a loopback address, or is missing."""
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return not host or is_loopback(name or "")
