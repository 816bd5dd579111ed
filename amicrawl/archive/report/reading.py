"""Counting the files of a summary: their formats are recognised, they are read block by block.

A file is known by its first bytes, not by its name: Parquet, gzip or bzip2 around something, WARC or ARC
(also with Zstandard), JSON that a summary was written as, CDXJ by the brace that begins the third word
of a line, else CDX. A file that is truncated is counted up to there, and named.
"""

from __future__ import annotations

import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.archive.lines import octet_blocks
from amicrawl.archive.location import Location, reachable
from amicrawl.archive.report.counting import counted
from amicrawl.archive.report.counts import CORRECTED, Counts
from amicrawl.archive.report.counts_json import counts_from_json
from amicrawl.archive.report.inputs import STDIN, InputFile, files_of, is_archive, is_parquet
from amicrawl.archive.report.line_batches import Legends, cdx_lines, cdxj_lines
from amicrawl.archive.report.rows import layout_named
from amicrawl.archive.steady_memory import steady_memory
from amicrawl.errors import DamagedFileError, InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from pyspark.sql import SparkSession

    from amicrawl.archive.report.batch import Lines

    Progress = Callable[[int, int, Counts], None]

KINDS = ("cdx7", "cdx9", "cdx10", "cdx11", "cdxj", "zipnum", "parquet", "captures", "warc")
"""Formats that `--from` can name."""

_BLOCK = 2 * 1024**2
_AHEAD = 2
_SNIFFED = 1 << 16
_LINES_SNIFFED = 20
_LARGEST_SUMMARY = 1 << 30
_TASKS = 1000
"""Tasks on a cluster at most: the driver holds the counts of each."""


@dataclass(slots=True)
class ReadingProgress:
    """What was read so far, and what could not be."""

    counts: Counts
    damage: list[str] = field(default_factory=list)
    """A sentence for each input that is truncated, and for each lost part of an archive file."""
    without_captures: list[str] = field(default_factory=list)
    """What is said of each file that has lines, none of which is a capture."""


def read_counts(
    names: Sequence[str | os.PathLike[str]],
    *,
    rules: str = CORRECTED,
    kind: str | None = None,
    progress: Progress = lambda *_: None,
) -> ReadingProgress:
    """Count the inputs *names*, paths and URIs, one after the other; `-` stands for standard input.

    Arguments and errors are those of `files_of` and `count_files`.
    """
    files = list(chain.from_iterable(map(files_of, names)))
    return count_files(files, rules=rules, kind=kind, progress=progress)


def count_files(
    files: Sequence[InputFile],
    *,
    rules: str = CORRECTED,
    kind: str | None = None,
    threads: int = 2,
    progress: Progress = lambda *_: None,
) -> ReadingProgress:
    """Count *files* one after the other; InputError where one cannot be opened.

    *kind* is one of `KINDS`, or recognised.
    *progress* receives how many bytes are read of how many, 0 where that is not known, and the counts.
    """
    reading = ReadingProgress(Counts(rules=rules))
    is_piped = any(file.location.name == STDIN for file in files)
    total = 0 if is_piped else sum(file.size for file in files)
    read = 0

    def reading_on(size: int) -> None:
        nonlocal read
        read += size

    with steady_memory(), ThreadPoolExecutor(threads) as pool:
        for location, _ in files:
            captures, skipped = reading.counts.captures, reading.counts.skipped.total()
            with _local_copy(location) as path:
                is_table = _is_table(path, kind)
                try:
                    for part in _parts(path, pool, rules=rules, kind=kind, on_read=reading_on):
                        reading.counts.absorb(part.counts)
                        reading.damage += [_renamed(each, path, location) for each in part.damage]
                        progress(read, total, reading.counts)
                except DamagedFileError as error:
                    reading.damage.append(_renamed(str(error), path, location))
            skipped = reading.counts.skipped.total() - skipped
            # The rows of an index may well be failures only.
            if skipped and reading.counts.captures == captures and not is_table:
                reading.without_captures.append(
                    f"{location}: no line of it is a capture ({skipped:,} skipped)"
                )
    return reading


