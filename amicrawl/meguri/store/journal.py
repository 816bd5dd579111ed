"""Journal: the changes of a partition, appended to one log file.

A log is created and appended to by one process only: after a restart its torn tail is cut off, and the
next journal writes a log of its own. So no frame can follow torn bytes.

`append` is for one thread and touches no disk. `flush` and `sync` may be called from another thread
meanwhile; what is appended during one goes with the next. After the first OutputError every call raises
it again: it is not known how much was written, and nothing may be written behind a hole.

What is appended, checked and replayed is a frame:

    +--------+------+------------+--------------+-----+-------+---------------------------+
    | LSN    | kind | key length | value length | key | value | CRC32C of all before it   |
    | u64 LE | u8   | u8         | u32 LE       |     |       | u32 LE                    |
    +--------+------+------------+--------------+-----+-------+---------------------------+

A frame is the whole new state of a URL or host (key and value are the octets of `schema.ROW` or
`schema.HOST_ROW`), the removal of one (bit 7 of the kind, no value), or the octets that were appended
to the string arena. LSNs count frames from 1 and never skip one: a frame is intact only if it is the
next. What is intact behind damage is for `logs` to find.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from itertools import chain
from operator import add
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, Final

from google_crc32c import value as crc32c

from amicrawl.disk import Trust, explained
from amicrawl.meguri.format.faults import FileFault, Malformed
from amicrawl.meguri.format.schema import HOST_ROW, ROW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from mmap import mmap
    from pathlib import Path

    from amicrawl.disk import Disk


class FrameKind(IntEnum):
    """What a frame is about."""

    URL = 0
    HOST = 1
    INTERN = 2
    """Octets appended to the string arena."""


TOMBSTONE: Final = 0x80
"""The bit of the kind octet that says: this key is gone."""
FIRST_LSN: Final = 1
MAX_LSN: Final = 2**63 - 1
"""More frames than are ever written; a greater number is damage."""
TAIL_SUFFIX: Final = ".tail"
"""What follows the name of a log in that of the file with its torn tail."""

_KEY_LENGTHS: Final = {FrameKind.URL: 16, FrameKind.HOST: 8, FrameKind.INTERN: 0}
_ROW_LENGTHS: Final = {FrameKind.URL: ROW.itemsize, FrameKind.HOST: HOST_ROW.itemsize}
_HEAD: Final = Struct("<QBBI")
_HEAD_SIZE: Final = _HEAD.size
_CRC: Final = Struct("<I")
LEAST_FRAME: Final = _HEAD_SIZE + _CRC.size
"""Bytes of the shortest frame."""
# A frame with its own CRC behind it has always this one, so one pass both computes and compares.
_INTACT: Final = 0x48674BC7

_pack_lsn, _pack_crc = Struct("<Q").pack, _CRC.pack
_pack_shape = Struct("<BBI").pack
_INTERN: Final = int(FrameKind.INTERN)
_URL_VALUE: Final = ROW.itemsize - 16
_HOST_VALUE: Final = HOST_ROW.itemsize - 8
URL_CHANGE: Final = _pack_shape(FrameKind.URL, 16, _URL_VALUE)
"""What stands before the 103 octets of a URL's new row in a change (see `frames_of`)."""
HOST_CHANGE: Final = _pack_shape(FrameKind.HOST, 8, _HOST_VALUE)
"""What stands before the 97 octets of a host's new row in a change."""
intern_change: Final = partial(_pack_shape, _INTERN, 0)
"""Return what stands before so many octets of arena entries in a change."""


