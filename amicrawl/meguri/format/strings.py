r"""The string arena: URLs, ETags, host names and robots.txt bodies, each at the offset in a `_ref`.

    00 | uvarint length, octets | uvarint length, octets | ...

Offset 0 is none. A reference that leads nowhere reads as absent, never as an error: files of other
software hold such references. Directly behind a URL or an ETag there may be one more entry, whose octets
begin with 00 61: its annex, compact JSON with what the columns have no room for. No string of theirs
begins so, and software that knows nothing of annexes passes over them.

A robots.txt body is packed in the arena: one octet for the mode, then the body as that says.

The strings of a file are one page, whose length is a number of 32 bits. Where there are more, further
files go on where the strings of the first end. They are frontier files without rows:

    snap-2.meguri             rows, schedule and seen-set, and the first 4 GiB of strings
    snap-2.strings-1.meguri   the next 4 GiB; -2 and so on follow

References count from the first octet of the first file on. Its metadata has the checksums of the string
regions of the others, and it gets its name last: it is whole only together with just those. To other
software a reference beyond the first file leads nowhere, which reads as absent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import zstandard

from amicrawl.meguri.format.faults import FileFault, Malformed
from amicrawl.meguri.format.schema import EMPTY_ARENA, Codec
from amicrawl.meguri.format.varints import write_uvarint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    Meta = Iterable[tuple[bytes, bytes]]

ANNEX_MARK = b"\0a"
"""What the octets of an annex begin with; the JSON follows."""

MOST_ROBOTS_BYTES = 8 << 20
"""A robots.txt body that unpacks to more is refused; crawlers read far less of one."""

MOST_OVERLAP = 16
"""Strings that together take more octets than so many arenas are not read: a small file of overlapping
strings could otherwise fill any memory."""

SMALL = 1 << 20
"""Octets of strings that are read whatever the arena."""

_ALLOW_ALL, _RAW, _COMPRESSED = 0, 1, 2
_SLICE = 256  # bytes decompressed at a time: no block in so few can unpack to more than 8 MiB
_ROUNDS = 10  # the most octets that a 64-bit number takes


def string_at(arena: bytes | memoryview, ref: int) -> bytes | None:
    """Return the string at *ref*; None for 0, and for what leads nowhere or overruns the arena."""
    span = None if ref == 0 else _span(arena, ref)
    return None if span is None else bytes(arena[span[0] : span[1]])


def annex_at(arena: bytes | memoryview, ref: int) -> bytes | None:
    """Return the JSON in the annex of the string at *ref*, or None where that has none."""
    span = None if ref == 0 else _span(arena, ref)
    behind = None if span is None else _span(arena, span[1])
    if behind is None:
        return None
    entry = bytes(arena[behind[0] : behind[1]])
    return entry.removeprefix(ANNEX_MARK) if entry.startswith(ANNEX_MARK) else None


def _span(arena: bytes | memoryview, at: int) -> tuple[int, int] | None:
    """Return where the octets of the entry at *at* begin and end."""
    length = 0
    for number in range(_ROUNDS):
        if at >= len(arena):
            return None
        octet = arena[at]
        at += 1
        length |= (octet & 0x7F) << 7 * number
        if octet < 0x80:
            # A number of more than 64 bits overruns every arena, so it needs no check of its own.
            return (at, at + length) if length <= len(arena) - at else None
    return None


def spans(arena: bytes | memoryview, refs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the strings at *refs* begin, and their lengths: -1 for what reads as absent."""
    octets = np.frombuffer(arena, np.uint8)
    size = octets.size
    starts = np.zeros(len(refs), np.int64)
    lengths = np.full(len(refs), -1, np.int64)
    rows = np.flatnonzero((refs != 0) & (refs < size))
    at = refs[rows].astype(np.int64)
    value = np.zeros(len(rows), np.uint64)
    for number in range(_ROUNDS):
        inside = at < size
        if not inside.all():
            rows, at, value = rows[inside], at[inside], value[inside]
        if not len(rows):
            break
        octet = octets[at]
        at += 1
        # Beyond its last bit a number overflows: it is not a length.
        broken = octet > 1 if number == _ROUNDS - 1 else np.zeros(len(rows), np.bool_)
        value |= (octet & 0x7F).astype(np.uint64) << np.uint64(7 * number)
        last = octet < 0x80
        fits = last & ~broken & (value <= (size - at).astype(np.uint64))
        starts[rows[fits]] = at[fits]
        lengths[rows[fits]] = value[fits].astype(np.int64)
        rows, at, value = rows[~last], at[~last], value[~last]
    return starts, lengths


