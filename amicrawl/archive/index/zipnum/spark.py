"""ZipNum clusters made over a Spark cluster: the files that `writer.py` writes, byte for byte.

Spark sorts the lines. A task writes each range of them, checked, next to the cluster, and reports how
many they are; from these counts follows which lines a shard has, and a task writes each shard. The
driver writes `cluster.idx`, last. Inputs and output are paths that all workers see under their names, or
URIs of stores (`archive/location.py`).
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from isal import igzip

from amicrawl.archive.index.zipnum.cluster import BLOCK_LINES, IDX_NAME, SHARD_LINES, SHARD_NAME
from amicrawl.archive.index.zipnum.writer import (
    WrittenCluster,
    blocks_of,
    blocks_of_shard,
    checked_lines,
    descriptions,
    write_shard,
)
from amicrawl.archive.lines import line_blocks
from amicrawl.archive.location import Location, reachable
from amicrawl.archive.spark import (
    ATTEMPTS_SUFFIX,
    LINE,
    damage_in,
    done_on_spark,
    lines_of_files,
    written_parts,
)
from amicrawl.archive.workers import Lost
from amicrawl.disk import Disk, OutputFile
from amicrawl.errors import DamagedFileError, InputError, OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from amicrawl.archive.spark import Damage

MOST_REJECTED = 20
"""Rejected lines of a range that are shown; the others are counted."""


class Slice(NamedTuple):
    """Some lines of the file of a range."""

    file: Location
    first: int
    lines: int


class Shard(NamedTuple):
    """A shard that is to be written."""

    number: int
    slices: tuple[Slice, ...]
    out: Location
    block_lines: int
    first_block: int
    """The number of its first block, from 1."""


def write_zipnum_on_spark(
    spark: SparkSession,
    indexes: Sequence[Location],
    out: Location,
    *,
    on_rejected: Callable[[bytes, str], None] = lambda _line, _reason: None,
    block_lines: int = BLOCK_LINES,
    shard_lines: int = SHARD_LINES,
    title: str = "",
    replace: bool = False,
    partitions: int = 0,
) -> WrittenCluster:
    """Write the lines of *indexes*, CDXJ or CDX in any order, as a cluster to *out*.

    *partitions* is the number of ranges that are sorted; Spark's choice where it is 0. Errors as
    `write_zipnum`; DamagedFileError where an input is damaged, InputError where Spark or a store fails.
    """
    blocks = blocks_of_shard(block_lines, shard_lines)
    attempts = out.beside(ATTEMPTS_SUFFIX)
    with reachable(out):
        if out.below(IDX_NAME).facts() is not None and not replace:
            raise UsageError(
                f"{out} holds a ZipNum cluster already. Name another directory, or add --replace."
            )
        attempts.remove()
    try:
        written = WrittenCluster()
        lines = lines_of_files(spark, indexes, ending=b"\r")

        def write(batches: Iterable[pa.RecordBatch], part: str) -> dict[str, Any]:
            return write_range(batches, attempts.below(f"{part}.gz"))

        reports = written_parts(lines, write, by=(LINE,), partitions=partitions, doing="sort the lines")
        ranges = _ranges(reports, attempts, written, on_rejected)
        # No index may speak of shards that are going to change.
        with reachable(out):
            out.below(IDX_NAME).remove_file()
        shards = shards_of(ranges, out, block_lines=block_lines, blocks=blocks)
        idx = _written_shards(spark, shards, written)
        with reachable(out):
            for name, content in descriptions(written.shards, title).items():
                out.below(name).write(content)
            out.below(IDX_NAME).write(idx)
    finally:
        with reachable(out):
            attempts.remove()
    return written


def _ranges(
    reports: Iterable[dict[str, Any]],
    attempts: Location,
    written: WrittenCluster,
    on_rejected: Callable[[bytes, str], None],
) -> list[Slice]:
    """Return where the lines of each range are, and add to *written* what was left out of them."""
    ranges: list[Slice] = []
    for report in reports:
        if report["damage"]:
            file, offset, reason = report["damage"][0]
            raise DamagedFileError(Location(file).as_path, offset, reason)
        written.duplicates += report["duplicates"]
        written.rejected += report["rejected"]
        for line, reason in report["examples"]:
            on_rejected(line.encode(), reason)
        ranges.append(Slice(attempts.below(report["file"]), 0, report["lines"]))
    return ranges


def _written_shards(spark: SparkSession, shards: Sequence[Shard], written: WrittenCluster) -> bytes:
    """Write *shards*, a task each; return the index of their blocks, and count them in *written*."""
    idx = [b""] * len(shards)
    for event in done_on_spark(spark, shards, write_one_shard):
        if isinstance(event, Lost):
            error = OutputError if event.error == OutputError.__name__ else InputError
            raise error(f"Shard {event.job.number} was not written: {event.reason}")
        idx[event.job.number], its = event.result
        written.lines += its.lines
        written.blocks += its.blocks
        written.shards += 1
    return b"".join(idx)


def write_range(batches: Iterable[pa.RecordBatch], file: Location) -> dict[str, Any]:
    """Write the sorted lines in *batches* that belong into a cluster to *file*; return the report."""
    written = WrittenCluster()
    damage: list[Damage] = []
    examples: list[tuple[str, str]] = []

    def lines() -> Iterator[bytes]:
        for batch in batches:
            damage.extend(damage_in(batch))
            some: Any = batch[LINE].drop_null().to_pylist()
            yield from some

    def reject(line: bytes, reason: str) -> None:
        if len(examples) < MOST_REJECTED:
            examples.append((line[:200].decode("utf-8", "replace"), reason))

    with tempfile.NamedTemporaryFile(prefix="amicrawl-") as scratch:
        with cast("Any", igzip).open(scratch.name, "wb", compresslevel=1) as packed:
            for line in checked_lines(lines(), written, reject):
                written.lines += 1
                packed.write(line)
        file.put(Path(scratch.name))
    return {
        **asdict(written),
        "file": file.last_part,
        "examples": examples,
        "damage": [[*each] for each in damage],
    }


def shards_of(ranges: Sequence[Slice], out: Location, *, block_lines: int, blocks: int) -> list[Shard]:
    """Return the shards, of so many *blocks*, that the lines of *ranges* make one after the other."""
    shards: list[Shard] = []
    slices: list[Slice] = []
    room = block_lines * blocks

    def end() -> None:
        number = len(shards)
        shards.append(Shard(number, tuple(slices), out, block_lines, number * blocks + 1))
        slices.clear()

    for file, first, count in ranges:
        at = first
        while at < first + count:
            some = min(room, first + count - at)
            slices.append(Slice(file, at, some))
            at += some
            room -= some
            if not room:
                end()
                room = block_lines * blocks
    if slices:
        end()
    return shards


def write_one_shard(shard: Shard) -> tuple[bytes, WrittenCluster]:
    """Write *shard* and return its lines of `cluster.idx`, and what it holds."""
    written = WrittenCluster()
    with tempfile.TemporaryDirectory(prefix="amicrawl-") as scratch:
        path = Path(scratch) / SHARD_NAME.format(shard.number)
        blocks = enumerate(
            blocks_of(_lines_of(shard.slices, Path(scratch)), shard.block_lines), shard.first_block
        )
        with closing(OutputFile.replacing(path, disk=Disk())) as file:
            idx = b"".join(write_shard(blocks, file, written))
            file.seal()
        shard.out.below(path.name).put(path)
    return idx, written


def _lines_of(slices: Sequence[Slice], scratch: Path) -> Iterator[bytes]:
    for file, first, count in slices:
        path = file.fetched(scratch)
        lines = (line + b"\n" for block in line_blocks(path) for line in block)
        yield from islice(lines, first, first + count)
