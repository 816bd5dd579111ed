"""A server in the place of the Internet Archive: its dialect of S3, metadata and downloads of items.

What is sent is in the item at once and is shown `lag` seconds later, as by a catalogue that takes its
time. It has the faults of `FaultyStore`, and refuses a file before its bytes have come, as a client that
waits for `100 Continue` finds out.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from faulty_store import FaultyStore, StoreHandler

if TYPE_CHECKING:
    import ssl
    from email.message import Message

KEYS = {"IA_ACCESS_KEY_ID": "anAccessKey", "IA_SECRET_ACCESS_KEY": "aSecretKey"}
_ALLOWED = "LOW anAccessKey:aSecretKey"


class ItemStore(FaultyStore):
    """Serves items for as long as the context lasts."""

    def __init__(self, *, delay: float = 0.0, fails: float = 0.0, lag: float = 0.0) -> None:
        super().__init__(delay=delay, fails=fails, lag=lag)
        self.busy = 0
        """Requests for files that are yet to be refused with 503."""
        self.moves = False
        """Whether each file is sent elsewhere, once."""
        self.leads_to = ""
        """Where to, if not to this server."""
        self.spoils: set[str] = set()
        """Names of files that are kept with another byte than was sent."""
        self.sent: Counter[str] = Counter()
        """How often each file was sent as a whole."""
        self.heads: dict[str, Message] = {}
        """The headers with which each file was sent the last time."""

    def _handler(self) -> type[StoreHandler]:
        return _ItemHandler

    def serve_by(self, context: ssl.SSLContext) -> None:
        """Serve over TLS from now on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @property
    def environment(self) -> dict[str, str]:
        """What has a crawl upload here."""
        return {**KEYS, "IA_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}

    def start(self, path: str, directory: str) -> str:
        """Return what the keys of a job in *directory* begin with, below the URL of *path*."""
        return f"{path}-{directory}/"

    def url(self, path: str) -> str:
        """Return the URL of the item PATH."""
        return f"ia://{path}?collection=test_collection"


class _ItemHandler(StoreHandler):
    store: ItemStore

    def handle_expect_100(self) -> bool:
        """Refuse a file, or let it come."""
        if self._refused() or not super().handle_expect_100():
            return False
        self.wfile.flush()
        return True

    def _refused(self) -> bool:
        """Say what is against a request, before its body; return whether anything is."""
        store, path = self.store, urlsplit(self.path).path
        if store.is_cut:
            self.close_connection = True
            return True
        if self.headers.get("Authorization") != _ALLOWED and not path.startswith("/metadata/"):
            said = b"<Error><Code>InvalidAccessKeyId</Code><Message>no %s</Message></Error>"
            self._respond(403, said % self.headers.get("Authorization", "").encode())
            return True
        if self.command == "PUT" and (store.busy or time.monotonic() % 5 < store.fails):
            store.busy = max(store.busy - 1, 0)
            text = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
            self._respond(503, text)
            return True
        if self.command == "PUT" and store.moves and not path.startswith("/node/"):
            where = store.leads_to or f"http://127.0.0.1:{store.port}/node"
            self._respond(307, b"", Location=where + path)
            return True
        return False

    def _serve(self) -> None:
        store, parts = self.store, urlsplit(self.path)
        what, _, rest = unquote(parts.path).lstrip("/").partition("/")
        if self.headers.get("Expect") is None and self._refused():
            return
        try:
            body = self._body()
        except (OSError, ValueError):
            self.close_connection = True
            return
        if len(body) != int(self.headers.get("Content-Length") or 0):
            self.close_connection = True
            return
        key = rest if what in {"node", "download", "items"} else f"{what}/{rest}"
        store.before(self.command, key)
        time.sleep(store.delay)
        if store.is_cut:
            self.close_connection = True
        elif self.command == "PUT":
            self._take(key, body)
        elif parts.query == "check_auth=1":
            self._respond(200, b'{"authorized":true,"username":"x@y.example"}')
        elif what == "metadata":
            self._describe(rest)
        elif what == "download":
            self._respond(302, b"", Location=f"/items/{rest}")
        elif what == "items":
            content = store.seen(key)
            self._respond(200, content) if content is not None else self._respond(404, b"")
        else:
            self._respond(404, b"")
        store.after(self.command, key)

    def _take(self, key: str, body: bytes) -> None:
        store = self.store
        given = self.headers.get("Content-MD5", "")
        if given and base64.b64decode(given) != hashlib.md5(body).digest():
            self._respond(400, b"<Error><Code>BadDigest</Code><Message>no</Message></Error>")
            return
        store.sent[key] += 1
        store.heads[key] = self.headers
        if key.rpartition("/")[2] in store.spoils:
            body = b"x" + body[1:]
        store.write(key, body)
        self._respond(200, b"")

    def _describe(self, identifier: str) -> None:
        files = []
        for key in list(self.store.versions):
            item, _, name = key.partition("/")
            content = self.store.seen(key) if item == identifier else None
            if content is not None:
                md5 = hashlib.md5(content).hexdigest()
                files.append({"name": name, "size": str(len(content)), "md5": md5, "source": "original"})
        self._respond(200, json.dumps({"files": files} if files else {}).encode())
