"""Captures into records: what is known of a capture on its way, and the stage that writes its records.

The crawl fills the first four fields of a `CaptureItem`. `WarcStage` decides, encodes and fills in the
rest, and `journal.CapturesJournal` turns the whole into a row of the index.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from amicrawl.capture import NO_BODY, Failure
from amicrawl.record.digests import digests_of
from amicrawl.record.revisit import Original, decide, may_be_original
from amicrawl.record.warc import URI_LIMIT, exchange_records, target_uri, unix_ms

if TYPE_CHECKING:
    from amicrawl.capture import Capture
    from amicrawl.record.digests import Digests
    from amicrawl.record.revisit import Originals
    from amicrawl.record.warc import Record, RecordIds
    from amicrawl.record.writer import RecordLocation, WarcWriter
    from amicrawl.seed import Seed


@dataclass(slots=True)
class CaptureItem:
    """A capture, the seed it was made for, and where it is kept.

    Nothing here closes `capture.body`: its fetcher does so after the item has been stored.
    """

    capture: Capture
    seed: Seed
    attempts: int = 1
    """How often the URL was asked for until this came of it, this time included."""
    final_url: str = ""
    """Where a redirect points, resolved; empty for any other answer."""

    location: RecordLocation | None = None
    """The response or revisit record; None where nothing was stored."""
    is_revisit: bool = False
    """Whether that record is a revisit, which points at an earlier record for the payload."""
    original: Original | None = None
    """The record that it points at; None where it is not a revisit."""
    record_id: str = ""
    """`WARC-Record-ID` of that record, with its angle brackets."""
    digest: str = ""
    """SHA-1 of the payload, lower-case hex; that of the seed where the server said 304."""
    payload_digest: str = ""
    """`WARC-Payload-Digest` of the record with the payload, where it is not that of `digest`."""
    body_length: int = 0
    """Bytes of the payload."""
    unchanged: bool = False
    """Whether the payload is the one that the seed knows."""
    described: tuple[str, str, str] | None = None
    """Content-Type, ETag and Last-Modified, once its row was made."""


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
    ) -> None:
        """*originals* is None where payloads are compared with what the seed knows alone."""
        self.writer = writer
        self._ids = ids
        self._originals = originals
        self._store_unchanged = store_unchanged

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
        digests = [digests_of(item.capture) for item in kept]
        exchanges = [self._records(item, found) for item, found in zip(kept, digests, strict=True)]
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
        records = exchange_records(capture, digests, decision=decision, ids=self._ids)
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
            original = Original(capture.url, unix_ms(capture.started), label, item.record_id)
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
