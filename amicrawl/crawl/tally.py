"""Tally: what a crawl has done so far, in the classes that its screen and summary show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amicrawl.capture import Failure
    from amicrawl.record import CaptureItem

CLASSES = ("ok", "unchanged", "redirect", "client_error", "server_error", "failed", "skipped")
"""The counts of which each row of the index is in exactly one."""

STATS = {
    **{name: f"amicrawl/fetches/{name}" for name in CLASSES},
    "rows": "amicrawl/rows",
    "bytes_received": "amicrawl/bytes_received",
    "seeds_read": "amicrawl/seeds/read",
    "seeds_bad": "amicrawl/seeds/bad",
    "seeds_elsewhere": "amicrawl/seeds/elsewhere",
    "seeds_known": "amicrawl/seeds/known",
}
"""The stats key under which each count is found when the crawl has ended."""


@dataclass(slots=True)
class Tally:
    """Counts of one crawl. Every row of the index is in exactly one of the classes."""

    ok: int = 0
    """2xx and other answers that are in no class below, unchanged ones excepted."""
    unchanged: int = 0
    """Answers equal to an earlier capture."""
    redirect: int = 0
    """3xx answers."""
    client_error: int = 0
    """4xx answers."""
    server_error: int = 0
    """5xx answers."""
    failed: int = 0
    """Fetches that brought no answer."""
    skipped: int = 0
    """URLs that were not asked for: host given up, robots.txt, the crawl's own rules."""
    bytes_received: int = 0
    """Bytes of response heads and bodies as received."""
    seeds_read: int = 0
    """Seeds that the reader delivered."""
    seeds_bad: int = 0
    """Lines of the seed list that could not be used."""
    seeds_elsewhere: int = 0
    """Seeds that belong to another shard."""
    seeds_known: int = 0
    """Seeds that were already in the frontier."""
    seeds_ended: bool = False
    """Whether the seed list was read to its end, so that the total is known."""
    seeds_announced: int | None = None
    """How many entries the seed list has, counted ahead of the reading; None where not known yet."""

    @property
    def responses(self) -> int:
        """Fetches that brought a response, whatever its status."""
        return self.ok + self.unchanged + self.redirect + self.client_error + self.server_error

    @property
    def rows(self) -> int:
        """Rows of the index so far."""
        return self.responses + self.failed + self.skipped

    @property
    def reached_nothing(self) -> bool:
        """Whether something was asked for and no response came, or no seed was for this shard."""
        is_elsewhere = bool(self.seeds_read) and self.seeds_elsewhere == self.seeds_read
        return is_elsewhere or (self.failed > 0 and not self.responses)

    def count(self, item: CaptureItem) -> None:
        """Put *item* into its class."""
        capture = item.capture
        self.bytes_received += len(capture.head) + len(capture.body)
        self.add(capture.status, capture.failure, unchanged=item.unchanged)

    def add(self, status: int, failure: Failure | None, *, unchanged: bool, rows: int = 1) -> None:
        """Count *rows* rows of the index that say this."""
        if failure is not None:
            name = "skipped" if failure.never_asked else "failed"
        elif unchanged:
            name = "unchanged"
        elif status >= 500:
            name = "server_error"
        else:
            name = {3: "redirect", 4: "client_error"}.get(status // 100, "ok")
        setattr(self, name, getattr(self, name) + rows)

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name, `rows` included."""
        counts = asdict(self)
        del counts["seeds_ended"], counts["seeds_announced"]
        return {**counts, "rows": self.rows}

    def as_stats(self) -> dict[str, int]:
        """Return the counts by Scrapy's stats key, for tools that look there when a crawl has ended."""
        counts = self.as_dict()
        return {key: counts[name] for name, key in STATS.items()}
