"""Lines and records that are too many for memory, partitioned by their second into files.

What belongs together has the same second, so both sides are dealt out alike, and each part is joined for
itself. Which part each line went to is kept, a byte a line: by that, the parts are put together again in
the order of the lines.
"""

from __future__ import annotations

from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from amicrawl.archive.arrow_texts import (
    WORD,
    Octets,
    Spans,
    Texts,
    numbers_from,
    octets_of,
    taken,
    texts_of,
)
from amicrawl.archive.index.merging.joining import Joining
from amicrawl.archive.index.merging.side_table import SideTable, gathered
from amicrawl.archive.index.merging.sides import SECOND, SIDES, spelled
from amicrawl.disk import discard, explained, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack
    from pathlib import Path

    from numpy.typing import NDArray

    from amicrawl.archive.index.merging.join import MergeCounts
    from amicrawl.archive.index.merging.joining import LineSink
    from amicrawl.disk import Disk

Dealt = TypeVar("Dealt")
PARTS = 64
"""Files that each side is dealt out to."""

_READ = 1 << 18
_BLOCK = 4 << 20
_BATCHES = 256
_CHUNK = 8_192
"""Lines that are put together at a time."""
_SPACE, _LF = b" \n"
_FACTOR, _HALF = np.uint64(0xFF51AFD7ED558CCD), np.uint64(32)
"""A product with the factor has the hash in its highest bits."""


class BlockPiece(NamedTuple, Generic[Dealt]):
    """What of a block belongs to one part."""

    part: int
    dealt: Dealt
    """In the order of the block."""
    places: NDArray[np.int64]
    """Which rows of the block they are."""


def pieces_of_records(batch: pa.RecordBatch, count: int) -> Iterator[BlockPiece[pa.RecordBatch]]:
    """Deal records of sidecars out to *count* parts."""
    parts = _parts_of(Spans.of(batch["when"]).last(WORD), count)
    order = np.argsort(parts, kind="stable")
    sorted_ = spelled(batch.take(numbers_from(order)))
    for part, start, end in _borders(parts[order], count):
        yield BlockPiece(part, sorted_.slice(start, end - start), order[start:end])


def pieces_of_lines(
    octets: bytes, count: int
) -> tuple[NDArray[np.unsignedinteger[Any]], Iterator[BlockPiece[memoryview]]]:
    """Deal lines, each ended by LF, out to *count* parts; also return the part of each line."""
    view = np.frombuffer(octets, np.uint8)
    ends = np.flatnonzero(view == _LF) + 1
    starts = np.concatenate(([0], ends[:-1]))
    spaces = np.append(np.flatnonzero(view == _SPACE), len(octets))
    first = np.minimum(np.searchsorted(spaces, starts), len(spaces) - 1)
    begins = spaces[first] + 1
    stops = np.minimum(spaces[np.minimum(first + 1, len(spaces) - 1)], begins + SECOND)
    # Where there are no two spaces there is no second: any part is right, as no record belongs to it.
    stops = np.minimum(stops, ends - 1)
    stops = np.maximum(stops, starts)
    parts = _parts_of(Spans(Octets(octets), np.maximum(starts, stops - WORD), stops), count)

    def pieces() -> Iterator[BlockPiece[memoryview]]:
        order = np.argsort(parts, kind="stable")
        sorted_, places = octets_of(taken(_lines(octets, ends), order))
        data = memoryview(sorted_.data)
        for part, start, end in _borders(parts[order], count):
            yield BlockPiece(part, data[places[start] : places[end]], order[start:end])

    return parts, pieces()


def in_order(octets: bytes, order: NDArray[np.int64]) -> memoryview:
    """Return the lines of *octets*, each ended by LF, the one that *order* names first at the front."""
    ends = np.flatnonzero(np.frombuffer(octets, np.uint8) == _LF) + 1
    data, _ = octets_of(taken(_lines(octets, ends), order))
    return memoryview(data.data)[: len(octets)]


