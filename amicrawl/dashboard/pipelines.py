"""Pipelines, from the records that anybody may have written to what the API answers. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from amicrawl.dashboard.texts import plain
from amicrawl.jobs.pipeline_record import DRAIN_FIELD, is_silent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.dashboard.shapes import Pipeline
    from amicrawl.jobs.watching import Seen

_SHORT = 300


def pipeline_view(
    key: str, record: Mapping[str, str], *, jobs: Mapping[str, Seen], prefix: str, now: float
) -> Pipeline:
    """Return the pipeline whose *record* lies at *key*, with those of *jobs* that it runs.

    *now* is by the clock of Redis, in Unix seconds.
    """
    ts = _number(record.get("ts"))
    return {
        "id": plain(key.removeprefix(prefix), limit=_SHORT),
        "nickname": plain(record.get("nickname", ""), limit=_SHORT),
        "hostname": plain(record.get("hostname", ""), limit=_SHORT),
        "fqdn": plain(record.get("fqdn", ""), limit=_SHORT),
        "pid": _whole(record.get("pid")),
        "version": plain(record.get("version", ""), limit=_SHORT),
        "python": plain(record.get("python", "").replace("\n", " "), limit=_SHORT),
        "status": plain(record.get("status", ""), limit=_SHORT),
        "draining": bool(record.get(DRAIN_FIELD)) or record.get("status") == "Stopping",
        "ts": ts,
        "is_stale": is_silent(record, now),
        "load": [_number(record.get(f"load_average_{n}m")) for n in (1, 5, 15)],
        "mem_usage": _number(record.get("mem_usage")),
        "mem_available": _whole(record.get("mem_available")),
        "disk_usage": _number(record.get("disk_usage")),
        "disk_available": _whole(record.get("disk_available")),
        "slots": _whole(record.get("slots")),
        "jobs": [
            {"ident": ident, "url": plain(seen.record.get("url", ""))}
            for ident, seen in jobs.items()
            if seen.record.get("pipeline_id") == key
        ],
    }


def _number(text: str | None) -> float | None:
    if not text or len(text) > 40:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) < 2**60 else None


def _whole(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None else int(number)
