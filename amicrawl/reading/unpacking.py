"""A file's bytes with its compression taken off, and where in the file each of them came from.

What comes out is a stream of pieces. Each says at which byte of the file its unit begins (a gzip member,
a frame of zstd; in a file that is not packed, the piece) and, with its last piece, where it ends.
Where a unit is damaged, a piece without bytes carries the reason, and the stream continues with the
next unit that begins like an archive record: what is between is lost, and reported.

Memory is bounded, whatever a unit inflates to. Reads only.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple, Protocol

import zstandard
from isal import isal_zlib

from amicrawl.reading.framing import next_warc

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import BinaryIO


GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = tuple(b"%c\x2a\x4d\x18" % number for number in range(0x50, 0x60))
ZSTD_BEGINS = (ZSTD_MAGIC, *_ZSTD_SKIPPABLE)
"""How what is packed with Zstandard begins: with a frame, or one to be skipped, as its dictionary is."""
_PARQUET = b"PAR1"
"""How Parquet begins, whose pages may be zstd frames."""
LZ4_MAGIC = b"\x04\x22\x4d\x18"
_IS_LZ4 = "the file is compressed with LZ4, which is not supported; decompress it with lz4 -d"
PIECE = 1 << 20
"""Bytes that a piece has at most."""
_READ = 128 << 10
"""Bytes of a packed file that are read at a time; larger blocks go back to the system each time."""

_GZIP_BEGIN = re.compile(rb"\x1f\x8b\x08[\x00-\x1f]")
_ZSTD_BEGIN = re.compile(rb"\x28\xb5\x2f\xfd")
_RECORD_BEGIN = re.compile(rb"\s*(?:WARC/[0-9]|[A-Za-z][A-Za-z0-9+.-]*:\S* )")
_ZEROS = re.compile(rb"\0*")
_DICTIONARY_FRAME = b"\x5d\x2a\x4d\x18"
_LONGEST_DICTIONARY = 64 << 20
_WINDOW = 31
_ZSTD_WINDOW = 1 << 27
_GZIP_FEED = 16 * 1024
_SMALL_FEED = 4 * 1024
_ZSTD_FEED = 1024  # may stand for 32 MiB
_PROBE = 64
_PROBED_FREELY = 4 << 20
_PROBED_EACH = 16
_SMALL_BEGINNING = 1 << 10
_INFLATION_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # by its stub, an instance
_ERRORS = (_INFLATION_ERROR, zstandard.ZstdError, EOFError, OSError, ValueError)


class Piece(NamedTuple):
    """Some bytes in a row."""

    offset: int
    """Where in the file the unit begins that they are of."""
    data: bytes
    end: int
    """Where the unit ends, with its last piece; -1 with any other. Of a filling, where that ends."""
    fault: str
    """Why the rest of the unit cannot be had; empty where it can. The offset then is the unit's."""


class _UnitDecoder(Protocol):
    """What inflates one unit."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes | memoryview) -> bytes:
        """Return what *data* stands for."""


def unpacked(stream: BinaryIO) -> tuple[bool, Iterator[Piece]]:
    """Return whether *stream*, from its beginning on, is packed, and return its pieces.

    Between two pieces the stream may be used, if its position is put back.
    """
    begin = stream.read(PIECE)
    if begin.startswith(LZ4_MAGIC):
        return True, iter([Piece(0, b"", -1, _IS_LZ4)])
    packing = _packing_of(begin)
    if packing is None:
        return False, _plain(stream, begin)
    return True, _Units(stream, begin, packing).pieces()


def _packing_of(begin: bytes) -> _Gzip | _ZstdFrames | None:
    if begin.startswith(GZIP_MAGIC):
        return _Gzip()
    if begin.startswith(ZSTD_BEGINS):
        return _ZstdFrames()
    if _RECORD_BEGIN.match(begin) or begin.startswith(_PARQUET):
        return None
    # It begins with nothing known. If just that is damaged, what follows shows how it is packed.
    found = [packing for packing in (_Gzip(), _ZstdFrames()) if packing.begin.search(begin)]
    record = next_warc(begin)
    if record >= 0:
        # It may be in a unit that begins before it: a picture is hardly packed, nor its header.
        found = [each for each in found if _Units(BytesIO(), begin, each).first_record() < record]
    return found[0] if found else None


def _plain(stream: BinaryIO, begin: bytes) -> Iterator[Piece]:
    offset, data = 0, begin
    while data:
        yield Piece(offset, data, -1, "")
        offset += len(data)
        data = stream.read(PIECE)


class _Gzip:
    """Gzip, one member a unit."""

    name = "gzip member"
    begin = _GZIP_BEGIN
    beginning = 4 << 10
    """Bytes of a unit that show how what is in it begins."""

    def __init__(self, feed: int = _GZIP_FEED) -> None:
        self.feed = feed

    def decoder(self) -> _UnitDecoder:
        return isal_zlib.decompressobj(_WINDOW)


class _ZstdFrames:
    """Zstandard, one frame a unit; a `.warc.zst` may have its dictionary in a frame before them."""

    name = "zstd frame"
    begin = _ZSTD_BEGIN
    feed = _ZSTD_FEED
    beginning = 132 << 10
    """As above: what is in a block, of up to 128 KiB, comes out once the block is whole."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)

    def decoder(self) -> _UnitDecoder:
        return self._decompressor.decompressobj()  # type: ignore[return-value]

    def take_dictionary(self, frame: bytes) -> None:
        if frame.startswith(ZSTD_MAGIC):
            # In a stream: `decompress` heeds no limit where the frame says how long its content is.
            opener = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
            frame = opener.stream_reader(frame).read(_LONGEST_DICTIONARY + 1)
            if len(frame) > _LONGEST_DICTIONARY:
                raise ValueError(f"it unpacks to more than {_LONGEST_DICTIONARY >> 20} MiB")
        self._decompressor = zstandard.ZstdDecompressor(
            dict_data=zstandard.ZstdCompressionDict(frame), max_window_size=_ZSTD_WINDOW
        )


