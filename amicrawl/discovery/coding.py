"""Content codings undone, as much as may be looked at: gzip, deflate, br and zstd (RFC 9110, 8.4.1).

Everything is decoded piece by piece and up to a limit, so that a few kilobytes that stand for gigabytes
cost no more than a page of that limit. What is broken is decoded as far as it goes. Pure.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Protocol

import brotli
import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_MOST_CODINGS = 2
"""Nested codings; no honest server sends more."""
_PIECE = 65_536
_WINDOW = 8 << 20
"""Bytes that a zstd frame may require a reader to hold (RFC 8878, 3.1.1.1.2)."""


class _Decoder(Protocol):
    def __call__(self, piece: bytes) -> Iterator[bytes]:
        """Yield what *piece* stands for; raises what the library raises."""


def decoded(blocks: Iterable[bytes], codings: bytes, *, limit: int) -> bytes:
    """Return up to *limit* bytes of *blocks* without the *codings* of its Content-Encoding field.

    Empty where a coding is unknown or there are too many of them.
    """
    if not codings:
        return _up_to(limit, iter(blocks))
    names = [name.strip().lower() for name in codings.split(b",") if name.strip()]
    names = [name for name in names if name != b"identity"]
    if len(names) > _MOST_CODINGS or not all(name in _DECODERS for name in names):
        return b""
    stream = iter(blocks)
    for name in reversed(names):
        stream = _through(stream, _DECODERS[name]())
    return _up_to(limit, stream)


def _up_to(limit: int, stream: Iterator[bytes]) -> bytes:
    pieces: list[bytes] = []
    size = 0
    for piece in stream:
        pieces.append(piece)
        size += len(piece)
        if size >= limit:
            break
    return b"".join(pieces)[:limit]


def _through(stream: Iterator[bytes], decode: _Decoder) -> Iterator[bytes]:
    """Yield what *decode* makes of *stream*, until one of them is at its end or broken."""
    try:
        for block in stream:
            for start in range(0, len(block), _PIECE):
                yield from decode(block[start : start + _PIECE])
    except (zlib.error, brotli.error, zstandard.ZstdError, EOFError, ValueError):
        return  # what could be decoded has been


class _Inflate:
    """gzip, zlib, and the bare deflate that servers also mean by `deflate`."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._decoder = zlib.decompressobj(window)
        self._start: bytes | None = b"" if window == zlib.MAX_WBITS else None
        """Octets that came so far, while they are too few to tell the two kinds of deflate apart."""

    def __call__(self, piece: bytes) -> Iterator[bytes]:
        if self._start is not None:
            piece, self._start = self._start + piece, None
            if len(piece) < 2:
                self._start = piece
                return
            if not _is_zlib(piece):
                self._decoder = zlib.decompressobj(-zlib.MAX_WBITS)
        while piece:
            yield self._decoder.decompress(piece, _PIECE)
            piece = self._decoder.unconsumed_tail
            if self._decoder.eof:
                piece = self._decoder.unused_data
                # A gzip body may have several members; other bytes after its end do not belong to it.
                if self._window <= zlib.MAX_WBITS or not piece.startswith(b"\x1f\x8b"):
                    raise EOFError
                self._decoder = zlib.decompressobj(self._window)


def _is_zlib(piece: bytes) -> bool:
    """Return whether *piece* begins with a header of RFC 1950."""
    return piece[0] & 0x0F == 8 and (piece[0] << 8 | piece[1]) % 31 == 0


class _Brotli:
    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()

    def __call__(self, piece: bytes) -> Iterator[bytes]:
        output = self._decoder.process(piece, output_buffer_limit=_PIECE)
        # It may be ready for more input while there is still output to be had of what it has.
        while output:
            yield output
            if self._decoder.is_finished():
                raise EOFError
            output = self._decoder.process(b"", output_buffer_limit=_PIECE)


class _Zstd:
    """zstd by its buffers: its own streams would make whatever a block stands for at once, 128 KiB."""

    def __init__(self) -> None:
        self._decoder = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()

    def __call__(self, piece: bytes) -> Iterator[bytes]:
        # A block of 4 bytes may stand for 128 KiB: fed in steps, one step stays within megabytes.
        for start in range(0, len(piece), 256):
            yield self._decoder.decompress(piece[start : start + 256])
            if self._decoder.eof:
                raise EOFError


_DECODERS: dict[bytes, Callable[[], _Decoder]] = {
    b"gzip": lambda: _Inflate(16 + zlib.MAX_WBITS),
    b"x-gzip": lambda: _Inflate(16 + zlib.MAX_WBITS),
    b"deflate": lambda: _Inflate(zlib.MAX_WBITS),
    b"br": _Brotli,
    b"zstd": _Zstd,
}