def count_on_spark(
    spark: SparkSession, files: Sequence[InputFile], *, rules: str = CORRECTED, kind: str | None = None
) -> ReadingProgress:
    """Count *files*, which all workers see under their absolute names, by the tasks of a cluster.

    A task counts some files in a row as `count_files` does. Adding is associative, and what tasks count
    is added in the order of the files, so the result is the same, bit by bit. Raises InputError where a
    file cannot be read, or Spark fails.
    """
    from amicrawl.archive.spark import done_on_spark  # noqa: PLC0415  # this machine does without
    from amicrawl.archive.workers import Lost  # noqa: PLC0415

    # Workers have working directories of their own.
    named = [file._replace(location=Location.of(file.location.name)) for file in files]
    size = -(-len(named) // _TASKS)
    jobs = [tuple(named[at : at + size]) for at in range(0, len(named), size)]
    parts: dict[tuple[InputFile, ...], ReadingProgress] = {}
    for event in done_on_spark(spark, jobs, partial(count_in_task, rules=rules, kind=kind)):
        if isinstance(event, Lost):
            raise InputError(event.reason)
        parts[event.job] = event.result
    whole = ReadingProgress(Counts(rules=rules))
    for job in jobs:
        whole.counts.absorb(parts[job].counts)
        whole.damage += parts[job].damage
        whole.without_captures += parts[job].without_captures
    return whole


def count_in_task(files: Sequence[InputFile], *, rules: str, kind: str | None) -> ReadingProgress:
    """Count *files* in a task; TransientError where another attempt may succeed."""
    from amicrawl.archive.spark import TransientError  # noqa: PLC0415

    try:
        return count_files(files, rules=rules, kind=kind, threads=1)
    except InputError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError):
            raise TransientError(str(error)) from error
        raise


@contextmanager
def _local_copy(location: Location) -> Iterator[Path]:
    """Yield the path of a file; one in a store is copied here, and its errors name *location*."""
    if location.path is not None:
        yield location.path
        return
    with tempfile.TemporaryDirectory(prefix="amicrawl-") as scratch:
        # The directories of a partition are part of what is read.
        directory = Path(scratch, location.as_path.parent.relative_to("/"))
        directory.mkdir(parents=True)
        with reachable(location):
            path = location.fetched(directory)
        try:
            yield path
        except InputError as error:
            raise InputError(_renamed(str(error), path, location)) from error


def _renamed(sentence: str, path: Path, location: Location) -> str:
    return sentence.replace(str(path), str(location))


def _is_table(path: Path, kind: str | None) -> bool:
    return kind in {"parquet", "captures"} or (kind is None and is_parquet(path))


def _parts(
    path: Path,
    pool: ThreadPoolExecutor,
    *,
    rules: str,
    kind: str | None,
    on_read: Callable[[int], None],
) -> Iterator[ReadingProgress]:
    if _is_table(path, kind):
        # Readers of Parquet and keys of URLs take a tenth of a second to load, and text needs neither.
        from amicrawl.archive.report.parquet import table_lines  # noqa: PLC0415

        tables = (partial(_itself, lines) for lines in table_lines(path, on_read))
        yield from _in_order(pool, tables, rules=rules)
        return
    if kind == "warc" or (kind is None and is_archive(path)):
        with _index_of(path, on_read) as (index, damage):
            yield from _parts(index, pool, rules=rules, kind="cdxj", on_read=lambda _: None)
        yield ReadingProgress(Counts(rules=rules), damage)
        return
    blocks = octet_blocks(path, block_bytes=_BLOCK, on_read=on_read)
    first = next(blocks, b"")
    if kind is None and first.lstrip()[:1] == b"{":
        yield ReadingProgress(_loaded(path, chain([first], blocks), rules=rules))
        return
    yield from _in_order(pool, _jobs(first, blocks, rules=rules, kind=kind), rules=rules)


