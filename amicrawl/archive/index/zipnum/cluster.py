"""ZipNum clusters: sorted index lines in gzip members, and a short index of those; their reader.

    cdx-00000.gz ...   shards: gzip members, called blocks, of 3,000 lines each
    cluster.idx        one line a block: what its first line begins with, where it lies, its number
    cluster.loc        one line a shard: its name, and where it is
    metadata.yaml      the collection's title

A line of `cluster.idx` is `urlkey SP timestamp TAB shard TAB offset TAB length TAB number`, the number
counted from 1 over all shards; readers do without it. The lines are in byte order, so one binary search
in a file that is a few thousandths of the index finds the blocks that can hold a key.

Of the same family is `cdxj-gzip-1.0`, the index inside WACZ packages: one file of blocks, and an index
whose first line names it and whose others have the place as JSON.

What is read is taken for hostile: a line that does not follow this raises ValueError with the reason.
The index of blocks is searched where it is; the blocks that can hold a line are neighbours, and up
to ten of them are read at once. A shard has to lie in the directory of the index or below it: an index
from elsewhere cannot make us open other files. Locations on other machines are not followed.
"""

from __future__ import annotations

import json
import os
import zlib
from bisect import bisect_left
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import orjson

from amicrawl.archive.lines import SortedLines
from amicrawl.disk import readable, refuse_pipe
from amicrawl.errors import DamagedFileError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


IDX_NAME = "cluster.idx"
LOC_NAME = "cluster.loc"
METADATA_NAME = "metadata.yaml"
SHARD_NAME = "cdx-{:05d}.gz"

BLOCK_LINES = 3_000
"""Lines of a block."""
SHARD_LINES = 9_000_000
"""Lines after which the next shard is begun: 3,000 blocks, so about as many as a block has lines."""
JSON_FORMAT = "cdxj-gzip-1.0"
META = b"!meta 0 "

LONGEST_BLOCK = 64 * 1024**2
"""Bytes of a block, packed or not, that is read."""

_GZIP = 31
_LEVEL = 6


class BlockLocation(NamedTuple):
    """Where a block lies."""

    key: bytes
    """Urlkey, space and timestamp of its first line."""
    shard: str
    """Name of its file; empty where the index belongs to one file only."""
    offset: int
    length: int
    """Bytes of the gzip member."""
    number: int | None = None
    """Which block of the cluster it is, from 1."""


def key_of(line: bytes) -> bytes:
    """Return urlkey, space and timestamp of an index line; ValueError where it does not begin so."""
    urlkey, _, rest = line.partition(b" ")
    timestamp, _, rest = rest.partition(b" ")
    if not (urlkey and timestamp.isdigit() and rest.strip()):
        raise ValueError("no urlkey, timestamp and fields, with a space between")
    if b"\t" in urlkey:
        raise ValueError("a tab in the urlkey, where indexes of blocks have their separator")
    return urlkey + b" " + timestamp


def idx_line(block: BlockLocation) -> bytes:
    """Return the line of `cluster.idx` for *block*."""
    rest = f"\t{block.shard}\t{block.offset}\t{block.length}"
    if block.number is not None:
        rest += f"\t{block.number}"
    return block.key + rest.encode() + b"\n"


def parse_idx_line(line: bytes) -> BlockLocation:
    """Read a line of `cluster.idx`."""
    key, *rest = line.rstrip(b"\r\n").split(b"\t")
    if len(rest) not in {3, 4}:
        raise ValueError("not four or five columns with a tab between")
    shard, *numbers = rest
    if not all(number.isdigit() and len(number) <= 18 for number in numbers):
        raise ValueError("offset, length and number have to be digits")
    offset, length, *number = map(int, numbers)
    return _checked(
        BlockLocation(key, shard.decode("utf-8"), offset, length, number[0] if number else None)
    )


def json_idx_head(filename: str) -> bytes:
    """Return the first line of the index of the `cdxj-gzip-1.0` file *filename*."""
    return META + json.dumps({"format": JSON_FORMAT, "filename": filename}).encode() + b"\n"


def json_idx_line(block: BlockLocation) -> bytes:
    """Return the line for *block* in such an index."""
    return (
        block.key + b" " + json.dumps({"offset": block.offset, "length": block.length}).encode() + b"\n"
    )


def parse_json_idx_head(line: bytes) -> str:
    """Return the name of the file that the index with this first line belongs to."""
    found = orjson.loads(line.removeprefix(META))
    if not (line.startswith(META) and isinstance(found, dict) and found.get("format") == JSON_FORMAT):
        raise ValueError(f"no index of the format {JSON_FORMAT}")
    filename = found.get("filename")
    if not isinstance(filename, str):
        raise ValueError("it does not name the file it belongs to")  # noqa: TRY004  # bytes are bad, not we
    return filename


