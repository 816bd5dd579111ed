"""Control: follows control files, listens for signals, keeps `control/status.json` true, and a history.

The files are looked at once a second. What cannot be followed is said in the log once, and what was in
force stays so. SIGUSR1 pauses and SIGUSR2 goes on;
a pause by file and one by signal are two reasons, and the crawl goes on when neither is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
import time
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.crawl.extensions import CrawlExtension, before_shutdown
from amicrawl.crawl.policy import add_patterns
from amicrawl.crawl.processes.specification import crawl_directory, is_child, specification
from amicrawl.crawl.state import STOP_FILE
from amicrawl.crawl.watching.busy_hosts import BusyHosts
from amicrawl.crawl.watching.control_files import (
    DIRECTORY,
    MOST,
    ControlFile,
    count_in,
    few_enough,
    seconds_in,
)
from amicrawl.crawl.watching.stopping import free_bytes, own_memory
from amicrawl.disk import replace_file
from amicrawl.errors import AmicrawlError, InputError, OutputError, UsageError
from amicrawl.invalid import nearest
from amicrawl.listing import COUNTS, HistoryFile
from amicrawl.terminal import harmless
from amicrawl.threads import on_a_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run
    from amicrawl.discovery import IgnoreSet
    from amicrawl.disk import Disk

logger = logging.getLogger(__name__)

BY_SIGNAL = "signal"
"""The reason for a pause by signal."""
BY_FILE = "file"
"""The reason for a pause by file."""
STATUS = "status.json"
"""The file in that directory which the crawl itself writes."""
_SOURCE = "control/ignores"
_MOST_NAMES = 1000
_MOST_REASONS = 50
_HOSTS = 20
"""Hosts that the status names."""
_FEW = 50
"""Ignore patterns that the status names, those that kept out most."""
_EVERY = 1.0
_SOON = 0.05
_LAYOUT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


class Control(CrawlExtension):
    """Has a `Steering` look at its files, and listens for signals, as long as the crawl runs."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        super().__init__(crawler, run)
        self._steering = Steering(run, disk=run.status_disk)
        self._status = StatusFile(self._steering.directory / STATUS, disk=run.status_disk)
        # Of a crawl in several processes, the parent writes it.
        self._history = None if is_child() else HistoryFile(run.config.directory, disk=run.status_disk)
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
        if self._history is not None and self._run.may_write():
            self._history.begin(time.time())
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
            self._writing = asyncio.ensure_future(on_a_thread(lambda: self._write(status)))

    def _write(self, status: dict[str, Any]) -> None:
        """Write *status* to its file and to the history; on a thread."""
        self._status.write(status)
        if self._history is not None:
            self._history.note(time.time(), status["state"], moment_of(status))

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
            status = self._steering.status()
            self._status.write(status, is_last=True)
            if self._history is not None:
                self._history.end(time.time(), self._run.finish_reason or "stopped", moment_of(status))


def moment_of(status: Mapping[str, Any]) -> dict[str, int]:
    """Return what the history of a crawl has of its *status*."""
    counts = status["counts"]
    return {
        **{name: counts[name] for name in COUNTS},
        "bytes": counts["bytes_received"],
        "limit": status["inflight_limit"],
        **{name: status[name] or 0 for name in ("waiting", "in_flight", "memory", "free")},
    }


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