def frames_of(changes: Sequence[bytes], lsn: int) -> bytes:
    """Return *changes* as frames, the first of which has *lsn*.

    A change is a frame without its LSN and its checksum, so that those of a batch are computed in one
    loop: the journal is written to many times a second.
    """
    # Each step is one call of C for all: half of what a loop of Python takes.
    covered = [*map(add, map(_pack_lsn, range(lsn, lsn + len(changes))), changes)]
    return b"".join(chain.from_iterable(zip(covered, map(_pack_crc, map(crc32c, covered)), strict=True)))


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that was read and found intact."""

    offset: int
    """Where it begins, in bytes."""
    length: int
    """Its bytes, checksum included."""
    lsn: int
    kind: FrameKind
    tombstone: bool
    body: bytes
    """Key and value in one; of a tombstone the key alone."""


def frame_at(block: bytes | mmap, offset: int, *, next_lsn: int | None = None) -> Frame:
    """Return the frame at *offset*, which must have *next_lsn*, or with None any.

    Raises Malformed where the frame is not intact; its reason is a clause for people.
    """
    if offset + _HEAD_SIZE + _CRC.size > len(block):
        raise Malformed("the frame is cut short", fault=FileFault.SHORT, at=offset)
    lsn, kind_octet, key_length, value_length = _HEAD.unpack_from(block, offset)
    _check_shape(kind_octet, key_length, value_length, offset)
    body_end = offset + _HEAD_SIZE + key_length + value_length
    end = body_end + _CRC.size
    if end > len(block):
        raise Malformed("the frame is cut short", fault=FileFault.SHORT, at=offset)
    if crc32c(block[offset:end]) != _INTACT:
        raise Malformed("the frame's checksum is wrong", fault=FileFault.CHECKSUM, at=offset)
    if not (lsn == next_lsn if next_lsn is not None else FIRST_LSN <= lsn <= MAX_LSN):
        raise Malformed(f"frame {lsn} stands where {next_lsn or 'another'} should", at=offset)
    kind = FrameKind(kind_octet & ~TOMBSTONE)
    body = bytes(block[offset + _HEAD_SIZE : body_end])
    return Frame(offset, end - offset, lsn, kind, bool(kind_octet & TOMBSTONE), body)


def _check_shape(kind_octet: int, key_length: int, value_length: int, offset: int) -> None:
    kind, tombstone = kind_octet & ~TOMBSTONE, kind_octet & TOMBSTONE
    if kind not in _KEY_LENGTHS or (kind == FrameKind.INTERN and tombstone):
        raise Malformed(f"no frame is of kind {kind_octet}", at=offset)
    wanted = _KEY_LENGTHS[FrameKind(kind)]
    if tombstone:
        sound = value_length == 0
    else:
        sound = kind == FrameKind.INTERN or wanted + value_length == _ROW_LENGTHS[FrameKind(kind)]
    if key_length != wanted or not sound:
        raise Malformed(
            f"no {FrameKind(kind).name} frame has a key of {key_length} octets and a value of "
            f"{value_length}",
            at=offset,
        )


def read_frames(block: bytes | mmap, offset: int = 0, *, next_lsn: int | None = None) -> Iterator[Frame]:
    """Yield the intact frames of *block* from *offset* up to the first that is not."""
    while offset < len(block):
        try:
            found = frame_at(block, offset, next_lsn=next_lsn)
        except Malformed:
            return
        yield found
        offset += found.length
        next_lsn = found.lsn + 1


@dataclass(frozen=True, slots=True)
class Replayed:
    """How far a log could be replayed."""

    intact_bytes: int
    """Where the intact frames end."""
    next_lsn: int | None
    """The LSN after the last intact frame; None where none was requested and none was found."""
    frames: int
    stopped: str
    """Why the frame at `intact_bytes` does not count, as a clause; empty where the log ends there."""


def replay(
    block: bytes | mmap,
    begin: int = 0,
    *,
    first_lsn: int | None,
    on_url: Callable[[bytes], object],
    on_host: Callable[[bytes], object],
    on_intern: Callable[[bytes], object],
    on_tombstone: Callable[[bytes], object],
) -> Replayed:
    """Hand on what the intact frames of *block* from *begin* on say, in order, and how far they go.

    The first must have *first_lsn*; with None it may have any. `on_url` is handed 103 octets,
    `on_host` 97, `on_intern` the octets to append, `on_tombstone` a key of 16 (URL) or 8 (host).
    """
    next_lsn = first_lsn
    if next_lsn is None and len(block) - begin >= _HEAD_SIZE:
        found_lsn = _HEAD.unpack_from(block, begin)[0]
        next_lsn = found_lsn if FIRST_LSN <= found_lsn <= MAX_LSN else None
    if next_lsn is None:
        intact, frames = begin, 0
    else:
        intact, frames = _replay(
            block,
            begin,
            next_lsn,
            on_url=on_url,
            on_host=on_host,
            on_intern=on_intern,
            on_tombstone=on_tombstone,
        )
    stopped = ""
    if intact < len(block):
        try:
            frame_at(block, intact, next_lsn=None if next_lsn is None else next_lsn + frames)
        except Malformed as error:
            stopped = error.reason
    if frames:
        assert next_lsn is not None
        first_lsn = next_lsn + frames
    return Replayed(intact, first_lsn, frames, stopped)


def _replay(
    block: bytes | mmap,
    begin: int,
    first_lsn: int,
    *,
    on_url: Callable[[bytes], object],
    on_host: Callable[[bytes], object],
    on_intern: Callable[[bytes], object],
    on_tombstone: Callable[[bytes], object],
) -> tuple[int, int]:
    """Return where the intact frames from *begin* on end, and their number.

    One loop without calls of its own: a journal has millions of frames, and a crawl waits for this.
    """
    # Kind and key length as one number: the loop then compares once.
    unpack, checksum, intact = Struct("<QHI").unpack_from, crc32c, _INTACT
    url, host, intern, url_gone, host_gone = 0x1000, 0x0801, 0x0002, 0x1080, 0x0881
    body, url_value, host_value = slice(_HEAD_SIZE, -_CRC.size), _URL_VALUE, _HOST_VALUE
    least = LEAST_FRAME
    offset, lsn, last = begin, first_lsn, len(block) - least
    while offset <= last:
        found_lsn, shape, length = unpack(block, offset)
        end = offset + least + (shape >> 8) + length
        if found_lsn != lsn or end > last + least:
            break
        whole = block[offset:end]
        if checksum(whole) != intact:
            break
        if shape == url and length == url_value:
            on_url(whole[body])
        elif shape == intern:
            on_intern(whole[body])
        elif shape == host and length == host_value:
            on_host(whole[body])
        elif shape in (url_gone, host_gone) and length == 0:
            on_tombstone(whole[body])
        else:
            break
        offset = end
        lsn += 1
    return offset, lsn - first_lsn


class Journal:
    """Writes one log of a partition."""

    def __init__(self, path: Path, *, disk: Disk, after: Journal | None = None) -> None:
        """Create the log *path*; OutputError where that fails, or where there is one.

        *after* is the journal of the log before, which nothing more is appended to. It is flushed before
        this one is, and synced before, and then closed: a log counts only if the one before is whole.
        """
        self.path = path
        self._disk = disk
        self._after = after
        self._buffer = bytearray()
        self.size = 0
        """Bytes that the log has with everything that was appended."""
        self._written = 0
        self._forced = 0
        self._name_is_durable = False
        self._trust = Trust(path.parent)
        self._failed = False
        self._appending = Lock()  # held for the moment that the buffer is changed or exchanged
        self._writing = Lock()
        self._forcing = Lock()  # held while waiting for the disk; `flush` continues meanwhile
        with explained(path, "created"):
            self._descriptor = disk.create(path)

    @property
    def pending(self) -> int:
        """Bytes that were appended and are not yet written; without those of the journal before."""
        return self.size - self._written

    def check(self) -> None:
        """Raise again what went wrong before, if anything did."""
        if self._failed:
            self._trust.check()

    def give_up(self, error: BaseException) -> None:
        """Take nothing more, for *error*: what it would be given is not how things stand."""
        self._trust.end(error)
        self._failed = True

    def append(self, frame: bytes) -> None:
        """Take *frame*, or several in one, to be written by the next `flush`."""
        self.check()
        with self._appending:
            self._buffer += frame
            self.size += len(frame)

    def flush(self) -> None:
        """Write what was appended: from here on it outlives the process."""
        with self._writing, self._kept():
            if self._after is not None:
                self._after.flush()
            self._write()

    def sync(self) -> None:
        """Write what was appended and force it to disk: from here on it outlives the power too."""
        with self._forcing:
            self.flush()
            written = self._written
            with self._kept():
                self._force(written)

    def _force(self, written: int) -> None:
        if self._after is not None:
            self._after.sync()
        if not self._name_is_durable or self._forced < written:
            with explained(self.path, "forced to disk"):
                self._disk.sync(self._descriptor)
                if not self._name_is_durable:
                    self._disk.sync_directory(self.path.parent)
            self._name_is_durable = True
            self._forced = written
        if self._after is not None:
            with self._writing:
                after, self._after = self._after, None
            after.close()

    def close(self) -> None:
        """Let go of the log as it is; what was appended and not flushed is gone."""
        with self._forcing, self._writing:
            if self._after is not None:
                self._after.close()
            if self._descriptor >= 0:
                descriptor, self._descriptor = self._descriptor, -1
                os.close(descriptor)

    def _write(self) -> None:
        with self._appending:
            block, self._buffer = self._buffer, bytearray()
        rest = memoryview(block)
        with explained(self.path, "written to"):
            while rest:
                written = self._disk.write(self._descriptor, rest)
                self._written += written
                rest = rest[written:]

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Trust the journal no more if the block fails."""
        try:
            with self._trust.at_stake():
                yield
        except BaseException:
            self._failed = True
            raise