def parse_json_idx_line(line: bytes) -> BlockLocation:
    """Read a line, not the first, of an index of the format `cdxj-gzip-1.0`."""
    urlkey, timestamp, place = line.split(b" ", 2)
    found = orjson.loads(place)
    offset, length = (
        (found.get("offset"), found.get("length")) if isinstance(found, dict) else (None, None)
    )
    if not (isinstance(offset, int) and isinstance(length, int) and offset >= 0 and length >= 0):
        raise ValueError("not a JSON object with offset and length")
    return _checked(BlockLocation(urlkey + b" " + timestamp, "", offset, length))


def _checked(block: BlockLocation) -> BlockLocation:
    if block.length > LONGEST_BLOCK:
        raise ValueError(f"a block of {block.length} bytes, more than {LONGEST_BLOCK}")
    return block


def pack(lines: bytes) -> bytes:
    """Return *lines* as one gzip member; the same bytes whenever and wherever it is made."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return packer.compress(lines) + packer.flush()


def unpack(member: bytes) -> list[bytes]:
    """Return the lines in a gzip *member*, without their LF; ValueError where it is not whole."""
    inflater = zlib.decompressobj(_GZIP)
    try:
        text = inflater.decompress(member, LONGEST_BLOCK)
    except zlib.error as error:
        raise ValueError(f"a block that cannot be inflated ({error})") from error
    if not inflater.eof:
        raise ValueError(f"a block that is cut, or longer than {LONGEST_BLOCK} bytes")
    return text.removesuffix(b"\n").split(b"\n")


BLOCKS_AT_ONCE = 10
"""Blocks that are read with one call."""
_BYTES_AT_ONCE = 16 * 1024**2
_LONGEST_LOC = 64 * 1024**2

_T = TypeVar("_T")


class _Span(NamedTuple):
    """The lines of the index of blocks that a range of keys concerns."""

    first: int
    """Where the first of them begins."""
    end: int
    """Where the last of them ends."""


class Cluster:
    """A ZipNum cluster, or a `cdxj-gzip-1.0` file with its index; threads may share it."""

    def __init__(self, idx: Path) -> None:
        """Open the index of blocks *idx*; InputError or DamagedFileError where it cannot be followed."""
        self.path = idx
        self._idx = SortedLines(idx)
        self._parse: Callable[[bytes], BlockLocation] = parse_idx_line
        self._start = 0
        self._shards: dict[str, Path] | None
        head = self._idx.line_at(0)
        if head.startswith(META):
            self._parse = parse_json_idx_line
            self._start = self._idx.after(0)
            self._shards = {"": self._inside(_or_damaged(idx, 0, lambda: parse_json_idx_head(head)))}
        else:
            self._shards = self._located()
        # Blocks that begin alike are in the order of their places, which are numbers.
        if not self._idx.is_in_order(up_to=b" {" if self._start else b"\t", start=self._start):
            raise InputError(f"{idx} is not in byte order. Sort it first, as LC_ALL=C sort does.")

    def close(self) -> None:
        """Give the index of blocks up."""
        self._idx.close()

    def lines(self, start: bytes, end: bytes) -> Iterator[bytes]:
        """Yield the lines in [*start*, *end*), in order and without their LF."""
        return self._lines(self._span(start, end), start, end)

    def block_count(self, start: bytes, end: bytes) -> int:
        """Return how many blocks [*start*, *end*) concerns; 0 where no line is in it."""
        span = self._span(start, end)
        count = self._count(span)
        # Of two blocks, the second begins inside the range. One may as well begin before and end before.
        if count == 1 and next(self._lines(span, start, end), None) is None:
            return 0
        return count

    def lines_of_blocks(self, start: bytes, end: bytes, *, first: int, count: int) -> Iterator[bytes]:
        """Yield the lines in [*start*, *end*) of *count* of its blocks, from the *first*, from 0, on."""
        span = self._span(start, end)
        begin = self._skip(span.first, first)
        return self._lines(_Span(begin, min(span.end, self._skip(begin, count))), start, end)

    def _span(self, start: bytes, end: bytes) -> _Span:
        """Return the blocks of a range: those that begin in it, and the one before."""
        if start >= end:
            return _Span(self._start, self._start)
        first = self._idx.first_from(start, start=self._start)
        last = self._idx.first_from(end, start=first)
        return _Span(max(self._start, self._idx.before(first)), last)

    def _count(self, span: _Span) -> int:
        if span.first >= span.end:
            return 0
        first = self._block(span.first, self._idx.line_at(span.first))
        offset = self._idx.before(span.end)
        last = self._block(offset, self._idx.line_at(offset))
        if first.number is not None and last.number is not None:
            return last.number - first.number + 1
        return sum(1 for _ in self._idx.between(span.first, span.end))

    def _skip(self, offset: int, blocks: int) -> int:
        """Return where the line that is *blocks* lines behind the one at *offset* begins."""
        if blocks and offset < self._idx.size:
            number = self._block(offset, self._idx.line_at(offset)).number
            if number is not None:
                wanted = number + blocks
                return self._idx.first_not(
                    lambda line: (self._parse_or_damaged(line).number or 0) < wanted, start=offset
                )
        for _ in range(blocks):
            offset = self._idx.after(offset)
        return offset

    def _lines(self, span: _Span, start: bytes, end: bytes) -> Iterator[bytes]:
        for run in _runs(self._block(*place) for place in self._idx.between(*span)):
            for lines in self._read(run):
                # Only the first block can begin before the range, and only the last end behind it.
                first = bisect_left(lines, start) if lines[0] < start else 0
                last = bisect_left(lines, end) if lines[-1] >= end else len(lines)
                yield from lines[first:last]

    def _read(self, run: list[BlockLocation]) -> Iterator[list[bytes]]:
        path = self._shard(run[0].shard)
        begin = run[0].offset
        packed = _bytes_of(path, begin, sum(block.length for block in run))
        for block in run:
            member = packed[block.offset - begin : block.offset - begin + block.length]
            yield _or_damaged(path, block.offset, partial(unpack, member))

    def _block(self, offset: int, line: bytes) -> BlockLocation:
        return _or_damaged(self.path, offset, lambda: self._parse(line))

    def _parse_or_damaged(self, line: bytes) -> BlockLocation:
        return _or_damaged(self.path, 0, lambda: self._parse(line))

    def _shard(self, name: str) -> Path:
        if self._shards is None:
            return self._inside(name)
        path = self._shards.get(name)
        if path is None:
            loc = self.path.with_suffix(".loc").name
            raise InputError(
                f"{self.path} speaks of a shard {name!a}, but {loc} does not. Add its line."
            )
        return path

    def _located(self) -> dict[str, Path] | None:
        """Return the path of each shard, as the file `.loc` says; None without one: beside the index."""
        loc = self.path.with_suffix(".loc")
        if not loc.exists():
            return None
        with readable(loc):
            refuse_pipe(loc)
            with loc.open("rb") as stream:
                text = stream.read(_LONGEST_LOC).decode("utf-8", "replace")
        shards: dict[str, Path] = {}
        for number, line in enumerate(text.splitlines(), 1):
            name, *locations = line.split("\t")
            local = [location for location in locations if "://" not in location]
            if not local:
                raise InputError(
                    f"{loc}, line {number}: no location on this machine. Copy the shard here."
                )
            shards[name] = self._inside(local[0])
        return shards

    def _inside(self, location: str) -> Path:
        """Return the file *location*, seen from the index; InputError where that leads out of there."""
        # Links are followed: who may put one there may put there what it leads to.
        root = self.path.parent.absolute()
        path = Path(os.path.normpath(root / location))
        if "\0" in location or root not in path.parents:
            raise InputError(
                f"{self.path} leads to {location!a}, which is not in its directory. Move it there."
            )
        return path


def _runs(blocks: Iterable[BlockLocation]) -> Iterator[list[BlockLocation]]:
    """Yield blocks that lie side by side, as many as are read at once."""
    run: list[BlockLocation] = []
    size = 0
    for block in blocks:
        if run and (
            block.shard != run[-1].shard
            or block.offset != run[-1].offset + run[-1].length
            or len(run) >= BLOCKS_AT_ONCE
            or size + block.length > _BYTES_AT_ONCE
        ):
            yield run
            run, size = [], 0
        run.append(block)
        size += block.length
    if run:
        yield run


def _bytes_of(path: Path, offset: int, length: int) -> bytes:
    try:
        refuse_pipe(path)
        with path.open("rb") as stream:
            found = os.pread(stream.fileno(), length, offset)
    except (OSError, OverflowError) as error:
        raise InputError(f"{path} cannot be read: {error}. Check path and permissions.") from error
    if len(found) < length:
        raise DamagedFileError(path, offset, f"the file ends inside a block of {length} bytes")
    return found


def _or_damaged(path: Path, offset: int, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except ValueError as error:
        raise DamagedFileError(path, offset, str(error)) from error
