"""Opening a partition: its state on disk, and that of other software converted to the keys of this one.

The best snapshot is read, and the journals after it are replayed: rows that were in flight are still in
flight, a torn tail is passed over, damage within a journal is skipped. Nothing is changed on disk here.

Other software keys a URL in two ways, depending on whether it was seeded (host as written, and a path
half of what follows it) or found as a link (registrable domain, and a path half of the canonical URL),
so one page may have two rows, under two hosts that are contacted independently. When its partition is
adopted, all rows are keyed anew by the crawl's identity; of rows with one key, the one with most visits
stays. Host rows are rebuilt from their names, with the longest delay that was noted for any of them.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.config import Identity
from amicrawl.disk import Disk
from amicrawl.errors import InputError, UsageError
from amicrawl.meguri.arena import entry_of
from amicrawl.meguri.format.strings import ANNEX_MARK, MOST_OVERLAP, SMALL
from amicrawl.meguri.rows import HostRow, UrlRow
from amicrawl.meguri.snapshot import Copies, freeze, partition_at
from amicrawl.meguri.state import IDENTITY, INDEX_ROWS, ChangedRows, PartitionState
from amicrawl.meguri.store.directory import undisturbed
from amicrawl.meguri.store.generations import Generations
from amicrawl.urls import UrlKey, host_group, seed_key, text_of, url_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.meguri.format.schema import Partition
    from amicrawl.meguri.store.logs import ReplayedLogs


@dataclass(slots=True)
class Opened:
    """What was found when a partition was opened."""

    is_new: bool = False
    """Whether there was none before."""
    frames: int = 0
    """How many frames of journals were replayed: 0 after a clean end."""
    touched: ChangedRows = field(default_factory=ChangedRows)
    """The rows that those changed."""
    lost: int = 0
    """How many frames were damaged, with intact ones behind them."""
    index_rows: int = 0
    """How many rows of the index were noted in the snapshot that they follow, at least."""
    notes: tuple[str, ...] = ()
    """Sentences about what was damaged and what was done about it."""


def read_state(
    generations: Generations, work: Path, *, disk: Disk, incomplete: bool = False
) -> tuple[PartitionState, Opened, ReplayedLogs]:
    """Return the state on disk, with working files in *work*, and what was found on the way.

    Raises DamagedFileError or InputError where it cannot be read.
    """
    candidate, state = generations.choose(
        lambda path: PartitionState.of_file(path, directory=work, disk=disk), incomplete=incomplete
    )
    if state is None:
        state = PartitionState(directory=work, disk=disk)
    opened = Opened()
    try:
        replayed = state.replay(candidate.logs, first_lsn=candidate.lsn, touched=opened.touched)
    except BaseException:
        state.close()
        raise
    opened.frames = sum(log.frames for log in replayed.logs)
    opened.lost = replayed.lost
    if replayed.lost:
        opened.touched.forget_notes()
    nameless = state.drop_nameless(opened.touched.since_begin()) if replayed.lost else 0
    # One that was begun and never got as far as its first snapshot is new still.
    opened.is_new = candidate.snapshot is None and not opened.frames
    opened.index_rows = _number(state.meta.get(INDEX_ROWS, b"0"))
    opened.notes = (*candidate.notes, *replayed.notes)
    if nameless:
        note = (
            f"{nameless} URLs were in the damage and are left out: they come back with the seed list, "
            "with the pages that link to them, or by `amicrawl frontier rebuild`."
        )
        opened.notes = (*opened.notes, note)
    return state, opened, replayed


def _number(text: bytes) -> int:
    return int(text) if text.isdigit() and len(text) < 18 else 0


def check_identity(state: PartitionState, meta: Mapping[bytes, bytes], directory: Path) -> None:
    """Raise UsageError where *state* was made with another identity than *meta* says, if it says any.

    InputError where it is none that is known.
    """
    made_with, wanted = state.meta.get(IDENTITY), meta.get(IDENTITY)
    if made_with is not None and made_with not in {each.value.encode("ascii") for each in Identity}:
        shown = made_with[:50].decode("ascii", "backslashreplace")
        raise InputError(
            f"The frontier in {directory} tells URLs apart by {shown!a}, which is not known "
            "here. Use the version that wrote it, or make it anew from the archive: "
            f"amicrawl frontier rebuild {directory.parent}"
        )
    if made_with is None or wanted is None or made_with == wanted:
        return
    theirs, ours = made_with.decode("ascii", "replace"), wanted.decode("ascii", "replace")
    raise UsageError(
        f"The frontier in {directory} was made with AMICRAWL_IDENTITY = {theirs}, and this crawl has "
        f"{ours}: a seed list goes by its URLs as written (exact), a site by their canonical form. "
        f"Give another output directory, or go on there with -s AMICRAWL_IDENTITY={theirs}."
    )


def load(directory: Path) -> Partition:
    """Return the partition in *directory* as it stands on disk, journals included; writes nothing there.

    It may be that of a running crawl. Raises DamagedFileError or InputError where it cannot be read.
    """
    disk = Disk()
    work = Path(tempfile.gettempdir())
    state, _, _ = undisturbed(
        directory, lambda _: read_state(Generations(directory, disk=disk), work, disk=disk)
    )
    try:
        moment = freeze(state, hour=state.created)
        # What is copied stays mapped for as long as the partition is used.
        with Copies(work, disk) as copies:
            return partition_at(state, moment, copies=copies)
    finally:
        state.close()


def best_state(directory: Path, work: Path, *, disk: Disk) -> tuple[PartitionState, Opened]:
    """Return the newest state of *directory* that can be read, though journals may be missing.

    It is for a frontier made anew, which does not know yet how far the index was taken into account.
    Working files are made in *work*. Raises DamagedFileError where nothing can be read, InputError where
    it is of no use here.
    """
    state, opened, _ = read_state(Generations(directory, disk=disk), work, disk=disk, incomplete=True)
    try:
        check_identity(state, {}, directory)
    except BaseException:
        state.close()
        raise
    state.meta.pop(INDEX_ROWS, None)
    return state, opened


def adopted(
    state: PartitionState, identity: Identity, *, directory: Path, disk: Disk
) -> tuple[PartitionState, str]:
    """Return what *state* is under *identity*, and a sentence about how its rows were keyed.

    Working files are made in *directory*. A row whose URL cannot be read is left out, and counted.
    InputError where the strings overlap beyond reason.
    """
    new = PartitionState(directory=directory, disk=disk, rows=len(state.rows))
    new.partition_id, new.created = state.partition_id, state.created
    kinds: Counter[str] = Counter()
    try:
        strings = _Strings(state, new)
        # In the order in which the URLs were offered, which is that of the arena.
        order = np.argsort(state.rows.view()["url_ref"], kind="stable").tolist()
        for number in order:
            if number not in state.removed:
                _adopt_row(strings, new, state.rows.get(number), identity, kinds)
        _adopt_hosts(new, _delays(state, strings))
    except BaseException:
        new.close()
        raise
    return new, (
        f"The frontier was made by other software: {kinds['seeded']:,} URLs keyed as it keys seeds, "
        f"{kinds['canonical']:,} by their canonical form, {kinds['other']:,} otherwise. They were keyed "
        f"anew ({identity.value}); {kinds['twice']:,} were there twice, {kinds['nameless']:,} nameless."
    )


class _Strings:
    """The strings of an adopted partition, and where those are that were carried over."""

    def __init__(self, state: PartitionState, new: PartitionState) -> None:
        self._old, self._new = state.arena, new.arena
        self._left = MOST_OVERLAP * len(state.arena) + SMALL
        rows = state.rows.columns("etag_ref", "redirect_ref")
        self._references = np.unique(np.concatenate([*rows.values()]))
        self._carried = np.zeros(len(self._references), np.uint64)

    def text_at(self, reference: int) -> bytes | None:
        """Return the string at *reference*; None where that leads nowhere."""
        text = self._old.text_at(reference)
        self._left -= len(text or b"")
        if self._left < 0:
            raise InputError(
                "The frontier was made by other software, and its strings overlap each other, so that "
                "they cannot be copied apart. Give another output directory."
            )
        return text

    def append(self, text: bytes) -> int:
        """Add *text* to the new strings, and return the reference to it."""
        entry = entry_of(text)
        if text.startswith(ANNEX_MARK):
            # It would read as the annex of the string before it; an empty entry keeps them apart.
            return self._new.append(b"\0" + entry) + 1
        return self._new.append(entry)

    def carried(self, reference: int) -> int:
        """Return the new reference to the string at *reference*, of an ETag or redirect; 0 for none.

        Other software may have one string for many rows: it is carried over once.
        """
        at = self._references.searchsorted(np.uint64(reference))
        if not self._carried[at] and (text := self.text_at(reference)) is not None:
            self._carried[at] = self.append(text)
        return int(self._carried[at])


def _adopt_row(
    strings: _Strings, new: PartitionState, row: UrlRow, identity: Identity, kinds: Counter[str]
) -> None:
    octets = strings.text_at(row.url_ref)
    if octets is None:
        kinds["nameless"] += 1
        return
    url = text_of(octets)
    kinds[_kind(UrlKey(row.host, row.path), url)] += 1
    key = url_key(url, identity)
    number = len(new.rows)
    known = new.add(key.host, key.path, number)
    if known is not None:
        kinds["twice"] += 1
        there = new.rows.get(known)
        if (row.crawl_count, row.last_crawled) <= (there.crawl_count, there.last_crawled):
            return
    moved = row._replace(
        host=key.host,
        path=key.path,
        url_ref=strings.append(octets),
        etag_ref=strings.carried(row.etag_ref),
        redirect_ref=strings.carried(row.redirect_ref),
    ).packed()
    if known is None:
        new.rows.append(moved)
    else:
        new.rows.write(known, moved)


def _kind(key: UrlKey, url: str) -> str:
    if key == url_key(url, Identity.CANONICAL):
        return "canonical"
    return "seeded" if key == seed_key(url) else "other"


def _adopt_hosts(new: PartitionState, delays: Mapping[str, int]) -> None:
    """Make a row for every host of the rows of *new*."""
    view = new.rows.view()
    hosts, first, counts = np.unique(view["host_key"], return_index=True, return_counts=True)
    for host, number, count in zip(hosts.tolist(), first.tolist(), counts.tolist(), strict=True):
        url = text_of(new.arena.texts_at(new.rows.get(number).url_ref)[0])
        group = host_group(url)
        reference = new.arena.append(entry_of(group.encode("utf-8", "replace")))
        new.host_numbers[host] = new.hosts.append(
            HostRow(
                host,
                host_ref=reference,
                registrable_ref=reference,
                crawl_delay=delays.get(group, 10),
                url_count=count,
            ).packed()
        )


def _delays(state: PartitionState, strings: _Strings) -> dict[str, int]:
    """Return the longest delay, in tenths of a second, noted for any host of a group."""
    delays: dict[str, int] = {}
    for number in range(len(state.hosts)):
        row = state.hosts.get(number)
        name = strings.text_at(row.host_ref)
        if name is not None:
            group = host_group(f"http://{text_of(name)}/")
            delays[group] = max(delays.get(group, 0), row.crawl_delay)
    return delays
