"""One process of several: an ordinary crawl of one shard, in touch with the parent over a socket.

It is a fork of the parent, for which all that a crawl imports is there already.

Messages are JSON objects, one a line.

    to the parent    {"t": "standing", "idle": bool, "quiet": bool, "facts": {...}}
                     {"t": "links", "to": N, "id": I, "b": BATCH}         links for the process N
                     {"t": "kept", "of": [[N, I], ...]}                   batches that are in the journal
    to the child     {"t": "links", "from": N, "id": I, "b": BATCH}
                     {"t": "taken", "ids": [I, ...]}                      the outbox need not keep them
                     {"t": "again", "to": N}                              the process N was started anew
                     {"t": "end", "reason": REASON}, {"t": "pause"}, {"t": "resume"}

`idle` is sent behind every batch that was taken and before `kept`: so whatever the parent knows to be
delivered, it knows to be at work. When the parent is gone, the crawl is stopped in order; one that has
an `Allowance` is ended at once, for another may be begun in its place.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import socket
import sys
import traceback
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from scrapy import signals
from scrapy.exceptions import DontCloseSpider

from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.crawl.extensions import CrawlExtension
from amicrawl.crawl.partition.batch import links_in
from amicrawl.crawl.partition.links import Outgoing, take_links
from amicrawl.crawl.partition.outbox import Outbox
from amicrawl.crawl.processes.specification import (
    BY_PARENT,
    LARGEST_MESSAGE,
    Allowance,
    specification,
)
from amicrawl.crawl.watching.busy_hosts import BusyHost, BusyHosts, shown_hosts
from amicrawl.crawl.watching.progress import next_in
from amicrawl.errors import AmicrawlError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from amicrawl.crawl.arguments import SeedArguments, SiteArguments
    from amicrawl.crawl.partition.outbox import Parcel
    from amicrawl.crawl.run import Run

    Arguments = TypeVar("Arguments", SeedArguments, SiteArguments)

logger = logging.getLogger(__name__)

_EVERY = 0.2
_HOSTS_EVERY = 1.0
_BATCHES = 16
_EPOCH = "processes"
_PARENT_GONE = "shutdown"


_IMPORTED = (
    *(f"amicrawl.crawl.{name}" for name in ("addon", "scheduler", "downloader", "handler", "robots")),
    "amicrawl.fetch.name_servers",
    *("scrapy.core.engine", "scrapy.extensions.corestats", "twisted.internet.asyncioreactor"),
)
"""What every child would import. Nothing that makes a thread, as Arrow does, or an event loop."""


def prepare_forks() -> None:
    """Import what the forks will use."""
    for name in _IMPORTED:
        import_module(name)
    # A fork shares the memory of what is never looked at by its collector.
    gc.freeze()


def fork(act: Callable[[], object], *, keep: int, stderr: int) -> int:
    """Return the process ID of a fork that does *act* and exits as that says, by SystemExit.

    It has the descriptor *keep*, and *stderr* as its standard error. It is what a process of its own
    would be: it has a session, signals as Python sets them, no standard input, no event loop and no
    other open file of the parent. It never returns into the parent's code, whose locks and loop it must
    not touch.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    # One that arrives before its handler is the fork's own would be taken for the parent's.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    process = os.fork()
    if not process:
        _be_the_fork(act, keep=keep, stderr=stderr)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process


