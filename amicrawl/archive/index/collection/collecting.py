"""A collection: archive files in, and beside each other everything that is made of them out.

    OUT/cdxj/ OUT/meta/ OUT/merged/ OUT/wat/ OUT/wet/    a file a source, each from one reading of it
    OUT/done/                                            a mark a source, once its products are whole
    OUT/report.json, OUT/report.txt                      what was made, and everything that was lost
    what the last steps make of all files together       OUT/table/, OUT/summary.json, ...

Files are worked at in several processes; one that brings its process down costs itself only. A run
that is interrupted, in whatever way, is resumed by the next one: what is marked as done is not done
again, and nothing that is half made has the name of something whole.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from amicrawl.archive import workers
from amicrawl.archive.index.collection.file import (
    FileOutcome,
    ReadProgress,
    collect_file,
    read_mark,
    refuse_to_replace,
    wait_for_others,
)
from amicrawl.archive.index.collection.products import MARKS, PRODUCTS, FileJob
from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import OPEN_SUFFIX, Disk, explained
from amicrawl.errors import InputError, OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from datetime import timedelta
    from pathlib import Path

    from amicrawl.archive.index.collection.remote import PlacedJob
    from amicrawl.archive.location import Location

    Job: TypeAlias = FileJob | PlacedJob
    Event = workers.JobProgress[Any] | workers.JobDone[Any, FileOutcome] | workers.Lost[Any]
    """ReadProgress or result of a file."""
    Run = Callable[[Sequence[Any]], Generator[Event]]
    """Does jobs."""

FAILED = "failed"
"""What a step says, and why, that could not be taken."""
_REPORT_VERSION = 1
_INDEXES = frozenset({"cdxj", "merged"})
_NOTHING = ReadProgress(0, 0)
_LOST_IN_STEPS = (FAILED, "rejects", "skipped", "damaged")


class Failed(NamedTuple):
    """A file of which nothing was made."""

    source: Path | Location
    offset: int
    """Bytes that were read, by the last report of its process."""
    reason: str
    is_unreadable: bool = False
    """Whether the file could not be read at all."""


@dataclass
class Collected:
    """What came of a run."""

    outcomes: dict[str, FileOutcome] = field(default_factory=dict)
    """What came of each source that is done, by stem; of those done before too."""
    before: set[str] = field(default_factory=set)
    """Stems of the sources that were done before."""
    failed: list[Failed] = field(default_factory=list)
    steps: dict[str, Any] = field(default_factory=dict)
    """What the steps say that were taken with all files together, by name."""
    same_names: dict[str, int] = field(default_factory=dict)
    """How many files have one name in the index, which cannot distinguish them, by name."""
    not_named: int = 0
    """Files that were done by earlier runs and not named in this one; their products are still there."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing was lost, of a file or in a step."""
        lost = [said.get(what) for said in self.steps.values() for what in _LOST_IN_STEPS]
        return not self.failed and not any(lost) and not any(o.lost for o in self.outcomes.values())

    def as_dict(self) -> dict[str, Any]:
        """Return what `report.json` holds: what failed or was lost, where, why, and what was kept."""
        outcomes = list(self.outcomes.values())
        return {
            "version": _REPORT_VERSION,
            "files": len(outcomes) + len(self.failed),
            "made": len(outcomes) - len(self.before),
            "made_before": len(self.before),
            "failed": len(self.failed),
            "damaged": sum(bool(outcome.lost) for outcome in outcomes),
            "records": sum(outcome.records for outcome in outcomes),
            "bytes": sum(outcome.size for outcome in outcomes),
            "products": _products(outcomes),
            "steps": self.steps,
            "same_names": self.same_names,
            "not_named": self.not_named,
            "failures": [
                {
                    "file": str(failed.source),
                    "offset": failed.offset,
                    "reason": failed.reason,
                    "kept": "nothing",
                }
                for failed in self.failed
            ],
            "losses": [
                {
                    "file": outcome.source,
                    "count": outcome.lost,
                    "kept": f"{outcome.records} records",
                    "listed": [{"offset": one.offset, "reason": one.reason} for one in outcome.losses],
                }
                for outcome in outcomes
                if outcome.lost
            ],
        }


@dataclass(frozen=True)
class RunState:
    """How far a run is."""

    files: int
    done: int
    failed: int
    read: int
    """Bytes of the sources that were read in this run."""
    total: int
    """Bytes of the sources that are to be read in this run."""
    records: int
    """Records that were read in this run."""
    seconds: float


