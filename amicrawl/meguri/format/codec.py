"""Block codecs: how the payload of a page is compressed, and which blocks a reader accepts.

Nothing (`Codec.NONE`), or one Zstandard frame (RFC 8878) with a content checksum; an empty payload is
compressed to nothing at all, not even a frame. The caller that opens a block gives the length of its
content: no more memory is reserved, whatever the frame says. The same content gives the same bytes as
long as the zstd library stays the same; another version may compress differently.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final, cast

import zstandard

from amicrawl.meguri.format.faults import FileFault, Malformed
from amicrawl.meguri.format.schema import Codec

if TYPE_CHECKING:
    from collections.abc import Iterator

LEVEL: Final = 3
"""Of compression."""

MOST_WINDOW: Final = 1 << 27
"""Bytes a frame may have a streaming reader keep: what the zstd tools allow too."""

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_BLOCK_LIMIT: Final = 1 << 17
"""Most content of a block inside a frame (RFC 8878, section 3.1.1.2.4)."""

_REPEATED_BYTE: Final = 1
"""The type of a block that is one byte and how often it comes."""

_PIECE: Final = 1 << 20
"""Bytes of content that are compressed or opened at once while streaming."""


class Compressor:
    """Compresses payloads one after the other. Not for several threads at once."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self._zstd = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=True)

    def compress(self, payload: bytes | memoryview) -> bytes | memoryview:
        """Return *payload* as it is stored in a page."""
        if self.codec is Codec.NONE or not len(payload):
            return payload
        return self._zstd.compress(payload)

    def stream(self, blocks: Iterator[bytes | memoryview], size: int) -> Iterator[bytes | memoryview]:
        """Yield, piece by piece, what `compress` would make of *blocks* joined, *size* bytes in all."""
        if self.codec is Codec.NONE or not size:
            yield from blocks
            return
        frame = self._zstd.compressobj(size=size)
        for block in blocks:
            for first in range(0, len(block), _PIECE):
                compressed = frame.compress(block[first : first + _PIECE])
                if compressed:
                    yield compressed
        yield frame.flush()


def fewest_bytes(codec: Codec, size: int) -> int:
    """Return how short a payload of *size* bytes can possibly become."""
    if codec is Codec.NONE or not size:
        return size
    # Magic, descriptor, a byte of window or size, checksum; then blocks of a header and at least a byte.
    return 10 + 4 * -(-size // _BLOCK_LIMIT)


def decompress(codec: Codec, block: bytes, size: int) -> bytes:
    """Return the content of *block*, which must be *size* bytes.

    Raises `Malformed`: a decompression fault where the frame is broken, cut or has something behind it,
    a corrupt block where it is sound but holds more or less than *size* bytes.
    """
    if codec is Codec.NONE or not block:
        _check_length(len(block), size)
        return block
    frame = _ZstdFrame(iter(()))
    frame.add(block)
    frame.finish()
    opener = zstandard.ZstdDecompressor(max_window_size=MOST_WINDOW)
    try:
        if frame.content_size is not None:
            _check_length(frame.content_size, size)
            return opener.decompress(block)
        # A byte more than there should be shows that there is more.
        content = opener.stream_reader(block).read(size + 1)
    except zstandard.ZstdError as error:
        raise _unopened(error) from error
    _check_length(len(content), size)
    return content


def decompressed(codec: Codec, blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield the content of *blocks* joined, piece by piece; the faults are those of `decompress`.

    What was yielded before a fault was found is not to be trusted.
    """
    got = 0
    for piece in blocks if codec is Codec.NONE else _opened(_ZstdFrame(blocks)):
        got += len(piece)
        if got > size:
            _check_length(got, size)
        yield piece
    _check_length(got, size)


def _opened(frame: _ZstdFrame) -> Iterator[bytes]:
    """Yield the content of *frame* in pieces of limited size, however well it is compressed."""
    opener = zstandard.ZstdDecompressor(max_window_size=MOST_WINDOW)
    try:
        with opener.stream_reader(cast("IO[bytes]", frame), closefd=False) as content:
            while piece := content.read(_PIECE):
                yield piece
    except zstandard.ZstdError as error:
        raise _unopened(error) from error
    # The reader stops behind the frame; whether anything follows shows in what it has not read.
    while frame.read(_PIECE):
        pass


class _ZstdFrame:
    """One Zstandard frame, a file to read from that is checked to hold just that."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._unread = b""
        self._seen = 0
        self._next = -1
        """Where the next block of the frame begins, or the frame ends."""
        self._tail = 0
        self._whole = False
        self._carried = b""
        self.content_size: int | None = None
        """Bytes of content, if the frame says."""

    def read(self, most: int = _PIECE) -> bytes:
        """Return the next bytes, *most* at most, none at the end; Malformed where the frame is not."""
        if not self._unread:
            self._unread = next(self._blocks, b"")
            if not self._unread:
                self.finish()
            self.add(self._unread)
        given, self._unread = self._unread[:most], self._unread[most:]
        return given

    def add(self, octets: bytes) -> None:
        """Look at the next *octets*."""
        begin = self._seen - len(self._carried)
        self._seen += len(octets)
        octets = self._carried + octets
        if self._next < 0 and octets:
            self._begin(octets)
        while not self._whole and self._next + 3 <= self._seen:
            at = self._next - begin
            header = int.from_bytes(octets[at : at + 3], "little")
            self._whole, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
            self._next += (
                3 + (1 if kind == _REPEATED_BYTE else length) + (self._tail if self._whole else 0)
            )
        rest = octets[self._next - begin :] if self._next < self._seen else b""
        if rest and self._whole:
            raise _trailing(rest)
        self._carried = rest

    def _begin(self, octets: bytes) -> None:
        if not octets.startswith(_MAGIC):
            raise Malformed("is not a Zstandard frame", fault=FileFault.DECOMPRESSION)
        try:
            frame = zstandard.get_frame_parameters(octets)
            self._next = zstandard.frame_header_size(octets)
        except zstandard.ZstdError as error:
            raise _unopened(error) from error
        if frame.dict_id:
            raise Malformed("needs a dictionary", fault=FileFault.DECOMPRESSION)
        self._tail = 4 if frame.has_checksum else 0
        if frame.content_size != zstandard.CONTENTSIZE_UNKNOWN:
            self.content_size = int(frame.content_size)

    def finish(self) -> None:
        """Take note that nothing follows; Malformed where the frame is not at its end."""
        if self._seen and (not self._whole or self._seen < self._next):
            raise Malformed("the compressed bytes are cut off", fault=FileFault.DECOMPRESSION)


def _check_length(length: int, size: int) -> None:
    if length != size:
        message = (
            f"holds {length} bytes instead of {size}"
            if length < size
            else f"holds more than {size} bytes"
        )
        raise Malformed(message)


def _trailing(rest: bytes) -> Malformed:
    if rest.startswith(_MAGIC):
        return Malformed("a second frame follows the first")
    return Malformed("something follows the compressed bytes", fault=FileFault.DECOMPRESSION)


def _unopened(error: zstandard.ZstdError) -> Malformed:
    return Malformed(f"cannot be decompressed: {error}", fault=FileFault.DECOMPRESSION)
