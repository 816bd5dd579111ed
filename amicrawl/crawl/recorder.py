"""Recorder: the one writer thread, and the way to it from the event loop.

Compression, digests and disk would hold up every transfer if they ran on the event loop. Captures
are queued here instead; the thread takes whatever has gathered as one batch, lets each stage add it,
and has the archive commit it. Only then do the waiting tasks continue: a capture is acknowledged
once it is on disk.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol

from amicrawl.errors import OUT_OF_MEMORY, AmicrawlError, OutputError, is_want_of_memory

if TYPE_CHECKING:
    from amicrawl.record import CaptureItem

_BATCH_ITEMS = 64
_BATCH_BYTES = 2 * 1024**2
_LULL = 1.0
"""Seconds without a capture after which a commit is made, for what is still to be forced to disk."""


class Stage(Protocol):
    """A step on the way to disk; it runs on the writer thread."""

    def add(self, *items: CaptureItem) -> None:
        """Take *items*, filling in what later stages read from them."""


class ArchiveWriter(Protocol):
    """What the stages add to; called on the writer thread."""

    def commit(self) -> None:
        """Write what was added, and force to disk what is due."""

    def seal(self) -> object:
        """Write what was added and finish all files."""


Waiting = tuple["CaptureItem", "asyncio.Future[None]"]
Batch = tuple["list[CaptureItem]", "list[asyncio.Future[None]]"]
"""Items, and the future of each."""


class Recorder:
    """Hands captures to the stages on a thread of its own, in batches.

    A failing disk ends it: every waiting and later `record` raises the OutputError that happened.
    """

    def __init__(self) -> None:
        self._keeper: ArchiveWriter | None = None
        self._stages: list[Stage] = []
        self._queue: SimpleQueue[Waiting | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sealed: asyncio.Future[None] | None = None
        self._unforced = False
        self.fault: AmicrawlError | None = None

    def keep_in(self, keeper: ArchiveWriter) -> None:
        """Have *keeper* commit and seal; to be called before the first capture."""
        self._keeper = keeper

    def attach(self, stage: Stage) -> None:
        """Let *stage* see every capture, after the stages attached before it; once is enough."""
        if stage not in self._stages:
            self._stages.append(stage)

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is taken: all files are finished, or about to be."""
        return self._sealed is not None

    def record(self, item: CaptureItem) -> asyncio.Future[None]:
        """Return what is done when *item* is written, as durably as the crawl requests."""
        if self.fault is not None:
            raise self.fault
        if self._thread is None:
            self._start()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put((item, future))
        return future

    async def seal(self) -> None:
        """Write what is queued and finish all files; may be called again, by several callers."""
        if self._sealed is None:
            self._start()
            self._sealed = asyncio.get_running_loop().create_future()
            self._queue.put(None)
        await asyncio.shield(self._sealed)
        if self.fault is not None:
            raise self.fault

    def seal_now(self) -> None:
        """Do the same without an event loop that still turns: for the second signal."""
        if self._thread is None:
            return
        if self._sealed is None:
            self._queue.put(None)
        self._thread.join()

    def _start(self) -> None:
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._work, name="amicrawl-recorder", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        """Run on the thread until the order to seal comes."""
        more = True
        while more:
            (items, futures), more = self._take()
            if self.fault is None:
                try:
                    self._write(items)
                    if not more and self._keeper is not None:
                        self._keeper.seal()
                except Exception as error:  # noqa: BLE001  # a thread that dies in silence hangs the crawl
                    self.fault = _fault_of(error)
            if (loop := self._loop) is not None and (futures or not more):
                # The loop may be closed at any moment: then no task waits any more.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._resolve, futures, not more)

    def _take(self) -> tuple[Batch, bool]:
        """Return what waits, at most one batch, and whether more may come."""
        items: list[CaptureItem] = []
        futures: list[asyncio.Future[None]] = []
        size = 0
        try:
            entry = self._queue.get(timeout=_LULL if self._unforced else None)
            while True:
                if entry is None:
                    return (items, futures), False
                item, future = entry
                items.append(item)
                futures.append(future)
                size += item.capture.received
                if len(items) >= _BATCH_ITEMS or size >= _BATCH_BYTES:
                    break
                entry = self._queue.get_nowait()
        except Empty:
            pass
        return (items, futures), True

    def _write(self, items: list[CaptureItem]) -> None:
        for stage in self._stages:
            stage.add(*items)
        if self._keeper is not None:
            self._keeper.commit()
        # One commit in a lull is enough: after a second it has forced everything to disk.
        self._unforced = bool(items)

    def _resolve(self, futures: list[asyncio.Future[None]], is_sealed: bool) -> None:  # noqa: FBT001  # by the loop
        for future in futures:
            if future.done():
                continue
            if self.fault is None:
                future.set_result(None)
            else:
                future.set_exception(self.fault)
        if is_sealed and self._sealed is not None and not self._sealed.done():
            self._sealed.set_result(None)


def _fault_of(error: Exception) -> AmicrawlError:
    """Return what ends the crawl because of *error*, which writing has raised."""
    if isinstance(error, AmicrawlError):
        return error
    if isinstance(error, (MemoryError, ImportError, RuntimeError)):
        return _of_memory(error) if is_want_of_memory(error) else _of_ours(error)
    if isinstance(error, OSError):
        return OutputError(f"Writing failed: {error}. Repair the disk and start again.")
    return _of_ours(error)


def _of_memory(error: Exception) -> AmicrawlError:
    fault = OutputError(
        f"No memory was left for a record. {OUT_OF_MEMORY}, then run the same command again: it resumes."
    )
    fault.__cause__ = error
    return fault


def _of_ours(error: Exception) -> AmicrawlError:
    fault = AmicrawlError(f"The recorder failed: {error!r}. This is a fault of amicrawl.")
    fault.__cause__ = error
    return fault
