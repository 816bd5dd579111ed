"""How a record is stored: the facts of its gzip member, and the digest of its bytes. Reads only."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, NamedTuple, Self

from amicrawl.disk import refuse_pipe
from amicrawl.errors import InputError
from amicrawl.reading.unpacking import GZIP_MAGIC, LZ4_MAGIC, PIECE, ZSTD_MAGIC

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from amicrawl.reading.records import Record

_FIXED_HEADER = 10
_FOOTER = 8
_LOOKED_AT = 1024
_HAS_CRC, _HAS_EXTRA, _HAS_NAME, _HAS_COMMENT = 2, 4, 8, 16


class Member(NamedTuple):
    """A gzip member (RFC 1952)."""

    length: int
    header_length: int
    crc: int
    """CRC-32 that its trailer declares of what it inflates to."""
    inflated_length: int
    """Bytes that its trailer declares, modulo 2**32."""
    name: str
    """The file name in its header; empty if there is none."""


class Container:
    """A file of records, open to be looked at."""

    def __init__(self, path: Path) -> None:
        """Open *path*; InputError where that fails."""
        try:
            refuse_pipe(path)
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            begin = os.pread(self._descriptor, len(ZSTD_MAGIC), 0)
            self.is_compressed = begin.startswith((GZIP_MAGIC, ZSTD_MAGIC, LZ4_MAGIC))
        except OSError as error:
            raise InputError(
                f"{path} cannot be read: {error.strerror or error}. Check path and permissions."
            ) from error

    def member(self, record: Record) -> Member | None:
        """Return the gzip member that *record* begins in, or None where there is no member."""
        if not record.seekable:
            return None
        head = os.pread(self._descriptor, _LOOKED_AT, record.offset)
        if head[:2] != GZIP_MAGIC or record.length < _FIXED_HEADER + _FOOTER:
            return None
        header_length, name = _gzip_header(head)
        footer = os.pread(self._descriptor, _FOOTER, record.offset + record.length - _FOOTER)
        crc, size = int.from_bytes(footer[:4], "little"), int.from_bytes(footer[4:], "little")
        return Member(record.length, header_length, crc, size, name)

    def sha256(self, record: Record) -> str:
        """Return the digest of the bytes that *record* is stored in, `sha256:` and hexadecimal digits.

        Of packed files those of its member, else those of its header and block. Empty where it cannot
        be sought, as what is stored is not its own then.
        """
        if not record.seekable:
            return ""
        digest = hashlib.sha256()
        offset, left = record.offset, record.length
        while left and (piece := os.pread(self._descriptor, min(left, PIECE), offset)):
            digest.update(piece)
            offset, left = offset + len(piece), left - len(piece)
        return "" if left else f"sha256:{digest.hexdigest()}"

    def close(self) -> None:
        """Close it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _gzip_header(head: bytes) -> tuple[int, str]:
    """Return the length of the header that *head* begins with, and the file name in it."""
    flags = head[3]
    position = _FIXED_HEADER
    name = ""
    if flags & _HAS_EXTRA:
        position += 2 + int.from_bytes(head[position : position + 2], "little")
    for flag in (_HAS_NAME, _HAS_COMMENT):
        if flags & flag and (end := head.find(b"\0", position)) >= 0:
            if flag == _HAS_NAME:
                name = head[position:end].decode("latin-1")
            position = end + 1
    return position + (2 if flags & _HAS_CRC else 0), name
