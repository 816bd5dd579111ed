"""CDXJ files and sidecars become CDXJ files that say both: one output for each CDXJ file, nothing lost.

Where every sidecar has the name of one of the CDXJ files (`X.warc.cdxj`, `X.warc.meta.gz`), each CDXJ
file is merged with its own, several at a time in as many processes; otherwise all are merged with all.
Lines keep their order, and lines that nothing belongs to are copied octet by octet. Memory stays flat:
beyond a number of sidecar records, both sides are set aside on disk (`merge_spill.py`). Which record
belongs to which line is `merge_join.py`'s to say.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.disk import Disk, OutputFile, explained, rename_durably
from amicrawl.errors import DamagedFileError, UsageError
from amicrawl.index.collector import collector_at_rest
from amicrawl.index.lines.line_reader import line_blocks
from amicrawl.index.merging.join import Counts, Join
from amicrawl.index.merging.sides import sides_of
from amicrawl.index.merging.spill import (
    BUCKETS,
    Spill,
    bucket_of,
    number_and_line,
    side_as_line,
    side_of_line,
)
from amicrawl.index.workers import Done, Lost, run_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Any, Self

    from amicrawl.index.merging.sides import Side

SIDES_IN_MEMORY = 400_000
"""Records of sidecars that are held at a time, at some 600 bytes each."""
MOST_FAULTS = 20
"""Faults that are named in full; of more, only the number is told."""
SIDECAR_SUFFIXES = (".meta.gz", ".meta", ".meta.warc.gz", ".cdxj", ".cdxj.gz")
"""How the names of sidecars end, in a directory."""

_STEM = re.compile(r"(?:\.(?:meta|cdxj|gz|warc|arc|merged))+$")
_STEM_WITH_KIND = re.compile(r"(?:\.(?:meta|cdxj|gz|merged))+$")
_PIECE_LINES = 4096


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

    counts: Counts = field(default_factory=Counts)
    files: int = 0
    faults: list[str] = field(default_factory=list)
    """What of the inputs could not be read; the first of them."""

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
    told: Callable[[Merged], None] = lambda _: None,
) -> Merged:
    """Merge *indexes* with *sidecars* into the directory *out* and return what became of them.

    Raises UsageError where two outputs would have one name, or one would be its own input; InputError
    and OutputError as reading and writing do.
    """
    jobs = plan(indexes, sidecars, out, by_key_only=by_key_only)
    with explained(out, "created"):
        out.mkdir(parents=True, exist_ok=True)
    whole = Merged()
    if processes == 1 or len(jobs) == 1:
        for job in jobs:
            whole.add(merge_job(job))
            told(whole)
        return whole
    for event in run_jobs(jobs, _work, processes=processes):
        if isinstance(event, Done):
            whole.add(event.answer)
        elif isinstance(event, Lost):
            whole.add(Merged(faults=[f"{event.job.indexes[0]} was not merged: {event.reason}"]))
        told(whole)
    return whole


def plan(
    indexes: Sequence[Path], sidecars: Sequence[Path], out: Path, *, by_key_only: bool = False
) -> list[MergeJob]:
    """Return what is to be merged with what."""
    names = defaultdict(list)
    for index in indexes:
        names[output_name(index)].append(index)
    for name, of in names.items():
        if len(of) > 1:
            raise UsageError(
                f"{of[0]} and {of[1]} would both become {out / name}. Merge them one after the other."
            )
        if of[0].resolve() == (out / name).resolve():
            raise UsageError(f"{of[0]} would be written over. Choose another directory.")
    pairs = _paired(indexes, sidecars)
    if pairs is None:
        return [MergeJob(tuple(indexes), tuple(sidecars), out, by_key_only)]
    return [MergeJob((index,), tuple(pairs[index]), out, by_key_only) for index in indexes]


def output_name(index: Path) -> str:
    """Return the name of the file that *index* becomes: its own, without what says that it is packed."""
    return index.name.removesuffix(".gz")


def merge_job(job: MergeJob, *, disk: Disk | None = None) -> Merged:
    """Do one job and return what became of it; where it fails, no output bears its name."""
    disk = disk or Disk()
    merged = Merged()

    def told(fault: str) -> None:
        merged.counts.records_broken += 1
        if len(merged.faults) < MOST_FAULTS:
            merged.faults.append(fault)

    sides = chain.from_iterable(sides_of(path, told=told) for path in job.sidecars)
    with collector_at_rest(), _Outputs(job, merged, disk=disk) as outputs:
        held = list(islice(sides, job.sides_in_memory + 1))
        if len(held) <= job.sides_in_memory:
            join = Join(held, merged.counts, by_key_only=job.by_key_only)
            _join_directly(join, outputs, scratch=job.out, disk=disk)
        else:
            _join_in_parts(chain(held, sides), outputs, merged.counts, job, disk=disk)
        outputs.seal()
    merged.files = len(job.indexes)
    return merged


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


class _Outputs:
    """The outputs of a job: lines by number, each to the file that its input's lines go to."""

    def __init__(self, job: MergeJob, merged: Merged, *, disk: Disk) -> None:
        self._job = job
        self._merged = merged
        self._disk = disk
        self._ends: list[int] = []
        self._files: list[OutputFile] = []
        self._held: list[bytes] = []
        self._written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def inputs(self) -> Iterator[list[bytes]]:
        """Yield the lines of all inputs, in lists."""
        count = 0
        for path in self._job.indexes:
            try:
                for block in line_blocks(path):
                    yield block
                    count += len(block)
            except DamagedFileError as error:
                self._merged.faults.append(str(error))
            self._ends.append(count)

    def add(self, line: bytes) -> None:
        """Write the next line."""
        self._held.append(line)
        if len(self._held) >= _PIECE_LINES:
            self._flush()

    def seal(self) -> None:
        """Write what is left, and give all files their names."""
        self._flush()
        while len(self._files) < len(self._job.indexes):
            self._begin()
        self._files[-1].sync()
        self._files[-1].close()
        for file in self._files:
            rename_durably(file.open_path, file.path, disk=self._disk)

    def _flush(self) -> None:
        held, self._held = self._held, []
        while held:
            while not self._files or (
                len(self._files) <= len(self._ends) and self._written >= self._ends[len(self._files) - 1]
            ):
                self._begin()
            place = len(self._files) - 1
            room = self._ends[place] - self._written if place < len(self._ends) else len(held)
            lines, held = held[:room], held[room:]
            self._files[-1].write(b"\n".join([*lines, b""]))
            self._written += len(lines)

    def _begin(self) -> None:
        if self._files:
            self._files[-1].sync()
            self._files[-1].close()
        index = self._job.indexes[len(self._files)]
        path = self._job.out / output_name(index)
        self._files.append(OutputFile.replacing(path, disk=self._disk))


