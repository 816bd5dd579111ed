"""The parent of a crawl in several processes: one command, one directory, one line of progress, one end.

It is the process in which the spider was given `processes=N`; each child is a fork of it that
crawls by the same command line, with `AMICRAWL_PROCESS` in its environment. The parent fetches nothing
and keeps nothing: links are in the outboxes of the children until the other child has them. So it can be
killed at any moment; the children stop in order then, and the same command, with the same number of
processes or another, continues.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from amicrawl.crawl.processes.child import prepare_forks
from amicrawl.crawl.processes.crawl_process import CrawlProcess, moment_of, tally_of
from amicrawl.crawl.processes.dealing import Dealing, is_unfinished, rows_since, salt_for
from amicrawl.crawl.processes.specification import BY_PARENT, Specification
from amicrawl.crawl.start import STOPPED_EARLY, ignore_signals, start_anew
from amicrawl.crawl.state import LIMITS, STOP_FILE
from amicrawl.crawl.watching.control_files import DIRECTORY, write_control
from amicrawl.crawl.watching.progress import ParentProgress
from amicrawl.crawl.watching.screen import fault_line
from amicrawl.crawl.watching.stopping import clock_or_disk_reached, count_reached, free_bytes
from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, ExitCode, OutputError, UsageError
from amicrawl.listing import PROCESSES, HistoryFile
from amicrawl.partition import (
    Again,
    Arrived,
    Batch,
    End,
    PartitionMessage,
    PartitionRest,
    Pause,
    Standing,
    has_ended,
    is_delivered,
)
from amicrawl.threads import on_a_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from amicrawl.crawl.processes.dealing import DealingPlan
    from amicrawl.crawl.processes.specification import Order

_CRASHES = 5
"""Crashes of one child in a row after which the crawl is given up."""
_SLACK = 0.02
"""Seconds by which a report may come early, as no sleep is exact."""
_TURNS = 3
"""Turns of the event loop after which a signal that came before them is known."""
_STOP_EVERY = 1.0
"""Seconds between two looks for the control file that ends the crawl."""
_DRAINS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GOOD = frozenset(
    {ExitCode.DONE, ExitCode.STOPPED, ExitCode.LIMIT, ExitCode.SEEDS_BAD, ExitCode.UNREACHED}
)


class _EarlyStopError(AmicrawlError):
    """A signal came before the crawl began."""

    exit_code = ExitCode.STOPPED


class Parent:
    """Runs the processes of one crawl."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._disk = Disk()
        self._dealing = Dealing(order.directory, disk=self._disk)
        self._children: list[CrawlProcess] = []
        self._reports = ParentProgress(order)
        self._reason = ""
        """Why the crawl ends; empty while it does not."""
        self._told = False
        """Whether the children have been sent that."""
        self._signals = 0
        self._on_stop: Callable[[], object] = bool
        """Ends what has to be ended at once by a signal."""
        self._settles = False
        self._prefix = order.prefix
        self._salt = 0
        self._history = HistoryFile(order.directory, disk=self._disk)

    async def run(self) -> int:
        """Run the crawl to its end and return the exit code."""
        loop = asyncio.get_running_loop()
        for number in _DRAINS:
            # Under nohup SIGHUP comes ignored and has to stay so.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._stop)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            loop.add_signal_handler(number, self._forward, number)
        order = self._order
        plan = await self._plan_found()
        with DirectoryLock(order.directory):
            if self._dealing.plan() != plan:
                # Another crawl was here between the two locks.
                start_anew(order.arguments, as_parent=True)
            code = await self._crawl_by(plan)
        for number in _DRAINS:
            loop.remove_signal_handler(number)
        ignore_signals()
        return code

    async def _plan_found(self) -> DealingPlan | None:
        """Return the plan of the crawl that goes on here; None where it is to be dealt.

        What cannot go on as it is was repaired and put together. Raises UsageError where nothing may go
        on, `_EarlyStopError` where a signal came.
        """
        order, dealing = self._order, self._dealing
        if order.fresh and (dealing.plan() or (order.directory / "frontier").exists()):
            raise UsageError(
                f"{order.directory} holds the frontier of a crawl, and fresh=1 allows none."
            )
        with DirectoryLock(order.directory):
            plan = dealing.plan()
            self._salt = plan.salt if plan is not None else 0
            if plan is not None and (plan.processes != order.processes or plan.stage == "gathering"):
                # Another number of processes, or a run that was killed while it put all together.
                if plan.stage != "gathering":
                    await self._settle(dealing.children(plan.processes))
                dealing.gather(reason="killed", finished=datetime.now(UTC))
                await self._look_for_signals()
                # What has gathered has threads of Arrow's, and is forked no more.
                start_anew(order.arguments, as_parent=order.processes > 1)
        if order.processes == 1:
            start_anew(order.arguments, as_parent=False)
        if plan is None and is_unfinished(order.directory):
            # By a child in this very directory, which has to take it over for that.
            await self._settle([order.directory])
        return plan

    async def _crawl_by(self, plan: DealingPlan | None) -> int:
        """Crawl by *plan*, or by one that is made now, and return the exit code."""
        order, dealing = self._order, self._dealing
        (order.directory / DIRECTORY).mkdir(exist_ok=True)
        self._reports.start()
        await self._spool()
        plan = plan or dealing.deal(order.processes, prefix=order.prefix, salt=salt_for(self._order))
        plan = dealing.follow(plan, order.replaced)
        self._prefix, self._salt = plan.prefix, plan.salt
        began = time.time()
        self._history.begin(began)
        await self._crawl(dealing.children(order.processes))
        for child in self._children:
            if child.before and self._has_ended_well(child):
                child.count_by(rows_since(child.directory, began))
        moment = moment_of(self._children, order.directory)
        self._history.end(time.time(), self._reason or "failed", moment)
        return self._gathered()

    async def _look_for_signals(self) -> None:
        """Raise `_EarlyStopError` where a signal has come to stop the crawl, which has not begun."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        if self._signals:
            raise _EarlyStopError(STOPPED_EARLY)

    async def _spool(self) -> None:
        """Have a file in the place of standard input, which only one process could read."""
        if self._order.file == "-":
            path = self._order.directory / "seeds.stdin"
            spooling = asyncio.ensure_future(on_a_thread(partial(_spool_to, path)))
            self._on_stop = spooling.cancel
            with suppress(asyncio.CancelledError):
                await spooling
            self._order = replace(self._order, file=str(path))
        await self._look_for_signals()

    async def _settle(self, directories: Sequence[Path]) -> None:
        """Have what a killed crawl left in *directories* repaired, and its links delivered.

        Nothing is fetched. Raises `_EarlyStopError` where a signal came.
        """
        self._settles = True
        await self._crawl(directories)
        self._settles = False
        for child in self._children:
            if child.code not in _GOOD:
                raise AmicrawlError(
                    f"{child.directory} could not be repaired (exit code {child.code}); see the lines "
                    "above, and start the same command again."
                )
        await self._look_for_signals()
        if lost := self._undelivered():
            raise AmicrawlError(_lost_sentence(lost))
        self._reason, self._told = "", False

    def _undelivered(self) -> list[CrawlProcess]:
        """Return the children with links that have not arrived: nothing may be dealt anew before."""
        return [child for child in self._children if not is_delivered(child.directory)]

    async def _crawl(self, directories: Sequence[Path]) -> None:
        self._children = [CrawlProcess(number, path) for number, path in enumerate(directories)]
        watching = asyncio.ensure_future(self._watch())
        try:
            await asyncio.gather(*map(self._live, self._children))
        finally:
            watching.cancel()

    async def _live(self, child: CrawlProcess) -> None:
        """Run *child* until it ends for good: again after a crash."""
        while True:
            reader, log = await self._start(child)
            lines = asyncio.ensure_future(self._read_log(log))
            await self._read(child, reader)
            child.code = await child.ended()
            await lines
            if child.code in set(ExitCode) - {ExitCode.OUR_ERROR} or self._settles:
                break
            child.crashes += 1
            if self._reason or child.crashes >= _CRASHES:
                break
            self._reports.note(
                f"Process {child.number} ended unexpectedly ({_how(child.code)}): it is started again."
            )
            child.count_as_before()
        # One that failed, or was stopped by itself: the others would wait for it.
        self._end_now(self._reason or ("shutdown" if child.code in _GOOD else "failed"))

    async def _start(self, child: CrawlProcess) -> tuple[asyncio.StreamReader, asyncio.StreamReader]:
        """Start the process of *child*; return what it says, and what it logs."""
        order = self._order
        given = Specification(
            number=child.number,
            processes=len(self._children),
            out=str(child.directory),
            prefix=f"{self._prefix}-p{child.number}",
            file=order.file if order.file != "-" else "",
            deals=order.file.lower().startswith(("http://", "https://")),
            salt=self._salt,
            settles=self._settles,
            names_hosts=self._reports.on_terminal,
        )
        readers = await child.start(order.arguments, given)
        for other in self._children:
            if other is not child:
                other.tell(Again(child.number))
        if self._reason:
            child.tell(self._ending())
        return readers

    async def _read(self, child: CrawlProcess, reader: asyncio.StreamReader) -> None:
        with suppress(OSError, ValueError):
            while line := await reader.readline():
                self._hear(child, PartitionMessage.of(line))
        assert child.writer is not None
        child.writer.close()

    async def _read_log(self, log: asyncio.StreamReader) -> None:
        """Pass on what a child writes, line by line."""
        with suppress(ValueError):
            while line := await log.readline():
                self._reports.say(line.decode("utf-8", "replace").rstrip("\n"))

    def _hear(self, child: CrawlProcess, message: PartitionMessage) -> None:
        match message:
            case Batch(recipient, number, content):
                to = self._children[recipient]
                to.idle = to.quiet = False
                to.tell(Batch(child.number, number, content))
            case Standing():
                by_sender: dict[int, list[int]] = {}
                for sender, number in message.kept:
                    by_sender.setdefault(sender, []).append(number)
                for sender, numbers in by_sender.items():
                    self._children[sender].tell(Arrived(tuple(numbers)))
                child.idle, child.facts = message.idle, message.facts
                # What was said before the pause arrived is said by one that may begin a page at once.
                child.quiet = message.quiet and BY_PARENT in message.facts.get("paused", ())
                child.crashes = 0 if child.facts.get("rows") else child.crashes
                self._look()

    def _look(self) -> None:
        """End the crawl where nothing is left to do anywhere, or a limit is reached."""
        if (self._reason or self._settles) and all(child.quiet for child in self._children):
            self._end_now(self._reason or "finished")
            return
        if self._reason or self._settles:
            return
        # A batch is in the outbox of its sender, which is not idle, until it is in the journal.
        if has_ended(PartitionRest(child.idle) for child in self._children):
            self._end_now("finished")
            return
        config, free = self._order.config, free_bytes(self._order.directory)
        reason = count_reached(config, tally_of(self._children)) or clock_or_disk_reached(
            config, elapsed=self._reports.elapsed, free=free
        )
        if reason is not None:
            self._end(reason)

    def _end(self, reason: str) -> None:
        """End the crawl in order: what is in flight arrives, and links reach the other processes."""
        if self._reason:
            return
        self._reason = reason
        for child in self._children:
            child.tell(self._ending())
        delay = self._order.config.drain_time
        asyncio.get_running_loop().call_later(delay, lambda: self._end_now(reason))

    def _end_now(self, reason: str) -> None:
        if not self._told:
            self._reason, self._told = reason, True
            for child in self._children:
                child.tell(self._ending())

    def _ending(self) -> PartitionMessage:
        """Return what a child is sent, once it is known why the crawl ends."""
        return End(self._reason) if self._told else Pause()

    def _stop(self) -> None:
        """Stop in order at the first signal, at once at the second."""
        self._signals += 1
        self._on_stop()
        if self._signals == 1:
            self._end("shutdown")
        else:
            self._end_now("shutdown")
            self._forward(signal.SIGINT)
            self._forward(signal.SIGINT)

    def _forward(self, number: int) -> None:
        for child in self._children:
            if child.process:
                os.kill(child.process, number)

    async def _watch(self) -> None:
        loop, report_at = asyncio.get_running_loop(), 0.0
        while True:
            await asyncio.sleep(min(self._reports.every, self._history.every, _STOP_EVERY))
            if self._settles:
                continue
            self._look_for_stop()
            facts = [child.facts for child in self._children]
            moment = moment_of(self._children, self._order.directory)
            self._history.note(time.time(), "stopping" if self._reason else "running", moment)
            if loop.time() >= report_at:
                report_at = loop.time() + self._reports.every - _SLACK
                self._reports.show_all(tally_of(self._children), facts, self._reason)

    def _look_for_stop(self) -> None:
        """End the crawl if there is a control file `stop`, and take it away, for the next to go on."""
        if self._reason or not (self._order.directory / DIRECTORY / "stop").exists():
            return
        try:
            write_control(self._order.directory, "stop", None, disk=self._disk)
        except OutputError as fault:
            self._reports.note(str(fault))
        self._end(STOP_FILE)

    def _has_ended_well(self, child: CrawlProcess) -> bool:
        """Return whether *child* crawled to the end, be it of a seed list that is cut."""
        return child.code in _GOOD or (child.code == ExitCode.INPUT and self._reason != "failed")

    def _gathered(self) -> int:
        """Make one directory of those of the children, if all have ended well; return the exit code."""
        codes = [ExitCode(child.code) if child.code in set(ExitCode) else ExitCode.OUR_ERROR
                 for child in self._children]  # fmt: skip
        bad = [code for code, child in zip(codes, self._children, strict=True)
               if not self._has_ended_well(child)]  # fmt: skip
        if bad:
            place = self._order.directory / PROCESSES
            self._reports.note(f"What was crawled is in {place}; the same command continues.")
            return bad[0]
        if lost := self._undelivered():
            self._reports.note(_lost_sentence(lost))
        else:
            self._dealing.gather(reason=self._reason, finished=datetime.now(UTC))
        tally = tally_of(self._children)
        self._reports.end_all(tally, [child.facts for child in self._children], self._reason)
        if ExitCode.INPUT in codes:
            return ExitCode.INPUT
        if self._reason == "finished":
            if ExitCode.SEEDS_BAD in codes:
                return ExitCode.SEEDS_BAD
            return ExitCode.UNREACHED if tally.reached_nothing else ExitCode.DONE
        return ExitCode.LIMIT if self._reason in LIMITS else ExitCode.STOPPED


def _lost_sentence(lost: Sequence[CrawlProcess]) -> str:
    names = ", ".join(str(child.directory) for child in lost)
    return f"Links between processes wait in {names}; the same command continues."


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def become_parent(order: Order) -> NoReturn:
    """Be the parent of the processes that *order* names, and exit with their exit code."""
    prepare_forks()
    try:
        order.directory.mkdir(parents=True, exist_ok=True)
        sys.exit(asyncio.run(Parent(order).run()))
    except AmicrawlError as error:
        fault, code = str(error), error.exit_code
    except OSError as error:
        fault = f"{error}. Make room, or check the directory, and start again."
        code = ExitCode.OUTPUT
    ignore_signals()
    sys.stderr.write(fault_line(fault, exit_code=code, log_format=order.config.log_format))
    sys.exit(code)


def _spool_to(path: Path) -> None:
    # Not Python's own object for it, which a thread that still waits would keep from being closed.
    with open(0, "rb", buffering=0, closefd=False) as source, path.open("wb") as target:
        shutil.copyfileobj(source, target)
