"""Archives of some kilobytes that stand for gigabytes."""

from __future__ import annotations

import struct

import zstandard

GIB = 1 << 30
RECORD = (
    b"WARC/1.1\r\nWARC-Type: response\r\n"
    b"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>\r\n"
    b"WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: http://127.0.0.1/\r\n"
    b"Content-Type: application/http;msgtype=response\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"
)
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n%b"


def record(body: bytes = b"<p>A page.</p>") -> bytes:
    """Return a WARC record, not packed, of a response with *body*."""
    block = PAGE % body
    return RECORD % (len(block), block)


def zeros(size: int, *, says_size: bool = True) -> bytes:
    """Return a frame of zstd that holds *size* zeros, 4 bytes for 128 KiB, and may say so."""
    count = -(-size // 0x20000)
    blocks = [
        struct.pack("<I", 0x20000 << 3 | 1 << 1 | (number == count - 1))[:3] + b"\0"
        for number in range(count)
    ]
    # One segment, with its size; or a window of 128 KiB (RFC 8878, section 3.1.1.1).
    said = b"\xa0" + struct.pack("<I", count * 0x20000) if says_size else b"\x00\x38"
    return b"\x28\xb5\x2f\xfd" + said + b"".join(blocks)


def with_dictionary(*, says_size: bool) -> bytes:
    """Return a `.warc.zst` whose dictionary unpacks to a GiB: less than a child may map of addresses."""
    frame = zeros(GIB, says_size=says_size)
    return b"\x5d\x2a\x4d\x18" + struct.pack("<I", len(frame)) + frame + zstandard.compress(record())
