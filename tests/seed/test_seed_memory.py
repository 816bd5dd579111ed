"""Memory: a long list takes no more of it than a short one."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from collections import deque
from typing import TYPE_CHECKING, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amicrawl.seed import SeedFault, SitemapLimits, open_seed
from amicrawl.seed.lines import MAX_LINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MIB = 1024**2


class _Stream(io.RawIOBase):
    """A file whose bytes are made as they are read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read(self, _size: int = -1) -> bytes:
        return next(self._pieces, b"")


def stream(pieces: Iterator[bytes]) -> BinaryIO:
    return cast("BinaryIO", _Stream(pieces))


def lines(count: int) -> Iterator[bytes]:
    for start in range(0, count, 1000):
        yield b"".join(
            b"http://host-%d.example/page\n" % number
            for number in range(start, min(start + 1000, count))
        )


def objects(count: int) -> Iterator[bytes]:
    line = b'{"url":"http://host-%d.example/","source":"list","depth":1.0}\n'
    for start in range(0, count, 1000):
        yield b"".join(line % number for number in range(start, min(start + 1000, count)))


def sitemap(count: int) -> Iterator[bytes]:
    yield b"<urlset>"
    for start in range(0, count, 1000):
        numbers = range(start, min(start + 1000, count))
        yield b"".join(b"<url><loc>http://host-%d.example/</loc></url>" % number for number in numbers)
    yield b"</urlset>"


def packed(count: int) -> Iterator[bytes]:
    for piece in lines(count):
        yield gzip.compress(piece, 1)


@pytest.mark.parametrize(
    ("make", "name"),
    [(lines, "lines"), (objects, "jsonl"), (sitemap, "sitemap"), (packed, "lines")],
)
def test_a_long_list_takes_no_more_memory_than_a_short_one(
    make: Callable[[int], Iterator[bytes]], name: str
) -> None:
    """A pointer for each seed would be 160 kB."""

    def peak(count: int) -> int:
        limits = SitemapLimits(urls=count, size=1 << 30)
        tracemalloc.start()
        try:
            with open_seed(
                "-", stdin=stream(make(count)), format=name, limits=limits, on_fault=print
            ) as reader:
                deque(reader, maxlen=0)
                assert reader.read == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)
    assert peak(25_000) < peak(5_000) + 64 * 1024


def test_a_list_of_faults_takes_no_memory_either() -> None:
    count = 0

    def counted(_fault: SeedFault) -> None:
        nonlocal count
        count += 1

    tracemalloc.start()
    try:
        assert (
            list(open_seed("-", stdin=stream(b"ftp://x/\n" * 1000 for _ in range(25)), on_fault=counted))
            == []
        )
        assert tracemalloc.get_traced_memory()[1] < 2 * MIB
    finally:
        tracemalloc.stop()
    assert count == 25_000


def test_a_line_without_end_is_not_held() -> None:
    faults: list[SeedFault] = []
    tracemalloc.start()
    try:
        endless = stream(bytes([120]) * MIB for _ in range(200))
        assert list(open_seed("-", stdin=endless, on_fault=faults.append)) == []
        assert tracemalloc.get_traced_memory()[1] < 2 * MAX_LINE
    finally:
        tracemalloc.stop()
    assert [fault.reason for fault in faults] == [f"the line is longer than {MAX_LINE} bytes"]


def test_a_table_is_read_piece_by_piece_even_in_one_row_group(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = tmp_path / "seeds.parquet"
        urls = [f"http://host-{number * 7919}.example/{'x' * 100}" for number in range(count)]
        pq.write_table(pa.table({"url": urls}), path, row_group_size=count, compression="none")
        del urls
        before = pa.total_allocated_bytes()
        with open_seed(str(path), on_fault=print) as reader:
            peaks = [pa.total_allocated_bytes() - before for _ in reader]
        assert len(peaks) == count
        return max(peaks)

    assert peak(150_000) < peak(40_000) + MIB
