"""CDXJ files and sidecars become CDXJ files that say both: one output for each CDXJ file, nothing lost.

Where every sidecar has the name of one of the CDXJ files (`X.warc.cdxj`, `X.warc.meta.gz`), each CDXJ
file is merged with its own, several at a time in as many processes; otherwise all are merged with all.
Lines keep their order, and lines without a record are copied byte by byte. Memory stays flat: beyond a
number of sidecar records, both sides are partitioned on disk (`parts.py`). `join.py` has the rules by
which a record belongs to a line; `joining.py` applies them to most lines without parsing each.
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.archive.index.merging.join import MergeCounts
from amicrawl.archive.index.merging.joining import Joining
from amicrawl.archive.index.merging.parts import MergeParts
from amicrawl.archive.index.merging.side_blocks import side_batches
from amicrawl.archive.index.merging.side_table import SideTable, gathered
from amicrawl.archive.lines import octet_blocks
from amicrawl.archive.steady_memory import collector_at_rest, steady_memory
from amicrawl.archive.workers import JobDone, Lost, run_jobs
from amicrawl.disk import Disk, OutputFile, explained, rename_durably
from amicrawl.errors import DamagedFileError, OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Any

    import pyarrow as pa

    from amicrawl.archive.index.merging.joining import LineSink

SIDES_IN_MEMORY = 250_000
"""Records of sidecars that are held at a time, at some 300 bytes each."""
WORTH_A_PROCESS = 256 << 20
"""Bytes that are merged in the time that it takes to start a process, and as long again."""
MOST_FAULTS = 20
"""Faults that are described; the others are counted."""
SIDECAR_SUFFIXES = (".meta.gz", ".meta", ".meta.warc.gz", ".cdxj", ".cdxj.gz")
"""How the names of sidecars end, in a directory."""

_STEM = re.compile(r"(?:\.(?:meta|cdxj|gz|warc|arc|merged))+$")
_STEM_WITH_KIND = re.compile(r"(?:\.(?:meta|cdxj|gz|merged))+$")
_BLOCK_BYTES = 2 << 20


class MergeJob(NamedTuple):
    """CDXJ files, and the sidecars whose records may belong to their lines."""

    indexes: tuple[Path, ...]
    sidecars: tuple[Path, ...]
    out: Path
    """The directory of the outputs."""
    by_key_only: bool = False
    sides_in_memory: int = SIDES_IN_MEMORY


@dataclass
class Merged:
    """What became of one job, or of all."""

    counts: MergeCounts = field(default_factory=MergeCounts)
    files: int = 0
    faults: list[str] = field(default_factory=list)
    """What of the inputs could not be read; the first of them, of which `counts` has the number."""

    def note(self, fault: str) -> None:
        """Count *fault*, and describe it where it is one of the first."""
        self.counts.faults += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(fault)

    def add(self, other: Merged) -> None:
        """Add what *other* says."""
        self.counts.add(other.counts)
        self.files += other.files
        self.faults += other.faults[: MOST_FAULTS - len(self.faults)]


def merge(
    indexes: Sequence[Path],
    sidecars: Sequence[Path],
    out: Path,
    *,
    processes: int = 1,
    by_key_only: bool = False,
    worth_a_process: int = WORTH_A_PROCESS,
    show: Callable[[Merged], None] = lambda _: None,
) -> Merged:
    """Merge *indexes* with *sidecars* into the directory *out* and return what became of them.

    There are up to so many *processes*, one for each *worth_a_process* bytes. Raises UsageError where
    two outputs would have one name, or one would be its own input; InputError and OutputError as reading
    and writing do.
    """
    jobs = plan(indexes, sidecars, out, by_key_only=by_key_only)
    with explained(out, "created"):
        out.mkdir(parents=True, exist_ok=True)
    whole = Merged()
    processes = min(processes, len(jobs), sum(map(_size, jobs)) // worth_a_process + 1)
    if processes == 1:
        for job in jobs:
            whole.add(merge_job(job))
            show(whole)
        return whole
    # The largest first, lest one of them is begun when the others are done.
    jobs.sort(key=_size, reverse=True)
    for event in run_jobs(jobs, _work, processes=processes):
        if isinstance(event, JobDone):
            whole.add(event.result)
        elif isinstance(event, Lost):
            if event.error == OutputError.__name__:
                raise OutputError(event.reason)
            whole.note(f"{event.job.indexes[0]} was not merged: {event.reason}")
        show(whole)
    return whole


def plan(
    indexes: Sequence[Path], sidecars: Sequence[Path], out: Path, *, by_key_only: bool = False
) -> list[MergeJob]:
    """Return what is to be merged with what."""
    names = defaultdict(list)
    read = {path.resolve(): path for path in (*indexes, *sidecars)}
    for index in indexes:
        names[output_name(index)].append(index)
    for name, of in names.items():
        if len(of) > 1:
            raise UsageError(
                f"{of[0]} and {of[1]} would both become {out / name}. Merge them one after the other."
            )
        if (path := read.get((out / name).resolve())) is not None:
            raise UsageError(f"{path} would be written over. Choose another directory.")
    pairs = _paired(indexes, sidecars)
    if pairs is None:
        return [MergeJob(tuple(indexes), tuple(sidecars), out, by_key_only)]
    return [MergeJob((index,), tuple(pairs[index]), out, by_key_only) for index in indexes]


def output_name(index: Path) -> str:
    """Return the name of the file that *index* becomes: its own, without what says that it is packed."""
    return index.name.removesuffix(".gz")


class Outputs:
    """Files that are written one after the other, and get their names when all are whole."""

    def __init__(self, paths: Sequence[Path], *, disk: Disk) -> None:
        """Begin the first of *paths*; there is one at least."""
        self._paths = paths
        self._disk = disk
        self._files: list[OutputFile] = []
        self._begin()

    def write(self, octets: bytes | memoryview) -> None:
        """Take lines of the file that is being written."""
        self._files[-1].write(octets)

    def end_file(self) -> None:
        """Force it to disk and begin the next, if there is one."""
        self._files[-1].sync()
        self._files[-1].check_name()
        self._files[-1].close()
        if len(self._files) < len(self._paths):
            self._begin()

    def seal(self) -> None:
        """Give all files, each of which was ended, their names."""
        for file in self._files:
            rename_durably(file.open_path, file.path, disk=self._disk)

    def close(self) -> None:
        """Let go of them; those that have no name keep their `.open`."""
        for file in self._files:
            file.close()

    def _begin(self) -> None:
        self._files.append(OutputFile.replacing(self._paths[len(self._files)], disk=self._disk))


def merge_job(job: MergeJob, *, disk: Disk | None = None) -> Merged:
    """Do one job and return what became of it; where it fails, no output bears its name."""
    disk = disk or Disk()
    merged = Merged()
    outputs = Outputs([job.out / output_name(index) for index in job.indexes], disk=disk)
    with closing(outputs):
        join_blocks(
            record_batches(job.sidecars, merged),
            line_blocks(job.indexes, merged),
            outputs,
            merged.counts,
            by_key_only=job.by_key_only,
            scratch=job.out,
            disk=disk,
            most_held=job.sides_in_memory,
        )
        outputs.seal()
    merged.files = len(job.indexes)
    return merged


def record_batches(sidecars: Sequence[Path], merged: Merged) -> Iterator[pa.RecordBatch]:
    """Yield the records of the sidecars, and say in *merged* what of them cannot be read."""
    return chain.from_iterable(side_batches(path, report=merged.note) for path in sidecars)


def line_blocks(indexes: Sequence[Path], merged: Merged) -> Iterator[bytes | None]:
    """Yield the lines of *indexes*, many at a time, None where a file ends.

    Says in *merged* where they cannot be read.
    """
    for index in indexes:
        try:
            yield from octet_blocks(index, block_bytes=_BLOCK_BYTES)
        except DamagedFileError as error:
            merged.note(str(error))
        yield None


def join_blocks(
    batches: Iterator[pa.RecordBatch],
    blocks: Iterable[bytes | None],
    sink: LineSink,
    counts: MergeCounts,
    *,
    by_key_only: bool,
    scratch: Path,
    disk: Disk,
    most_held: int = SIDES_IN_MEMORY,
) -> None:
    """Join *blocks* of lines, with None where a file ends, with the records in *batches*.

    *most_held* records are held in memory; with more, both sides go to files in *scratch*.
    """
    with collector_at_rest(), steady_memory(), ExitStack() as stack:
        held, more = gathered(batches, most=most_held)
        joining: Joining | MergeParts
        if more is None:
            table = SideTable(held)
            joining = stack.enter_context(
                Joining(table, sink, counts, by_key_only=by_key_only, scratch=scratch, disk=disk)
            )
        else:
            joining = MergeParts(
                sink, counts, by_key_only=by_key_only, scratch=scratch, disk=disk, stack=stack
            )
            for batch in chain([held, more], batches):
                joining.add_records(batch)
        for octets in blocks:
            if octets is None:
                joining.end_file()
            else:
                joining.add(octets)
        joining.finish()


def _size(job: MergeJob) -> int:
    return sum(path.stat().st_size for path in (*job.indexes, *job.sidecars) if path.exists())


def _work(job: MergeJob, _: Callable[[Any], None]) -> Merged:
    return merge_job(job)


def _paired(indexes: Sequence[Path], sidecars: Sequence[Path]) -> dict[Path, list[Path]] | None:
    """Return the sidecars of each index by their names; None where one has none, or could have two."""
    for stem in (_STEM_WITH_KIND, _STEM):
        by_stem: dict[str, list[Path]] = defaultdict(list)
        for index in indexes:
            by_stem[stem.sub("", index.name)].append(index)
        pairs: dict[Path, list[Path]] = {index: [] for index in indexes}
        for sidecar in sidecars:
            of = by_stem.get(stem.sub("", sidecar.name), [])
            if len(of) != 1:
                break
            pairs[of[0]].append(sidecar)
        else:
            return pairs
    return None
