"""Jobs over several processes, of which one may die: it costs the job it was at and no other.

Hostile input can bring a process down in ways that no exception handler sees: a fault in a C library,
the kernel's out-of-memory killer, a loop without end. So each job runs in a process that its fate cannot
spread from. `concurrent.futures` gives up the whole pool when one process dies; this does not.

A worker ends by itself when the process that started it is gone, however that ended.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from amicrawl.errors import DamagedFileError, InputError, OutputError, UsageError
from amicrawl.interpreter import ENDING, signals_for_later

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

PATIENCE = timedelta(minutes=10)
"""How long a worker may report nothing before it counts as hung and is killed."""

_WAKE = 1.0
"""Seconds after which silent workers are looked at."""

_READABLE = {"", *(kind.__name__ for kind in (DamagedFileError, InputError, OutputError, UsageError))}

Job = TypeVar("Job")
Result = TypeVar("Result")


class JobProgress(NamedTuple, Generic[Job]):
    """A report of a worker on its *job*."""

    job: Job
    message: Any


class JobDone(NamedTuple, Generic[Job, Result]):
    """A job that came to its end."""

    job: Job
    result: Result


class Lost(NamedTuple, Generic[Job]):
    """A job that its worker died of, or raised at."""

    job: Job
    reason: str
    last: Any
    """The last report of the worker about it; None if there was none."""
    error: str = ""
    """The name of the exception that was raised; empty where the process died."""

    @property
    def sentence(self) -> str:
        """The reason, behind the name of an exception that was not made to be read."""
        return self.reason if self.error in _READABLE else f"{self.error}: {self.reason}"


class _Word(IntEnum):
    PROGRESS = 0
    DONE = 1
    RAISED = 2


def run_jobs(
    jobs: Iterable[Job],
    work: Callable[[Job, Callable[[Any], None]], Result],
    *,
    processes: int,
    patience: timedelta = PATIENCE,
) -> Generator[JobProgress[Job] | JobDone[Job, Result] | Lost[Job]]:
    """Do *jobs* in up to *processes* processes and yield what comes of them, as it comes.

    *work* is a function of a module (it is imported in the processes); it receives a job and a function
    that reports its progress. Closing the iterator kills what is at work.
    """
    from multiprocessing.connection import wait  # noqa: PLC0415  # what works alone does without

    waiting = deque(jobs)
    workers: list[_Worker[Job]] = []
    try:
        while waiting or any(worker.is_busy for worker in workers):
            while waiting and (worker := _idle(workers, work, processes)) is not None:
                worker.begin(waiting.popleft())
            busy = {worker.connection: worker for worker in workers if worker.is_busy}
            for connection in wait(list(busy), timeout=_WAKE):
                yield busy[connection].hear()  # type: ignore[index]  # it is one of those given
            for worker in busy.values():
                if worker.is_busy and worker.silence() > patience.total_seconds():
                    yield worker.give_up(f"it reported nothing for {patience} and was ended")
            workers = [worker for worker in workers if not worker.is_gone]
    finally:
        for worker in workers:
            worker.end()


def _idle(workers: list[_Worker[Job]], work: Callable[..., Any], processes: int) -> _Worker[Job] | None:
    for worker in workers:
        if not worker.is_busy:
            return worker
    if len(workers) >= processes:
        return None
    workers.append(_Worker(work))
    return workers[-1]


@dataclass
class _Task(Generic[Job]):
    job: Job
    last: Any = None


class _Worker(Generic[Job]):
    """One process, as the one that started it sees it."""

    def __init__(self, work: Callable[..., Any]) -> None:
        import multiprocessing  # noqa: PLC0415
        from multiprocessing import resource_tracker  # noqa: PLC0415

        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process: SpawnProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
        # The first process would start it, and have signals come through.
        resource_tracker.ensure_running()
        with signals_for_later(), _no_main_module():
            self._process.start()
        theirs.close()
        self._task: _Task[Job] | None = None
        self._heard = time.monotonic()
        self.is_gone = False

    @property
    def is_busy(self) -> bool:
        return self._task is not None

    def begin(self, job: Job) -> None:
        self._task = _Task(job)
        self._heard = time.monotonic()
        with suppress(OSError):  # it has died; that is heard at the other end of the connection
            self.connection.send(job)

    def silence(self) -> float:
        """Return the seconds since its last report."""
        return time.monotonic() - self._heard

    def hear(self) -> JobProgress[Job] | JobDone[Job, Any] | Lost[Job]:
        """Take in one message, or its end."""
        task = self._task
        assert task is not None
        try:
            word, message = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            return self.give_up(_ending(self._process.exitcode))
        self._heard = time.monotonic()
        if word == _Word.PROGRESS:
            task.last = message
            return JobProgress(task.job, message)
        self._task = None
        if word == _Word.DONE:
            return JobDone(task.job, message)
        error, reason = message
        return Lost(task.job, reason, task.last, error)

    def give_up(self, reason: str) -> Lost[Job]:
        """End the process, and say which job that costs."""
        task = self._task
        assert task is not None
        self.end()
        return Lost(task.job, reason, task.last)

    def end(self) -> None:
        """Kill the process; there is nothing in it that must be saved."""
        self._task = None
        self.is_gone = True
        self._process.kill()
        self._process.join()
        self._process.close()
        self.connection.close()


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Keep a process that is started from importing the main module again.

    What a worker does is a function of another module. The command line, with all that it imports, would
    take longer to load than many a file takes to read.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"its process was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"its process was ended by signal {-code}"
    return f"its process ended with code {code}"


def _serve(connection: Connection, work: Callable[[Any, Callable[[Any], None]], Any]) -> None:
    """Be a worker: take jobs from *connection* until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the one that started us decides
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        try:
            result = work(job, lambda message: connection.send((_Word.PROGRESS, message)))
        except Exception as error:  # noqa: BLE001  # whatever it is, it costs this job only
            connection.send((_Word.RAISED, (type(error).__name__, str(error)[:2000])))
        else:
            connection.send((_Word.DONE, result))


def _end_with_parent() -> None:
    import multiprocessing  # noqa: PLC0415
    from multiprocessing.connection import wait  # noqa: PLC0415

    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
