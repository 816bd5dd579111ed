"""The outbox: links for other partitions, on disk before the page that gave them is settled.

    outbox        a line for each call of `append`: CRC-32 of what follows (8 hex digits), a blank, the
                  number of the recipient, and each link behind a tab
    outbox.mark   {"epoch": ..., "at": offset}: everything before it is in inboxes

Lines are only ever appended, and never taken away: when Redis has lost what it held, the crawl gets a
new epoch, and every outbox is sent once more from its beginning. A line that was torn by a crash, and
all behind it, is cut off at opening: no page was settled by it. What was sent behind the mark is
sent twice then; the recipient knows a link that it has. A mark that cannot be read counts as none.

`append`, `is_empty` and `only_for` are for one thread, the sending for another, `sync` for any.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from amicrawl.disk import Trust, explained, replace_file
from amicrawl.errors import DamagedFileError, OutputError
from amicrawl.partition.batch import GatheredLinks, encoded_batch, gathered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amicrawl.disk import Disk

FILE_NAME = "outbox"
MARK_NAME = "outbox.mark"
WINDOW = 8 << 20
"""Octets behind the mark that are looked at: what is beyond waits until inboxes have taken some."""

_HEAD = 9


@dataclass(slots=True)
class _OutboxLine:
    """A line that is in the window."""

    end: int
    """Where the line behind it begins."""
    recipient: int
    links: list[str]
    is_sent: bool = False
    is_on_its_way: bool = False
    """Whether it was handed to a carrier that says later that it has arrived."""


@dataclass(slots=True)
class Parcel:
    """A batch for one recipient, and the lines that it is made of."""

    recipient: int
    batch: str
    links: int
    lines: list[_OutboxLine]


class Outbox:
    """The outbox in *directory*. Raises OutputError, and DamagedFileError where it changed under us."""

    FILES = (FILE_NAME, MARK_NAME)

    def __init__(self, directory: Path, *, disk: Disk, mark_disk: Disk | None = None) -> None:
        """Open it, or begin one; what is torn is cut off. *mark_disk* is what marks are written with."""
        self._disk = disk
        self._mark_disk = mark_disk or disk
        self._path = directory / FILE_NAME
        self._mark_path = directory / MARK_NAME
        self._trust = Trust(directory)
        self._lock = threading.Lock()
        self._forcing = threading.Lock()  # held while the disk is waited for, during which links come
        self._pending = bytearray()
        self._unforced = False
        self._lines: deque[_OutboxLine] = deque()
        self.epoch, self._at = _marked(directory)
        with explained(self._path, "opened"):
            if not self._path.exists():
                os.close(disk.create(self._path))
                disk.sync_directory(directory)
        whole = self._whole_from(self._at)
        if whole < self._path.stat().st_size:
            with explained(self._path, "cut to what is whole"):
                disk.truncate(self._path, whole)
        self._kept = whole
        """Where the next line begins, of those that are written."""
        self._read_until = self._at
        with explained(self._path, "opened"):
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)

    @property
    def is_empty(self) -> bool:
        """Whether all that was ever appended is in inboxes."""
        with self._lock:
            return not self._pending and self._at == self._kept

    def only_for(self, recipients: Sequence[int]) -> bool:
        """Tell whether all that is left is for *recipients*, which take no batches."""
        with self._lock:
            if self._pending or self._read_until < self._kept:
                return False
            return all(line.is_sent or line.recipient in recipients for line in self._lines)

    def append(self, recipient: int, links: Sequence[str]) -> None:
        """Take *links*, as `encoded_link` gives them, for *recipient*; kept once `flush` was called."""
        self._trust.check()
        for together in gathered(links):
            body = "\t".join([str(recipient), *together]).encode("ascii") + b"\n"
            with self._lock:
                self._pending += b"%08x " % zlib.crc32(body) + body

    def flush(self) -> None:
        """Write what was appended: it outlives the process."""
        with self._lock, self._trust.at_stake(), explained(self._path, "written to"):
            rest = memoryview(bytes(self._pending))
            if not rest:
                return
            size = len(rest)
            while rest:
                rest = rest[self._disk.write(self._descriptor, rest) :]
            self._kept += size
            self._pending.clear()
            self._unforced = True

    def sync(self) -> None:
        """Write what was appended and force it to disk: it outlives the power."""
        with self._forcing:
            self.flush()
            if self._unforced:
                self._unforced = False
                with self._trust.at_stake(), explained(self._path, "forced to disk"):
                    self._disk.sync(self._descriptor)

    def begin_epoch(self, epoch: str) -> bool:
        """Go back to the beginning if *epoch* is another than the mark's; tell whether it is."""
        if epoch == self.epoch:
            return False
        self.epoch = epoch
        with self._lock:
            self._lines.clear()
            self._at = self._read_until = 0
        self.write_mark()
        return True

    def parcels(self, *, most: int, shut: Sequence[int] = ()) -> list[Parcel]:
        """Return up to *most* batches to be sent, none for the recipients in *shut*."""
        self._look_ahead()
        begun: dict[int, tuple[Parcel, GatheredLinks]] = {}
        found: list[tuple[Parcel, GatheredLinks]] = []
        for line in self._lines:
            if line.is_sent or line.is_on_its_way or line.recipient in shut:
                continue
            parcel, links = begun.get(line.recipient, (None, None))
            if parcel is None or links is None or not links.add(line.links):
                if len(found) >= most:
                    continue
                parcel, links = Parcel(line.recipient, "", 0, []), GatheredLinks()
                links.add(line.links)
                begun[line.recipient] = parcel, links
                found.append((parcel, links))
            parcel.lines.append(line)
        for parcel, links in found:
            parcel.batch, parcel.links = encoded_batch(links.links), len(links.links)
        return [parcel for parcel, _ in found]

    def on_its_way(self, parcel: Parcel, *, is_so: bool = True) -> None:
        """Leave *parcel* out of `parcels` until it is `sent`, or until it is said to be lost."""
        for line in parcel.lines:
            line.is_on_its_way = is_so

    def sent(self, parcel: Parcel) -> None:
        """Note that *parcel* is in an inbox; `write_mark` makes that last."""
        for line in parcel.lines:
            line.is_sent = True
        with self._lock:
            while self._lines and self._lines[0].is_sent:
                self._at = self._lines.popleft().end

    def write_mark(self) -> None:
        """Write down how far everything was sent."""
        replace_file(
            self._mark_path, orjson.dumps({"epoch": self.epoch, "at": self._at}), disk=self._mark_disk
        )

    def close(self) -> None:
        """Write what was appended, and the mark, and give it up."""
        try:
            self.sync()
            with suppress(OutputError):
                # Without it, what was sent is only sent once more.
                self.write_mark()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Give it up as it is."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _whole_from(self, mark: int) -> int:
        """Return where the first line that is not whole begins, looking behind *mark*."""
        with explained(self._path, "read"), self._path.open("rb") as file:
            is_within = mark <= file.seek(0, os.SEEK_END)
            whole = file.seek(mark - 1) + 1 if mark and is_within else file.seek(0)
            if mark and (not is_within or file.read(1) != b"\n"):
                # The mark is of another outbox, or of lines that were lost with the power.
                self._at = whole = file.seek(0)
            for line in file:
                if _parsed(line) is None:
                    break
                whole += len(line)
        return whole

    def _look_ahead(self) -> None:
        """Read on, as far as the window reaches."""
        with self._lock:
            limit = min(self._kept, self._at + WINDOW)
            start = self._read_until
        if start >= limit:
            return
        for line, end in self._lines_from(start):
            parsed = _parsed(line)
            if parsed is None:
                raise DamagedFileError(self._path, end - len(line), "is not a line of an outbox")
            with self._lock:
                self._lines.append(_OutboxLine(end, *parsed))
                self._read_until = end
            if end >= limit:
                break

    def _lines_from(self, start: int) -> Iterator[tuple[bytes, int]]:
        with explained(self._path, "read"), self._path.open("rb") as file:
            file.seek(start)
            for line in file:
                start += len(line)
                if start > self._kept:
                    return
                yield line, start


def _parsed(line: bytes) -> tuple[int, list[str]] | None:
    """Return the recipient and the links of a *line*; None where it is not whole."""
    body = line[_HEAD:]
    if not body.endswith(b"\n") or line[:_HEAD] != b"%08x " % zlib.crc32(body):
        return None
    recipient, *links = body[:-1].decode("ascii", "replace").split("\t")
    return (int(recipient), links) if recipient.isascii() and recipient.isdigit() else None


def is_delivered(directory: Path) -> bool:
    """Tell whether no link for another partition is left in the outbox of *directory*."""
    try:
        return _marked(directory)[1] >= (directory / FILE_NAME).stat().st_size
    except FileNotFoundError:
        return True


def _marked(directory: Path) -> tuple[str, int]:
    """Return the epoch, and how far everything was sent in it, as the mark says."""
    try:
        said = orjson.loads((directory / MARK_NAME).read_bytes())
        epoch, at = said["epoch"], said["at"]
    except (OSError, ValueError, KeyError, TypeError):
        return "", 0
    return (epoch, at) if isinstance(epoch, str) and type(at) is int and at >= 0 else ("", 0)
