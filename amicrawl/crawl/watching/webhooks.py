"""Webhooks: each is sent a notice when the crawl has ended and its files are sealed and copied.

It is sent whatever the crawl ended with. A notice that does not arrive is a line in the log. It changes
neither the exit code nor the output.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured

from amicrawl.crawl.extension import CrawlExtension, before_shutdown
from amicrawl.crawl.feeding import on_a_thread
from amicrawl.crawl.watching.notices import PATIENCE, Receiver, deliver, notice, receiver
from amicrawl.crawlfile.secrets import resolve
from amicrawl.errors import InputError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run

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
            receiver(resolve(url, base=base) if url.startswith(("env:", "file:")) else url)
            for url in config.webhooks
        ]
        self._key = resolve(config.webhook_secret, base=base).encode() if config.webhook_secret else b""
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
            logger.warning("%d webhooks had not answered after %d s", len(late), PATIENCE)
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


def _tell(to: Receiver, *, body: bytes, delivery: str, key: bytes, patience: float) -> None:
    """Deliver *body* and say in the log if it did not arrive."""
    trouble = deliver(to, body, delivery=delivery, key=key, patience=patience)
    if trouble:
        logger.warning("The notice of the end did not reach the webhook at %s: %s", to, trouble)


def _told_time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
