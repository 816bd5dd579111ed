"""The parent of one child, whose siblings are on other machines. It waits on a thread of its own.

It brings the child batches, has those for others kept by the carrier, and says when
the crawl of this partition ends: nothing is left there, and every batch is where it belongs.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from amicrawl.crawl.processes.specification import Specification, allow
from amicrawl.errors import AmicrawlError
from amicrawl.partition import (
    BATCHES_AT_ONCE,
    Arrived,
    Batch,
    End,
    PartitionMessage,
    PartitionRest,
    Standing,
    has_ended,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_LONGEST_SILENCE = 600.0
"""Seconds in which a child may say nothing, as while it opens a large frontier."""
_LAST_WORDS = 3000
_CONSOLE = "console.log"


class LoneChild:
    """The crawl of partition *number* of *partitions*, in *directory*; *prefix* names its WARC files."""

    def __init__(self, directory: Path, *, number: int, partitions: int, prefix: str) -> None:
        self._directory = directory
        self._number = number
        self._partitions = partitions
        self._prefix = prefix
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._allowance = -1

    def run(
        self,
        batches: Iterator[str],
        *,
        options: Sequence[str],
        environment: Mapping[str, str],
        until: float,
        keep: Callable[[Sequence[Batch]], object],
        look: Callable[[dict[str, Any]], object],
    ) -> int:
        """Crawl what *batches* name, and what is left; return the exit code of the child.

        *options* are of the command line, *until* is when the child ends unless it is allowed more time.
        *keep* puts batches for others where they last; *look* gets the child's figures several times a
        second. Raises AmicrawlError where the child hangs, and what these two raise: it is ended then.
        """
        messages = self._begin(options, environment, until)
        assert self._process is not None
        try:
            self._converse(messages, batches, keep, look)
            return self._process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            allowance, self._allowance = self._allowance, -1
            os.close(allowance)

    def allow(self, until: float) -> None:
        """Let the child crawl until that moment, by `steady_clock`; 0 ends it. On any thread."""
        allowance = self._allowance
        with suppress(OSError):
            if allowance >= 0:
                allow(allowance, until)

    def last_words(self) -> str:
        """Return the end of what the child wrote; empty where it wrote nothing."""
        with suppress(OSError):
            return (self._directory / _CONSOLE).read_bytes()[-_LAST_WORDS:].decode("utf-8", "replace")
        return ""

    def _begin(
        self, options: Sequence[str], environment: Mapping[str, str], until: float
    ) -> queue.Queue[PartitionMessage | None]:
        """Start the child; what it says comes out of the queue, and None behind the last."""
        ours, theirs = socket.socketpair()
        self._socket = ours
        pipe, self._allowance = os.pipe()
        given = Specification(
            number=self._number,
            processes=self._partitions,
            out=str(self._directory),
            prefix=self._prefix,
            socket=theirs.fileno(),
            file="-",
            pipe=pipe,
            until=until,
        )
        command = [sys.executable, "-P", "-m", "amicrawl.crawl.start", "seeds", "-a", "file=-"]
        with theirs, (self._directory / _CONSOLE).open("ab") as console:
            self._process = subprocess.Popen(  # noqa: S603  # a list, and no shell
                [*command, *options],
                env={**os.environ, **environment, **given.environment()},
                cwd=self._directory.parent,
                pass_fds=[theirs.fileno(), pipe],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
        os.close(pipe)
        messages: queue.Queue[PartitionMessage | None] = queue.Queue()

        def read() -> None:
            with suppress(OSError, ValueError), ours.makefile("rb") as stream:
                for line in stream:
                    messages.put(PartitionMessage.of(line))
            messages.put(None)

        threading.Thread(target=read, name="amicrawl-child", daemon=True).start()
        return messages

    def _converse(
        self,
        messages: queue.Queue[PartitionMessage | None],
        batches: Iterator[str],
        keep: Callable[[Sequence[Batch]], object],
        look: Callable[[dict[str, Any]], object],
    ) -> None:
        """Bring batches and take them until the child has ended."""
        under_way: set[int] = set()
        outgoing: list[Batch] = []
        last, is_all, is_told = 0, False, False
        while (said := self._next(messages, is_ending=is_told)) is not None:
            if isinstance(said, Batch):
                outgoing.append(said)
            if not isinstance(said, Standing):
                continue
            under_way.difference_update(number for _, number in said.kept)
            is_busy = bool(said.facts["waiting"] or said.facts["in_flight"])
            if outgoing and (not is_busy or len(outgoing) >= BATCHES_AT_ONCE):
                self._kept(outgoing, keep)
            while not is_all and len(under_way) < BATCHES_AT_ONCE and said.has_room:
                batch = next(batches, None)
                if batch is None:
                    is_all = True
                    break
                last += 1
                under_way.add(last)
                self._tell(Batch(self._number, last, batch))
            look(said.facts)
            rest = PartitionRest(said.idle and not outgoing, on_their_way=len(under_way))
            if has_ended([rest], is_seeding=not is_all) and not is_told:
                is_told = True
                self._tell(End("finished"))
        if outgoing:
            # One that has come to a limit sends what it has in its last words.
            self._kept(outgoing, keep)

    def _kept(self, outgoing: list[Batch], keep: Callable[[Sequence[Batch]], object]) -> None:
        """Have the batches of the child kept, and the child forget them."""
        keep(outgoing)
        self._tell(Arrived(tuple(batch.number for batch in outgoing)))
        outgoing.clear()

    def _next(
        self, messages: queue.Queue[PartitionMessage | None], *, is_ending: bool
    ) -> PartitionMessage | None:
        """Return what the child says next; raises AmicrawlError where it is silent for too long."""
        try:
            return messages.get(timeout=None if is_ending else _LONGEST_SILENCE)
        except queue.Empty as error:
            raise AmicrawlError(f"The crawl in {self._directory} hangs: {self.last_words()}") from error

    def _tell(self, message: PartitionMessage) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.sendall(message.line())