def collect(
    jobs: Sequence[FileJob],
    *,
    processes: int,
    show: Callable[[RunState], None] = lambda _: None,
    came: Callable[[FileJob, FileOutcome | Failed], None] = lambda _job, _came: None,
    patience: timedelta = workers.PATIENCE,
    disk: Disk | None = None,
) -> Collected:
    """Make what *jobs* request, as far as it is not there, and return what came of all of them.

    *show* is given the progress, *came* the result of each file, as they come. Raises OutputError where
    the collection's directory cannot be written to, and UsageError where another process is writing
    there.
    """
    if not jobs:
        return Collected()
    out = jobs[0].out
    _make_directories(out, jobs)
    with DirectoryLock(out, by="process", instead="output directory"):
        if not wait_for_others(out / MARKS):
            raise UsageError(f"Another process is writing to {out}. Wait until it has ended.")

        def run(waiting: Sequence[FileJob]) -> Generator[Event]:
            return workers.run_jobs(waiting, collect_file, processes=processes, patience=patience)

        return collect_by(run, jobs, show=show, came=came, disk=disk)


def collect_by(
    run: Run | None,
    jobs: Sequence[FileJob],
    *,
    show: Callable[[RunState], None],
    came: Callable[[FileJob, FileOutcome | Failed], None],
    again: bool = False,
    disk: Disk | None = None,
) -> Collected:
    """Do as `collect`, where *run* does the jobs that are to be done; without it, this process does.

    The directory is not claimed: runs for other files may write there too. With *again*, what is done
    is done again.
    """
    if not jobs:
        return Collected()
    _make_directories(jobs[0].out, jobs)
    collected = Collected(same_names=same_names(jobs), not_named=_not_named(jobs[0].out, jobs))
    waiting = _waiting(jobs, collected, disk or Disk(), again=again)
    for job in jobs:
        if job.stem in collected.outcomes:
            came(job, collected.outcomes[job.stem])
    if run is None:
        _Results(waiting, collected, show, came).do_here(waiting)
    else:
        do_waiting(run, waiting, collected, show=show, came=came)
    in_order(collected, jobs)
    return collected


def do_waiting(
    run: Run,
    waiting: Sequence[Job],
    collected: Collected,
    *,
    show: Callable[[RunState], None],
    came: Callable[[Any, FileOutcome | Failed], None],
) -> None:
    """Have *run* do what is *waiting*, and take in the results."""
    _Results(waiting, collected, show, came).take(run(waiting))


def same_names(jobs: Sequence[FileJob]) -> dict[str, int]:
    """Return which names several of the *jobs* have in an index, and how many of them."""
    names = Counter(job.filename for job in jobs if _INDEXES & set(job.products))
    return {name: count for name, count in sorted(names.items()) if count > 1}


def _not_named(out: Path, jobs: Sequence[FileJob]) -> int:
    """Return of how many files besides those of *jobs* there are marks."""
    with explained(out / MARKS, "read"):
        return len({*(out / MARKS).glob("*.json")} - {job.mark for job in jobs})


def in_order(collected: Collected, jobs: Sequence[Job]) -> None:
    """Put what came of *jobs* in their order: which of them ended first is chance."""
    outcomes = collected.outcomes
    collected.outcomes = {job.stem: outcomes[job.stem] for job in jobs if job.stem in outcomes}
    place = {job.source: number for number, job in enumerate(jobs)}
    collected.failed.sort(key=lambda failed: place[failed.source])


