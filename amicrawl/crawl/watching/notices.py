"""Notices: what a webhook receives of a crawl that has ended, and how it is delivered.

The body is a JSON object, `X-Amicrawl-Signature: sha256=<hex>` is its HMAC-SHA-256 under a key that both
ends know. A receiver compares that before it believes a word, and `X-Amicrawl-Delivery`, the same
for every attempt of one notice, to see whether it has it already.

A receiver that cannot be reached or is busy (429, 5xx) is tried again three times. All of it together is
bounded in time, redirects are not followed, proxies are not asked, and nothing of the answer but its
status is read. This module knows the network and threads; when a notice is due is for `webhooks`.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

import orjson

from amicrawl import __version__
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from amicrawl.record import SealedFile

PATIENCE = 15.0
"""Seconds after which a notice is given up, attempts and waits included."""
WAITS = (0.5, 2.0, 4.0)
"""Seconds before the second, third and fourth attempt."""
_ATTEMPT = 5.0
_FILES_TOLD = 1000
_TOO_BUSY = frozenset({408, 425, 429, *range(500, 600)})


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where notices go."""

    scheme: str
    host: str
    port: int | None
    target: str
    """Path and query, which may be secret."""

    def __str__(self) -> str:
        """Return what may be said of it in a log: not the path, in which many services have a key."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{f':{self.port}' if self.port else ''}"


def receiver(url: str) -> Receiver:
    """Read *url*, of http or https, without user and password; raises UsageError for any other.

    The sentence does not repeat it.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = SplitResult("", "", "", "", ""), None
    printable = url.isascii() and url.isprintable() and " " not in url
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or "@" in parts.netloc
        or not printable
    ):
        raise UsageError(
            "AMICRAWL_WEBHOOKS holds what is not a URL to call: write http:// or https://, a host and a "
            "path, without user and password and in ASCII. One that is secret is written as env:NAME or "
            "file:PATH."
        )
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Receiver(parts.scheme, parts.hostname, port, target)


def notice(
    *,
    crawl: Mapping[str, object],
    counts: Mapping[str, int],
    sealed: Sequence[SealedFile],
) -> bytes:
    """Return the body: *crawl* as it is, the counts, and the files; of many, the last thousand."""
    files = [{"name": file.name, "size": file.size, "sha256": file.sha256} for file in sealed]
    return orjson.dumps(
        {
            "event": "crawl-ended",
            "software": f"amicrawl/{__version__}",
            **crawl,
            "counts": dict(counts),
            "files": files[-_FILES_TOLD:],
            "files_sealed": len(files),
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )


def signature(body: bytes, key: bytes) -> str:
    """Return the value of `X-Amicrawl-Signature` for *body* under *key*."""
    return "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()


def deliver(
    to: Receiver,
    body: bytes,
    *,
    delivery: str,
    key: bytes = b"",
    waits: Sequence[float] = WAITS,
    patience: float = PATIENCE,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Bring *body* to *to*; return the empty string, or why it did not arrive, in one line.

    It blocks, for about *patience* seconds at most where the system keeps its timeouts; to be run on a
    thread that nothing has to wait for.
    """
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"amicrawl/{__version__}",
        "X-Amicrawl-Event": "crawl-ended",
        "X-Amicrawl-Delivery": delivery,
        "Connection": "close",
    }
    if key:
        headers["X-Amicrawl-Signature"] = signature(body, key)
    ends = clock() + patience
    trouble = ""
    for wait in (0.0, *waits):
        left = ends - clock() - wait
        if left <= 0:
            return trouble
        if wait:
            sleep(wait)
        trouble, hopeless = _attempt(to, body, headers, timeout=min(_ATTEMPT, left))
        if not trouble or hopeless:
            return trouble
    return trouble


def _attempt(
    to: Receiver, body: bytes, headers: Mapping[str, str], *, timeout: float
) -> tuple[str, bool]:
    """Return what went wrong, if anything did, and whether it would go wrong again."""
    connection = _connection(to, timeout)
    try:
        connection.request("POST", to.target, body, dict(headers))
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        # Only the kind of a HTTPException: it may quote what the server sent.
        said = str(error) if isinstance(error, OSError) else ""
        return f"{type(error).__name__}{f': {said}' if said else ''}", False
    finally:
        connection.close()
    if 200 <= status < 300:
        return "", False
    return f"it answered {status}", status not in _TOO_BUSY


def _connection(to: Receiver, timeout: float) -> http.client.HTTPConnection:
    if to.scheme == "http":
        return http.client.HTTPConnection(to.host, to.port, timeout=timeout)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(to.host, to.port, timeout=timeout, context=context)
