"""Reading a frontier file: as little of it as a question needs, or all of it.

Opening reads the header and the end of the file, two reads unless the footer is longer than 64 KiB, and
checks that the two agree. After that a column, the rows of some hosts or what is due at a time cost only
the pages that hold them. Whatever is read is compared with its checksums and with what the footer
says of it; `verification` reads everything and compares the rest too, such as the order of the rows.
The strings are those of the file and of the further ones that it names.

Nothing in a file is trusted: room is made page by page, for no more rows than a file of its size can
have (`layout.most_rows`) and no more content than so many rows can take. Every fault is a
`FrontierFileError`. A FrontierFile may be used by one thread at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from amicrawl.meguri.format import layout
from amicrawl.meguri.format.checksum import crc32c
from amicrawl.meguri.format.codec import decompressed
from amicrawl.meguri.format.faults import FileFault, Malformed
from amicrawl.meguri.format.footer import Footer, Region, RegionId, Statistics, parse_footer
from amicrawl.meguri.format.header import HEADER_SIZE, LEAST_SIZE, TRAILER_SIZE, Header, unpack_trailer
from amicrawl.meguri.format.page import HEADER_SIZE as PAGE_HEADER_SIZE
from amicrawl.meguri.format.page import PageHeader, PageKind, check_header, read_payload
from amicrawl.meguri.format.schedule import decode_schedule, most_schedule_bytes
from amicrawl.meguri.format.schema import HOST_COLUMNS, URL_COLUMNS
from amicrawl.meguri.format.strings import FURTHER, checksums_in, further_path, meta_without
from amicrawl.meguri.format.table_reader import BlockReader, TableReader
from amicrawl.meguri.format.writer import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Self

    from amicrawl.meguri.format.footer import ColumnEntry
    from amicrawl.meguri.format.schedule import Schedule

_LONGEST_TAIL: Final = 1 << 24
"""Bytes from the end that are read because the header says so; a longer footer takes a third read."""


class FrontierFile:
    """One partition on disk, open for reading."""

    def __init__(self, source: BlockReader, header: Header, footer: Footer) -> None:
        self._source = source
        self.header = header
        self.footer = footer
        self._urls = TableReader(source, footer.regions[0], URL_COLUMNS, footer.url_columns)
        self._hosts = TableReader(source, footer.regions[1], HOST_COLUMNS, footer.host_columns)
        self._regions = {region.id: region for region in footer.regions}

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open *path*; InputError where it cannot be read, FrontierFileError where it is not sound."""
        source = BlockReader(path)
        try:
            return cls(source, *_read_ends(source))
        except BaseException:
            source.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._source.path

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._source.size

    @property
    def bytes_read(self) -> int:
        """Bytes that were read so far."""
        return self._source.bytes_read

    @property
    def reads(self) -> int:
        """Calls to the operating system that read them."""
        return self._source.reads

    @property
    def regions(self) -> tuple[Region, ...]:
        """The regions, in the order of the file."""
        return self.footer.regions

    @property
    def url_columns(self) -> Mapping[str, ColumnEntry]:
        """What the footer says of the columns of the URL table, by name."""
        return self._urls.entries

    @property
    def host_columns(self) -> Mapping[str, ColumnEntry]:
        """What the footer says of the columns of the host table, by name."""
        return self._hosts.entries

    @property
    def stats(self) -> Statistics:
        """The sums over the whole file."""
        return self.footer.statistics

    @property
    def meta(self) -> tuple[tuple[bytes, bytes], ...]:
        """Pairs of free text, sorted by key."""
        return meta_without(self.footer.meta)

    @property
    def url_rows(self) -> int:
        """Rows of the URL table."""
        return self._urls.rows

    @property
    def host_rows(self) -> int:
        """Rows of the host table."""
        return self._hosts.rows

    def url_column(self, name: str) -> np.ndarray:
        """Return a column of the URL table."""
        return self._urls.column(name)

    def host_column(self, name: str) -> np.ndarray:
        """Return a column of the host table."""
        return self._hosts.column(name)

    def url_pages(self, name: str) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first row and the values of each page of a column of the URL table.

        The checksum of the column is compared behind the last page, that of a page before it is yielded.
        """
        return self._urls.pages(name)

    def host_pages(self, name: str) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first row and the values of each page of a column of the host table."""
        return self._hosts.pages(name)

    def rows(self, indexes: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return columns *names* of the URL rows *indexes*, reading only the pages that hold them.

        Raises IndexError where there is no such row.
        """
        indexes = np.asarray(indexes, np.int64)
        if len(indexes) and not 0 <= int(indexes.min()) <= int(indexes.max()) < self.url_rows:
            raise IndexError(f"rows {indexes.min()} to {indexes.max()} of {self.url_rows}")
        return {name: self._urls.take(name, indexes) for name in names}

    def may_be_due(self, at: int) -> bool:
        """Return whether something is due at hour *at*, by the statistics, without reading anything."""
        return self.stats.due_min != 0 and self.stats.due_min <= at

    def due(self, at: int) -> np.ndarray:
        """Return the URL rows with 0 < `next_due` <= *at*, in their order."""
        if not self.may_be_due(at):
            return np.empty(0, np.int64)
        least, greatest = self._urls.zones("next_due")
        wanted = self._urls.only_or((greatest != 0) & (least <= at))
        # With one page there is nothing that a schedule could spare.
        schedule = self.schedule() if len(wanted) > 1 else None
        if schedule is not None:
            candidates = schedule.candidates(at)
            due = self._urls.take("next_due", candidates)
            return np.sort(np.compress((due != 0) & (due <= at), candidates))
        found = [
            first + np.flatnonzero((due != 0) & (due <= at))
            for first, due in self._urls.pages("next_due", wanted)
        ]
        return np.concatenate([np.empty(0, np.int64), *found])

    def schedule(self) -> Schedule | None:
        """Return which rows are due when, or None without a schedule."""
        region = self._regions.get(RegionId.SCHEDULE)
        if region is None:
            return None
        header, payload = self._blob(region, PageKind.SCHEDULE, most=most_schedule_bytes(self.url_rows))
        with self._source.placed(region.offset, region.name):
            try:
                schedule = decode_schedule(payload, rows=self.url_rows)
            except Malformed as fault:
                raise Malformed(fault.reason, at=PAGE_HEADER_SIZE + fault.at) from fault
            check_header(header, base=schedule.base, values=sum(map(len, schedule.buckets)))
            check_header(header, base=self.stats.due_min)
        return schedule

    def seen_filter(self) -> bytes:
        """Return the blob of the seen-set filter, empty where there is none."""
        return self._content(RegionId.SEEN_SET, PageKind.FILTER, values=self.url_rows & 0xFFFF_FFFF)

    def arena(self) -> bytes:
        """Return the string arena, empty where there is none."""
        own = self._content(RegionId.STRINGS, PageKind.BLOB)
        others = [file.arena() for file in self._further()]
        return b"".join((own, *others)) if others else own

    def _further(self) -> Iterator[FrontierFile]:
        """Yield the files in which the strings go on, each open until the next is requested."""
        with self.placed(self.header.footer_offset, "footer"):
            checksums = checksums_in(self.footer.meta)
        for number, checksum in enumerate(checksums, 1):
            path = further_path(self.path, number)
            with self.placed(self.header.footer_offset, "footer"):
                if not path.exists():
                    raise Malformed(f"its strings go on in {path.name}, which is missing")
            with FrontierFile.open(path) as file:
                last = file.regions[-1]
                if (last.id, last.crc32c) != (RegionId.STRINGS, checksum) or FURTHER in dict(
                    file.footer.meta
                ):
                    with file.placed(last.offset, last.name):
                        raise Malformed(f"{self.path.name} does not go on with these strings")
                yield file

    def _content(self, number: RegionId, kind: PageKind, *, values: int | None = None) -> bytes:
        """Return the content of a region whose header counts *values*, or its bytes; empty for none."""
        region = self._regions.get(number)
        if region is None:
            return b""
        header, content = self._blob(region, kind)
        with self._source.placed(region.offset, region.name):
            check_header(header, values=len(content) if values is None else values, base=0)
        return content

    def _blob(
        self, region: Region, kind: PageKind, *, most: int | None = None
    ) -> tuple[PageHeader, bytes]:
        """Return header and content of the one page of *region*."""
        with self._source.placed(region.offset, region.name):
            page = self._source.read(region.offset, region.length)
            header = PageHeader.unpack(page)
            payload = page[PAGE_HEADER_SIZE:]
            content = read_payload(
                header, payload, most=layout.most_blob(len(payload)) if most is None else most
            )
            self._check_blob(header, kind)
        return header, content

    def _check_blob(self, header: PageHeader, kind: PageKind) -> None:
        check_header(header, kind=kind, flags=0, encoding=0, codec=self.header.codec, first_row=0)

    def copy_arena(self, write: Callable[[bytes], object]) -> int:
        """Hand the string arena to *write* piece by piece and return its length.

        Only when this has returned is it known that what was handed over is sound.
        """
        return self._copy_own(write) + sum(file.copy_arena(write) for file in self._further())

    def _copy_own(self, write: Callable[[bytes], object]) -> int:
        """Hand the strings that are in this file to *write*, and return how many octets they are."""
        region = self._regions.get(RegionId.STRINGS)
        if region is None:
            return 0
        checksum = 0

        def blocks() -> Iterator[bytes]:
            nonlocal checksum
            for block in self._source.blocks(region.offset + PAGE_HEADER_SIZE, header.compressed_size):
                checksum = crc32c(block, checksum)
                yield block

        with self._source.placed(region.offset, region.name):
            header = PageHeader.unpack(
                self._source.read(region.offset, min(PAGE_HEADER_SIZE, region.length))
            )
            size = header.uncompressed_size
            self._check_blob(header, PageKind.BLOB)
            check_header(header, compressed_size=region.length - PAGE_HEADER_SIZE, values=size, base=0)
            if size > layout.most_blob(header.compressed_size):
                raise Malformed(f"{size} bytes out of {header.compressed_size}", at=8)
            for piece in decompressed(self.header.codec, blocks(), size):
                write(piece)
            if checksum != header.payload_crc32c:
                raise Malformed("the payload has another checksum", fault=FileFault.CHECKSUM, at=28)
        return size

    def options(self) -> WriteOptions:
        """Return the options under which the same rows give the same file again."""
        split = [
            int(table.page_rows[0]) for table in (self._urls, self._hosts) if len(table.page_rows) > 1
        ]
        return WriteOptions(
            codec=self.header.codec,
            schedule=RegionId.SCHEDULE in self._regions,
            max_page_rows=max(split, default=0),
            equal_keys=True,
        )

    def check_regions(self) -> None:
        """Compare each region of each file with its checksum; FrontierFileError where they differ."""
        for region in self.regions:
            with self._source.placed(region.offset, region.name):
                checksum = 0
                for block in self._source.blocks(region.offset, region.length):
                    checksum = crc32c(block, checksum)
                if checksum != region.crc32c:
                    raise Malformed("the region has another checksum", fault=FileFault.CHECKSUM)
        for file in self._further():
            file.check_regions()

    def placed(self, offset: int, region: str) -> AbstractContextManager[None]:
        """Return the context that gives a `Malformed` raised within it this file and place."""
        return self._source.placed(offset, region)


def _read_ends(source: BlockReader) -> tuple[Header, Footer]:
    """Read and check everything but the regions."""
    with source.placed(0, "header"):
        if source.size < LEAST_SIZE:
            raise Malformed(
                f"{source.size} bytes are too few for a frontier file", fault=FileFault.SHORT
            )
        header = Header.unpack(source.read(0, HEADER_SIZE))
    tail_offset = max(source.size - _LONGEST_TAIL, HEADER_SIZE)
    if tail_offset < header.footer_offset <= source.size - TRAILER_SIZE:
        tail_offset = header.footer_offset
    with source.placed(source.size - TRAILER_SIZE, "trailer"):
        tail = source.read(tail_offset, source.size - tail_offset)
        length, checksum = unpack_trailer(tail[-TRAILER_SIZE:])
        offset = source.size - TRAILER_SIZE - length
        if offset < HEADER_SIZE or offset != header.footer_offset:
            raise Malformed(
                f"a footer of {length} bytes, which the header sees at byte {header.footer_offset}"
            )
    with source.placed(offset, "footer"):
        if offset < tail_offset:
            tail = source.read(offset, tail_offset - offset) + tail
            tail_offset = offset
        block = tail[offset - tail_offset : -TRAILER_SIZE]
        if crc32c(block) != checksum:
            raise Malformed("the footer has another checksum", fault=FileFault.CHECKSUM)
        footer = parse_footer(block)
    with source.placed(0, "header"):
        layout.check_header(header, footer, size=source.size)
    with source.placed(offset, "footer"):
        layout.check_footer(footer, header)
    return header, footer