@contextmanager
def _index_of(path: Path, on_read: Callable[[int], None]) -> Iterator[tuple[Path, list[str]]]:
    """Yield the index that `amicrawl index` makes of *path*, and a sentence for each lost part."""
    # An index of captures is counted without what makes one.
    from amicrawl.archive.index import MARKS, FileJob, ReadProgress, collect_file  # noqa: PLC0415  # noqa: PLC0415

    read = 0

    def report(progress: ReadProgress) -> None:
        nonlocal read
        on_read(progress.offset - read)
        read = progress.offset

    with tempfile.TemporaryDirectory(prefix="amicrawl-") as scratch:
        # No figure needs the name of the file, which may be one that no index can hold.
        job = FileJob(path, path.name, Path(scratch), ("cdxj",), "", in_directories=False)
        (job.out / MARKS).mkdir()
        outcome = collect_file(job, report)
        report(ReadProgress(outcome.size, outcome.records))
        damage = [f"{path}, byte {loss.offset}: {loss.reason}" for loss in outcome.losses]
        if outcome.lost > len(damage):
            damage.append(f"{path}: and {outcome.lost - len(damage):,} more")
        yield job.path, damage


def _jobs(
    first: bytes, blocks: Iterator[bytes], *, rules: str, kind: str | None
) -> Iterator[Callable[[], Lines]]:
    """Yield what turns each piece of a file that begins with *first* into a batch."""
    # Megabytes of blank lines compress to nothing, and each line would be looked at.
    filled = (block for block in chain([first], blocks) if not block.isspace())
    if kind in {"cdxj", "zipnum"} or (kind is None and _is_cdxj(first)):
        for block in filled:
            yield partial(cdxj_lines, block)
        return
    legends = Legends(layout_named(kind or ""))
    for block in filled:
        for piece in legends.pieces(block):
            yield partial(cdx_lines, piece, rules=rules)


def _itself(lines: Lines) -> Lines:
    return lines


def _in_order(
    pool: ThreadPoolExecutor, jobs: Iterator[Callable[[], Lines]], *, rules: str
) -> Iterator[ReadingProgress]:
    """Yield the counts of *jobs* in their order; a few are in work at a time."""

    def done(job: Callable[[], Lines]) -> ReadingProgress:
        lines = job()
        return ReadingProgress(counted(lines.batch, rules=rules, skipped=lines.skipped))

    waiting: deque[Future[ReadingProgress]] = deque()
    fault: DamagedFileError | None = None
    try:
        for job in jobs:
            waiting.append(pool.submit(done, job))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
    except DamagedFileError as error:
        # The rest of the file is lost; what was read before it broke off is not.
        fault = error
    while waiting:
        yield waiting.popleft().result()
    if fault is not None:
        raise fault


def _is_cdxj(first: bytes) -> bool:
    """Whether the first lines of *first* are CDXJ."""
    for line in first[:_SNIFFED].splitlines()[:_LINES_SNIFFED]:
        words = line.split(b" ", 2)
        if len(words) == 3 and words[2].startswith(b"{"):
            return True
    return False


def _loaded(path: Path, blocks: Iterator[bytes], *, rules: str) -> Counts:
    """Return the counts that a summary in JSON carries."""
    text = bytearray()
    try:
        for block in blocks:
            text += block
            if len(text) > _LARGEST_SUMMARY:
                raise ValueError(f"it has more than {_LARGEST_SUMMARY:,} bytes")
        counts = counts_from_json(bytes(text), rules=rules)
    except ValueError as error:
        raise InputError(
            f"{path} begins like the JSON of a summary and is not one: {error}. Name an index, or what "
            "`amicrawl summary --json` wrote."
        ) from error
    return counts
