"""One source file of a collection: read once, and everything that was requested is made of that read.

A record is given to every product in turn. What goes wrong with one record costs the record, in all
products alike or in one, and is reported with its offset: it does not cost the file. Products get their
names when the whole file has been read, and the mark that they are done comes last:

    done/STEM.json   the source's name, size and time of change; the settings; what came of it

A product is done if the mark names the size and time that the source has now and the settings of now,
and the product is there, as large as it was. Anything else is made again. A mark is read as a file that
anyone may have changed: one that cannot be read counts as none.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.archive.index.collection.products import (
    MARKS,
    PRODUCTS,
    FileJob,
    LineMaker,
    SeenRecord,
    begun,
)
from amicrawl.archive.index.derivatives.file import LeftOutError, Maker
from amicrawl.archive.location import Location, reachable
from amicrawl.archive.steady_memory import collector_at_rest, steady_heap
from amicrawl.disk import Disk, explained, readable, replace_file
from amicrawl.errors import AmicrawlError, UsageError
from amicrawl.reading import paired, read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from amicrawl.archive.index.collection.products import Product
    from amicrawl.reading import Broken, Record

_MARK_VERSION = 1
MOST_LOSSES = 1000
"""Losses of one file that are listed; the others are counted."""
_COLLECTED_EVERY = 1000
"""Records after which memory that is held in cycles is looked for."""
_REPORTED_EVERY = 0.25
"""Seconds between two reports of the progress."""
_PATIENCE = 30.0


class ReadProgress(NamedTuple):
    """How far the reading of a file is."""

    offset: int
    records: int


def collect_file(job: FileJob, report: Callable[[ReadProgress], None]) -> FileOutcome:
    """Make the products of one file and return what came of it; *report* receives the progress.

    Raises InputError where the source cannot be read, OutputError where a product cannot be written.
    """
    maker = Maker(hostname=job.options.hostname)
    with _claimed(job.out / MARKS):
        facts = _facts_of(job.source)
        reader = ArchiveReader(job, maker, report=report)
        products = reader.read()
        outcome = FileOutcome(
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
        at = str(job.source.absolute())
        write_mark(job.mark, outcome, at=at, settings=job.settings, disk=maker.disk)
    return outcome


def _facts_of(source: Path) -> os.stat_result:
    with readable(source):
        return source.stat()


class ArchiveReader:
    """Gives the records of one file to its products."""

    def __init__(
        self,
        job: FileJob,
        maker: Maker,
        *,
        report: Callable[[ReadProgress], None] = lambda _: None,
    ) -> None:
        """Have *maker* make the products of *job*."""
        self.records = 0
        """Records that were read."""
        self.lost = 0
        self.losses: list[Loss] = []
        """The first of what was lost."""
        self._job = job
        self._maker = maker
        self._report = report
        self._reported = time.monotonic()

    def read(self) -> dict[str, Made]:
        """Read the file and return what was made, by product; raises as `collect_file`."""
        job = self._job
        with ExitStack() as stack:
            # Tokens of pages are many tuples and make no cycles; what does is looked for now and then.
            stack.enter_context(collector_at_rest())
            stack.enter_context(steady_heap())
            products: dict[str, Product] = {}
            for name, product in begun(job, self._maker).items():
                stack.callback(product.close)
                products[name] = product
            line_maker = LineMaker(job)
            stack.callback(line_maker.close)
            for record, partner in self._records():
                self.records += 1
                self._give(SeenRecord(record, partner, line_maker), products)
                if not self.records % _COLLECTED_EVERY:
                    gc.collect(1)  # of the young: what a page left is that, and the rest is modules
                self._report_progress(record)
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

    def _give(self, seen: SeenRecord, products: Mapping[str, Product]) -> None:
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

    def _report_progress(self, record: Record) -> None:
        now = time.monotonic()
        if now - self._reported >= _REPORTED_EVERY:
            self._reported = now
            self._report(ReadProgress(record.offset + record.length, self.records))


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


def wait_for_others(directory: Path) -> bool:
    """Wait until no process writes products: workers outlive a killed parent for a moment.

    Returns False where one still does after half a minute.
    """
    with explained(directory, "opened"):
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + _PATIENCE
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


@dataclass(frozen=True)
class Made:
    """A product of one file."""

    file: str
    """Its path within the collection."""
    size: int
    """In bytes."""
    entries: int
    """Lines or records in it."""


@dataclass(frozen=True)
class Loss:
    """Something of a file that is not in its products, or that a strict reader would refuse."""

    offset: int
    """Byte of the source."""
    reason: str


@dataclass(frozen=True)
class FileOutcome:
    """What came of one source file."""

    source: str
    """Its path, as it was given."""
    size: int
    changed: int
    """When it was last changed, in nanoseconds since 1970."""
    records: int
    """Records that were read."""
    lost: int
    """Losses, those that are not listed too."""
    losses: list[Loss] = field(default_factory=list)
    products: dict[str, Made] = field(default_factory=dict)


def write_mark(
    path: Path, outcome: FileOutcome, *, at: str, settings: Mapping[str, str], disk: Disk
) -> None:
    """Write that *outcome* is what came of the source *at*, a path or URI, under *settings*."""
    mark = {"version": _MARK_VERSION, "settings": dict(settings), **asdict(outcome), "at": at}
    replace_file(path, json.dumps(mark, indent=1).encode() + b"\n", disk=disk)


def refuse_another(data: bytes, mark: object, source: Location) -> None:
    """Raise UsageError where *data*, in the file *mark*, speaks of another file than *source*.

    That is one which is still where it was, with the same name: what was made of it would be replaced.
    One that is gone has been moved to *source*.
    """
    try:
        found = json.loads(data)
        other = Location(str(found.get("at", found["source"])))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    if other.as_path == source.as_path or not other.as_path.is_absolute():
        return
    try:
        with reachable(other):
            is_there = other.facts() is not None
    except (AmicrawlError, ValueError):  # no file has a name of half a character
        return
    if is_there and not (source.path and other.path and _are_one(source.path, other.path)):
        raise UsageError(
            f"{source} has the name of {other}, and would take the place of what was made of that. "
            f"Choose another output directory, or remove {mark} to have it replaced."
        )


def refuse_to_replace(job: FileJob) -> None:
    """Do the same for *job*, whose mark is a file here."""
    try:
        data = job.mark.read_bytes()
    except OSError:
        return
    refuse_another(data, job.mark, Location.of(job.source))


def _are_one(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False


def read_mark(path: Path, *, source: Path, settings: Mapping[str, str], out: Path) -> FileOutcome | None:
    """Return what came of *source*, as it is now, under *settings*; None if that is not known.

    Of the products, those are named that are still there, below *out*.
    """
    try:
        now = source.stat()
        outcome = mark_of(path.read_bytes(), now.st_size, now.st_mtime_ns, settings=settings)
    except OSError:
        return None
    if outcome is None:
        return None
    there = {
        name: made for name, made in outcome.products.items() if _is_there(out / made.file, made.size)
    }
    # The file may have been moved since; reports name it by its path now.
    return replace(outcome, source=str(source), products=there)


def mark_of(data: bytes, size: int, changed: int, *, settings: Mapping[str, str]) -> FileOutcome | None:
    """Return what the mark *data* says came of a source of *size* that was *changed* then; else None."""
    try:
        mark = json.loads(data)
        outcome = outcome_of(mark)
        is_current = (
            mark["version"] == _MARK_VERSION
            and mark["settings"] == settings
            and (outcome.size, outcome.changed) == (size, changed)
        )
    except (ValueError, ArithmeticError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return outcome if is_current else None


def with_earlier(outcome: FileOutcome, earlier: FileOutcome) -> FileOutcome:
    """Return *outcome* with products, and losses, of an *earlier* reading of the same source.

    What was lost then of a product that is still there is not found again by making others.
    """
    known = {*outcome.losses}
    added = [loss for loss in earlier.losses if loss not in known]
    return replace(
        outcome,
        lost=max(outcome.lost + len(added), earlier.lost),
        losses=[*outcome.losses, *added][:MOST_LOSSES],
        products={**earlier.products, **outcome.products},
    )


def _is_there(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except (OSError, ValueError):
        return False


def outcome_of(mark: dict[str, Any]) -> FileOutcome:
    """Return what *mark*, its fields by name, says; one of several errors where it says nothing."""
    losses = [Loss(int(loss["offset"]), str(loss["reason"])) for loss in mark["losses"]]
    products = {
        str(name): Made(str(made["file"]), int(made["size"]), int(made["entries"]))
        for name, made in mark["products"].items()
    }
    return FileOutcome(
        source=str(mark["source"]),
        size=int(mark["size"]),
        changed=int(mark["changed"]),
        records=int(mark["records"]),
        lost=int(mark["lost"]),
        losses=losses,
        products=products,
    )
