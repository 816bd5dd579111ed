"""`amicrawl pipeline ls`: the records of all pipelines, as columns or as JSON.

The records lie in Redis, where anybody may have written them: what is no number is shown as a question
mark, and is null in JSON.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import typer

from amicrawl.cli.json_answer import AsJson
from amicrawl.cli.redis_options import PrefixOption, RedisOption, job_store
from amicrawl.jobs.pipeline_record import is_silent, pipelines, redis_now
from amicrawl.terminal import aligned, harmless, human_size, human_span

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXTS = ("nickname", "status", "hostname", "version")
_SILENT = "silent"
_COUNTS = {"running": "running", "slots": "slots", "free_bytes": "disk_available", "reported": "ts"}
_HEADING = ("name", "status", "jobs", "load", "free", "reported", "key")
_UNKNOWN = "?"
_MOST = 10**18


def list_pipelines(
    *, as_json: AsJson = False, redis: RedisOption = None, prefix: PrefixOption = None
) -> None:
    """List the pipelines: name, status, slots in use, load, free disk, when it last reported.

    One that has not reported for 15 seconds is `silent`: it was killed, or cannot reach Redis.
    """
    store = job_store(redis, prefix)
    now = redis_now(store)
    found = [_facts(fields, now) for fields in pipelines(store)]
    store.close()
    if as_json:
        for facts in found:
            typer.echo(json.dumps(facts))
        return
    if not found:
        typer.echo("None.")
        return
    right = (False, False, True, True, True, True, False)
    for line in aligned([_HEADING, *(_row(facts, int(now)) for facts in found)], right=right):
        typer.echo(line)


def _facts(fields: Mapping[str, str], now: float) -> dict[str, Any]:
    """Return what a record says, its figures as numbers; None for what is none."""
    return {
        "key": fields.get("id", ""),
        **{name: fields.get(name, "") for name in _TEXTS},
        **{name: _count(fields.get(field, "")) for name, field in _COUNTS.items()},
        "load": _load(fields.get("load_average_1m", "")),
        "silent": is_silent(fields, now),
    }


def _count(text: str) -> int | None:
    return min(int(text), _MOST) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _load(text: str) -> float | None:
    try:
        load = float(text[:30])
    except ValueError:
        return None
    return load if math.isfinite(load) else None


def _row(facts: Mapping[str, Any], now: int) -> tuple[str, ...]:
    free, load, reported = facts["free_bytes"], facts["load"], facts["reported"]
    jobs = [_UNKNOWN if facts[name] is None else str(facts[name]) for name in ("running", "slots")]
    return (
        harmless(facts["nickname"], limit=40),
        _SILENT if facts["silent"] else harmless(facts["status"], limit=20),
        f"?/{jobs[1]}" if facts["silent"] else "/".join(jobs),
        _UNKNOWN if load is None else f"{load:.2f}",
        _UNKNOWN if free is None else human_size(free),
        # Its clock may be ahead of ours.
        _UNKNOWN if reported is None else f"{human_span(max(now - reported, 0))} ago",
        harmless(facts["key"], limit=100),
    )
