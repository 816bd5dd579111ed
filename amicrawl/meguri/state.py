"""The state of a live partition: its tables, its strings, and how a key is found among them.

Rows that came from a snapshot are sorted and searched where they lie, behind the snapshot's seen-set
filter, which suffices for nearly every key that is not there. Rows that came since are found in an index
in memory. Both are exact, so a key is never taken for known because a filter erred.

What journals changed is kept in order (`ChangedRows`), with the notes of how many rows the index has. A
capture is in the index before its row is settled, and a crash may lose either. A note gives the number
of rows in the index at a moment. Settling follows within seconds, so that all rows counted by a note of
some seconds ago are settled; only later ones are looked up after a crash. Rows are counted, and not
seconds, since clocks may be set back.
"""

from __future__ import annotations

from array import array
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from amicrawl.config import Identity
from amicrawl.meguri.arena import StringArena, entry_of
from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.schema import HOST_REFERENCES, HOST_ROW, ROW
from amicrawl.meguri.format.strings import ANNEX_MARK
from amicrawl.meguri.rows import HostRow, RowTable, UrlRow
from amicrawl.meguri.seen import BlockedBloom, KeyIndex, SortedKeys, sound_sizing
from amicrawl.meguri.store.logs import ReplayedLogs, replay_logs
from amicrawl.urls import UrlKey, text_of, url_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np

    from amicrawl.disk import Disk
    from amicrawl.meguri.format.footer import ColumnEntry
    from amicrawl.meguri.store.logs import Gap

NOTES_BACK: Final = 5
"""Notes, one a second, within which the row of a capture in the index is settled."""
_BEGIN: Final = ANNEX_MARK + b'{"rows":'
_ALL_KNOWN: Final = b',"all":1}'


def index_note(rows: int, *, all_known: bool) -> bytes:
    """Return the arena entry that says that the index has *rows*; no reference leads to it.

    With *all_known*, every one of them is settled already.
    """
    return entry_of(_BEGIN + b"%d" % rows + (_ALL_KNOWN if all_known else b"}"))


class ChangedRows:
    """The rows that journals changed, in the order of the changes, and the notes in between."""

    def __init__(self) -> None:
        self.numbers = array("I")
        self._notes: list[tuple[int, int]] = []
        """Rows of the index, and how many changes came before."""

    def __len__(self) -> int:
        return len(self.numbers)

    def clear(self) -> None:
        """Forget all of it."""
        del self.numbers[:], self._notes[:]

    def forget_notes(self) -> None:
        """Have everything looked up: changes between the notes are lost."""
        del self._notes[:]

    def note(self, entries: bytes) -> None:
        """Take *entries*, which were added to the arena, as a note if they are one."""
        if not entries.startswith(_BEGIN, 1):
            return
        said = entries[1 + len(_BEGIN) :]
        text, all_known = said.removesuffix(_ALL_KNOWN), said.endswith(_ALL_KNOWN)
        text = text.removesuffix(b"}")
        if not text.isdigit() or len(text) > 17:
            return
        note = int(text), len(self.numbers)
        # As many as `since` goes back: from then on every row before this note is known.
        self._notes += [note] * (NOTES_BACK + 1 if all_known else 1)

    def since(self, rows: int, known: int) -> tuple[int, Iterable[int]]:
        """Return how many rows of the index need no look, and the rows of the frontier changed since.

        *rows* are in the index: notes of more were written before a power cut took some. *known*
        is the number noted in the snapshot before the journals.
        """
        notes = [(noted, at) for noted, at in self._notes if noted <= rows]
        if len(notes) <= NOTES_BACK:
            return min(known, rows), self.since_begin()
        noted, at = notes[-1 - NOTES_BACK]
        return noted, set(self.numbers[at:])

    def since_begin(self) -> set[int]:
        """Return all rows that were changed."""
        return set(self.numbers)


IDENTITY = b"amicrawl.identity"
"""The metadata key that names what makes two URLs one row: `exact` or `canonical`."""
INDEX_ROWS = b"amicrawl.index_rows"
"""The metadata key that says how many rows of the crawl's index were noted by a snapshot, at least."""
_LONGEST_NOTE = 48
_RESIDENT = 65_536
"""Changes that are replayed until tables are taken out of resident memory."""


