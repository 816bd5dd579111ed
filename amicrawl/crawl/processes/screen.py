"""What the parent of several processes prints: progress, summary, and the log lines of its children."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from amicrawl.config import LogFormat
from amicrawl.crawl.watching.screen import Moment, live_lines, report, status_line, summary
from amicrawl.terminal import LiveLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.crawl.processes.specification import Order
    from amicrawl.crawl.state import Tally


class Screen:
    """One line of progress for all processes, and their log lines above it."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._stream = sys.stderr
        self._lines = LiveLines(self._stream)
        self._as_json = order.log_format is LogFormat.JSON
        self._on_terminal = self._lines.is_watched and not self._as_json
        self.every = order.progress_every or (1.0 if self._on_terminal else 10.0)
        self._started = time.monotonic()
        self._last = (self._started, 0, 0)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def begin(self) -> None:
        """Print what is crawled, how politely, into what; a report in JSON has no such line."""
        if self._order.start and not self._as_json:
            self.pass_on(self._order.start)

    def say(self, sentence: str) -> None:
        """Print *sentence*, one of the parent's own."""
        self.pass_on(json.dumps({"event": "note", "message": sentence}) if self._as_json else sentence)

    def pass_on(self, line: str) -> None:
        """Print *line*, of a log, above the progress."""
        self._lines.clear()
        self._write(f"{line}\n")

    def show(self, tally: Tally, facts: Sequence[dict[str, Any]], reason: str) -> None:
        """Show how things stand."""
        known = [each for each in facts if each]
        if not known:
            return
        now, (then, rows, size) = time.monotonic(), self._last
        self._last = (now, tally.rows, tally.bytes_received)
        span = max(now - then, 0.001)
        waiting = sum(each["waiting"] for each in known)
        moment = Moment(
            elapsed=now - self._started,
            total=tally.rows + waiting if tally.seeds_ended else tally.seeds_announced,
            in_flight=sum(each["in_flight"] for each in known),
            inflight_limit=sum(each["inflight_limit"] for each in known),
            pages_per_second=(tally.rows - rows) / span,
            bytes_per_second=(tally.bytes_received - size) / span,
            paused_by=tuple(sorted({name for each in known for name in each["paused"]})),
            is_stopping=bool(reason) and reason != "finished",
        )
        if self._as_json:
            self._write(json.dumps(report(tally, moment) | {"processes": len(facts)}) + "\n")
        elif self._on_terminal:
            self._lines.show(*live_lines(tally, moment, ascii_only=self._lines.is_ascii))
        else:
            self._write(status_line(tally, moment) + "\n")

    def end(self, tally: Tally, reason: str) -> None:
        """Print the summary."""
        where = self._order.directory
        notes = [] if reason == "finished" else ["to resume, run the same command again"]
        if not self._as_json:
            what = summary(tally, self.elapsed, reason=reason)
            self.pass_on("\n".join([what, *notes, f"output in {where}"]))
            return
        ended = {
            "event": "finished",
            "elapsed": round(self.elapsed, 1),
            "reason": reason,
            "directory": str(where),
            "notes": notes,
            **tally.as_dict(),
        }
        self._write(json.dumps(ended) + "\n")

    def _write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)
            self._stream.flush()
