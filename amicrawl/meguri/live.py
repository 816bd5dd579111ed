"""A live partition: the rows of one frontier, changed one by one and durable on disk.

Every change is a frame of the journal. A snapshot now and then keeps the journal short; it is written
while the crawl continues. However a process ends, a snapshot and the journals after it are on disk, and
the next to open the directory reads both (`opening`), cuts off a torn tail and begins a journal of its
own. A directory in which a journal is missing is refused.

One thread changes a partition; `sync` may run on another.
"""

from __future__ import annotations

from collections import Counter, deque
from contextlib import ExitStack
from itertools import chain
from operator import add
from typing import TYPE_CHECKING

from amicrawl.config import Identity
from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import explained
from amicrawl.meguri.format.writer import write_partition
from amicrawl.meguri.opening import adopted, check_identity, read_state
from amicrawl.meguri.rows import (
    PLACES,
    STATUS_OFFSET,
    UrlRow,
    offered_row,
    packed_row,
    priority_and_reference,
)
from amicrawl.meguri.snapshot import OPTIONS, Copies, SnapshotTask, freeze, partition_at
from amicrawl.meguri.state import IDENTITY, INDEX_ROWS, NOTES_BACK, index_note
from amicrawl.meguri.states import Status
from amicrawl.meguri.store.generations import Generations
from amicrawl.meguri.store.journal import HOST_CHANGE, URL_CHANGE, Journal, frames_of, intern_change

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.meguri.rows import HostRow
    from amicrawl.meguri.state import PartitionState

_LONG = 64 * 1024**2
"""Octets of journal that are worth a snapshot however few rows there are."""
_IN_FLIGHT = int(Status.IN_FLIGHT)
STATUS_NUMBERS = 256
"""A status is one octet."""
_FRAME = 121
_FRAMES_AT_ONCE = 4096
_FRAMES_RESIDENT = 16_384
"""Changes after which the tables are taken out of resident memory: the process holds what is in use."""