class PartitionState:
    """Rows, hosts and strings of one partition."""

    def __init__(self, *, directory: Path, disk: Disk, rows: int = 0, hosts: int = 0) -> None:
        """Begin empty, with room for *rows* and *hosts*; working files are made in *directory*."""
        self.rows = RowTable(ROW, UrlRow, directory=directory, disk=disk, rows=rows)
        with ExitStack() as undo:
            undo.callback(self.rows.close)
            self.hosts = RowTable(HOST_ROW, HostRow, directory=directory, disk=disk, rows=hosts)
            undo.callback(self.hosts.close)
            self.arena = StringArena(directory=directory, disk=disk)
            undo.pop_all()
        self.meta: dict[bytes, bytes] = {}
        self.partition_id = 0
        self.created = 0
        self.base = 0
        """How many rows, from number 0 on, are sorted by key: those of the snapshot."""
        self._base_keys: SortedKeys | None = None
        self._filter: BlockedBloom | None = None
        self._new = KeyIndex()
        self._damaged_from: int | None = None
        """The length that the arena had when the first damage in a log was passed over."""
        self.host_numbers: dict[int, int] = {}
        """The number of each host's row, by host key."""
        self.removed: set[int] = set()
        """Rows that a log of other software deleted; they are left out of the next snapshot."""

    @classmethod
    def of_file(cls, path: Path, *, directory: Path, disk: Disk) -> PartitionState:
        """Read the snapshot *path*; DamagedFileError, or OutputError where *directory* is full."""
        with FrontierFile.open(path) as file:
            state = cls(directory=directory, disk=disk, rows=file.url_rows, hosts=file.host_rows)
            try:
                state._read(file)
            except BaseException:
                state.close()
                raise
        return state

    def find(self, host: int, path: int) -> int | None:
        """Return the number of the row with this key, if there is one."""
        number = self._new.get(host, path)
        if number is None:
            number = self._find_in_base(host, path)
        return None if self.removed and number in self.removed else number

    @property
    def adder(self) -> Callable[[int, int, int], int | None]:
        """What `add` does, without a look at a snapshot where there is none."""
        return self._new.add if self._filter is None else self.add

    def add(self, host: int, path: int, number: int) -> int | None:
        """Have the key lead to row *number*, about to be appended; return the row that it leads to."""
        if self._filter is not None and (known := self._find_in_base(host, path)) is not None:
            return known
        return self._new.add(host, path, number)

    def replay(
        self, logs: Sequence[Path], *, first_lsn: int | None, touched: ChangedRows
    ) -> ReplayedLogs:
        """Take over what *logs* say; what they change goes to *touched*."""
        numbers, append, note = touched.numbers, self.arena.append, touched.note

        def put(packed: bytes) -> None:
            numbers.append(self._put(packed))
            if not len(numbers) % _RESIDENT:
                self.drop_pages()

        def intern(entries: bytes) -> None:
            append(entries)
            if len(entries) < _LONGEST_NOTE:
                note(entries)

        return replay_logs(
            logs,
            first_lsn=first_lsn,
            on_url=put,
            on_host=self._put_host,
            on_intern=intern,
            on_tombstone=self._remove,
            on_gap=self._pass_over,
        )

    def drop_nameless(self, numbers: Iterable[int]) -> int:
        """Remove those of *numbers* whose URL was in damage that was passed over; return how many.

        A row whose URL is not the one that its key stands for would have another page fetched for it.
        References of the others that lead into damage lead nowhere from here on.
        """
        named, dropped = self.meta.get(IDENTITY), 0
        identity = next((each for each in Identity if each.value.encode("ascii") == named), None)
        if identity is None or self._damaged_from is None:
            return 0
        for number in numbers:
            row = self.rows.get(number)
            if max(row.url_ref, row.etag_ref, row.redirect_ref) < self._damaged_from:
                continue
            if self._text_at(row.url_ref) is None or self._key_at(row.url_ref, identity) != row[:2]:
                self.removed.add(number)
                dropped += 1
            elif self._text_at(row.etag_ref) is None or self._text_at(row.redirect_ref) is None:
                self.rows.write(number, row._replace(etag_ref=0, redirect_ref=0).packed())
        self._forget_lost_names(self._damaged_from)
        return dropped

    def _forget_lost_names(self, damaged_from: int) -> None:
        """Have the references of host rows, from *damaged_from* on, that lead nowhere be none.

        What is added to the arena next would stand there.
        """
        for number in range(len(self.hosts)):
            row = self.hosts.get(number)
            references = {name: getattr(row, name) for name in HOST_REFERENCES}
            if max(references.values()) >= damaged_from:
                lost = {name: 0 for name, at in references.items() if self._text_at(at) is None}
                self.hosts.write(number, row.changed(**lost).packed())

    def _text_at(self, reference: int) -> bytes | None:
        """Return the string at *reference*; None where nothing has its begin and end there."""
        return self.arena.text_at(reference) if reference else b""

    def _key_at(self, reference: int, identity: Identity) -> UrlKey:
        return url_key(text_of(self._text_at(reference) or b""), identity)

    def _pass_over(self, gap: Gap) -> None:
        """Have the arena be as long as it was behind *gap*: what was in it is empty strings now."""
        least, most = len(self.arena), len(self.arena) + gap.end - gap.offset
        if self._damaged_from is None:
            self._damaged_from = least
        lengths = Counter(length for length in gap.arena_lengths if least <= length <= most)
        if lengths:
            self.arena.append(bytes(lengths.most_common(1)[0][0] - least))

    def drop_pages(self) -> None:
        """Take tables and strings out of the resident memory of the process; nothing is lost."""
        self.rows.drop_pages()
        self.hosts.drop_pages()
        self.arena.drop_pages()

    def close(self) -> None:
        """Give the working files up."""
        self.rows.close()
        self.hosts.close()
        self.arena.close()

    def _find_in_base(self, host: int, path: int) -> int | None:
        if self._base_keys is None or not self._filter.maybe(host, path):  # type: ignore[union-attr]
            return None
        return self._base_keys.find(host, path)

    def _put(self, packed: bytes) -> int:
        host, path = int.from_bytes(packed[:8], "little"), int.from_bytes(packed[8:16], "little")
        number = self.add(host, path, len(self.rows))
        if number is None:
            return self.rows.append(packed)
        self.removed.discard(number)
        self.rows.write(number, packed)
        return number

    def _put_host(self, packed: bytes) -> None:
        host = int.from_bytes(packed[:8], "little")
        number = self.host_numbers.get(host)
        if number is None:
            self.host_numbers[host] = self.hosts.append(packed)
        else:
            self.hosts.write(number, packed)

    def _remove(self, key: bytes) -> None:
        if len(key) == 16:
            number = self.find(int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little"))
            if number is not None:
                self.removed.add(number)

    def _read(self, file: FrontierFile) -> None:
        header = file.header
        self.partition_id, self.created = header.partition_id, header.created
        self.meta = dict(file.meta)
        self.arena.load(file.copy_arena)
        _fill(self.rows, file.url_columns, file.url_pages)
        _fill(self.hosts, file.host_columns, file.host_pages)
        host_keys = self.hosts.columns("host_key")["host_key"].tolist()
        self.host_numbers = dict(zip(host_keys, range(len(host_keys)), strict=True))
        self.base = file.url_rows
        if self.base:
            self._look_up_base(file)

    def _look_up_base(self, file: FrontierFile) -> None:
        self._base_keys = SortedKeys(self.base, self.rows.key)
        self._filter = self._stored_filter(file) or self._filter_of_base()
        self.drop_pages()

    def _stored_filter(self, file: FrontierFile) -> BlockedBloom | None:
        """Return the filter of *file*, if it is one of ours for just these rows.

        One that leaves a key out would have the crawl take a known URL for new; of those that other
        software wrote, nothing says that they do not.
        """
        if IDENTITY not in self.meta:
            return None
        try:
            stored = BlockedBloom.from_blob(file.seen_filter())
        except Malformed:
            return None
        return stored if stored.added == self.base else None

    def _filter_of_base(self) -> BlockedBloom:
        filter_ = BlockedBloom(*sound_sizing(self.base))
        keys = self.rows.columns("host_key", "path_key")
        filter_.add_many(keys["host_key"], keys["path_key"])
        return filter_


def _fill(
    table: RowTable[Any],
    columns: Mapping[str, ColumnEntry],
    pages_of: Callable[[str], Iterator[tuple[int, np.ndarray]]],
) -> None:
    """Fill the empty *table* with *columns*, whose pages *pages_of* returns; little of it is mapped."""
    first = columns["host_key"]
    rows = table.fill(first.rows)
    # All columns of a page at once; where a column is one page, one column at a time.
    paged = len(first.pages) > 1
    for names in [[*columns]] if paged else [[name] for name in columns]:
        for pages in zip(*map(pages_of, names), strict=True):
            for name, (at, values) in zip(names, pages, strict=True):
                rows[name][at : at + len(values)] = values
            if paged:
                table.drop_pages()