def _be_the_fork(act: Callable[[], object], *, keep: int, stderr: int) -> NoReturn:
    code: object = ExitCode.OUR_ERROR
    try:
        os.setsid()
        _leave_the_loop()
        os.dup2(stderr, 2)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.closerange(3, keep)
        os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
        act()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001  # nothing of it may reach the code of the parent
        traceback.print_exc()
    finally:
        if not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _leave_the_loop() -> None:
    """Have signals do what they do in a process that has just begun, and forget the parent's loop."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            is_interrupt = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    asyncio.set_event_loop(None)


def as_child(arguments: Arguments, settings: BaseSettings) -> Arguments:
    """Return *arguments* as this process follows them, and set what is its part of the crawl."""
    given = specification()
    config = CrawlConfig.from_settings({n: settings[n] for n in settings if n.startswith(PREFIX)})
    each = given.processes
    changed: dict[str, Any] = {"out": given.out, "run_id": "", "warc_prefix": given.prefix}
    if not given.is_alone:
        changed |= {
            "inflight_max": max(1, config.inflight_max // each),
            "inflight_start": max(1, config.inflight_start // each),
            "inflight_min": max(1, config.inflight_min // each),
            "bandwidth": int(config.bandwidth) // each,
            # The parent counts, over all processes.
            **{f"stop_{what}": 0 for what in ("pages", "bytes", "time", "errors")},
        }
    for name, value in changed.items():
        settings.set(PREFIX + name.upper(), value, "cmdline")
    return replace(
        arguments,
        file=given.file or arguments.file,
        out=given.out,
        run_id=None,
        shard=given.number,
        shards=each,
        processes="1",
        fresh=False,
    )


class Process(CrawlExtension):
    """Keeps one process of a crawl in touch with its parent. Placed by the add-on."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        super().__init__(crawler, run)
        self._given = given = specification()
        self._outbox: Outbox | None = None
        self._outgoing = Outgoing(run, lambda: self._box)
        self._under_way: dict[int, Parcel] = {}
        """Batches that were sent and are not known to be in the other's journal."""
        self._last_id = 0
        self._kept: list[list[int]] = []
        self._taking: set[asyncio.Task[None]] = set()
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ending = False
        self._busy = BusyHosts(run)
        self._hosts: list[BusyHost] = []
        self._hosts_at = 0.0
        run.spec = replace(
            run.spec,
            deals_seeds=given.deals and given.number == 0,
            gets_seeds=given.settles or given.is_alone or (given.deals and given.number > 0),
        )
        if given.is_alone:
            allowed = Allowance(given.pipe, given.until).is_good
            run.lease_output(allowed, disk=run.disk, status_disk=run.status_disk)
        if given.settles:
            run.pause(BY_PARENT)
        crawler.signals.connect(self._idle, signals.spider_idle)

    @property
    def _box(self) -> Outbox:
        """The outbox, opened behind the output, which one process has at a time."""
        if self._outbox is None:
            assert self._run.output is not None
            self._outbox = Outbox(self._run.config.directory, disk=self._run.disk)
            self._outbox.begin_epoch(_EPOCH)
        return self._outbox

    async def _opened(self) -> None:
        assert self._box is not None
        parent = socket.socket(fileno=self._given.socket)
        reader, self._writer = await asyncio.open_connection(sock=parent, limit=LARGEST_MESSAGE)
        self._reading = asyncio.ensure_future(self._read(reader))
        self._repeat(self._exchange, every=_EVERY)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._hear(json.loads(line))
        except (OSError, ValueError) as error:
            logger.warning("What the parent says cannot be read (%s): the crawl is stopped", error)
        self._leave(_PARENT_GONE)

    def _hear(self, said: dict[str, Any]) -> None:
        kind = said["t"]
        if kind == "links":
            task = asyncio.ensure_future(self._take(said))
            self._taking.add(task)
            task.add_done_callback(self._taking.discard)
        elif kind == "taken":
            for number in said["ids"]:
                if (parcel := self._under_way.pop(number, None)) is not None:
                    self._box.sent(parcel)
            self._box.write_mark()
        elif kind == "again":
            # What it had not written down is lost; the outbox gives it out once more.
            for number, parcel in list(self._under_way.items()):
                if parcel.recipient == said["to"]:
                    self._box.on_its_way(self._under_way.pop(number), is_so=False)
        elif kind == "pause":
            self._run.pause(BY_PARENT)
        elif kind == "resume":
            self._run.resume(BY_PARENT)
        elif kind == "end":
            self._leave(said["reason"])

    async def _take(self, batch: dict[str, Any]) -> None:
        """Offer the links of *batch*."""
        links, faults = links_in(batch["b"])
        refused = await take_links(self._run, links)
        for why in [*faults, *(f"{link.seed.url!a}: {why}" for link, why in refused)]:
            logger.warning("A link of another process is left out: %s", why)
        self._kept.append([batch["from"], batch["id"]])
        self._run.wake()

    def _exchange(self) -> None:
        """Say how things stand, acknowledge what is in the journal, and send what the outbox has."""
        run = self._run
        quiet = self._is_quiet()
        idle = quiet and self._is_idle()
        self._tell({"t": "standing", "idle": idle, "quiet": quiet, "facts": self._facts()})
        if self._kept and run.has_frontier:
            try:
                run.frontier.flush()
            except AmicrawlError as fault:
                run.fail(fault)
                return
            self._tell({"t": "kept", "of": self._kept})
            self._kept = []
        room = _BATCHES - len(self._under_way)
        for parcel in self._box.parcels(most=room) if room > 0 else ():
            self._last_id += 1
            self._under_way[self._last_id] = parcel
            self._box.on_its_way(parcel)
            batch = {"t": "links", "to": parcel.recipient, "id": self._last_id, "b": parcel.batch}
            self._tell(batch)

    def _tell(self, message: dict[str, Any]) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(_line(message))

    def _is_quiet(self) -> bool:
        """Tell whether nothing is being done here, nor on its way from here."""
        engine, run = self._crawler.engine, self._run
        if engine is None or self._taking or self._kept or not run.has_frontier:
            return False
        return not run.frontier.in_flight and not engine.downloader.active and self._box.is_empty

    def _is_idle(self) -> bool:
        """Tell whether nothing is left to do here, besides."""
        scheduler = self._crawler.engine.scheduler
        waits = self._run.frontier.has_pending() or (scheduler and scheduler.has_pending_requests())
        return self._run.tally.seeds_ended and not waits

    def _facts(self) -> dict[str, Any]:
        run = self._run
        return {
            **run.tally.as_dict(),
            "seeds_ended": run.tally.seeds_ended,
            "seeds_announced": run.tally.seeds_announced,
            "failures": dict(run.tally.failures),
            "waiting": run.waiting if run.has_frontier else 0,
            "later": run.later if run.has_frontier else 0,
            "in_flight": run.frontier.in_flight if run.has_frontier else 0,
            "inflight_limit": run.limit.limit,
            "paused": sorted(run.paused),
            "state": run.state,
            "next_in": next_in(run) if run.has_frontier else None,
            "hosts": self._busy_hosts(),
        }

    def _busy_hosts(self) -> list[BusyHost]:
        """Return the hosts that the parent may show, as they were at most a second ago."""
        now = self._run.clock()
        if self._given.names_hosts and now >= self._hosts_at:
            self._hosts, self._hosts_at = shown_hosts(self._busy), now + _HOSTS_EVERY
        return self._hosts

    def _leave(self, reason: str) -> None:
        if not self._ending:
            self._ending = True
            self._run.end(reason)

    def _idle(self) -> None:
        """Keep the crawl open: other processes may have links for it."""
        if not self._ending:
            raise DontCloseSpider

    async def _closed(self) -> None:
        self._stop_timer()
        if self._reading is not None:
            self._reading.cancel()
        if self._run.recorder.fault is None and self._outbox is not None:
            self._exchange()
        self._outgoing.close()
        if self._outbox is not None:
            self._outbox.close()
        if self._writer is not None:
            try:
                await self._writer.drain()
            except OSError:
                # The parent is gone; the next one asks for what it has not heard.
                return
            finally:
                self._writer.close()


def _line(message: dict[str, Any]) -> bytes:
    """Return *message* as a line. Batches are text with surrogates for octets that are not UTF-8."""
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
