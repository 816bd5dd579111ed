"""Archive: the records and the index of one crawl, in one directory.

    archive = Archive(directory, config=config, now=..., monotonic=..., random=...)
    archive.store(items)        the items' captures are kept once this returns
    archive.seal()              the files are whole

`store` is `warc.add` and `index.add` for every item and then `commit`, which a crawl may also call one
by one. `commit` writes index rows first and records second. Thus after a crash there may be a row whose
record is missing, which `repair` drops, so that the URL is fetched again; and never a record that
nothing points at. How soon both are forced to disk is the crawl's `Durability`.

`WarcStage` makes the records of captures and can be used without an index.

One crawl at a time has a directory. Synchronous, for one thread.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from amicrawl import __version__
from amicrawl.capture import NO_BODY, Failure
from amicrawl.config import PREFIX, SECRET_FIELDS, Dedup, Durability
from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import Disk
from amicrawl.listing import DEFAULT_PREFIX, known_files
from amicrawl.record.deduplication import Original, Originals, decide, digests_of, may_be_original
from amicrawl.record.journal import CapturesJournal
from amicrawl.record.repair import repair_locked
from amicrawl.record.warc import URI_LIMIT, exchange_records, record_ids, resource_records, target_uri
from amicrawl.record.writer import WarcWriter, next_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from amicrawl.capture import Capture
    from amicrawl.config import CrawlConfig
    from amicrawl.listing import SealedFile
    from amicrawl.record.captures import CaptureItem
    from amicrawl.record.deduplication import Digests
    from amicrawl.record.repair import Repaired
    from amicrawl.record.warc import Record, RecordIds

SYNC_SECONDS = 1.0
"""Under `Durability.NORMAL`, the longest that what is written may wait for being forced to disk ..."""
SYNC_BYTES = 64 * 1024**2
"""... and the most of it that may."""


class Archive:
    """Stores captures and their rows, and forces them to disk as often as configured."""

    def __init__(
        self,
        directory: Path,
        *,
        config: CrawlConfig,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        random: Callable[[int], bytes],
        prefix: str = DEFAULT_PREFIX,
        warcinfo: Mapping[str, str] | None = None,
        on_sealed: Callable[[SealedFile], None] | None = None,
        disk: Disk | None = None,
    ) -> None:
        """Take over *directory*, which is there, and repair what a killed crawl left in it.

        *now* gives aware times; *monotonic* seconds that never go back; *random* that many unpredictable
        bytes. *prefix* begins the names of WARC files, as `expanded` gives it. *warcinfo* is said in
        every file besides what the configuration says. *on_sealed* is called with every file that is
        finished. UsageError where another crawl has the directory.
        """
        disk = disk or Disk()
        ids = record_ids(random)
        self._lock, self.repaired, first = _take_over(directory, disk)
        """`repaired`: what was found and repaired; its `lost_urls` have to be fetched again."""
        self.index = CapturesJournal(directory, disk=disk)
        """The stage that keeps rows."""
        writer = WarcWriter(
            directory,
            max_size=config.warc_size,
            warcinfo=warcinfo_fields(config) | dict(warcinfo or {}),
            prefix=prefix,
            first=first,
            ids=ids,
            now=now,
            disk=disk,
        )
        self.warc = WarcStage(
            writer,
            ids=ids,
            originals=Originals() if config.dedup is Dedup.CRAWL else None,
            store_unchanged=config.store_unchanged,
            metadata=config.warc_metadata,
        )
        """The stage that keeps records."""
        self._durability = config.durability
        self._monotonic = monotonic
        self._on_sealed = on_sealed
        self._told = 0
        self._unsynced_bytes = 0
        self._synced_at = monotonic()

    def store(self, items: Sequence[CaptureItem]) -> None:
        """Keep the captures of *items*, one batch, and their rows; raises OutputError."""
        self.warc.add(*items)
        self.index.add(*items)
        self.commit()

    def commit(self) -> None:
        """Write what was added to both stages, and force it to disk where that is due."""
        self._unsynced_bytes += self.warc.writer.pending_bytes + self.index.pending_bytes
        waits, due = self._unsynced_bytes, False
        if waits and self._durability is Durability.NORMAL:
            due = waits >= SYNC_BYTES or self._monotonic() - self._synced_at >= SYNC_SECONDS
        elif waits:
            due = self._durability is Durability.FULL
        # A file about to be sealed outlives any crash; its rows must do so first.
        self.index.commit(sync=due or self.warc.writer.will_seal)
        self.warc.writer.commit(sync=due)
        if due:
            self._unsynced_bytes = 0
            self._synced_at = self._monotonic()
        if len(self.warc.writer.sealed) > self._told:
            self._tell_of_sealed()

    def seal(self) -> None:
        """Finish all files, and give the directory up."""
        self.index.commit(sync=True)
        self.warc.writer.seal()
        self._tell_of_sealed()
        table = self.index.seal()
        if self._on_sealed is not None:
            self._on_sealed(table)
        self._lock.release()

    def close(self) -> None:
        """Let go of everything as it is; the next crawl in this directory repairs it."""
        self.warc.writer.close()
        self.index.close()
        self._lock.release()

    def _tell_of_sealed(self) -> None:
        for file in self.warc.writer.sealed[self._told :]:
            self._told += 1
            if self._on_sealed is not None:
                self._on_sealed(file)


def _take_over(directory: Path, disk: Disk) -> tuple[DirectoryLock, Repaired, int]:
    """Lock and repair *directory*; return the lock, what was done, and the number of the next file."""
    lock = DirectoryLock(directory)
    try:
        repaired = repair_locked(directory, disk=disk)
        return lock, repaired, next_number(directory, taken=known_files(directory))
    except BaseException:
        lock.release()
        raise


def warcinfo_fields(config: CrawlConfig) -> dict[str, str]:
    """Return what every warcinfo record says of a crawl by *config*, and what it sets otherwise."""
    untold = {"out", "operator", "direct", *SECRET_FIELDS}
    settings = config.model_dump(mode="json", exclude=untold, exclude_defaults=True)
    return {
        "software": f"amicrawl/{__version__}",
        "format": "WARC File Format 1.1",
        "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        **({"operator": config.operator} if config.operator else {}),
        "robots": config.robots.value,
        **{PREFIX + name.upper(): _setting_text(value) for name, value in settings.items()},
    }


def _setting_text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


_CAPTURE: Callable[[CaptureItem], Capture] = attrgetter("capture")
_SURELY_NAMEABLE = URI_LIMIT // 12
"""Characters that become `URI_LIMIT` bytes where each has four octets, and these are percent-encoded."""


class WarcStage:
    """Writes the records of captures; usable with or without an index behind it."""

    def __init__(
        self,
        writer: WarcWriter,
        *,
        ids: RecordIds,
        originals: Originals | None = None,
        store_unchanged: bool = False,
        metadata: bool = False,
    ) -> None:
        """*originals* is None where payloads are compared with what the seed knows alone.

        With *metadata*, a record for each capture says how its URL was found.
        """
        self.writer = writer
        self._ids = ids
        self._originals = originals
        self._store_unchanged = store_unchanged
        self._metadata = metadata

    def add(self, *items: CaptureItem) -> None:
        """Take the captures of *items*, and fill in what each item says of its record.

        A fetch that failed leaves no record. Nothing is on disk before `commit`. Each step is done for
        all items before the next: what a step needs stays in the processor's cache, which saves a sixth
        of the time with 32 pages at once.
        """
        for item in items:
            if len(item.capture.url) > _SURELY_NAMEABLE:
                _fail_unnameable(item)
        kept = [item for item in items if item.capture.status]
        digests = list(map(digests_of, map(_CAPTURE, kept)))
        exchanges = list(map(self._records, kept, digests))
        for item, location in zip(kept, self.writer.add(exchanges), strict=True):
            item.location = location

    def _records(self, item: CaptureItem, digests: Digests) -> list[Record]:
        """Return the records of *item*, and fill in all but where they lie."""
        capture = item.capture
        decision = decide(
            capture,
            digests,
            seed=item.seed,
            stored=self._originals,
            store_unchanged=self._store_unchanged,
        )
        found = item.provenance if self._metadata else None
        records = exchange_records(capture, digests, decision=decision, ids=self._ids, found=found)
        if item.resources:
            # Before the response: the row of the index names the last record.
            made = resource_records(records, item.resources, ids=self._ids, url=capture.url)
            records = made + records
        item.is_revisit = decision.profile is not None
        item.original = decision.original
        if decision.original is not None:
            item.payload_digest = decision.original.label_besides(decision.digest)
        elif digests.differs:
            item.payload_digest = digests.wire_payload or ""
        item.record_id = records[-1].record_id
        item.digest = decision.digest
        item.body_length = digests.payload_length
        item.unchanged = decision.unchanged
        if self._originals is not None and may_be_original(capture, digests, decision=decision):
            label = digests.wire_payload or ""
            original = Original(capture.url, capture.started_ms, label, item.record_id)
            self._originals.add(digests.payload, original)
        return records

    def commit(self, *, sync: bool) -> None:
        """Write the records of what was added, and with *sync* force them to disk."""
        self.writer.commit(sync=sync)


def _fail_unnameable(item: CaptureItem) -> None:
    """Make a failure of a capture whose URL is too long to stand in a record.

    A longer header keeps fastwarc from reading the rest of the file, so one such link would cost every
    capture behind it.
    """
    length = len(target_uri(item.capture.url))
    if length > URI_LIMIT and item.capture.status:
        item.capture = replace(
            item.capture,
            status=0,
            head=b"",
            body=NO_BODY,
            failure=Failure.UNFETCHABLE_URL,
            failure_detail=f"its URL takes {length} bytes, and a record can name {URI_LIMIT}",
        )
