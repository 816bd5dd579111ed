"""The disk guard: no more is fetched while there is too little room to keep it.

Fetching pauses below a threshold and goes on a tenth above it, so that a disk that hovers at the
threshold does not start and stop the crawl with every file. How much is free is measured by the caller.
"""

from __future__ import annotations


class DiskGuard:
    """Whether the crawl is paused for want of room."""

    __slots__ = ("_resume_at", "_threshold", "paused")

    paused: bool
    """Whether nothing new may be fetched now."""

    def __init__(self, threshold: int) -> None:
        """Pause below *threshold* free bytes; never for 0."""
        self.paused = False
        self._threshold = threshold
        # In whole numbers, rounded up: a float would lose bytes of a large disk.
        self._resume_at = -(-threshold * 11 // 10)

    def measured(self, free: int) -> bool:
        """Note that *free* bytes are free, and tell whether the crawl is paused from now on."""
        self.paused = free < (self._resume_at if self.paused else self._threshold)
        return self.paused
