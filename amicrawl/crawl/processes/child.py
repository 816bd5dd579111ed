"""One process of several: an ordinary crawl of one shard, in touch with the parent over a socket.

It is a fork of the parent, for which all that a crawl imports is there already. What is said over the
socket is in `partition/messages.py`. When the parent is gone, the crawl is stopped in order; one
that has an `Allowance` is ended at once, for another may be begun in its place.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.crawl.partition_member import PartitionMember
from amicrawl.crawl.processes.specification import BY_PARENT, Allowance, specification
from amicrawl.crawl.watching.busy_hosts import BusyHost, BusyHosts, shown_hosts
from amicrawl.crawl.watching.progress import if_long, next_in
from amicrawl.errors import AmicrawlError, ExitCode, InputError, OutputError
from amicrawl.partition import (
    BATCHES_AT_ONCE,
    EVERY,
    LARGEST_MESSAGE,
    Again,
    Arrived,
    Batch,
    End,
    OpenedBatch,
    Outbox,
    PartitionMessage,
    Pause,
    links_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from amicrawl.crawl.arguments import SeedArguments, SiteArguments
    from amicrawl.crawl.run import Run
    from amicrawl.partition import Parcel, PartitionLink

    Arguments = TypeVar("Arguments", SeedArguments, SiteArguments)

logger = logging.getLogger(__name__)

_HOSTS_EVERY = 1.0
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
            **limits_of_each(config, each),
            # The parent counts, over all processes, and says why the crawl ends.
            **{f"stop_{what}": 0 for what in ("pages", "bytes", "time", "errors", "free")},
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


def limits_of_each(config: CrawlConfig, processes: int) -> dict[str, int]:
    """Return the limits over all hosts of each of so many *processes*, by name, by those of *config*."""
    whole = {
        "inflight_max": config.inflight_max,
        "inflight_start": config.inflight_start,
        "inflight_min": config.inflight_min,
        "bandwidth": int(config.bandwidth),
    }
    # 0 means unlimited: it stays 0, and nothing else becomes it.
    return {name: max(1, limit // processes) if limit else 0 for name, limit in whole.items()}


class Process(PartitionMember):
    """Keeps one process of a crawl in touch with its parent. Placed by the add-on."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        super().__init__(crawler, run)
        self._given = given = specification()
        self._under_way: dict[int, Parcel] = {}
        """Batches that were sent and are not known to be in the other's journal."""
        self._last_number = 0
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._busy = BusyHosts(run)
        self._hosts: list[BusyHost] = []
        self._hosts_at = 0.0
        run.spec = replace(
            run.spec,
            salt=given.salt,
            deals_seeds=given.deals and given.number == 0,
            gets_seeds=given.settles or given.is_alone or (given.deals and given.number > 0),
        )
        if given.is_alone:
            allowed = Allowance(given.pipe, given.until).is_good
            run.lease_output(allowed, disk=run.disk, status_disk=run.status_disk)
        if given.settles:
            run.pause(BY_PARENT)

    def _opened_outbox(self) -> Outbox:
        outbox = Outbox(self._run.config.directory, disk=self._run.disk)
        outbox.begin_epoch(_EPOCH)
        return outbox

    async def _opened(self) -> None:
        assert self._box is not None
        parent = socket.socket(fileno=self._given.socket)
        reader, self._writer = await asyncio.open_connection(sock=parent, limit=LARGEST_MESSAGE)
        self._reading = asyncio.ensure_future(self._read(reader))
        self._repeat(self._exchange_or_fail, every=EVERY)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._hear(PartitionMessage.of(line))
        except (OSError, ValueError) as error:
            logger.warning("What the parent says cannot be read (%s): the crawl is stopped", error)
        except AmicrawlError as fault:
            self._run.fail(fault)
        self._leave(_PARENT_GONE)

    def _hear(self, message: PartitionMessage) -> None:
        match message:
            case Batch(sender, number, content):
                try:
                    links, faults = links_in(content)
                except InputError as fault:
                    # It would be the same when it was sent again: what is in it is lost.
                    links, faults = [], [str(fault)]
                for why in faults:
                    _warn_of(why)
                self._bring(OpenedBatch((sender, number), tuple(links)))
            case Arrived(numbers):
                for number in numbers:
                    if (parcel := self._under_way.pop(number, None)) is not None:
                        self._box.sent(parcel)
                with suppress(OutputError):
                    # Without it, what was sent is only sent once more.
                    self._box.write_mark()
            case Again(partition):
                # What it had not written down is lost; the outbox gives it out once more.
                for number, parcel in list(self._under_way.items()):
                    if parcel.recipient == partition:
                        self._box.on_its_way(self._under_way.pop(number), is_so=False)
            case Pause():
                self._run.pause(BY_PARENT)
            case End(reason):
                self._leave(reason)

    async def _refuse(self, batch: OpenedBatch, link: PartitionLink, why: str) -> None:  # noqa: ARG002
        _warn_of(f"{link.seed.url!a}: {why}")

    def _exchange_or_fail(self) -> None:
        try:
            self._exchange()
        except AmicrawlError as fault:
            # Its links would wait for ever, and the others for them.
            self._run.fail(fault)

    def _exchange(self) -> None:
        """Say how things stand, with what is in the journal, and send what the outbox has."""
        standing, is_sent = self._standing(), self._box.is_empty
        self._tell(replace(standing, idle=standing.idle and is_sent, quiet=standing.quiet and is_sent))
        self._send(BATCHES_AT_ONCE - len(self._under_way))

    def _send(self, room: int) -> None:
        """Send up to *room* batches of what the outbox has."""
        for parcel in self._box.parcels(most=room) if room > 0 else ():
            self._last_number += 1
            self._under_way[self._last_number] = parcel
            self._box.on_its_way(parcel)
            self._tell(Batch(parcel.recipient, self._last_number, parcel.batch))

    def _tell(self, message: PartitionMessage) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(message.line())

    def _facts(self) -> dict[str, Any]:
        run = self._run
        wait = next_in(run) if run.has_frontier else None
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
            "next_in": wait,
            "hosts": self._busy_hosts(wait),
        }

    def _busy_hosts(self, wait: float | None) -> list[BusyHost]:
        """Return the hosts that the parent may show, as they were at most a second ago.

        Where it shows none, those of a crawl that has to *wait* say why.
        """
        now = self._run.clock()
        is_shown = self._given.names_hosts or if_long(wait) is not None
        if is_shown and now >= self._hosts_at:
            self._hosts, self._hosts_at = shown_hosts(self._busy), now + _HOSTS_EVERY
        return self._hosts

    async def _closed(self) -> None:
        self._stop_timer()
        if self._reading is not None:
            self._reading.cancel()
        if self._run.recorder.fault is None and self._outbox is not None:
            self._exchange()
            if self._given.is_alone:
                # The outbox goes with this machine; what carries it keeps all that it is sent.
                self._send(sys.maxsize)
        self._outgoing.close()
        if self._outbox is not None:
            self._outbox.close()
        if self._writer is not None:
            try:
                await self._writer.drain()
            except OSError:
                # The parent is gone; the next one is sent what this one has not heard.
                return
            finally:
                self._writer.close()


def _warn_of(why: str) -> None:
    logger.warning("A link of another process is left out: %s", why)
