"""Files of a collection that are, or whose products are to be, in a store; and over a Spark cluster.

A file is copied to where it is read, its products are made there, in a directory that this attempt has
for itself, and put where they belong, the mark last. So an attempt that is killed leaves nothing that
has the name of something whole, and of two attempts at one file neither takes anything from the other.
What an error of the system stopped may be tried again. Over Spark each file is a task. What is done is
not done again, whichever engine did it.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.archive.index.collection.collecting import Collected, do_waiting, in_order, same_names
from amicrawl.archive.index.collection.file import (
    collect_file,
    mark_of,
    refuse_another,
    with_earlier,
    write_mark,
)
from amicrawl.archive.index.collection.products import MARKS, PRODUCTS
from amicrawl.archive.location import Location, reachable
from amicrawl.archive.spark import TransientError, done_on_spark, session
from amicrawl.archive.workers import JobDone, Lost, run_jobs
from amicrawl.disk import Disk
from amicrawl.errors import InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from amicrawl.archive.index.collection.collecting import Event, Failed, Run, RunState
    from amicrawl.archive.index.collection.file import FileOutcome, ReadProgress
    from amicrawl.archive.index.collection.products import FileJob
    from amicrawl.archive.location import PathFacts


@dataclass(frozen=True)
class PlacedJob:
    """A source file anywhere, and what is to be made of it."""

    job: FileJob
    """What is made, and what it is called; its paths are not those of the files."""
    source: Location
    facts: PathFacts
    out: Location

    @property
    def stem(self) -> str:
        """What its products are called after."""
        return self.job.stem

    @property
    def products(self) -> tuple[str, ...]:
        """What is made of it."""
        return self.job.products

    @property
    def source_bytes(self) -> int:
        """How large its source is."""
        return self.facts.size

    @property
    def mark(self) -> Location:
        """Where it is written that the file is done."""
        return self.out.below(f"{MARKS}/{self.job.mark.name}")


def collect_placed(
    jobs: Sequence[PlacedJob],
    *,
    processes: int,
    master: str | None,
    show: Callable[[RunState], None],
    came: Callable[[PlacedJob, FileOutcome | Failed], None],
    again: bool,
) -> Collected:
    """Make what *jobs* request, as far as it is not there; see `collect_by`.

    So many *processes* do it, or the Spark cluster with this *master*.
    """
    run: Run = (
        partial(run_jobs, work=do_placed, processes=processes)
        if master is None
        else partial(_on_spark, master=master)
    )
    collected = Collected(same_names=same_names([placed.job for placed in jobs]))
    waiting = []
    with reachable(jobs[0].out):
        there = jobs[0].out.files() if not again else {}
        collected.not_named = _not_named(there, jobs)
        for placed in jobs:
            known = _known(placed, there)
            if known is None and not again:
                refuse_another(placed.mark.read() or b"", placed.mark, placed.source)
            if known is None or not {*placed.products} <= known.products.keys():
                waiting.append(placed)
            else:
                collected.outcomes[placed.stem] = known
                collected.before.add(placed.stem)
                came(placed, known)
    do_waiting(run, waiting, collected, show=show, came=came)
    in_order(collected, jobs)
    return collected


def _not_named(there: Iterable[str], jobs: Sequence[PlacedJob]) -> int:
    """Return of how many files besides those of *jobs* there are marks among the files *there*."""
    marks = {file for file in there if file.endswith(".json") and file.rpartition("/")[0] == MARKS}
    return len(marks - {f"{MARKS}/{placed.job.mark.name}" for placed in jobs})


def do_placed(placed: PlacedJob, report: Callable[[ReadProgress], None]) -> FileOutcome:
    """Do one job and return what came of it; raises OSError where trying again may help."""
    with tempfile.TemporaryDirectory(prefix="amicrawl-") as name:
        work = Path(name)
        job = replace(placed.job, source=placed.source.fetched(work), out=work / "out")
        for directory in {MARKS, *(PRODUCTS[product].directory for product in job.products)}:
            (job.out / directory).mkdir(parents=True)
        made = replace(
            collect_file(job, report),
            source=str(placed.source),
            size=placed.facts.size,
            changed=placed.facts.changed,
        )
        known = _known(placed)
        if known is not None and made.products.keys() <= known.products.keys():
            return known  # another attempt was faster
        for product in made.products.values():
            placed.out.below(product.file).put(job.out / product.file)
        whole = made if known is None else with_earlier(made, known)
        write_mark(job.mark, whole, at=str(placed.source), settings=job.settings, disk=Disk())
        placed.mark.put(job.mark)
    return whole


def _known(placed: PlacedJob, there: dict[str, PathFacts] | None = None) -> FileOutcome | None:
    """Return what came of it before, with the products that are still there; None where that is unknown.

    *there* are the files of the output, if they are known.
    """
    if there is not None and f"{MARKS}/{placed.job.mark.name}" not in there:
        return None
    data = placed.mark.read()
    if data is None:
        return None
    job, facts = placed.job, placed.facts
    outcome = mark_of(data, facts.size, facts.changed, settings=job.settings)
    if outcome is None:
        return None

    def size_of(file: str) -> int:
        found = there.get(file) if there is not None else placed.out.below(file).facts()
        return -1 if found is None else found.size

    products = {name: made for name, made in outcome.products.items() if size_of(made.file) == made.size}
    return replace(outcome, products=products)


_DETECTING = frozenset({"sidecar", "merged"})
_PASSING = (OSError.__name__, OutputError.__name__)


def _on_spark(jobs: Sequence[PlacedJob], *, master: str) -> Generator[Event]:
    """Do *jobs* and yield what came of each; InputError where Spark itself fails."""
    if jobs:
        # The files that are done are shown; two bars would overwrite each other.
        with session(master, shows_tasks=False) as spark:
            for event in done_on_spark(spark, jobs, do_placed_alone):
                yield _checked(event) if isinstance(event, JobDone) else event


def _checked(event: JobDone[PlacedJob, FileOutcome]) -> Event:
    for product in event.result.products.values():
        made = event.job.out.below(product.file).path
        if made is not None and not made.exists():
            reason = f"a worker made {made}, but it is not here. Give a directory that all share."
            return Lost(event.job, reason, None)
    return event


def do_placed_alone(job: PlacedJob) -> FileOutcome:
    """Do *job*; what detectors bring down is a process of their own, as on one machine."""
    if _DETECTING.isdisjoint(job.products):
        return do_placed(job, _unreported)
    for event in run_jobs([job], do_placed, processes=1):
        if isinstance(event, JobDone):
            outcome: FileOutcome = event.result
            return outcome
        if isinstance(event, Lost):
            if event.error in _PASSING:
                raise OSError(event.reason)
            if event.error == InputError.__name__:
                raise InputError(event.reason)
            raise TransientError(event.sentence)
    raise AssertionError("a job has an end")


def _unreported(_: ReadProgress) -> None:
    """Drop the progress: Spark reports of a task only that it is done."""
