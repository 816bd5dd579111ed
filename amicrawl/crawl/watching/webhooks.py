"""Webhooks: each is sent a notice when the crawl has ended and its files are sealed and copied.

It is sent whatever the crawl ended with. A notice that does not arrive is a line in the log. It changes
neither the exit code nor the output.

The body is a JSON object, `X-Amicrawl-Signature: sha256=<hex>` is its HMAC-SHA-256 under a key that both
ends know. A receiver compares that before it believes a word, and `X-Amicrawl-Delivery`, the same for
every attempt of one notice, to see whether it has it already. One that cannot be reached or is busy
(429, 5xx) is tried again three times. All of it together is bounded in time, redirects are not followed,
proxies are not used, and nothing of the response but its status is read.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import logging
import ssl
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from scrapy import signals
from scrapy.exceptions import NotConfigured

from amicrawl import __version__
from amicrawl.crawl.extensions import CrawlExtension, before_shutdown
from amicrawl.crawlfile import resolve
from amicrawl.errors import InputError, UsageError
from amicrawl.jsontext import written
from amicrawl.threads import on_a_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run
    from amicrawl.listing import SealedFile


PATIENCE = 15.0
"""Seconds after which a notice is given up, attempts and waits included."""
WAITS = (0.5, 2.0, 4.0)
"""Seconds before the second, third and fourth attempt."""
_ATTEMPT = 5.0
_FILES_TOLD = 1000
_TOO_BUSY = frozenset({408, 425, 429, *range(500, 600)})


@dataclass(frozen=True, slots=True)
class WebhookReceiver:
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


def receiver(url: str) -> WebhookReceiver:
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
    return WebhookReceiver(parts.scheme, parts.hostname, port, target)


def notice(
    *,
    crawl: Mapping[str, object],
    counts: Mapping[str, int],
    sealed: Sequence[SealedFile],
) -> bytes:
    """Return the body: *crawl* as it is, the counts, and the files; of many, the last thousand."""
    files = [{"name": file.name, "size": file.size, "sha256": file.sha256} for file in sealed]
    return written(
        {
            "event": "crawl-ended",
            "software": f"amicrawl/{__version__}",
            **crawl,
            "counts": dict(counts),
            "files": files[-_FILES_TOLD:],
            "files_sealed": len(files),
        }
    )


def signature(body: bytes, key: bytes) -> str:
    """Return the value of `X-Amicrawl-Signature` for *body* under *key*."""
    return "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()


def deliver(
    to: WebhookReceiver,
    body: bytes,
    *,
    delivery: str,
    key: bytes = b"",
    waits: Sequence[float] = WAITS,
    patience: float = PATIENCE,
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
    ends = time.monotonic() + patience
    trouble = ""
    for wait in (0.0, *waits):
        left = ends - time.monotonic() - wait
        if left <= 0:
            return trouble
        if wait:
            time.sleep(wait)
        trouble, hopeless = _attempt(to, body, headers, timeout=min(_ATTEMPT, left))
        if not trouble or hopeless:
            return trouble
    return trouble


def _attempt(
    to: WebhookReceiver, body: bytes, headers: Mapping[str, str], *, timeout: float
) -> tuple[str, bool]:
    """Return what went wrong, if anything did, and whether it would go wrong again."""
    connection = _connection(to, timeout)
    try:
        connection.request("POST", to.target, body, dict(headers))
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        # Only the kind of the others: they may quote what the server sent, or a name that is none.
        said = str(error) if isinstance(error, OSError) else ""
        return f"{type(error).__name__}{f': {said}' if said else ''}", False
    finally:
        connection.close()
    if 200 <= status < 300:
        return "", False
    return f"it responded with {status}", status not in _TOO_BUSY


def _connection(to: WebhookReceiver, timeout: float) -> http.client.HTTPConnection:
    if to.scheme == "http":
        return http.client.HTTPConnection(to.host, to.port, timeout=timeout)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(to.host, to.port, timeout=timeout, context=context)


logger = logging.getLogger(__name__)

_IN_A_HURRY = 2.0
"""Seconds that a second signal leaves for that."""


class Webhooks(CrawlExtension):
    """Sends the notice of one crawl to every webhook at once; not there where none is named."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        """Read the receivers, before anything is fetched; raises as `receiver` and `resolve` do."""
        config = run.config
        if not config.webhooks:
            raise NotConfigured
        base = Path.cwd()
        super().__init__(crawler, run)
        self._receivers = [
            receiver(
                resolve(url, base, of="AMICRAWL_WEBHOOKS") if url.startswith(("env:", "file:")) else url
            )
            for url in config.webhooks
        ]
        secret = config.webhook_secret
        self._key = resolve(secret, base, of="AMICRAWL_WEBHOOK_SECRET").encode() if secret else b""
        if config.webhook_secret and not self._key:
            raise InputError(f"{config.webhook_secret} is empty: there is no key to sign webhooks with.")
        self._started = datetime.now(UTC)
        self._told = False
        self._engine_started = False
        crawler.signals.connect(self._started_up, signals.engine_started)
        crawler.signals.connect(self._tell, signals.engine_stopped)

    def _opened(self) -> None:
        before_shutdown(self._tell_at_once)

    def _started_up(self) -> None:
        self._engine_started = True

    async def _closed(self) -> None:
        # An engine that never started does not stop; one that did, stops when all is done here.
        if not self._engine_started:
            await self._tell()

    async def _tell(self) -> None:
        if self._told:
            return
        calls = [asyncio.ensure_future(on_a_thread(call)) for call in self._calls(PATIENCE)]
        # A second more, so that who gives up by the clock can still say so.
        done, late = await asyncio.wait(calls, timeout=PATIENCE + 1)
        for call in late:
            call.cancel()
        if late:
            logger.warning("%d webhooks had not responded after %d s", len(late), PATIENCE)
        for call in done:
            if fault := call.exception():
                logger.warning("A webhook could not be called: %r", fault)

    def _tell_at_once(self) -> None:
        """Try for a moment, on threads that nothing waits for longer."""
        if self._told:
            return
        calls = self._calls(_IN_A_HURRY)
        threads = [threading.Thread(target=call, name="amicrawl-notice", daemon=True) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_IN_A_HURRY / len(threads))

    def _calls(self, patience: float) -> list[partial[None]]:
        """Return what tells each receiver, to be run on a thread each."""
        self._told = True
        run, config = self._run, self._run.config
        code = run.exit_code()
        fault = run.fault
        crawl: dict[str, object] = {
            "directory": str(config.directory.absolute()),
            "run_id": config.run_id,
            "finish_reason": run.finish_reason,
            "exit_code": int(code),
            "exit": code.name,
            "fault": None if fault is None else str(fault),
            "started": _told_time(self._started),
            "finished": _told_time(datetime.now(UTC)),
            "urls_waiting": run.waiting,
        }
        body = notice(crawl=crawl, counts=run.tally.as_dict(), sealed=run.sealed)
        tell = partial(_tell, body=body, delivery=str(uuid.uuid4()), key=self._key, patience=patience)
        return [partial(tell, url) for url in self._receivers]


def _tell(to: WebhookReceiver, *, body: bytes, delivery: str, key: bytes, patience: float) -> None:
    """Deliver *body* and say in the log if it did not arrive."""
    trouble = deliver(to, body, delivery=delivery, key=key, patience=patience)
    if trouble:
        logger.warning("The notice of the end did not reach the webhook at %s: %s", to, trouble)


def _told_time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