def gzip_pieces(stream: BinaryIO, start: int) -> Iterator[Piece]:
    """Return the pieces of the gzip members of *stream* from byte *start* on, where one begins.

    It takes a quarter of the memory of `unpacked`, since a crawl that resumes has other uses for it.
    """
    stream.seek(start)
    return _Units(stream, b"", _Gzip(_SMALL_FEED), base=start, gathered=0).pieces()


class _Units:
    """The units of a packed file, one after the other."""

    def __init__(
        self,
        stream: BinaryIO,
        begin: bytes,
        packing: _Gzip | _ZstdFrames,
        *,
        base: int = 0,
        gathered: int = PIECE,
    ) -> None:
        self._stream = stream
        self._packing = packing
        self._buffer = begin
        self._view = memoryview(begin)
        self._at = 0
        self._base = base
        """Offset in the file of the buffer's first byte."""
        self._gathered = gathered
        """Bytes of a unit from which on they are handed on before all are there."""
        self._probed = 0
        """Bytes that were inflated to see whether a record begins there."""

    def first_record(self) -> int:
        """Return where the first unit is that begins like a record; the end where none does."""
        self._seek_next(0)
        return self._base + self._at

    def pieces(self) -> Iterator[Piece]:
        begins, feed, decoder_of = self._packing.begin.match, self._packing.feed, self._packing.decoder
        while len(self._buffer) - self._at >= feed or self._fill(4) or self._at < len(self._buffer):
            at = self._at
            offset = self._base + at
            if begins(self._buffer, at):
                decoder = decoder_of()
                fault = ""
                if len(self._buffer) - at >= feed:
                    # Nearly all units come at once; those do without any call that can be saved.
                    try:
                        data = decoder.decompress(self._view[at : at + feed])
                    except _ERRORS as error:
                        data, fault = b"", self._damaged(error)
                    else:
                        self._at = at + feed - len(decoder.unused_data)
                else:
                    data, fault = self._some(decoder)
                if decoder.eof and not fault and len(data) <= PIECE:
                    yield Piece(offset, data, self._base + self._at, "")
                    continue
                fault = fault or (yield from self._unit(offset, decoder, data))
            elif isinstance(self._packing, _ZstdFrames) and self._buffer.startswith(_ZSTD_SKIPPABLE, at):
                fault = self._skip(self._packing)
            elif self._buffer[at] == 0:
                yield self._filling()
                continue
            else:
                fault = f"no {self._packing.name} begins here"
            if fault:
                yield Piece(offset, b"", -1, fault)
                self._seek_next(offset + 1)

    def _filling(self) -> Piece:
        """Pass over zeros, with which some tools fill up blocks; return the news of them."""
        offset = self._base + self._at
        while self._at < len(self._buffer) or self._fill(1):
            self._at = _ZEROS.match(self._buffer, self._at).end()  # type: ignore[union-attr]  # of none
            if self._at < len(self._buffer):
                break
        reason = f"no {self._packing.name} begins here, but zeros do, which were passed over"
        return Piece(offset, b"", self._base + self._at, reason)

    def _unit(self, offset: int, decoder: _UnitDecoder, data: bytes) -> Generator[Piece, None, str]:
        """Yield the unit at *offset*, which begins with *data*; return why it is not whole.

        It is gathered as far as a piece may go, since a record that comes as one is taken at a glance.
        """
        begun: list[bytes] = []
        size, fault = len(data), ""
        while not decoder.eof and not fault and size <= self._gathered:
            begun.append(data)
            data, fault = self._some(decoder)
            size += len(data)
        if begun and decoder.eof and size <= PIECE:
            begun, data = [], b"".join([*begun, data])
        for part in begun:
            yield Piece(offset, part, -1, "")
        while not fault:
            last = max(len(data) - PIECE, 0)
            for start in range(0, len(data) or decoder.eof, PIECE):
                end = self._base + self._at if decoder.eof and start >= last else -1
                yield Piece(offset, data[start : start + PIECE], end, "")
            if decoder.eof:
                break
            data, fault = self._some(decoder)
        return fault

    def _some(self, decoder: _UnitDecoder) -> tuple[bytes, str]:
        """Inflate the next bytes; return what they stand for, or why they stand for nothing."""
        feed = self._packing.feed
        if (
            len(self._buffer) - self._at < feed
            and not self._fill(feed)
            and self._at >= len(self._buffer)
        ):
            return b"", f"the file ends inside a {self._packing.name}"
        block = self._view[self._at : self._at + feed]
        try:
            data = decoder.decompress(block)
        except _ERRORS as error:
            return b"", self._damaged(error)
        self._at += len(block) - len(decoder.unused_data)
        return data, ""

    def _damaged(self, error: Exception) -> str:
        return f"a {self._packing.name} is damaged ({error})"

    def _skip(self, packing: _ZstdFrames) -> str:
        """Pass over a skippable zstd frame, and take it where it is the dictionary."""
        if not self._fill(8):
            return "the file ends inside a zstd frame"
        begin = self._buffer[self._at : self._at + 4]
        length = int.from_bytes(self._view[self._at + 4 : self._at + 8], "little")
        offset = self._base + self._at
        if begin == _DICTIONARY_FRAME and offset == 0:
            if length > _LONGEST_DICTIONARY or not self._fill(8 + length):
                return "the dictionary is longer than 64 MiB, or cut"
            try:
                packing.take_dictionary(bytes(self._view[self._at + 8 : self._at + 8 + length]))
            except _ERRORS as error:
                return f"the dictionary is damaged ({error})"
        self._seek(offset + 8 + length)
        return ""

    def _seek_next(self, offset: int) -> None:
        """Turn to the first unit from *offset* on that begins like a record of an archive."""
        self._seek(offset)
        while self._fill(_GZIP_FEED) or self._at < len(self._buffer):
            match = self._packing.begin.search(self._buffer, self._at)
            if match is None:
                self._at = max(self._at, len(self._buffer) - 3)
                if not self._fill(4):
                    self._at = len(self._buffer)
                continue
            self._at = match.start()
            self._fill(self._packing.beginning)
            if self._begins_a_record():
                return
            self._at += 1

    def _begins_a_record(self) -> bool:
        decoder = self._packing.decoder()
        begin, at, step = b"", self._at, _PROBE
        # A megabyte can hold a hundred thousand beginnings of units, each of which would be inflated.
        is_usual = self._probed < _PROBED_FREELY + _PROBED_EACH * (self._base + at)
        end = min(at + (self._packing.beginning if is_usual else _SMALL_BEGINNING), len(self._buffer))
        try:
            while at < end and len(begin) < _PROBE and not decoder.eof:
                begin += decoder.decompress(self._view[at : min(at + step, end)])
                at, step = at + step, min(2 * step, self._packing.feed)
        except _ERRORS:
            pass
        self._probed += at - self._at
        return _RECORD_BEGIN.match(begin) is not None

    def _seek(self, offset: int) -> None:
        if self._base <= offset <= self._base + len(self._buffer):
            self._at = offset - self._base
            return
        self._stream.seek(offset)
        self._base, self._at, self._buffer = offset, 0, b""
        self._view = memoryview(b"")

    def _fill(self, count: int) -> bool:
        """See to it that *count* bytes are at hand; False where the file has not so many."""
        if len(self._buffer) - self._at >= count:
            return True
        self._buffer = self._buffer[self._at :] + self._stream.read(max(_READ, count))
        self._view = memoryview(self._buffer)
        self._base += self._at
        self._at = 0
        return len(self._buffer) >= count
