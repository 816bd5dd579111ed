"""CaptureItem: one capture on its way through this room, and what the room has found out about it.

The crawl fills the first four fields. `stage.WarcStage` fills the rest, and `journal.CapturesJournal`
turns the whole into a row of the index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from amicrawl.capture import Capture
    from amicrawl.record.revisit import Original
    from amicrawl.seed import Seed


class RecordLocation(NamedTuple):
    """Where a record lies: one gzip member of a WARC file, which inflates to that record alone."""

    warc_file: str
    """Name of the file once it is sealed, without a directory; while written it ends in `.open`."""
    offset: int
    """First byte of the member."""
    length: int
    """Bytes of the member."""


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
    body_length: int = 0
    """Bytes of the payload."""
    unchanged: bool = False
    """Whether the payload is the one that the seed knows."""
    described: tuple[str, str, str] | None = None
    """Content-Type, ETag and Last-Modified, once its row was made."""