class Steering:
    """Applies the control files of one crawl to its `Run`; knows no event loop."""

    def __init__(self, run: Run, *, disk: Disk) -> None:
        config = run.config
        self._run = run
        self._disk = disk
        self.directory = config.directory / DIRECTORY
        """Where the status is kept."""
        self._followed = crawl_directory(config.directory) / DIRECTORY
        """Where the control files are: one of several processes follows those of the whole crawl."""
        self._parts = 1 if self._followed == self.directory else specification().processes
        self._layer = run.in_force.of_files
        self._values: dict[str, Callable[[ControlFile], None]] = {
            "delay": self._take_delay,
            "concurrency": self._take_concurrency,
            "per_host": self._take_per_host,
            "ignores": self._take_ignores,
        }
        names = [*self._values, "pause", "stop"]
        self._files = {name: ControlFile(self._followed / name) for name in names}
        self._busy = BusyHosts(run)
        self._told_of = {STATUS}
        """Names that are not those of control files and need no warning, or have had theirs."""

    def look(self) -> None:
        """Look at every file and follow those that have changed."""
        for name, follow in self._values.items():
            file = self._files[name]
            if file.has_changed():
                try:
                    follow(file)
                except AmicrawlError as fault:
                    logger.warning("%s What was in force stays so.", fault)
        pause = self._files["pause"]
        if pause.has_changed():
            self._pause(there=pause.is_there)
        self._say_strangers()

    def _say_strangers(self) -> None:
        """Warn of a file by another name, once: it has no effect."""
        try:
            names = {path.name for path in islice(self._followed.iterdir(), _MOST_NAMES)}
        except OSError:
            return
        for name in sorted(names - self._files.keys() - self._told_of):
            self._told_of.add(name)
            # What editors and copying leave for a moment.
            if name.startswith(".") or name.endswith(("~", ".open", ".swp", ".tmp")):
                continue
            meant = nearest(name, self._files, cutoff=0.75)
            logger.warning(
                "%s is not a control file and has no effect. %s",
                harmless(str(self._followed / name)),
                f"Did you mean {meant}?" if meant else f"There are {', '.join(sorted(self._files))}.",
            )

    def look_for_stop(self) -> None:
        """End the crawl if the file `stop` is there, and take it away, for the next crawl to go on.

        Several processes are ended by their parent, which looks itself.
        """
        if self._parts > 1:
            return
        stop = self._files["stop"]
        stop.has_changed()
        if not stop.is_there or self._run.stopping:
            return
        try:
            self._disk.remove(stop.path)
        except OSError as error:
            logger.warning(
                "%s cannot be removed (%s): do that before you go on", stop.path, error.strerror
            )
        logger.info("Stopped by control/stop")
        self._run.end(STOP_FILE)

    def status(self) -> dict[str, Any]:
        """Return what is in force, with counts, for `status.json`."""
        run = self._run
        return {
            "state": run.state,
            "paused_by": sorted(run.paused),
            "finish_reason": run.finish_reason or None,
            "pid": os.getpid(),
            "delay": run.in_force.delay,
            "delay_max": run.in_force.delay_max,
            "per_host": run.in_force.per_host,
            "concurrency": run.in_force.concurrency,
            "concurrency_max": run.config.inflight_max,
            "inflight_limit": run.limit.limit,
            "ignores": run.in_force.ignores,
            "metrics": run.metrics_url or None,
            "waiting": run.waiting,
            "urls": run.urls_by_state,
            "in_flight": run.frontier.in_flight if run.has_frontier else 0,
            "memory": own_memory(),
            "free": free_bytes(run.config.directory),
            "counts": run.tally.as_dict(),
            "failures": dict(run.tally.failures.most_common(_MOST_REASONS)),
            "links": {} if run.following is None else dict(run.following.counts),
            "ignored": {}
            if run.following is None
            else dict(islice(run.following.selection.ignores.kept_out.items(), _FEW)),
            "hosts": [host._asdict() for host in self._busy.found(most=_HOSTS)],
        }

    def _take_delay(self, file: ControlFile) -> None:
        self._layer.delay = seconds_in(file.path, file.lines()) if file.is_there else None
        self._run.follow_in_force()
        logger.info("control/delay: %g s in force", self._run.in_force.delay)

    def _take_per_host(self, file: ControlFile) -> None:
        most = max(MOST, self._run.config.per_host)
        self._layer.per_host = count_in(file.path, file.lines(), most=most) if file.is_there else None
        self._run.follow_in_force()
        logger.info("control/per_host: %d in force", self._run.in_force.per_host)

    def _take_concurrency(self, file: ControlFile) -> None:
        # The process has been made ready for so many connections, and no more.
        parts = self._parts
        most = self._run.config.inflight_max * parts
        wanted = count_in(file.path, file.lines(), most=most) if file.is_there else None
        self._layer.concurrency = None if wanted is None else max(1, wanted // parts)
        self._run.follow_in_force()
        logger.info("control/concurrency: %d in force", self._run.in_force.concurrency)

    def _take_ignores(self, file: ControlFile) -> None:
        """Have the crawl ignore what *file* says; nothing new of it where one line is not a pattern."""
        following = self._run.following
        if following is None:
            if file.is_there:
                raise InputError(f"{file.path} says nothing to this crawl: it follows no links.")
            return
        ignores = following.selection.ignores
        lines = few_enough(file.path, file.lines()) if file.is_there else []
        in_force, before, added = self._run.in_force, set(self._layer.ignores), set[str]()
        try:
            for number, pattern in lines:
                if pattern not in before | added:
                    self._want(pattern, ignores, where=f"{file.path}, line {number}")
                    added.add(pattern)
        except InputError:
            in_force.drop(self._layer, added, ignores)
            raise
        if added and self._run.has_frontier:
            # Before they keep a URL out: a later crawl without them lets it in.
            add_patterns(self._run.frontier.partition.directory, added, disk=self._disk)
        in_force.drop(self._layer, before - {pattern for _, pattern in lines}, ignores)
        logger.info("control/ignores: %d patterns", len(self._layer.ignores))

    def _want(self, pattern: str, ignores: IgnoreSet, *, where: str) -> None:
        try:
            self._run.in_force.want(self._layer, pattern, ignores, named=_SOURCE)
        except UsageError as fault:
            raise InputError(f"{where}: {fault}") from fault

    def _pause(self, *, there: bool) -> None:
        if there and BY_FILE not in self._run.paused:
            logger.info("Paused by control/pause")
            self._run.pause(BY_FILE)
        elif not there and BY_FILE in self._run.paused:
            logger.info("control/pause is gone")
            self._run.resume(BY_FILE)