class _Results:
    """The results of a run, added to *collected* as they come, and its progress."""

    def __init__(
        self,
        waiting: Sequence[Job],
        collected: Collected,
        show: Callable[[RunState], None],
        came: Callable[[Any, FileOutcome | Failed], None],
    ) -> None:
        self._collected = collected
        self._show = show
        self._came = came
        self._sizes = {job.stem: job.source_bytes for job in waiting}
        self._total = sum(self._sizes.values())
        self._at: dict[str, ReadProgress] = {}
        self._read = self._records = 0
        self._before = len(collected.before)
        self._done = self._failed = 0
        self._began = time.monotonic()

    def take(self, running: Generator[Event]) -> None:
        """Take in all that comes."""
        self._show(self._state())
        try:
            for event in running:
                if isinstance(event, workers.JobDone):
                    self._add_done(event.job, event.result)
                elif isinstance(event, workers.Lost):
                    self._add_lost(event)
                else:
                    self._add_progress(event.job, event.message)
        finally:
            running.close()

    def do_here(self, waiting: Sequence[FileJob]) -> None:
        """Do all that is *waiting* in this process."""
        for job in waiting:
            try:
                self._add_done(job, collect_file(job, partial(self._add_progress, job)))
            except InputError as error:
                self._add_lost(workers.Lost(job, str(error), None, InputError.__name__))

    def _add_progress(self, job: Job, at: ReadProgress) -> None:
        before = self._at.get(job.stem, _NOTHING)
        self._at[job.stem] = at
        self._read += at.offset - before.offset
        self._records += at.records - before.records
        self._show(self._state())

    def _add_done(self, job: Job, outcome: FileOutcome) -> None:
        self._collected.outcomes[job.stem] = outcome
        self._done += 1
        self._came(job, outcome)
        self._add_progress(job, ReadProgress(self._sizes[job.stem], outcome.records))

    def _add_lost(self, event: workers.Lost[Any]) -> None:
        if event.error == OutputError.__name__:
            raise OutputError(event.reason)
        job = event.job
        offset = event.last.offset if event.last is not None else 0
        is_unreadable = event.error == InputError.__name__
        failed = Failed(job.source, offset, event.sentence, is_unreadable)
        self._collected.failed.append(failed)
        if isinstance(job, FileJob):
            _remove_half_made(job)
        self._failed += 1
        self._came(job, failed)
        self._add_progress(job, ReadProgress(self._sizes[job.stem], 0))

    def _state(self) -> RunState:
        return RunState(
            files=len(self._sizes) + self._before,
            done=self._done + self._before,
            failed=self._failed,
            read=self._read,
            total=self._total,
            records=self._records,
            seconds=time.monotonic() - self._began,
        )


def _waiting(jobs: Sequence[FileJob], collected: Collected, disk: Disk, *, again: bool) -> list[FileJob]:
    """Return what is left to do of *jobs*; the others go to *collected*.

    UsageError, before anything is removed, where a file would replace what was made of another.
    """
    marks = {
        job.stem: read_mark(job.mark, source=job.source, settings=job.settings, out=job.out)
        for job in jobs
    }
    for job in jobs:
        if marks[job.stem] is None and not again:
            refuse_to_replace(job)
    waiting = []
    for job in jobs:
        known = marks[job.stem]
        if known is None or again:
            _remove_old(job, disk)
            waiting.append(job)
            continue
        missing = tuple(name for name in job.products if name not in known.products)
        if missing:
            waiting.append(replace(job, products=missing, before=known if known.products else None))
        else:
            collected.outcomes[job.stem] = known
            collected.before.add(job.stem)
    return waiting


def _remove_old(job: FileJob, disk: Disk) -> None:
    """Remove what was made of another version of the source, or by a run that was broken off."""
    for path in (job.mark, *_paths_of(job)):
        with explained(path, "removed"):
            if path.is_file() and not path.is_symlink():
                disk.remove(path)


def _remove_half_made(job: FileJob) -> None:
    """Remove what the process was writing that *job* has cost."""
    for path in _paths_of(job):
        with explained(path, "removed"):
            path.with_name(path.name + OPEN_SUFFIX).unlink(missing_ok=True)


def _paths_of(job: FileJob) -> list[Path]:
    """Return where its products lie; in a directory of its own, those too that are not requested."""
    names = PRODUCTS if job.in_directories else job.products
    return [PRODUCTS[name].path(job) for name in names]


def _make_directories(out: Path, jobs: Sequence[FileJob]) -> None:
    wanted = {
        PRODUCTS[name].directory
        for job in jobs
        for name in job.products
        if name in PRODUCTS and job.in_directories
    }
    for name in sorted({MARKS, *wanted}):
        with explained(out / name, "created"):
            (out / name).mkdir(parents=True, exist_ok=True)


def _products(outcomes: list[FileOutcome]) -> dict[str, dict[str, int]]:
    products: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        for name, made in outcome.products.items():
            total = products.setdefault(name, {"files": 0, "entries": 0, "bytes": 0})
            total["files"] += 1
            total["entries"] += made.entries
            total["bytes"] += made.size
    return dict(sorted(products.items()))
