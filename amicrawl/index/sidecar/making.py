"""Sidecars for many files: in several processes, none made twice, and everything that is lost named.

A file is done when its mark says so (`collection/marks.py`): with the size and time that it has now, by
the detectors that there are now. A process that a payload brings down costs the file that it was at.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.disk import Disk, explained
from amicrawl.errors import InputError, OutputError, UsageError
from amicrawl.index.claim import claimed
from amicrawl.index.collection.marks import MOST_LOSSES, Loss, Made, Outcome, read_mark, write_mark
from amicrawl.index.derivatives.file import Maker
from amicrawl.index.derivatives.naming import derived_name, named_apart
from amicrawl.index.reading.records import Broken, read_records
from amicrawl.index.sidecar.characterise import Characteriser
from amicrawl.index.sidecar.detectors import KINDS, installed_detectors
from amicrawl.index.sidecar.file import PRODUCT, Publisher, SidecarFile
from amicrawl.index.workers import Done, Lost, run_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

MARKS = "done"
"""The directory of the marks, in that of the sidecars."""
BLOCK_CAP = 16 << 20
"""Bytes of a block that are read: of all but the strangest payloads, more than are looked at."""
_TOLD_EVERY = 0.5


@dataclass(frozen=True)
class SidecarJob:
    """A file that a sidecar is to be made of."""

    source: Path
    stem: str
    out: Path
    publisher: Publisher
    without: tuple[str, ...]
    """Kinds of detectors that are left out."""
    detectors: tuple[str, ...]
    """Those that are not, with their versions."""

    @property
    def path(self) -> Path:
        """Where the sidecar lies."""
        return self.out / derived_name(self.stem, PRODUCT)

    @property
    def mark(self) -> Path:
        """Where it is written that it is done."""
        return self.out / MARKS / f"{self.stem}.json"

    @property
    def settings(self) -> dict[str, str]:
        """What the sidecar depends on, besides the source."""
        return {
            "detectors": "; ".join(self.detectors),
            "operator": self.publisher.operator,
            "publisher": self.publisher.publisher,
        }


class Reached(NamedTuple):
    """How far the reading of a file is."""

    offset: int
    records: int


class Failed(NamedTuple):
    """A file of which no sidecar was made."""

    source: Path
    offset: int
    """How far the reading had come when it was last heard of, in bytes."""
    reason: str


@dataclass
class Report:
    """What came of a run."""

    made: list[Outcome] = field(default_factory=list)
    before: list[Outcome] = field(default_factory=list)
    """What came of the files that were done before."""
    failed: list[Failed] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether nothing was lost, now or when a file was done before."""
        return not self.failed and not any(outcome.lost for outcome in [*self.made, *self.before])


def jobs_for(
    sources: Sequence[Path], out: Path, *, publisher: Publisher, without: Sequence[str] = ()
) -> list[SidecarJob]:
    """Return a job for each of *sources*, with names that no two share.

    Raises UsageError where *without* names a kind of detectors that there is not.
    """
    unknown = sorted(set(without) - set(KINDS))
    if unknown:
        raise UsageError(
            f"There is no detector {', '.join(unknown)} to leave out. Choose from {', '.join(KINDS)}."
        )
    left_out = tuple(sorted(set(without)))
    versions = tuple(installed_detectors(left_out).versions())
    return [
        SidecarJob(source, stem, out, publisher, left_out, versions)
        for source, stem in named_apart(sources).items()
    ]


def make_sidecars(
    jobs: Sequence[SidecarJob], *, processes: int, show: Callable[[Outcome | Failed | Reached], None]
) -> Report:
    """Make the sidecars that are not there yet, and return what came of all.

    *show* is told what comes, as it comes. Raises OutputError where the directory cannot be written to,
    UsageError where another process is writing there.
    """
    report = Report()
    if not jobs:
        return report
    marks = jobs[0].out / MARKS
    with explained(marks, "created"):
        marks.mkdir(parents=True, exist_ok=True)
    with claimed(jobs[0].out):
        running = run_jobs(list(_waiting(jobs, report)), make_sidecar, processes=processes)
        try:
            for told in running:
                if isinstance(told, Done):
                    report.made.append(told.answer)
                    show(told.answer)
                elif isinstance(told, Lost):
                    failed = _failed(told)
                    report.failed.append(failed)
                    show(failed)
                else:
                    show(told.message)
        finally:
            running.close()
    return report


def make_sidecar(job: SidecarJob, tell: Callable[[Reached], None]) -> Outcome:
    """Make the sidecar of one file and return what came of it; *tell* is given the progress.

    Raises InputError where the source cannot be read, OutputError where the sidecar cannot be written.
    """
    losses: list[Loss] = []
    lost = 0

    def lose(offset: int, reason: str) -> None:
        nonlocal lost
        lost += 1
        if len(losses) < MOST_LOSSES:
            losses.append(Loss(offset, reason))

    def on_broken(broken: Broken) -> None:
        lose(broken.offset, broken.reason)

    maker = Maker(hostname=socket.gethostname())
    facts = _facts(job.source)
    file = SidecarFile(
        job.path,
        source=job.source,
        maker=maker,
        characteriser=_characteriser(job.without),
        publisher=job.publisher,
    )
    told, records = time.monotonic(), 0
    try:
        for record in read_records(job.source, on_broken=on_broken, block_cap=BLOCK_CAP):
            records += 1
            failures = file.failures
            try:
                file.add(record)
            except OutputError:
                raise
            except Exception as error:  # noqa: BLE001  # whatever it is, it costs this record only
                lose(record.offset, f"the record was passed over ({type(error).__name__})")
            if file.failures > failures:
                lose(record.offset, "a detector failed at this record; its metadata says which")
            if time.monotonic() - told >= _TOLD_EVERY:
                told = time.monotonic()
                tell(Reached(record.offset, records))
        entries, size = file.seal()
    finally:
        file.close()
    made = {PRODUCT: Made(job.path.name, size, entries)}
    outcome = Outcome(str(job.source), *facts, records, lost, losses, made)
    write_mark(job.mark, outcome, settings=job.settings, disk=maker.disk)
    return outcome


@cache
def _characteriser(without: tuple[str, ...]) -> Characteriser:
    """Return the characteriser of this process: loading signatures takes longer than many a file."""
    return Characteriser(installed_detectors(without))


def _facts(source: Path) -> tuple[int, int]:
    """Return size and time of change of *source*."""
    try:
        facts = source.stat()
    except OSError as error:
        raise InputError(
            f"{source} cannot be read: {error.strerror or error}. Check path and permissions."
        ) from error
    return facts.st_size, facts.st_mtime_ns


def _waiting(jobs: Sequence[SidecarJob], report: Report) -> Iterator[SidecarJob]:
    """Yield what is left to do of *jobs*; what is done goes to *report*."""
    disk = Disk()
    for job in jobs:
        known = read_mark(job.mark, source=job.source, settings=job.settings, out=job.out)
        if known is not None and PRODUCT in known.products:
            report.before.append(known)
            continue
        # Old sidecars go before new ones come: one of a file that has changed would tell wrong things.
        for path in (job.mark, job.path):
            with explained(path, "removed"):
                if path.exists():
                    disk.remove(path)
        yield job


def _failed(told: Lost[SidecarJob]) -> Failed:
    if told.error == OutputError.__name__:
        raise OutputError(told.reason)
    offset = told.last.offset if told.last is not None else 0
    return Failed(told.job.source, offset, told.sentence)
