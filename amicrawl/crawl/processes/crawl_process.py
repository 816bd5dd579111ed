"""The processes of one crawl, as their parent sees them: what each says, and what all have counted."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from amicrawl.crawl.decision import CLASSES, Tally
from amicrawl.crawl.processes.child import fork
from amicrawl.crawl.start import start_crawl
from amicrawl.crawl.watching.stopping import own_memory
from amicrawl.listing import COUNTS
from amicrawl.partition import LARGEST_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from amicrawl.crawl.processes.specification import Specification
    from amicrawl.partition import PartitionMessage

_LOOK_EVERY = 0.02
"""Seconds between two looks whether a process that has closed its socket has ended."""
_FETCHED = (*CLASSES, "bytes_received")
_SUMMED = (*_FETCHED, "seeds_bad", "seeds_known")


class CrawlProcess:
    """One process; after a crash, the next one in its place."""

    def __init__(self, number: int, directory: Path) -> None:
        self.number = number
        self.directory = directory
        self.process = 0
        """Its process ID; 0 while there is none."""
        self.writer: asyncio.StreamWriter | None = None
        self.idle = False
        """Whether nothing is left to do there."""
        self.quiet = False
        """Whether nothing is under way there, and no link waits to be sent."""
        self.facts: dict[str, Any] = {}
        self.before: Counter[str] = Counter()
        """What earlier attempts of this run had counted."""
        self.failures_before: Counter[str] = Counter()
        self.crashes = 0
        self.code: int | None = None
        """The exit code, once it has ended for good."""

    async def start(
        self, arguments: list[str], given: Specification
    ) -> tuple[asyncio.StreamReader, asyncio.StreamReader]:
        """Crawl by the words *arguments* as *given*; return what the process says, and what it logs."""
        (ours, theirs), (log, stderr) = socket.socketpair(), os.pipe()
        environment = replace(given, socket=theirs.fileno()).environment()

        def crawl() -> None:
            os.environ |= environment
            start_crawl(arguments)

        self.process = fork(crawl, keep=theirs.fileno(), stderr=stderr)
        theirs.close()
        os.close(stderr)
        logged = await _reader_of(log)
        said, self.writer = await asyncio.open_connection(sock=ours, limit=LARGEST_MESSAGE)
        return said, logged

    def tell(self, message: PartitionMessage) -> None:
        """Send *message*, if the process is there."""
        if self.writer is not None and not self.writer.is_closing():
            self.writer.write(message.line())

    async def ended(self) -> int:
        """Wait for the process, which has closed its socket; return its exit code.

        Below 0 is the signal that has ended it.
        """
        while not (ended := os.waitpid(self.process, os.WNOHANG))[0]:  # noqa: ASYNC110, ASYNC222  # at once
            await asyncio.sleep(_LOOK_EVERY)
        self.process = 0
        return os.waitstatus_to_exitcode(ended[1])

    def count_as_before(self) -> None:
        """Note what a process that crashed had counted, before it is started again."""
        # The next one reads the seed list again from its first line.
        self.before.update({name: self.facts.get(name, 0) for name in _FETCHED})
        self.failures_before.update(self.facts.get("failures", {}))
        self.idle, self.quiet, self.facts = False, False, {}

    def count_by(self, rows: Tally) -> None:
        """Count by the *rows* of all attempts in the index: those killed left some unreported."""
        for name in CLASSES:
            self.before[name] = getattr(rows, name) - self.facts.get(name, 0)
        self.failures_before = rows.failures - Counter(self.facts.get("failures", {}))

    def counts(self) -> dict[str, int]:
        """Return what this attempt has counted, of what is added up over all processes."""
        return {name: self.facts.get(name, 0) for name in _SUMMED}


async def _reader_of(pipe: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(pipe, "rb"))
    return reader


def tally_of(processes: Sequence[CrawlProcess]) -> Tally:
    """Return the counts of all *processes* together."""
    counts: Counter[str] = Counter()
    tally = Tally()
    for process in processes:
        counts.update(process.before)
        counts.update(process.counts())
        tally.failures.update(process.failures_before)
        tally.failures.update(process.facts.get("failures", {}))
    for name, count in counts.items():
        setattr(tally, name, count)
    facts = [process.facts for process in processes if process.facts]
    # Every process reads the whole list.
    tally.seeds_read = max((each["seeds_read"] for each in facts), default=0)
    tally.seeds_ended = bool(facts) and all(each["seeds_ended"] for each in facts)
    announced = [each["seeds_announced"] for each in facts if each["seeds_announced"] is not None]
    tally.seeds_announced = max(announced, default=None)
    return tally


def moment_of(processes: Sequence[CrawlProcess], directory: Path) -> dict[str, int]:
    """Return what the history in *directory* has of all *processes* together, and of their parent."""
    tally, facts = tally_of(processes), [process.facts for process in processes if process.facts]
    here = [process.process for process in processes if process.process]
    return {
        **{name: getattr(tally, name) for name in COUNTS},
        "bytes": tally.bytes_received,
        "waiting": sum(each["waiting"] for each in facts),
        "in_flight": sum(each["in_flight"] for each in facts),
        "limit": sum(each["inflight_limit"] for each in facts),
        "memory": own_memory() + sum(map(own_memory, here)),
        "free": shutil.disk_usage(directory).free,
    }
