"""Control: has control files looked at, listens for signals, and keeps `control/status.json` true.

The files are looked at once a second; `steering` does what they say. SIGUSR1 pauses and SIGUSR2 goes on;
a pause by file and one by signal are two reasons, and the crawl goes on when neither is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.crawl.extension import CrawlExtension, before_shutdown
from amicrawl.crawl.feeding import on_a_thread
from amicrawl.crawl.watching.steering import STATUS, Steering
from amicrawl.disk import replace_file
from amicrawl.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run
    from amicrawl.disk import Disk

logger = logging.getLogger(__name__)

BY_SIGNAL = "signal"
"""The reason for a pause by signal."""
_EVERY = 1.0
_SOON = 0.05
_LAYOUT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


class Control(CrawlExtension):
    """Has a `Steering` look at its files, and listens for signals, as long as the crawl runs."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        super().__init__(crawler, run)
        self._steering = Steering(run, disk=run.status_disk)
        self._status = StatusFile(self._steering.directory / STATUS, disk=run.status_disk)
        self._writing: asyncio.Future[None] | None = None
        self._told: dict[str, Any] = {}
        self._ran = False
        self._before: dict[int, Any] = {}
        """What the signals did before this crawl listened for them."""

    def _opened(self) -> None:
        before_shutdown(self._end)
        self._listen()
        try:
            self._steering.directory.mkdir(exist_ok=True)
        except OSError as error:
            logger.warning("%s cannot be made: %s", self._steering.directory, error.strerror)
        self._steering.look()
        self._timer = asyncio.get_running_loop().call_later(_SOON, self._tick)

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._ran = self._ran or self._crawler.engine.running
        if not self._ran:
            # An engine that does not run yet cannot be closed: `stop` has to wait.
            self._timer = loop.call_later(_SOON, self._tick)
            return
        self._timer = loop.call_later(_EVERY, self._tick)
        self._steering.look()
        self._steering.look_for_stop()
        status = self._steering.status()
        if not self._run.may_write():
            return
        if status != self._told and (self._writing is None or self._writing.done()):
            self._told = status
            self._writing = asyncio.ensure_future(on_a_thread(lambda: self._status.write(status)))

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number, act in ((signal.SIGUSR1, self._run.pause), (signal.SIGUSR2, self._run.resume)):
            # Not on the main thread of its process, a crawl hears no signals.
            with contextlib.suppress(RuntimeError, ValueError, NotImplementedError):
                before = signal.getsignal(number)
                loop.add_signal_handler(number, self._heard, act, number)
                self._before[number] = before

    def _heard(self, act: Callable[[str], None], number: signal.Signals) -> None:
        logger.info("Heard %s", number.name)
        act(BY_SIGNAL)

    def _closed(self) -> None:
        self._end()

    def _end(self) -> None:
        """Stop looking and listening, and leave the last status behind; once."""
        if self._timer is None:
            return
        self._stop_timer()
        for number, before in self._before.items():
            asyncio.get_event_loop().remove_signal_handler(number)
            # By default they end the process, and the last files may still be under way.
            signal.signal(number, before if before not in (None, signal.SIG_DFL) else signal.SIG_IGN)
        if self._run.may_write():
            self._status.write(self._steering.status(), is_last=True)


class StatusFile:
    """`status.json`, replaced as a whole: a reader never sees half of it. For several threads."""

    def __init__(self, path: Path, *, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self._lock = threading.Lock()
        self._ended = False
        self._failed = False

    def write(self, status: Mapping[str, Any], *, is_last: bool = False) -> None:
        """Write *status* unless the last one was written; what keeps it from that is logged once."""
        with self._lock:
            if self._ended:
                return
            self._ended = is_last
            written = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            try:
                self._replace(orjson.dumps({**status, "written": written}, option=_LAYOUT))
            except OutputError as fault:
                if not self._failed:
                    logger.warning("The crawl goes on without its status file: %s", fault)
                self._failed = True

    def _replace(self, content: bytes) -> None:
        replace_file(self._path, content, disk=self._disk)
