"""What a crawl shows while it runs and when it has ended. Pure: numbers in, text out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amicrawl.crawl.tally import Tally

_MIB = 1024**2


@dataclass(frozen=True, slots=True)
class Moment:
    """A crawl as it is now."""

    elapsed: float
    """Seconds since the start."""
    total: int | None
    """Rows that there will be at least; None while the seed list is still being read."""
    in_flight: int
    inflight_limit: int
    pages_per_second: float
    """Over the time since the last report."""
    bytes_per_second: float
    paused_by: tuple[str, ...] = ()
    """Why nothing new is fetched; empty while it is."""


def status_line(tally: Tally, moment: Moment) -> str:
    """Return the line that a terminal rewrites."""
    total = f"{moment.total:,}" if moment.total is not None else f"{tally.seeds_read:,}+"
    eta = remaining(tally, moment)
    # In front, for a narrow terminal to show it, too.
    paused = [f"PAUSED by {' and '.join(moment.paused_by)}"] if moment.paused_by else []
    return " | ".join(
        [
            *paused,
            f"{tally.rows:,}/{total}",
            f"{moment.pages_per_second:,.0f} pages/s",
            f"{moment.bytes_per_second / _MIB:.1f} MiB/s",
            (
                f"ok {tally.ok:,} unchanged {tally.unchanged:,} "
                f"fail {tally.failed:,} skip {tally.skipped:,}"
            ),
            f"in flight {moment.in_flight}/{moment.inflight_limit}",
            f"ETA {duration(eta) if eta is not None else '-'}",
        ]
    )


def report(tally: Tally, moment: Moment) -> dict[str, object]:
    """Return the same as an object for a JSON line; times in seconds, rates per second."""
    eta = remaining(tally, moment)
    return {
        "event": "progress",
        "elapsed": round(moment.elapsed, 1),
        "total": moment.total,
        "eta": round(eta, 1) if eta is not None else None,
        "pages_per_second": round(moment.pages_per_second, 1),
        "bytes_per_second": round(moment.bytes_per_second),
        "in_flight": moment.in_flight,
        "inflight_limit": moment.inflight_limit,
        "paused_by": list(moment.paused_by),
        **tally.as_dict(),
    }


def summary(tally: Tally, elapsed: float) -> str:
    """Return the line that a crawl ends with."""
    seconds = max(elapsed, 0.001)
    return (
        f"done in {duration(elapsed)} | {tally.ok:,} ok, {tally.unchanged:,} unchanged, "
        f"{tally.redirect:,} redirect, {tally.client_error:,} 4xx, {tally.server_error:,} 5xx, "
        f"{tally.failed:,} failed, {tally.skipped:,} skipped | {tally.rows / seconds:,.0f} pages/s, "
        f"{tally.bytes_received / _MIB / seconds:.1f} MiB/s"
    )


def remaining(tally: Tally, moment: Moment) -> float | None:
    """Return the seconds that the rest will take at the pace so far; None where nobody can know."""
    if moment.total is None or not tally.rows or moment.elapsed <= 0:
        return None
    return max(0, moment.total - tally.rows) * moment.elapsed / tally.rows


def duration(seconds: float) -> str:
    """Return *seconds* as `12s`, `3m05s` or `2h07m`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
