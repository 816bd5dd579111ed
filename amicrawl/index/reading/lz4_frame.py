"""LZ4 frames: where one ends, and what it stands for.

    magic | flags, sizes, checksum | blocks: length u32 LE, data [checksum] | 0 u32 | [checksum of all]

What comes out of a frame is told by fastwarc's reader, which checks what checksums there are. It does
not tell where in the file a frame ends, so the lengths of the blocks are followed here. A frame is held
until it is whole; what it stands for is handed out in pieces.
"""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

MAGIC = b"\x04\x22\x4d\x18"
LONGEST = 256 << 20
"""Bytes of a frame that are held; one that is longer cannot be had."""

_FIXED = 7
_HAS_DICTIONARY, _HAS_CHECKSUM, _HAS_SIZE, _BLOCKS_HAVE_CHECKSUMS = 1, 4, 8, 16
_STORED = 1 << 31
_FIRST_LITERALS = 64


class Lz4Frame:
    """Decodes one frame, with the interface of the decoders of `zlib`."""

    def __init__(self, piece: int) -> None:
        """Give no more than *piece* bytes at a time, and one besides."""
        self.eof = False
        self.unused_data = b""
        self._piece = piece
        self._held = bytearray()
        self._place: int | None = None
        """Where the next block's length stands; None while the header is not whole."""
        self._reader: Any = None

    def decompress(self, data: bytes | memoryview) -> bytes:
        """Return some of what the frame stands for, of which *data* are the next bytes.

        Raises ValueError where it is no frame, OSError where it is damaged.
        """
        given = bytes(data)
        if self._reader is None:
            before = len(self._held)
            self._held += given
            end = self._end()
            if end is None:
                self.unused_data = b""
                return b""
            given = given[end - before - 1 :]
            del self._held[end:]
            # Few files are packed so, and no others should wait for it to load.
            self._reader = import_module("fastwarc.stream_io").Lz4Reader(io.BytesIO(self._held))
        # The last byte of the frame is taken when all has been handed out; till then there is more.
        found = self._read(self._piece + 1)
        self.eof = len(found) <= self._piece
        self.unused_data = given[1:] if self.eof else given
        return found

    def _read(self, count: int) -> bytes:
        parts: list[bytes] = []
        while count and (part := self._reader.read(count)):
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _end(self) -> int | None:
        """Return where the frame ends in what is held; None while that is not seen."""
        held = self._held
        if len(held) < _FIXED:
            return None
        flags = held[4]
        if self._place is None:
            if not held.startswith(MAGIC) or flags >> 6 != 1:
                raise ValueError("no LZ4 frame of version 1")
            self._place = (
                _FIXED + (8 if flags & _HAS_SIZE else 0) + (4 if flags & _HAS_DICTIONARY else 0)
            )
        while len(held) >= self._place + 4:
            length = int.from_bytes(held[self._place : self._place + 4], "little")
            if not length:
                end = self._place + (8 if flags & _HAS_CHECKSUM else 4)
                return end if len(held) >= end else None
            checksum = 4 if flags & _BLOCKS_HAVE_CHECKSUMS else 0
            self._place += 4 + (length & ~_STORED) + checksum
        if self._place > LONGEST:
            raise ValueError(f"longer than {LONGEST >> 20} MiB")
        return None


def first_literals(begin: bytes) -> bytes:
    """Return the bytes among which those stand that the frame that *begin* begins with begins with.

    A block begins with what is not repeated, as it stands; so a record is known by it without decoding.
    """
    return begin[_FIXED + 4 : _FIRST_LITERALS]
