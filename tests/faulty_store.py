"""An object store with the protocol of S3 whose faults a test chooses, and a network that it can cut.

`FaultyStore` keeps objects in memory. It can be slow, fail now and then, show what was written only a
while later, refuse all connections, and call the test before or after a request. `Cable` is a TCP
connection to a server that can be cut and joined again.
"""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import http.server
import re
import select
import socket
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from object_store import CREDENTIALS

if TYPE_CHECKING:
    from collections.abc import Callable

BUCKET = "archive"
_XML = '<?xml version="1.0" encoding="UTF-8"?>'
_CHUNK = re.compile(rb"([0-9a-fA-F]+)(?:;[^\r]*)?\r\n")


class FaultyStore:
    """Serves one bucket for as long as the context lasts."""

    def __init__(self, *, delay: float = 0.0, fails: float = 0.0, lag: float = 0.0) -> None:
        """Wait *delay* seconds before each response; refuse requests in *fails* of each five seconds.

        What is written or removed is seen by readers *lag* seconds later.
        """
        self.delay, self.fails, self.lag = delay, fails, lag
        self.before: Callable[[str, str], object] = lambda _method, _key: None
        self.after: Callable[[str, str], object] = lambda _method, _key: None
        self.versions: dict[str, list[tuple[float, bytes | None]]] = defaultdict(list)
        self.parts: dict[str, dict[int, bytes]] = defaultdict(dict)
        self.is_cut = False
        self.count = 0
        self.lock = threading.Lock()
        handler = type("Handler", (self._handler(),), {"store": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """What has a crawl upload here."""
        return dict(CREDENTIALS)

    def start(self, path: str, directory: str) -> str:
        """Return what the keys of a job in *directory* begin with, below the URL of *path*."""
        return f"{path}/{directory}/"

    def _handler(self) -> type[StoreHandler]:
        return StoreHandler

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def url(self, path: str) -> str:
        """Return the URL of *path* in it."""
        where = f"endpoint_override=127.0.0.1:{self.port}&scheme=http"
        return f"s3://{BUCKET}/{path}?{where}&region=us-east-1"

    def write(self, key: str, content: bytes | None) -> None:
        """Put *content* under *key*; None removes what is there."""
        with self.lock:
            self.versions[key].append((time.monotonic(), content))

    def seen(self, key: str, *, lag: float | None = None) -> bytes | None:
        """Return what a reader sees under *key*: what was there *lag* seconds ago."""
        until = time.monotonic() - (self.lag if lag is None else lag)
        with self.lock:
            found = [content for at, content in self.versions.get(key, []) if at <= until]
        return found[-1] if found else None

    def objects(self) -> dict[str, bytes]:
        """Return all that is there."""
        with self.lock:
            keys = list(self.versions)
        found = {key: self.seen(key, lag=0.0) for key in keys}
        return {key: content for key, content in found.items() if content is not None}


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Say nothing: clients come and go."""


class StoreHandler(http.server.BaseHTTPRequestHandler):
    """One connection of a client of the store."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    store: FaultyStore

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def handle_expect_100(self) -> bool:
        """Have the client send the body at once: it waits a second for a word that is only buffered."""
        super().handle_expect_100()
        self.wfile.flush()
        return True

    def _serve(self) -> None:
        store, parts = self.store, urlsplit(self.path)
        key = unquote(parts.path).removeprefix(f"/{BUCKET}").lstrip("/")
        query = parse_qs(parts.query, keep_blank_values=True)
        try:
            body = self._body()
        except (OSError, ValueError):
            # The client is gone.
            self.close_connection = True
            return
        if self.headers.get("x-amz-decoded-content-length") is not None:
            body = _unchunked(body)
        store.before(self.command, key)
        if store.delay:
            time.sleep(store.delay)
        with store.lock:
            store.count += 1
        if store.is_cut:
            self.close_connection = True
            return
        if time.monotonic() % 5 < store.fails:
            self._respond(503, b"<Error><Code>SlowDown</Code><Message>no</Message></Error>")
            return
        self._act(key, query, body)
        store.after(self.command, key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _body(self) -> bytes:
        if "chunked" not in (self.headers.get("Transfer-Encoding") or ""):
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size)
            if len(body) != size:
                raise OSError("the client is gone")
            return body
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    def _act(self, key: str, query: dict[str, list[str]], body: bytes) -> None:
        store, method = self.store, self.command
        if method in {"GET", "HEAD"} and (not key or "list-type" in query):
            self._list(query)
        elif method in {"GET", "HEAD"}:
            self._read(key)
        elif method == "POST" and "uploads" in query:
            upload = hashlib.md5(f"{key}{store.count}".encode()).hexdigest()
            store.parts[upload] = {}
            name = "InitiateMultipartUploadResult"
            self._respond(200, f"<{name}><UploadId>{upload}</UploadId></{name}>".encode())
        elif method == "POST" and "uploadId" in query:
            # A client that has heard nothing in time says it once more.
            parts = store.parts.pop(query["uploadId"][0], None)
            if parts is not None:
                store.write(key, b"".join(content for _, content in sorted(parts.items())))
            name = "CompleteMultipartUploadResult"
            self._respond(200, f"<{name}><ETag>x</ETag></{name}>".encode())
        elif method == "POST":
            for each in re.findall(rb"<Key>(.*?)</Key>", body):
                store.write(each.decode(), None)
            self._respond(200, b"<DeleteResult></DeleteResult>")
        elif method == "PUT" and "uploadId" in query:
            store.parts[query["uploadId"][0]][int(query["partNumber"][0])] = body
            self._respond(200, b"", ETag='"x"')
        elif method == "PUT" and self.headers.get("x-amz-copy-source"):
            source = unquote(self.headers["x-amz-copy-source"]).lstrip("/").removeprefix(f"{BUCKET}/")
            # The store itself knows what it has.
            store.write(key, store.seen(source, lag=0.0))
            self._respond(200, b"<CopyObjectResult><ETag>x</ETag></CopyObjectResult>")
        elif method == "PUT":
            store.write(key, body)
            self._respond(200, b"", ETag=f'"{hashlib.md5(body).hexdigest()}"')
        elif method == "DELETE":
            store.parts.pop(query.get("uploadId", [""])[0], None)
            if "uploadId" not in query:
                store.write(key, None)
            self._respond(204, b"")

    def _read(self, key: str) -> None:
        content = self.store.seen(key)
        if content is None:
            self._respond(404, b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>")
            return
        requested = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        extra = {"Last-Modified": email.utils.formatdate(usegmt=True), "ETag": '"x"'}
        if requested is None:
            self._respond(200, content, **extra)
            return
        first, last = int(requested[1]), min(int(requested[2] or len(content)), len(content) - 1)
        extra["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        self._respond(206, content[first : last + 1], **extra)

    def _list(self, query: dict[str, list[str]]) -> None:
        prefix = query.get("prefix", [""])[0]
        keys = [key for key in sorted(self.store.versions) if key.startswith(prefix)]
        found = [(key, self.store.seen(key)) for key in keys]
        lines = [
            f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size></Contents>"
            for key, content in found
            if content is not None
        ]
        text = f"<Name>{BUCKET}</Name><KeyCount>{len(lines)}</KeyCount><IsTruncated>false</IsTruncated>"
        self._respond(200, f"<ListBucketResult>{text}{''.join(lines)}</ListBucketResult>".encode())

    def _respond(self, status: int, body: bytes, **headers: str) -> None:
        with contextlib.suppress(OSError):
            content = _XML.encode() + body if body[:1] == b"<" else body
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
            self.wfile.flush()


def _unchunked(body: bytes) -> bytes:
    """Return what a body in chunks of the protocol (`aws-chunked`) holds."""
    content, at = [], 0
    while (line := _CHUNK.match(body, at)) and (size := int(line[1], 16)):
        content.append(body[line.end() : line.end() + size])
        at = line.end() + size + 2
    return b"".join(content)


class Cable:
    """A port that leads to another one for as long as the context lasts, unless it is cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self.is_cut = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._listener.close()

    def cut(self) -> None:
        """Let nothing through until `join`: connections hang, as where a cable was pulled."""
        self.is_cut = True

    def join(self) -> None:
        """Let everything through again; the connections of before are gone."""
        for pair in list(self._pairs):
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self.is_cut = False

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(here,), daemon=True).start()

    def _carry(self, here: socket.socket) -> None:
        there = socket.create_connection(("127.0.0.1", self._to))
        pair = (here, there)
        self._pairs.add(pair)
        with here, there, contextlib.suppress(OSError):
            self._pass(here, there)
        self._pairs.discard(pair)

    def _pass(self, here: socket.socket, there: socket.socket) -> None:
        while True:
            readable, _, _ = select.select([here, there], [], [], 0.5)
            while self.is_cut:
                time.sleep(0.02)
                if here.fileno() < 0:
                    return
            for end in readable:
                data = end.recv(65536)
                if not data:
                    return
                (there if end is here else here).sendall(data)
