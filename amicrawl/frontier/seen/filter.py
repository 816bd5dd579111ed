"""Filters as a frontier file holds them: which of the two kinds a blob is."""

from __future__ import annotations

from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.seen.bloom import BlockedBloom
from amicrawl.frontier.seen.ribbon import Ribbon

Filter = BlockedBloom | Ribbon


def read_filter(blob: bytes | memoryview) -> Filter:
    """Read a filter of either kind; Malformed where *blob* is not exactly one."""
    if len(blob) < 2:
        raise Malformed(f"a filter of {len(blob)} bytes has no kind", at=len(blob))
    if blob[0] != 1:
        raise Malformed(f"a filter of version {blob[0]}; this reads version 1")
    if blob[1] > 1:
        raise Malformed(f"a filter of kind {blob[1]}; there are 0 and 1", at=1)
    return Ribbon.from_blob(blob) if blob[1] else BlockedBloom.from_blob(blob)
