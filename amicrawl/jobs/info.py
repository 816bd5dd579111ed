"""The info JSON of a job: what it was, beside its files and in `finish_notifications`.

The eight fields that ArchiveBot declares are there with its types; a bot announces a finished job by
them, and viewers read them. The others are ours. Every value comes out of a record that anybody may have
written, and is cut to a length at which it does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.disk import explained, replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.jobs.lease import Claim

_LONGEST = 16_384
_FIELDS = ("fetch_depth", "pipeline_id", "queued_at", "started_by", "started_in", "url")
_FURTHER = ("started_at", "note", "slug", "user_agent", *(f"r{n}xx" for n in range(1, 6)), "runk")
_COUNTS = ("bytes_downloaded", "items_downloaded", "items_queued", "error_count")


def info_of(record: Mapping[str, str], claim: Claim, *, exit_code: int | None = None) -> dict[str, Any]:
    """Return the info of a job by its *record* and the *claim* it ran under."""
    info: dict[str, Any] = {name: _text(record.get(name, "")) for name in _FIELDS}
    info["aborted"] = bool(record.get("aborted"))
    info["url_file"] = _text(record["url_file"]) if record.get("url_file") else None
    for name in (*_FURTHER, *_COUNTS):
        if record.get(name):
            info[name] = _text(record[name])
    info.update(ident=claim.unit, attempt=claim.attempt, run_id=claim.run_id, directory=claim.directory)
    if claim.resumed:
        info["resumed"] = claim.resumed
    if exit_code is not None:
        info["exit_code"] = exit_code
    return info


def encoded(info: Mapping[str, Any]) -> str:
    """Return *info* as the text that goes into Redis."""
    return orjson.dumps(dict(info), option=orjson.OPT_SORT_KEYS).decode()


def write_info(path: Path, info: Mapping[str, Any], *, disk: Disk) -> None:
    """Write *info* to *path*, in place of what is there; OutputError where that fails."""
    with explained(path, "written"):
        replace_file(path, encoded(info).encode() + b"\n", disk=disk)


def _text(value: str) -> str:
    # Bytes that are not UTF-8 came as lone surrogates, which JSON has no way to write.
    return value[:_LONGEST].encode("utf-8", "replace").decode()
