"""Counts: what came of the captures of a run, in numbers. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amicrawl.record.item import CaptureItem


@dataclass(slots=True)
class Counts:
    """Sums over the captures whose rows were taken."""

    rows: int = 0
    """All of them."""
    responses: int = 0
    """Stored as a response record."""
    revisits: int = 0
    """Stored as a revisit record."""
    failures: int = 0
    """Brought no response."""
    unchanged: int = 0
    """Brought the payload that the seed knew, or a 304 that said so."""
    truncated: int = 0
    """Were cut."""
    payload_bytes: int = 0
    """Bytes of payload received, stored or not."""
    warc_bytes: int = 0
    """Bytes of the response and revisit records, compressed."""

    def add(self, item: CaptureItem) -> None:
        """Count *item*, which has been stored or has failed."""
        self.rows += 1
        self.failures += item.capture.status == 0
        self.unchanged += item.unchanged
        self.truncated += item.capture.truncated is not None
        self.payload_bytes += item.body_length
        if item.location is not None:
            self.revisits += item.is_revisit
            self.responses += not item.is_revisit
            self.warc_bytes += item.location.length
