"""What is known of robots.txt, beside the frontier: `robots.json`, and `robots.jsonl` in a crawl.

    robots.json    {"agent": "...", "origins": [{"origin": "http://a.example/robots.txt", ...}, ...]}
    robots.jsonl   what was learnt since, an origin a line, up to the one that a kill has cut short

The files of several frontiers are joined where these become one, and copied where one is divided. The
objects are those of `RobotsCache.to_rows`. What cannot be read is fetched again.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from amicrawl.jsontext import parsed, parsed_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

FILE = "robots.json"
JOURNAL = "robots.jsonl"
_LONGEST_NOTE = 16 << 20


def read_robots(directory: Path) -> tuple[str, list[object]]:
    """Return the agent for which crawls have kept something in *directory*, and what; nothing for none.

    What a killed one had learnt was learnt for the agent that the file beside its journal names.
    """
    try:
        known = parsed_file(directory / FILE, loads=json.loads)
        rows, agent = known["origins"], known["agent"]
    except (OSError, ValueError, KeyError, TypeError):
        return "", []
    if not isinstance(rows, list) or not isinstance(agent, str):
        return "", []
    return agent, [*rows, *_noted(directory / JOURNAL)]


def rows_text(agent: str, rows: Iterable[object]) -> bytes:
    """Return the content of `robots.json` that says *rows*, which hold for *agent*."""
    return json.dumps({"agent": agent, "origins": list(rows)}, separators=(",", ":")).encode("ascii")


def joined_text(directories: Sequence[Path]) -> bytes | None:
    """Return the content of one `robots.json` for what is kept in all *directories*; None for nothing.

    Of what several know of an origin the one counts that expires last: it was fetched last.
    """
    found = [read_robots(directory) for directory in directories]
    agent = next((agent for agent, _ in found if agent), "")
    newest: dict[object, dict[str, Any]] = {}
    for row in (row for other, rows in found if other == agent for row in rows):
        if isinstance(row, dict):
            origin, before = row.get("origin"), newest.get(row.get("origin"))
            if before is None or _expires(row) >= _expires(before):
                newest[origin] = row
    return rows_text(agent, newest.values()) if newest else None


def _expires(row: dict[str, Any]) -> float:
    expires = row.get("expires")
    return float(expires) if isinstance(expires, (int, float)) else 0.0


def _noted(path: Path) -> Iterator[object]:
    with contextlib.suppress(OSError, ValueError), path.open("rb") as lines:
        while line := lines.readline(_LONGEST_NOTE):
            yield parsed(line, loads=json.loads)