def annex_spans(
    arena: bytes | memoryview, starts: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the JSON in the annexes of strings begins, and its lengths: -1 where there is none.

    *starts* and *lengths* are what `spans` returned for the strings.
    """
    behind = np.where(lengths >= 0, starts + lengths, 0).astype(np.uint64)
    begins, sizes = spans(arena, behind)
    octets = np.frombuffer(arena, np.uint8)
    rows = np.flatnonzero(sizes >= len(ANNEX_MARK))
    marked = rows[(octets[begins[rows]] == ANNEX_MARK[0]) & (octets[begins[rows] + 1] == ANNEX_MARK[1])]
    found = np.full(len(lengths), -1, np.int64)
    found[marked] = sizes[marked] - len(ANNEX_MARK)
    return begins + len(ANNEX_MARK), found


class ArenaBuilder:
    """An arena that is being filled."""

    def __init__(self, *, shared: bool = True) -> None:
        """Begin with an empty one; if *shared*, strings of one content are stored once."""
        self._octets = bytearray(EMPTY_ARENA)
        self._known: dict[bytes | tuple[bytes, bytes], int] | None = {} if shared else None

    def __len__(self) -> int:
        return len(self._octets)

    def arena(self) -> bytes:
        """Return what was put in so far."""
        return bytes(self._octets)

    def add(self, string: bytes, annex: bytes | None = None) -> int:
        """Put *string* in, its *annex* directly behind it, and return its offset.

        One copy is shared only by strings that agree in their annexes too.
        """
        key = string if annex is None else (string, annex)
        known = self._known
        if known is not None:
            ref = known.get(key)
            if ref is not None:
                return ref
        ref = self._append(string)
        if annex is not None:
            self._write(ANNEX_MARK + annex)
        if known is not None:
            known[key] = ref
        return ref

    def _append(self, string: bytes) -> int:
        if string.startswith(ANNEX_MARK):
            # It would read as the annex of the string before it; an empty entry keeps them apart.
            self._octets.append(0)
        ref = len(self._octets)
        self._write(string)
        return ref

    def _write(self, entry: bytes) -> None:
        self._octets += write_uvarint(len(entry))
        self._octets += entry

    def carry(self, arena: bytes | memoryview, refs: np.ndarray) -> np.ndarray:
        """Put in the strings of another *arena* at *refs*, in that order, and return their new offsets.

        What reads as absent becomes 0. Annexes travel with their strings. Raises Malformed where the
        strings overlap beyond reason.
        """
        offsets = np.zeros(len(refs), np.uint64)
        rows = np.flatnonzero(refs)
        distinct, first, inverse = np.unique(refs[rows], return_index=True, return_inverse=True)
        order = np.argsort(first)
        added = np.zeros(len(distinct), np.uint64)
        added[order] = np.fromiter(self._added(arena, distinct[order]), np.uint64, len(order))
        offsets[rows] = added[inverse]
        return offsets

    def _added(self, arena: bytes | memoryview, refs: np.ndarray) -> Iterator[int]:
        starts, lengths = spans(arena, refs)
        begins, sizes = annex_spans(arena, starts, lengths)
        octets = int(lengths.clip(0).sum()) + int(sizes.clip(0).sum())
        if octets > MOST_OVERLAP * len(arena) + SMALL:
            raise Malformed("its strings overlap each other, so that they cannot be copied apart")
        annexed = np.flatnonzero(sizes >= 0)
        # A copy, unless it is bytes already: a slice of a view takes three times as long.
        whole = bytes(arena)
        annexes = {
            number: whole[begin : begin + size]
            for number, begin, size in zip(
                annexed.tolist(), begins[annexed].tolist(), sizes[annexed].tolist(), strict=True
            )
        }
        add = self.add
        ends = starts + lengths
        for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            yield add(whole[start:end], annexes.get(number)) if end >= start else 0


def pack_robots(body: bytes, codec: Codec) -> bytes:
    """Return what the arena holds for a robots.txt *body* in a file whose pages *codec* compresses."""
    if not body:
        return bytes([_ALLOW_ALL])
    if codec is Codec.ZSTD:
        compressed = zstandard.ZstdCompressor(write_checksum=True).compress(body)
        if len(compressed) < len(body):
            return bytes([_COMPRESSED]) + compressed
    return bytes([_RAW]) + body


def unpack_robots(blob: bytes, codec: Codec) -> bytes:
    """Return the robots.txt body in *blob*, of a file with *codec*; Malformed for anything else."""
    if not blob:
        raise Malformed("a robots.txt entry is empty, without even its mode")
    mode, packed = blob[0], blob[1:]
    if mode == _ALLOW_ALL:
        if packed:
            raise Malformed(f"{len(packed)} bytes follow a robots.txt entry that allows all", at=1)
        return b""
    if mode == _RAW:
        return packed
    if mode == _COMPRESSED:
        return _decompressed(packed) if codec is Codec.ZSTD else packed
    raise Malformed(f"a robots.txt entry is packed in the unknown way {mode}")


def raw_robots(blob: bytes) -> bytes | None:
    """Return the entry *blob*, if it is of a compressed body, as a file without compression has it."""
    if not blob.startswith(bytes([_COMPRESSED])):
        return None
    try:
        return pack_robots(unpack_robots(blob, Codec.ZSTD), Codec.NONE)
    except Malformed:
        return None


def _decompressed(packed: bytes) -> bytes:
    opened = zstandard.ZstdDecompressor(max_window_size=MOST_ROBOTS_BYTES).decompressobj()
    body = bytearray()
    try:
        for at in range(0, len(packed), _SLICE):
            if opened.eof:
                break
            body += opened.decompress(packed[at : at + _SLICE])
            if len(body) > MOST_ROBOTS_BYTES:
                raise Malformed(
                    "a robots.txt entry unpacks to too much", fault=FileFault.DECOMPRESSION, at=1
                )
    except zstandard.ZstdError as error:
        raise Malformed(f"a robots.txt entry: {error}", fault=FileFault.DECOMPRESSION, at=1) from error
    if not opened.eof:
        raise Malformed("a robots.txt entry ends early", fault=FileFault.DECOMPRESSION, at=1)
    return bytes(body)


FURTHER: Final = b"amicrawl.strings"
"""The metadata key of a first file, which says what is in the others."""
BEGIN: Final = b"amicrawl.strings_from"
"""The metadata key of the others, which says how many octets of strings are in the files before."""
NAMED: Final = r"\.strings-[1-9][0-9]{0,3}"
"""What the name of a further file has before its ending, as a regular expression."""
_EACH = re.compile(rb"[0-9a-f]{8}")


def further_path(path: Path, number: int) -> Path:
    """Return where the file *number*, from 1 on, behind the first one in *path* lies."""
    return path.with_name(f"{path.stem}.strings-{number}{path.suffix}")


def meta_with(meta: Meta, checksums: Sequence[int]) -> tuple[tuple[bytes, bytes], ...]:
    """Return *meta*, sorted, as the first file has it that others with these *checksums* follow."""
    said = [(FURTHER, b" ".join(b"%08x" % each for each in checksums))] if checksums else []
    return tuple(sorted((*meta_without(meta), *said)))


def meta_without(meta: Meta) -> tuple[tuple[bytes, bytes], ...]:
    """Return what *meta* says of the partition, and not of its files."""
    return tuple(pair for pair in meta if pair[0] != FURTHER)


def checksums_in(meta: Meta) -> tuple[int, ...]:
    """Return what *meta*, of a first file, says of the others; Malformed where that cannot be read."""
    said = dict(meta).get(FURTHER)
    each = () if said is None else said.split(b" ")
    if not all(map(_EACH.fullmatch, each)):
        raise Malformed(f"what it says of further files cannot be read: {said!r:.80}")
    return tuple(int(digits, 16) for digits in each)
