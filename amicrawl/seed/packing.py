"""Packing: gzip (RFC 1952) and Zstandard (RFC 8878), known by their first bytes, read in a stream.

Bytes in, bytes out; no disk. However well the input was packed, a block that comes out has at most 16
MiB, so that a list of a few kilobytes cannot fill the memory. Several members or frames in a row are one
stream. Data that ends inside one, or does not agree with its checksum, is an `InputError` after the last
block that could be read.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import zstandard
from isal import isal_zlib

from amicrawl.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OUTPUT_BLOCK = 256 * 1024
"""Bytes that unpacked blocks are aimed at."""

_ZSTD_INPUT = 512
"""Bytes given to the Zstandard decoder at once: it knows no limit, and 4 can stand for 128 KiB."""
_ZSTD_WINDOW = 1 << 27
"""Largest window, in bytes, that a frame may ask for: that of `zstd --long`."""
_GZIP = 31
"""The `wbits` of zlib that mean a gzip header and trailer."""


class Packing(StrEnum):
    """How a source is packed."""

    GZIP = "gzip"
    ZSTD = "zstd"


def packing_of(head: bytes) -> Packing | None:
    """Tell from its first four bytes how a source is packed; None where it is not."""
    if head.startswith(b"\x1f\x8b\x08"):
        return Packing.GZIP
    # A skippable frame (RFC 8878, 3.1.2) may come first: pzstd writes one.
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        return Packing.ZSTD
    return None


def unpacked(blocks: Iterable[bytes], packing: Packing, *, name: str) -> Iterator[bytes]:
    """Yield what *blocks* hold; *name* is what the source is called in an InputError."""
    try:
        yield from gunzipped(blocks) if packing is Packing.GZIP else _unzstd(blocks)
    except (isal_zlib.error, zstandard.ZstdError) as error:  # type: ignore[misc]  # the stub has an instance
        raise InputError(
            f"{name} is damaged: its {packing} data does not unpack ({error}). Get a complete copy."
        ) from error
    except EOFError as error:
        raise InputError(
            f"{name} is cut: it ends inside its {packing} data. Get a complete copy."
        ) from error


def gunzipped(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what the gzip members in *blocks* hold; raise EOFError where the last one has no end."""
    member = None
    for block in blocks:
        packed = block
        more = False
        while packed or more:
            if member is None:
                # Padding between and behind members is common: tapes, block devices, old tools.
                packed = packed.lstrip(b"\0")
                if not packed:
                    break
                member = isal_zlib.decompressobj(wbits=_GZIP)
            content = member.decompress(packed, OUTPUT_BLOCK)
            yield content
            if member.eof:
                packed, member, more = member.unused_data, None, False
            else:
                packed, more = member.unconsumed_tail, len(content) == OUTPUT_BLOCK
    if member is not None:
        raise EOFError


def _unzstd(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what the frames in *blocks* hold; raise EOFError where the last one has no end."""
    gathered: list[bytes] = []
    size = 0
    try:
        for piece in _zstd_pieces(blocks):
            gathered.append(piece)
            size += len(piece)
            if size >= OUTPUT_BLOCK:
                yield b"".join(gathered)
                gathered, size = [], 0
    except (EOFError, zstandard.ZstdError):
        yield b"".join(gathered)
        raise
    yield b"".join(gathered)


def _zstd_pieces(blocks: Iterable[bytes]) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    frame = None
    for block in blocks:
        for start in range(0, len(block), _ZSTD_INPUT):
            packed = block[start : start + _ZSTD_INPUT]
            while packed:
                frame = frame or decompressor.decompressobj()
                yield frame.decompress(packed)
                packed, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError
