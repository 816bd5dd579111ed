"""One source file of a collection: read once, and everything that was asked for made of that read.

A record is given to every product in turn. What goes wrong with one record costs the record, in all
products alike or in one, and is reported with its offset: it does not cost the file. Products get their
names when the whole file has been read, and the mark that they are done comes last.
"""

from __future__ import annotations

import fcntl
import gc
import os
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.disk import explained
from amicrawl.errors import AmicrawlError, InputError
from amicrawl.index.collection.marks import (
    MOST_LOSSES,
    Loss,
    Made,
    Outcome,
    with_earlier,
    write_mark,
)
from amicrawl.index.collection.products import (
    PRODUCTS,
    LeftOutError,
    LineMaker,
    ProductOptions,
    Seen,
    begun,
)
from amicrawl.index.derivatives.file import Maker
from amicrawl.index.reading.records import paired, read_records
from amicrawl.index.steady_memory import collector_at_rest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from amicrawl.index.collection.products import Product
    from amicrawl.index.reading.records import Broken, Record

MARKS = "done"
"""The directory of the marks."""
_COLLECTED_EVERY = 1000
"""Records after which memory that is held in cycles is looked for."""
_TOLD_EVERY = 0.25
"""Seconds between two words on how far it is."""


@dataclass(frozen=True)
class FileJob:
    """A source file, and what is to be made of it."""

    source: Path
    stem: str
    """What its products are called after."""
    out: Path
    """The collection's directory."""
    products: tuple[str, ...]
    filename: str
    """What the index calls the file."""
    options: ProductOptions = field(default_factory=ProductOptions)
    in_directories: bool = True
    """Whether each product has a directory of its own below `out`, as in a collection."""
    before: Outcome | None = None
    """What came of it before under the same settings, where products of that are there already."""

    @property
    def source_bytes(self) -> int:
        """How large its source is; 0 where that cannot be seen."""
        try:
            return self.source.stat().st_size
        except OSError:
            return 0

    @property
    def mark(self) -> Path:
        """Where it is written that the file is done."""
        # Where products share a directory, so do their marks.
        name = self.stem if self.in_directories else self.path.name
        return self.out / MARKS / f"{name}.json"

    @property
    def path(self) -> Path:
        """Where the first of its products lies."""
        return PRODUCTS[self.products[0]].path(self)

    @property
    def settings(self) -> dict[str, str]:
        """What the products depend on besides the source, as the mark has it."""
        return {**self.options.settings(), "filename": self.filename}


class ReadProgress(NamedTuple):
    """How far the reading of a file is."""

    offset: int
    records: int


def collect_file(job: FileJob, tell: Callable[[ReadProgress], None]) -> Outcome:
    """Make the products of one file and return what came of it; *tell* is given the progress.

    Raises InputError where the source cannot be read, OutputError where a product cannot be written.
    """
    maker = Maker(hostname=job.options.hostname)
    with _claimed(job.out / MARKS):
        facts = _facts_of(job.source)
        reader = FileReader(job, maker, tell=tell)
        products = reader.read()
        outcome = Outcome(
            source=str(job.source),
            size=facts.st_size,
            changed=facts.st_mtime_ns,
            records=reader.records,
            lost=reader.lost,
            losses=reader.losses,
            products=products,
        )
        if job.before is not None:
            outcome = with_earlier(outcome, job.before)
        write_mark(job.mark, outcome, settings=job.settings, disk=maker.disk)
    return outcome


def _facts_of(source: Path) -> os.stat_result:
    try:
        return source.stat()
    except OSError as error:
        raise InputError(
            f"{source} cannot be read: {error.strerror or error}. Check path and permissions."
        ) from error


class FileReader:
    """Gives the records of one file to its products."""

    def __init__(
        self,
        job: FileJob,
        maker: Maker,
        *,
        tell: Callable[[ReadProgress], None] = lambda _: None,
    ) -> None:
        """Have *maker* make the products of *job*."""
        self.records = 0
        """Records that were read."""
        self.lost = 0
        self.losses: list[Loss] = []
        """The first of what was lost."""
        self._job = job
        self._maker = maker
        self._tell = tell
        self._told = time.monotonic()

    def read(self) -> dict[str, Made]:
        """Read the file and return what was made, by product; raises as `collect_file`."""
        job = self._job
        with ExitStack() as stack:
            # Tokens of pages are many tuples and make no cycles; what does is looked for now and then.
            stack.enter_context(collector_at_rest())
            products: dict[str, Product] = {}
            for name, product in begun(job, self._maker).items():
                stack.callback(product.close)
                products[name] = product
            line_maker = LineMaker(job)
            stack.callback(line_maker.close)
            for record, partner in self._records():
                self.records += 1
                self._give(Seen(record, partner, line_maker), products)
                if not self.records % _COLLECTED_EVERY:
                    gc.collect(1)  # of the young: what a page left is that, and the rest is modules
                self._say_how_far(record)
            return self._sealed(products)

    def _records(self) -> Iterator[tuple[Record, Record | None]]:
        records = read_records(self._job.source, on_broken=self._broken)
        if self._job.options.index.needs_pairs:
            yield from paired(records)
        else:
            yield from ((record, None) for record in records)

    def _sealed(self, products: Mapping[str, Product]) -> dict[str, Made]:
        made = {}
        for name, product in products.items():
            entries, size = product.seal()
            file = PRODUCTS[name].path(self._job).relative_to(self._job.out)
            made[name] = Made(str(file), size, entries)
        return made

    def _give(self, seen: Seen, products: Mapping[str, Product]) -> None:
        reasons = []
        for name, product in products.items():
            try:
                product.add(seen)
            except AmicrawlError:
                raise
            except LeftOutError as error:
                reasons.append(str(error))
            except Exception as error:  # noqa: BLE001  # whatever it is, it costs this record only
                reason = f"{name}: the record is left out, {type(error).__name__}: {error}"
                reasons.append(reason[:500])
        for reason in dict.fromkeys(reasons):  # two products may say the same
            self._lose(seen.record.offset, reason)

    def _broken(self, broken: Broken) -> None:
        self._lose(broken.offset, broken.reason)

    def _lose(self, offset: int, reason: str) -> None:
        self.lost += 1
        if self.lost <= MOST_LOSSES:
            self.losses.append(Loss(offset, reason))

    def _say_how_far(self, record: Record) -> None:
        now = time.monotonic()
        if now - self._told >= _TOLD_EVERY:
            self._told = now
            self._tell(ReadProgress(record.offset + record.length, self.records))


@contextmanager
def _claimed(directory: Path) -> Iterator[None]:
    """Hold a shared lock on *directory* while files are written."""
    with explained(directory, "opened"):
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _lock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def wait_for_others(directory: Path, *, patience: float = 30.0) -> bool:
    """Wait until no process writes products: workers outlive a killed parent for a moment.

    Returns False where one still does after *patience* seconds.
    """
    with explained(directory, "opened"):
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + patience
        while not _lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True
    finally:
        os.close(descriptor)


def _lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        return False
    except OSError:
        pass  # some network file systems have no locks
    return True
