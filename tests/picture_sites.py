"""Made-up sites for pictures, with names and many pages, served on this machine."""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from fetch.name_server import A, NameServer, record, reply_to, requests_of

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTS = ("news", "people", "maps", "letters", "sound")


@dataclass(frozen=True)
class Manners:
    """How a site responds."""

    pages: int = 1_000_000
    pause: float = 0.03
    """Seconds until it does."""
    busy_every: int = 0
    """One of so many pages has the status 503; 0: none."""
    missing_every: int = 0


class PictureSites:
    """Serves sites by their names as long as the context lasts; each has a second host, for pictures."""

    def __init__(self, sites: Mapping[str, Manners]) -> None:
        handler = type("Handler", (_Handler,), {"sites": sites})
        self._server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), handler)
        self._server.daemon_threads = True
        self._names = NameServer(_here)
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> Self:
        self._names.__enter__()
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._names.__exit__()

    def url(self, name: str) -> str:
        """Return the address of the site *name*."""
        return f"http://{name}:{self.port}/"

    @property
    def settings(self) -> list[str]:
        """The options by which a crawl finds the sites."""
        server = "{}:{}".format(*self._names.server)
        given = {"AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8", "AMICRAWL_DNS_SERVERS": server}
        return [word for name, value in given.items() for word in ("-s", f"{name}={value}")]


def _here(requested: bytes) -> list[bytes]:
    """Reply that a name has an address of this machine, and hardly any other name the same."""
    known = requests_of(A, requested)
    address = bytes([127, 0, *hashlib.sha256(requested[12:-4]).digest()[:2]])
    return [reply_to(requested, records=record(A, address) if known else b"", count=int(known))]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sites: Mapping[str, Manners]

    def do_GET(self) -> None:
        host = (self.headers["Host"] or "").split(":")[0]
        manners = self.sites.get(host.removeprefix("media."), Manners())
        found = re.search(r"(\d+)\.(html|png)", self.path)
        number = int(found[1]) if found else 0
        time.sleep(manners.pause)
        if manners.busy_every and number % manners.busy_every == manners.busy_every - 1:
            self._send(503, "text/plain", b"busy")
        elif manners.missing_every and number % manners.missing_every == manners.missing_every - 1:
            self._send(404, "text/plain", b"missing")
        elif host.startswith("media."):
            self._send(200, "image/png", hashlib.sha512(b"%d" % number).digest() * (number % 700))
        elif self.path == "/look.css":
            self._send(200, "text/css", b"body { font: 16px serif }")
        elif self.path == "/robots.txt":
            self._send(404, "text/plain", b"none")
        else:
            self._send(200, "text/html; charset=utf-8", self._page(host, number, manners.pages))

    def _page(self, host: str, number: int, pages: int) -> bytes:
        later = [each for each in range(4 * number + 1, 4 * number + 5) if each < pages]
        items = [f'<li><a href="/{PARTS[each % len(PARTS)]}/{each}.html">{each}</a>' for each in later]
        at = self.headers["Host"]
        text = f"<!doctype html><title>{number}</title><link rel=stylesheet href=/look.css>"
        text += f'<img src="http://media.{at}/{number}.png"><ul>{"".join(items)}</ul>'
        text += f'<a href="/{PARTS[number % len(PARTS)]}/?sort=year">by year</a>'
        return (text + " " * (number * 137 % 9000)).encode()

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