class MergeParts:
    """Both sides of a merge on disk, and its outcome."""

    def __init__(
        self,
        sink: LineSink,
        counts: MergeCounts,
        *,
        by_key_only: bool,
        scratch: Path,
        disk: Disk,
        stack: ExitStack,
    ) -> None:
        """Deal out to files in *scratch*, which are gone when *stack* is left."""
        self._sink = sink
        self._counts = counts
        self._by_key_only = by_key_only
        self._scratch = scratch
        self._disk = disk
        self._stack = stack
        # A part has files once something belongs to it: of its records, its lines, and what they become.
        self._records: dict[int, IO[bytes]] = {}
        self._writers: dict[int, Any] = {}
        self._lines: dict[int, IO[bytes]] = {}
        self._done: dict[int, IO[bytes]] = {}
        self._order = self._file()
        self._ends: list[int] = []
        self._count = 0

    def _file(self) -> IO[bytes]:
        with explained(self._scratch, "written to"):
            file = self._disk.temporary(self._scratch)
        self._stack.callback(discard, file)
        return file

    def add_records(self, batch: pa.RecordBatch) -> None:
        """Deal out records of sidecars."""
        with explained(self._scratch, "written to"):
            for part, records, _ in pieces_of_records(batch, PARTS):
                if part not in self._writers:
                    self._records[part] = self._file()
                    self._writers[part] = pa.ipc.new_stream(_for_arrow(self._records[part]), SIDES)
                self._writers[part].write_batch(records)

    def add(self, octets: bytes) -> None:
        """Deal out lines, each ended by LF."""
        parts, pieces = pieces_of_lines(octets, PARTS)
        with explained(self._scratch, "written to"):
            self._order.write(parts.tobytes())
            for part, lines, _ in pieces:
                if part not in self._lines:
                    self._lines[part] = self._file()
                self._lines[part].write(lines)
        self._count += len(parts)

    def end_file(self) -> None:
        """Take what follows for the lines of the next file."""
        self._ends.append(self._count)

    def finish(self) -> None:
        """Join all parts, and give the sink the lines in their order."""
        with explained(self._scratch, "written to"):
            for writer in self._writers.values():
                writer.close()
            for part in sorted(self._lines.keys() | self._records.keys()):
                self._done[part] = self._file()
                self._join_part(part)
        with explained(self._scratch, "read from"):
            self._put_together()

    def _join_part(self, part: int) -> None:
        with Joining(
            SideTable(gathered(self._records_of(part))[0]),
            FileSink(self._done[part]),
            self._counts,
            by_key_only=self._by_key_only,
            scratch=self._scratch,
            disk=self._disk,
        ) as joining:
            if part in self._lines:
                for octets in _blocks(self._lines[part]):
                    joining.add(octets)
                self._lines.pop(part).close()
            joining.finish()

    def _records_of(self, part: int) -> Iterator[pa.RecordBatch]:
        if part not in self._records:
            return
        with explained(self._scratch, "read from"), self._records.pop(part) as file:
            file.seek(0)
            # Batches became small when they were dealt out, and each is work of its own.
            batches = iter(pa.ipc.open_stream(_for_arrow(file)))
            while some := list(islice(batches, _BATCHES)):
                yield from pa.Table.from_batches(some).combine_chunks().to_batches()

    def _put_together(self) -> None:
        done = {part: LinesInTurn(file) for part, file in self._done.items()}
        self._order.seek(0)
        at = 0
        for end in self._ends:
            while at < end:
                parts = np.frombuffer(self._order.read(min(_CHUNK, end - at)), np.uint8)
                at += len(parts)
                pieces = [
                    done[part].take(count)
                    for part, count in enumerate(np.bincount(parts, minlength=PARTS).tolist())
                    if count
                ]
                # Sorted by part, lines stand as they were taken; this is the way back.
                self._sink.write(in_order(b"".join(pieces), inverse(np.argsort(parts, kind="stable"))))
            self._sink.end_file()


class FileSink:
    """Lines written to one file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, octets: bytes | memoryview) -> None:
        """Take lines."""
        for piece in pieces(octets):
            self._file.write(piece)

    def end_file(self) -> None:
        """Do nothing: where files end is known of the lines that come in."""


class LinesInTurn:
    """Lines of a file, some at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        file.seek(0)
        self._file = file
        self._block = b""
        self._at = 0
        self._ends: Any = np.empty(0, np.int64)

    def take(self, count: int) -> bytes:
        """Return the next *count* lines."""
        taken: list[bytes] = []
        while count:
            if not len(self._ends):
                block = self._file.read(_READ) + self._file.readline()
                self._block, self._at = block, 0
                self._ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _LF) + 1
            some = min(count, len(self._ends))
            end = int(self._ends[some - 1])
            taken.append(self._block[self._at : end])
            self._ends = self._ends[some:]
            self._at = end
            count -= some
        return b"".join(taken)


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while block := file.read(_BLOCK):
        yield block + file.readline()


def _parts_of(seconds: Spans, count: int) -> NDArray[np.unsignedinteger[Any]]:
    """Return which of *count* parts each of *seconds*, the last eight digits of a timestamp, has."""
    hashes = (seconds.words(0) * _FACTOR) >> _HALF
    return ((hashes * np.uint64(count)) >> _HALF).astype(np.min_scalar_type(count - 1))


def _borders(parts: NDArray[Any], count: int) -> Iterator[tuple[int, int, int]]:
    """Yield each of the sorted *parts*, and where it begins and ends."""
    borders = np.searchsorted(parts, np.arange(count + 1))
    for part in np.flatnonzero(np.diff(borders)).tolist():
        yield part, int(borders[part]), int(borders[part + 1])


def inverse(order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order that undoes *order*."""
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return back


def _for_arrow(file: IO[bytes]) -> Any:
    return file  # the stubs know no file but those of the io module


def _lines(octets: bytes, ends: NDArray[np.int64]) -> Texts:
    """Return the lines of *octets*, which *ends* cuts it into, to be taken in another order."""
    return texts_of(octets, np.concatenate(([0], ends)).astype(np.int32), kind=pa.binary())
