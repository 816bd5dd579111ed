"""Killed crawls whose frontier then loses a journal, or a bit of one, or whose clock was wrong.

Whatever was done to it, the next crawl fetches nothing again that is archived, but for what was in
flight, and the last one has every page. `AMICRAWL_CRASH_ROUNDS` sets how often it is killed.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from typing import TYPE_CHECKING

import warm_processes
from archive_reading import rows
from crash.killing import is_killed
from loopback import PROJECT, RawServer, command, crawl, page, write_lines

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROUNDS = min(int(os.environ.get("AMICRAWL_CRASH_ROUNDS", "4")), 40)
HOSTS = 4
INFLIGHT = 8
PAGES = 400
SETTINGS = {
    "AMICRAWL_INFLIGHT_MAX": str(INFLIGHT),
    "AMICRAWL_PER_HOST": "2",
    "AMICRAWL_ROBOTS": "obey",
    "AMICRAWL_DELAY": "0",
}
HOURS = (-2, 30 * 24)


def respond(head: bytes) -> bytes:
    if b" /robots.txt " in head.split(b"\r\n")[0]:
        return page(b"User-agent: *\nDisallow: /private\n")
    return page(b"<p>" + head.split(b" ")[1] * 50)


def written_logs(out: Path) -> list[Path]:
    return [path for path in (out / "frontier").glob("log-*") if path.stat().st_size > 200]


def lose_a_journal(out: Path, dice: random.Random) -> str:
    logs = written_logs(out)
    if not logs:
        return "nothing to lose"
    dice.choice(logs).unlink()
    line = [sys.executable, "-m", "amicrawl", "frontier", "rebuild", str(out)]
    done = warm_processes.run(line, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.DONE, done.stderr
    return "a journal lost"


def flip_a_bit(out: Path, dice: random.Random) -> str:
    for path in written_logs(out):
        block = bytearray(path.read_bytes())
        block[dice.randrange(len(block))] ^= 1 << dice.randrange(8)
        path.write_bytes(block)
    return "a bit flipped"


def step_the_clock(out: Path, dice: random.Random) -> str:
    """Make the rows that were not sealed say what a clock that was wrong would have said."""
    hours = dice.choice(HOURS)
    for path in out.glob("captures-*.open"):
        lines = []
        for text in path.read_bytes().splitlines(keepends=True):
            if text.endswith(b"\n"):
                row = json.loads(text)
                row["fetched_at"] += hours * 3_600_000
                lines.append(json.dumps(row) + "\n")
        path.write_text("".join(lines))
    return f"the clock {hours} h off"


DAMAGE: tuple[Callable[[Path, random.Random], str], ...] = (
    lose_a_journal,
    flip_a_bit,
    step_the_clock,
)


def test_what_is_archived_is_not_fetched_again_whatever_befell_the_frontier(tmp_path: Path) -> None:
    out, dice = tmp_path / "out", random.Random(20261122)
    kills, befell = 0, []
    with RawServer(respond, keep_open=True, pause=0.004) as server:
        urls = [f"http://127.0.0.{1 + n % HOSTS}:{server.port}/p/{n}" for n in range(PAGES)]
        seeds = write_lines(tmp_path / "seeds.txt", urls)
        for number in range(ROUNDS):
            if not is_killed(
                command(seeds, out, settings=SETTINGS), server, after=dice.uniform(0.05, 0.35)
            ):
                break
            kills += 1
            befell.append(DAMAGE[number % len(DAMAGE)](out, dice))
        last = crawl(seeds, out, settings=SETTINGS)
        assert last.returncode == ExitCode.DONE, (last.stderr, befell)
        counts = Counter(head.split(b" ")[1] + head.split(b"Host: ")[1][:16] for head in server.requests)
    assert kills, "no crawl was killed: this says nothing"
    pages = {path: count for path, count in counts.items() if not path.startswith(b"/robots.txt")}
    assert len(pages) == PAGES
    again = sum(count - 1 for count in pages.values())
    assert again <= kills * INFLIGHT, (again, befell)
    requested = sum(count for path, count in counts.items() if path.startswith(b"/robots.txt"))
    assert requested <= HOSTS + kills, (requested, befell)  # one may have been under way
    found = [row for row in rows(out) if not row["url"].endswith("/robots.txt")]
    assert {row["url"] for row in found} == set(urls)