class LivePartition:
    """The rows of one frontier, in *directory*.

    A row is addressed by its number, which it keeps as long as the partition is open.
    """

    options = OPTIONS
    """How its snapshots are written; packed robots.txt bodies follow their codec."""

    def __init__(
        self,
        directory: Path,
        *,
        disk: Disk,
        hour: int,
        meta: Mapping[bytes, bytes],
        begin_with: PartitionState | None = None,
    ) -> None:
        """Open the partition in *directory*, or begin one with *meta* there at *hour*.

        One that is begun holds what *begin_with* does, which is its own from then on.
        Raises DamagedFileError where what is there cannot be read, OutputError where nothing can be
        written, and UsageError where it was made with another identity than *meta* says, if it says any.
        """
        self._disk = disk
        self.directory = directory
        with explained(directory, "made"):
            directory.mkdir(exist_ok=True)
        self._lock = DirectoryLock(directory)
        with ExitStack() as undo:
            undo.callback(self._lock.release)
            self._open(hour, meta, begin_with, undo)
            undo.pop_all()

    def _open(
        self, hour: int, meta: Mapping[bytes, bytes], begin_with: PartitionState | None, undo: ExitStack
    ) -> None:
        directory, disk = self.directory, self._disk
        self._generations = Generations(directory, disk=disk)
        self.state, self.opened, replayed = read_state(self._generations, directory, disk=disk)
        # Adopting exchanges the state, and a snapshot the journal: it is the last that counts.
        undo.callback(lambda: self.state.close())  # noqa: PLW0108
        self._lsn = replayed.next_lsn
        if begin_with is not None and self.opened.is_new:
            self.state.close()
            self.state = begin_with
        self._generations.repair(replayed)
        check_identity(self.state, meta, directory)
        is_foreign = IDENTITY not in self.state.meta and not self.opened.is_new
        if is_foreign:
            self._adopt(Identity(meta.get(IDENTITY, b"canonical").decode("ascii")))
        self.state.meta.update(meta)
        if self.opened.is_new:
            self.state.created = hour
        self._journal = Journal(self._generations.begin_log(), disk=disk)
        undo.callback(lambda: self._journal.close())  # noqa: PLW0108
        self._generations.name_log(self._journal.path)
        self._waiting: list[bytes] = []
        """Changes that the next `flush` gives to the journal as frames, all at once."""
        self._dispatched: dict[int, None] = {}
        """Rows that were set to IN_FLIGHT since the last `flush`, in this order."""
        self._hosts_changed: dict[int, None] = {}
        """Hosts whose row was changed since the last `flush`, by number."""
        self.counts = [0] * STATUS_NUMBERS
        """How many rows have each status, once `take_inventory` has counted them; other software may
        have some of its own."""
        self._frames = self.opened.frames
        self._drop_at = 0
        """The LSN from which on the tables are taken out of resident memory."""
        self._index_rows: deque[int] = deque([self.opened.index_rows], maxlen=NOTES_BACK + 1)
        self._snapshot: SnapshotTask | None = None
        if self.opened.is_new or is_foreign or self.opened.lost:
            # What is in no journal must be on disk before the first row is; and what was read past
            # damage need not be found again.
            self.snapshot(hour)
            self._end_snapshot()
        self.state.drop_pages()
        # From here on the state is this one.
        self.find = self.state.find
        """Return the number of the row with this key, if there is one."""
        self.get = self.state.rows.get
        """Return the row of this number."""
        self.texts_at = self.state.arena.texts_at
        """Return the string at a reference and the entry behind it, which may be its annex."""

    def _adopt(self, identity: Identity) -> None:
        """Put a partition of ours in the place of one that other software made."""
        theirs = self.state
        self.state, note = adopted(theirs, identity, directory=self.directory, disk=self._disk)
        theirs.close()
        self.state.meta[IDENTITY] = identity.value.encode("ascii")
        self.opened.notes = (*self.opened.notes, note)
        self.opened.touched.clear()
        # This is in no journal: what follows must never be replayed onto the earlier rows.
        self._lsn += 1

    def __len__(self) -> int:
        return len(self.state.rows) - len(self.state.removed)

    def claim(self, host: int, path: int) -> int | None:
        """Return the number that a new row with this key gets, or None if the key is known.

        `fill` must follow at once: from here on the key leads to that row.
        """
        state = self.state
        number = state.rows.count
        known = state.add(host, path, number)
        if known is None:
            return number
        return known if known in state.removed else None

    def fill(
        self,
        number: int,
        row: tuple[int, int, int, float, int, int],
        texts: bytes,
        *,
        first_seen: int,
    ) -> int:
        """Write the row whose key was claimed as *number*; return its `url_ref`.

        *row* are its first fields, up to the source; its URL is the first of the arena entries *texts*.
        """
        state = self.state
        self._journal.check()
        try:
            reference = state.arena.append(texts)
            packed = offered_row(*row, reference, first_seen)
            if number < state.rows.count:
                state.removed.discard(number)
                state.rows.write(number, packed)
            else:
                state.rows.append(packed)
        except BaseException as error:
            self._journal.give_up(error)
            raise
        self.counts[row[2]] += 1
        # A row follows its string at once: behind damage, rows say where the string before them begins.
        self._waiting += (intern_change(len(texts)) + texts, URL_CHANGE + packed)
        if len(self._waiting) > _FRAMES_AT_ONCE:
            # Offers of a whole index come without a flush between: joined, frames take less memory.
            self._hand_over()
        return reference

    @property
    def ends(self) -> tuple[int, int]:
        """The number that the next new row gets, and the reference of the next string."""
        return self.state.rows.count, len(self.state.arena)

    def extend(self, rows: list[bytes], texts: list[bytes]) -> None:
        """Add *rows*, packed, whose keys were added to the state, and empty both lists.

        *texts* are the arena entries of each, and are added with it.
        """
        if rows:
            self._journal.check()
            try:
                self.state.arena.append(b"".join(texts))
                self.state.rows.extend(b"".join(rows))
            except BaseException as error:
                # Their keys lead to rows that are not there, and strings stand elsewhere than the
                # journal says: what was written is all that the next crawl may know.
                self._journal.give_up(error)
                raise
            for status, count in Counter([row[STATUS_OFFSET] for row in rows]).items():
                self.counts[status] += count
            # A row follows its string at once: behind damage, rows say where the string before begins.
            interned = map(add, map(intern_change, map(len, texts)), texts)
            changes = zip(interned, map(URL_CHANGE.__add__, rows), strict=True)
            self._waiting += chain.from_iterable(changes)
            rows.clear()
            texts.clear()
            if len(self._waiting) > _FRAMES_AT_ONCE:
                self._hand_over()

    def priority_and_reference(self, number: int) -> tuple[float, int]:
        """Return `priority` and `url_ref` of row *number*: all that its place in a queue depends on."""
        priority, reference = priority_and_reference(self.state.rows.read(number))
        return priority, reference

    def put(
        self, number: int, row: UrlRow, *fields: Mapping[str, float], was: int | None = None
    ) -> UrlRow:
        """Put *row* with other *fields*, the last of a name, in the place of row *number*; return it.

        The status of row *number* *was* that; None where it is the same.
        """
        if fields:
            values: list[float] = [*row]
            for some in fields:
                for name, value in some.items():
                    values[PLACES[name]] = value
            row = tuple.__new__(UrlRow, values)
        if was is not None:
            self.counts[was] -= 1
            self.counts[row.status] += 1
        packed = packed_row(*row)
        self.state.rows.write(number, packed)
        self._dispatched.pop(number, None)
        self._waiting.append(URL_CHANGE + packed)
        return row

    def put_in_flight(self, number: int) -> UrlRow:
        """Set the status of row *number* to IN_FLIGHT, and return the row as it was before.

        Its frame is written by the next `flush`, unless `put` replaces the row before.
        """
        row = self.state.rows.marked(number, STATUS_OFFSET, _IN_FLIGHT)
        self.counts[row.status] -= 1
        self.counts[_IN_FLIGHT] += 1
        self._dispatched[number] = None
        return row

    def intern(self, entries: bytes) -> int:
        """Add *entries* to the string arena; return the offset of the first."""
        self._waiting.append(intern_change(len(entries)) + entries)
        return self.state.arena.append(entries)

    def host(self, host: int) -> HostRow | None:
        """Return the row of *host*, if it has one."""
        number = self.state.host_numbers.get(host)
        return None if number is None else self.state.hosts.get(number)

    def put_host(self, row: HostRow) -> None:
        """Have *row* be that of its host; its frame is written by the next `flush`."""
        state, packed = self.state, row.packed()
        number = state.host_numbers.get(row.host)
        if number is None:
            number = state.host_numbers[row.host] = state.hosts.append(packed)
        else:
            state.hosts.write(number, packed)
        self._hosts_changed[number] = None

    @property
    def has_changed(self) -> bool:
        """Whether anything has changed since the last snapshot was begun."""
        waiting = self._waiting or self._dispatched or self._hosts_changed
        return self._frames > 0 or bool(waiting)

    def note_index(self, rows: int, *, all_known: bool = False) -> None:
        """Note in the journal that the index of the crawl has *rows*.

        To be called about once a second: what is settled some seconds later was among them. With
        *all_known*, nothing of them is still to be settled.
        """
        if all_known:
            self._index_rows.clear()
        self._index_rows.append(rows)
        self.state.meta[INDEX_ROWS] = b"%d" % self._index_rows[0]
        self.intern(index_note(rows, all_known=all_known))

    def flush(self) -> None:
        """Write all changes to the journal: from here on they outlive the process."""
        self._journal.check()
        self._waiting += map(URL_CHANGE.__add__, map(self.state.rows.read, self._dispatched))
        self._dispatched.clear()
        self._waiting += map(HOST_CHANGE.__add__, map(self.state.hosts.read, self._hosts_changed))
        self._hosts_changed.clear()
        self._hand_over()
        if self._journal.pending:
            self._journal.flush()

    def _hand_over(self) -> None:
        """Give the changes that wait to the journal."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._journal.append(frames_of(waiting, self._lsn))
            self._lsn += len(waiting)
            self._frames += len(waiting)
        if self._lsn >= self._drop_at:
            self._drop_at = self._lsn + _FRAMES_RESIDENT
            self.state.drop_pages()

    def sync(self) -> None:
        """Force what was flushed to disk; may run on another thread than everything else."""
        self._journal.sync()

    @property
    def snapshot_is_due(self) -> bool:
        """Whether the journal has grown so long that reading it would take longer than a snapshot."""
        return (
            self._snapshot is None
            and self._journal.size > _LONG
            and self._journal.size > len(self.state.rows) * _FRAME // 2
        )

    def snapshot(self, hour: int) -> None:
        """Begin to write the partition as it stands at *hour*; a thread of its own does the rest."""
        self._end_snapshot()
        # From here on `flush` looks at the next journal only.
        self.flush()
        state, generations, disk, options = self.state, self._generations, self._disk, self.options
        begun, lsn = generations.begin_generation(), self._lsn
        journal = self._journal = Journal(begun.log, disk=disk, after=self._journal)
        moment = freeze(state, hour=hour)
        self._frames = 0

        def work() -> None:
            with Copies(self.directory, disk) as copies:
                partition = partition_at(state, moment, copies=copies)
                write_partition(
                    partition, begun.snapshot, options=options, disk=disk, after_page=copies.drop_pages
                )
            generations.commit(begun, journal, lsn=lsn, arena_length=moment.arena)

        self._snapshot = SnapshotTask(work)

    def poll(self) -> None:
        """Raise what went wrong with a snapshot that has ended since."""
        if self._snapshot is not None and not self._snapshot.running:
            self._end_snapshot()

    def close(self, hour: int) -> None:
        """Write everything, with a snapshot if anything has changed since the last, and give it up."""
        self._end_snapshot()
        if self.has_changed:
            self.snapshot(hour)
            self._end_snapshot()
        self._journal.sync()
        self.abandon()

    def abandon(self) -> None:
        """Give everything up as it is; the next to open the directory finds what was flushed.

        Waits for a snapshot that is being written: it reads what is closed here.
        """
        if self._snapshot is not None:
            self._snapshot.wait()
        self._journal.close()
        self.state.close()
        self._lock.release()

    def _end_snapshot(self) -> None:
        task, self._snapshot = self._snapshot, None
        if task is not None:
            task.join()
