"""Writing a frontier file, page by page.

A column is copied a page at a time, so that a partition may consist of views into records or of mapped
files and be larger than memory. A page of a blob is compressed piece by piece; its header, and that of
the file, say how long things are and are written last, over the zeros that keep their place. What is
kept in memory besides is what the footer says of each page, and four bytes for each scheduled row where
a schedule is made. Strings that are more than one file can hold go on in further files (`strings`).

The same partition gives the same bytes, under Zstandard as long as its library stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.disk import OutputFile, explained, remove_durably
from amicrawl.errors import InputError
from amicrawl.meguri.format.checksum import crc32c, joined_crc32c
from amicrawl.meguri.format.codec import Compressor
from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.footer import (
    PAGE_ENTRY,
    ColumnEntry,
    Footer,
    Region,
    RegionId,
    Statistics,
    bytes_per_url,
    encode_footer,
)
from amicrawl.meguri.format.header import HEADER_SIZE, Flag, Header, pack_trailer
from amicrawl.meguri.format.layout import BLOB_FREE, FLAG_OF_REGION, most_blob, most_rows
from amicrawl.meguri.format.page import HEADER_SIZE as PAGE_HEADER_SIZE
from amicrawl.meguri.format.page import MOST_BYTES, PageHeader, PageKind, Zone, encode_page
from amicrawl.meguri.format.schedule import plan_schedule
from amicrawl.meguri.format.schema import (
    HOST_COLUMNS,
    HOST_ROW,
    ROW,
    URL_COLUMNS,
    Codec,
    Column,
    KeyOrder,
    Partition,
    columns_of,
)
from amicrawl.meguri.format.strings import BEGIN, further_path, meta_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.meguri.format.schema import Columns

PAGE_ROWS = 1 << 16
"""Rows that are worked on at once where pages are not limited, and a good limit where they are."""

_PIECE = 1 << 20
"""Octets of a blob that are compressed at once."""


@dataclass(frozen=True)
class WriteOptions:
    """How a partition is written."""

    codec: Codec = Codec.ZSTD
    schedule: bool = False
    """Whether rows that are due some time are listed by when, unless there are none."""
    max_page_rows: int = 0
    """Most rows of a page; 0 makes one page of each column."""
    equal_keys: bool = False
    """Whether a key may come twice. The format allows it, a frontier never has it."""
    most_strings: int = MOST_BYTES
    """Most octets of strings in one file; the format holds no more than this.
    Strings that are much alike are divided further, into as much as is read of any file."""


def write_partition(
    partition: Partition,
    path: Path,
    *,
    options: WriteOptions,
    disk: Disk,
    after_page: Callable[[], None] = lambda: None,
) -> int:
    """Write *partition* to *path*, in place of what is there, and return its size in bytes.

    Where its strings are more than one file holds, the size is that of all files. *after_page* is called
    after each page and each megabyte of strings, so that what is mapped can leave resident memory.
    Raises InputError where the partition cannot be written: rows out of order, a key twice, too large
    for the format; OutputError where the disk fails. Either way *path* stays as it was, unless the disk
    failed between the names of several files: then what was there is found to be damaged.
    """
    try:
        _check(partition, options, after_page)
        try:
            outputs = _written(partition, path, options, disk, after_page)
        except _TooAlikeError:
            # So much is read of any file, however short it became.
            options = replace(options, most_strings=min(options.most_strings, BLOB_FREE))
            outputs = _written(partition, path, options, disk, after_page)
    except Malformed as fault:
        raise InputError(f"{path} cannot be written: {fault.reason}.") from fault
    _remove_further(path, len(outputs), disk=disk)
    return sum(output.tell() for output in outputs)


class _TooAlikeError(Malformed):
    """A blob compresses so far that readers would take it for a bomb."""


def _written(
    partition: Partition, path: Path, options: WriteOptions, disk: Disk, after_page: Callable[[], None]
) -> list[OutputFile]:
    """Write the files of *partition* and return them, closed; Malformed leaves none of them."""
    outputs: list[OutputFile] = []
    try:
        for name, write in _files(partition, path, options, after_page):
            outputs.append(OutputFile.replacing(name, disk=disk))
            write(outputs[-1])
        for output in outputs:
            output.seal()
    except Malformed:
        for output in outputs:
            remove_durably(output.open_path, disk=disk)
        raise
    finally:
        for output in outputs:
            output.close()
    return outputs


def _files(
    partition: Partition, path: Path, options: WriteOptions, after_page: Callable[[], None]
) -> Iterator[tuple[Path, Callable[[OutputFile], None]]]:
    """Yield the files of *partition*, the one in *path* last, and what writes each."""
    arena, most = memoryview(partition.arena).cast("B"), options.most_strings
    checksums: list[int] = []
    for number, begin in enumerate(range(most, len(arena), most), 1):
        part = Partition(
            urls=columns_of(np.empty(0, ROW)),
            hosts=columns_of(np.empty(0, HOST_ROW)),
            arena=arena[begin : begin + most],
            partition_id=partition.partition_id,
            created=partition.created,
            meta=((BEGIN, b"%d" % begin),),
        )
        writer = _PartitionWriter(part, options, after_page)
        yield further_path(path, number), writer.write
        checksums.append(writer.regions[-1].crc32c)
    first = replace(partition, arena=arena[:most], meta=meta_with(partition.meta, checksums))
    yield path, _PartitionWriter(first, options, after_page).write


def _remove_further(path: Path, number: int, *, disk: Disk) -> None:
    """Remove what a larger partition that was in *path* before had from further file *number* on."""
    for stale in map(partial(further_path, path), count(number)):
        if not stale.exists():
            return
        with explained(stale, "removed"):
            disk.remove(stale)


def _check(partition: Partition, options: WriteOptions, after_page: Callable[[], None]) -> None:
    """Raise `Malformed` where *partition* is not what a file can hold."""
    for columns, schema, name in (
        (partition.urls, URL_COLUMNS, "URL"),
        (partition.hosts, HOST_COLUMNS, "host"),
    ):
        rows = len(columns["host_key"])
        for column in schema:
            found = columns[column.name]
            if found.shape != (rows,) or found.dtype != column.dtype:
                raise Malformed(
                    f"{name} column {column.name} is {found.dtype}[{found.shape}] for {rows} rows"
                )
        if rows > MOST_BYTES:
            raise Malformed(f"{rows} {name} rows are more than a file can hold; divide the partition")
        order = KeyOrder(name, equal_keys=options.equal_keys)
        for first in range(0, rows, PAGE_ROWS):
            part = slice(first, first + PAGE_ROWS)
            order.add(
                np.ascontiguousarray(columns["host_key"][part]),
                np.ascontiguousarray(columns["path_key"][part]) if name == "URL" else None,
            )
            after_page()
    if memoryview(partition.seen_filter).nbytes > MOST_BYTES:
        raise Malformed(
            f"its seen-set of {memoryview(partition.seen_filter).nbytes} bytes is more than the 4 GiB "
            "that a file can hold; divide the partition"
        )
    if len({key for key, _ in partition.meta}) < len(partition.meta):
        raise Malformed("a key of its metadata comes twice")
    rows = len(partition.urls["host_key"]) + len(partition.hosts["host_key"])
    if rows and partition.host_key_lo > partition.host_key_hi:
        raise Malformed("its host keys end before they begin")


@dataclass(slots=True)
class _Due:
    """What is learnt of `next_due` while it is written."""

    least: int = 0
    greatest: int = 0

    def add(self, due: np.ndarray) -> None:
        due = due[due != 0]
        if len(due):
            least = int(due.min())
            self.least = min(self.least, least) if self.least else least
            self.greatest = max(self.greatest, int(due.max()))


@dataclass(slots=True)
class _PartitionWriter:
    """Writes one partition once."""

    partition: Partition
    options: WriteOptions
    after_page: Callable[[], None]
    regions: list[Region] = field(default_factory=list)
    due: _Due = field(default_factory=_Due)
    sink: OutputFile = field(init=False)
    compressor: Compressor = field(init=False)

    def write(self, sink: OutputFile) -> None:
        self.sink, self.compressor = sink, Compressor(self.options.codec)
        self.sink.write(bytes(HEADER_SIZE))
        partition = self.partition
        urls = self._table(RegionId.URL_TABLE, partition.urls, URL_COLUMNS)
        hosts = self._table(RegionId.HOST_TABLE, partition.hosts, HOST_COLUMNS)
        if self.options.schedule and self.due.least:
            self._schedule()
        for number, kind, blob in (
            (RegionId.SEEN_SET, PageKind.FILTER, partition.seen_filter),
            (RegionId.STRINGS, PageKind.BLOB, partition.arena),
        ):
            size = memoryview(blob).nbytes
            if size:
                values = urls[0].rows if kind is PageKind.FILTER else size
                self._blob(number, partial(_pieces, blob), _unfinished(kind, values, size))
        self._finish(urls, hosts)

    def _table(
        self, number: RegionId, columns: Columns, schema: tuple[Column, ...]
    ) -> tuple[ColumnEntry, ...]:
        """Write a table region and return what the directory says of its columns."""
        offset = self.sink.tell()
        entries, checksum = [], 0
        for column in schema:
            entry = self._column(column, columns[column.name])
            entries.append(entry)
            length = self.sink.tell() - entry.first_page_offset
            checksum = joined_crc32c(checksum, entry.crc32c, length)
        self.regions.append(Region(number, offset, self.sink.tell() - offset, checksum))
        return tuple(entries)

    def _column(self, column: Column, values: np.ndarray) -> ColumnEntry:
        """Write the pages of a column."""
        offset, checksum = self.sink.tell(), 0
        step = self.options.max_page_rows or max(len(values), 1)
        pages = []
        for first in range(0, max(len(values), 1), step):
            rows = np.ascontiguousarray(values[first : first + step])
            if column.name == "next_due":
                self.due.add(rows)
            page = encode_page(column, rows, first_row=first, compressor=self.compressor)
            self.sink.write(page.header)
            self.sink.write(page.payload)
            checksum = crc32c(page.payload, crc32c(page.header, checksum))
            zone = page.zone or (0, 0)
            pages.append((first, len(rows), page.length, page.encoding, page.zone is not None, *zone))
            self.after_page()
        entries = np.array(pages, PAGE_ENTRY)
        return ColumnEntry(
            id=column.id,
            first_page_offset=offset,
            total_compressed=self.sink.tell() - offset - PAGE_HEADER_SIZE * len(pages),
            total_uncompressed=len(values) * column.width,
            rows=len(values),
            width=column.width,
            encoding=int(entries["encoding"][0]),
            codec=self.options.codec,
            crc32c=checksum,
            zone=_zone_of_pages(entries),
            pages=entries,
        )

    def _schedule(self) -> None:
        due = self.partition.urls["next_due"]

        def pages() -> Iterator[tuple[int, np.ndarray]]:
            for first in range(0, len(due), PAGE_ROWS):
                yield first, np.ascontiguousarray(due[first : first + PAGE_ROWS])
                self.after_page()

        plan = plan_schedule(pages, base=self.due.least, covered=len(due))
        size = sum(map(len, plan.blocks()))
        if size > MOST_BYTES:
            raise Malformed("its schedule is more than the 4 GiB a file can hold; divide it")
        header = _unfinished(PageKind.SCHEDULE, len(plan.rows), size, base=plan.base)
        self._blob(RegionId.SCHEDULE, plan.blocks, header)

    def _blob(
        self, number: RegionId, blocks: Callable[[], Iterable[bytes | memoryview]], header: PageHeader
    ) -> None:
        """Write a region of one page piece by piece; *header* lacks only what is found out meanwhile."""
        offset = self.sink.tell()
        self.sink.write(bytes(PAGE_HEADER_SIZE))
        checksum = length = 0
        for piece in self.compressor.stream(self._with_callback(blocks()), header.uncompressed_size):
            self.sink.write(piece)
            checksum = crc32c(piece, checksum)
            length += len(piece)
        if length > MOST_BYTES or header.uncompressed_size > most_blob(length):
            raise _TooAlikeError(
                f"a blob of {header.uncompressed_size} bytes becomes {length}: no reader would open that"
            )
        packed = header._replace(
            codec=self.options.codec, compressed_size=length, payload_crc32c=checksum
        ).pack()
        self.sink.write_at(offset, packed)
        self.regions.append(
            Region(
                number,
                offset,
                PAGE_HEADER_SIZE + length,
                joined_crc32c(crc32c(packed), checksum, length),
            )
        )

    def _with_callback(self, blocks: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
        for block in blocks:
            yield block
            self.after_page()

    def _finish(self, urls: tuple[ColumnEntry, ...], hosts: tuple[ColumnEntry, ...]) -> None:
        """Write footer, trailer and, in its place, the header."""
        partition, footer_offset = self.partition, self.sink.tell()
        url_rows, host_rows = urls[0].rows, hosts[0].rows
        statistics = Statistics(
            url_rows=url_rows,
            host_rows=host_rows,
            host_key_lo=partition.host_key_lo,
            host_key_hi=partition.host_key_hi,
            scheduled=0,
            due_min=self.due.least,
            due_max=self.due.greatest,
            total_compressed=sum(column.total_compressed for column in urls + hosts),
            total_uncompressed=sum(column.total_uncompressed for column in urls + hosts),
            bytes_per_url=bytes_per_url(footer_offset, url_rows),
        )
        meta = tuple(sorted(partition.meta))
        footer = encode_footer(Footer(tuple(self.regions), urls, hosts, statistics, meta))
        self.sink.write(footer)
        self.sink.write(pack_trailer(footer))
        if max(url_rows, host_rows) > most_rows(self.sink.tell()):
            raise Malformed("its rows are so alike that no reader would believe so many")
        flags = Flag.SORTED
        for region in self.regions:
            flags |= FLAG_OF_REGION.get(region.id, Flag(0))
        header = Header(
            partition_id=partition.partition_id,
            flags=flags,
            codec=self.options.codec,
            host_key_lo=partition.host_key_lo,
            host_key_hi=partition.host_key_hi,
            url_rows=url_rows,
            host_rows=host_rows,
            footer_offset=footer_offset,
            created=partition.created,
        )
        self.sink.write_at(0, header.pack())


def _pieces(blob: bytes | memoryview) -> Iterator[memoryview]:
    octets = memoryview(blob).cast("B")
    for first in range(0, len(octets), _PIECE):
        yield octets[first : first + _PIECE]


def _unfinished(kind: PageKind, values: int, size: int, *, base: int = 0) -> PageHeader:
    """Return the header of a page that is about to be compressed."""
    return PageHeader(
        kind=kind,
        encoding=0,
        codec=0,
        flags=0,
        values=values,
        uncompressed_size=size,
        compressed_size=0,
        first_row=0,
        base=base,
        payload_crc32c=0,
    )


def _zone_of_pages(pages: np.ndarray) -> Zone | None:
    """Return the least and greatest value of a column."""
    if not pages["zone_valid"].all():
        return None
    return int(pages["zone_min"].min()), int(pages["zone_max"].max())