def _join_directly(join: Join, outputs: _Outputs, *, scratch: Path, disk: Disk) -> None:
    """Join with the records that are in memory; from the first that must wait on, lines go aside."""
    aside: list[Spill] = []
    with ExitStack() as stack:
        number = 0
        for block in outputs.inputs():
            for line in block:
                merged = join.merged(line)
                if merged is not None and not aside:
                    outputs.add(merged)
                else:
                    aside = aside or [
                        stack.enter_context(_closing(Spill(scratch, disk=disk))) for _ in range(2)
                    ]
                    aside[merged is None].add_numbered(number, line if merged is None else merged)
                number += 1
        if aside:
            later = _later(join, aside[1], scratch, disk, stack)
            for _, line in heapq.merge(map(number_and_line, aside[0].lines()), *later):
                outputs.add(line)
    join.finish()


def _later(
    join: Join, waiting: Spill, scratch: Path, disk: Disk, stack: ExitStack
) -> list[Iterator[tuple[int, bytes]]]:
    """Return the lines that had to wait, each with what belongs to it, in runs by number."""
    if not join.has_digests:
        return [_asked_again(join, waiting)]
    done, waiting_still = (stack.enter_context(_closing(Spill(scratch, disk=disk))) for _ in range(2))
    for number, line in map(number_and_line, waiting.lines()):
        merged = join.merged_later(line, by_digest=True)
        (waiting_still if merged is None else done).add_numbered(
            number, line if merged is None else merged
        )
    return [map(number_and_line, done.lines()), _asked_again(join, waiting_still)]


def _asked_again(join: Join, waiting: Spill) -> Iterator[tuple[int, bytes]]:
    for number, line in map(number_and_line, waiting.lines()):
        merged = join.merged_later(line, by_digest=False)
        assert merged is not None
        yield number, merged


def _join_in_parts(
    sides: Iterable[Side], outputs: _Outputs, counts: Counts, job: MergeJob, *, disk: Disk
) -> None:
    """Deal both sides out by their second, join each part in memory, and put the lines back in order."""
    with ExitStack() as stack:

        def spills() -> list[Spill]:
            return [stack.enter_context(_closing(Spill(job.out, disk=disk))) for _ in range(BUCKETS)]

        records, lines, done = spills(), spills(), spills()
        for side in sides:
            records[bucket_of(side.timestamp.encode())].add(side_as_line(side))
        number = 0
        for block in outputs.inputs():
            for line in block:
                timestamp = line.split(b" ", 2)[1:2]
                lines[bucket_of(timestamp[0] if timestamp else b"")].add_numbered(number, line)
                number += 1
        runs = []
        for place in range(BUCKETS):
            join = Join(map(side_of_line, records[place].lines()), counts, by_key_only=job.by_key_only)
            waiting = stack.enter_context(_closing(Spill(job.out, disk=disk)))
            for each, line in map(number_and_line, lines[place].lines()):
                merged = join.merged(line)
                (waiting if merged is None else done[place]).add_numbered(
                    each, line if merged is None else merged
                )
            late = stack.enter_context(_closing(Spill(job.out, disk=disk)))
            for each, line in heapq.merge(*_later(join, waiting, job.out, disk, stack)):
                late.add_numbered(each, line)
            join.finish()
            runs += [done[place].lines(), late.lines()] if late.count else [done[place].lines()]
        for numbered in heapq.merge(*runs):
            outputs.add(number_and_line(numbered)[1])


@contextmanager
def _closing(spill: Spill) -> Iterator[Spill]:
    try:
        yield spill
    finally:
        spill.close()
