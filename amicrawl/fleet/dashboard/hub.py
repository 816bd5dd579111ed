"""The hub: one thread that reads Redis for all viewers, four times a second at most.

Each job is read at most once a reading, however many look at it: the overview once a second, the log of
a job that is followed when it has news, its details once a second. Of jobs that no viewer follows no
log is read. When Redis is away the viewers are notified, and the hub tries again every second.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, cast

import orjson

from amicrawl.errors import AmicrawlError
from amicrawl.fleet.dashboard.overview import LISTS, Overview, lists_of
from amicrawl.fleet.dashboard.stream import LogLine, Viewer
from amicrawl.fleet.dashboard.views import detail_view, entry_view, reported
from amicrawl.fleet.database import number_of
from amicrawl.fleet.jobs import ENDED, Broadcasts, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from amicrawl.fleet.dashboard.shapes import Job, JobDetail
    from amicrawl.fleet.dashboard.stream import Wish
    from amicrawl.fleet.database import JobStore
    from amicrawl.fleet.jobs import SeenJob, Updates

logger = logging.getLogger(__name__)

EVERY = 0.25
"""Seconds between two readings."""
RING = 500
"""Lines of a job that are kept for viewers that come later."""
LARGEST_RING = 1 << 20
"""Bytes of them, about."""
AT_ONCE = 1000
"""Lines of a job that one reading takes; of more, the oldest are skipped and counted."""
MOST_VIEWERS = 200
MOST_FOLLOWED = 200
_OVERVIEW_EVERY = 1.0
_KEPT = 60.0
_RETRY = 1.0
_PATIENCE = 10.0


class Followed:
    """One job that viewers look at."""

    def __init__(self, ident: str) -> None:
        self.ident = ident
        self.lines: deque[LogLine] = deque()
        self._size = 0
        self.lost = 0
        """The number of the newest line that was here and is no more."""
        self.score = 0.0
        """The number in Redis of the last line read."""
        self.is_new = True
        """Whether its log has not been read yet."""
        self.detail: JobDetail | None = None
        self.encoded = b""
        """The details as JSON, without the long lists."""
        self.ended = ""
        """As what it ended, where it did."""
        self.read_at = 0.0
        self.wanted_at = 0.0
        self._revisions: dict[str, object] = {}

    def take_lines(
        self, entries: Sequence[tuple[float, str]], numbers: Iterator[int]
    ) -> tuple[list[LogLine], int]:
        """Take *entries* from the log; return them as lines, and how many were missed before them."""
        if not entries:
            self.is_new = False
            return [], 0
        missed = 0 if self.is_new else max(0, int(entries[0][0] - self.score) - 1)
        self.is_new = False
        self.score = entries[-1][0]
        lines = []
        for score, text in entries:
            view = entry_view(score, text)
            lines.append(LogLine(next(numbers), view["type"], orjson.dumps(view)))
        self.lines += lines
        self._size += sum(len(line.data) for line in lines)
        while len(self.lines) > RING or self._size > LARGEST_RING:
            gone = self.lines.popleft()
            self.lost = gone.number
            self._size -= len(gone.data)
        return lines, missed

    def take_detail(self, job: Job, seen: SeenJob, watch: Watch) -> dict[str, bytes]:
        """Take the details of *job*; return events that tell what changed, by what they bring.

        A long list is read only when the crawl says that it changed, and sent as an event of its own,
        which brings the rest of the details, too. The first time one event brings everything, since a
        viewer that came before it has nothing yet to put a part to. Raises RedisUnavailable.
        """
        detail = detail_view(job, seen)
        revisions = _revisions_of(seen)
        changed = [name for name in LISTS if revisions[name] != self._revisions.get(name)]
        encoded = orjson.dumps(detail)
        events: dict[str, bytes] = {}
        if encoded != self.encoded:
            events[""] = encoded
        lists = lists_of(self.ident, changed, watch) if changed else {}
        # Only now: where Redis went in between, the next reading has to bring what this one did not.
        self._revisions, self.encoded = revisions, encoded
        if self.detail is None:
            events = {"all": orjson.dumps({**detail, **lists})}
        else:
            events.update((name, orjson.dumps({**detail, name: one})) for name, one in lists.items())
        self.detail = cast("JobDetail", {**(self.detail or {}), **detail, **lists})
        return events

    def look_for_another_log(self, seen: SeenJob) -> None:
        """Forget the log if the job, *seen* after the log was read, has another one.

        The URL was submitted again, or Redis was emptied: the numbers of its lines start again.
        """
        if number_of(seen.record.get("log_score")) >= self.score:
            return
        if self.lines:
            self.lost = self.lines[-1].number
        self.lines.clear()
        self._size = 0
        self.score, self.is_new = 0.0, True

    def replay(self, *, most: int, after: int | None) -> tuple[list[LogLine], bool]:
        """Return the lines for a viewer that has had those up to *after*, and whether it begins anew."""
        if after is not None and after >= self.lost and self.lines and after >= self.lines[0].number:
            return [line for line in self.lines if line.number > after], False
        return list(self.lines)[-most:] if most else [], True


class Hub:
    """Reads for all viewers, on a thread of its own."""

    def __init__(self, store: JobStore, *, has_summary: Callable[[str, SeenJob], bool]) -> None:
        self._store = store
        self._watch = Watch(store)
        self._broadcasts = Broadcasts(store)
        self._overview = Overview(self._watch, has_summary=has_summary)
        self._lock = threading.Lock()
        self._viewers: set[Viewer] = set()
        self._joining: list[Viewer] = []
        self._followed: dict[str, Followed] = {}
        self._numbers = count(1)
        self._overview_at = 0.0
        self._away = ""
        self.responded_at = float("-inf")
        """When, by `time.monotonic`, Redis last responded."""
        self._has_polled = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dashboard-hub", daemon=True)
        self.epoch = secrets.token_hex(4)
        """Which hub it is: the numbers of lines mean something to the same one only."""

    def start(self) -> None:
        """Begin to read; return when Redis has responded once, or has not for as long as it may take."""
        self._thread.start()
        self._has_polled.wait(_PATIENCE)

    def stop(self) -> None:
        """Stop reading, and tell all viewers that it is over."""
        self._stop.set()
        self.dismiss()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def dismiss(self) -> None:
        """Tell all viewers that it is over."""
        with self._lock:
            viewers = [*self._viewers, *self._joining]
        for viewer in viewers:
            viewer.end()

    @property
    def viewers(self) -> int:
        """How many there are."""
        with self._lock:
            return len(self._viewers) + len(self._joining)

    def join(self, wish: Wish, *, wake: Callable[[], None]) -> Viewer | None:
        """Return a new viewer, which gets the state with the next reading; None if too many."""
        viewer = Viewer(wish, wake=wake)
        with self._lock:
            if len(self._viewers) + len(self._joining) >= MOST_VIEWERS or self._stop.is_set():
                return None
            self._joining.append(viewer)
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """Forget *viewer*."""
        with self._lock:
            self._viewers.discard(viewer)
            if viewer in self._joining:
                self._joining.remove(viewer)

    def _run(self) -> None:
        updates: Updates | None = None
        while not self._stop.is_set():
            try:
                if updates is None:
                    updates = self._watch.updates()
                    self._read(set())
                else:
                    self._read(updates.until(time.monotonic() + EVERY))
                self.responded_at = time.monotonic()
                self._has_polled.set()
            except AmicrawlError as error:
                self._say_away(str(error))
                self._has_polled.set()
                if updates is not None:
                    updates.close()
                    updates = None
                self._stop.wait(_RETRY)
            except Exception:
                # What any client wrote into Redis must not end the thread that all viewers hang on.
                logger.exception("A reading of Redis went wrong; the next one follows")
                self._has_polled.set()
                self._stop.wait(_RETRY)
        if updates is not None:
            updates.close()

    def _read(self, news: set[str]) -> None:
        now = time.monotonic()
        with self._lock:
            self._viewers.update(self._joining)
            self._joining.clear()
            # A reading that fails leaves who has come for the next one.
            joining = [viewer for viewer in self._viewers if not viewer.is_welcome]
            old = [viewer for viewer in self._viewers if viewer.is_welcome]
        is_due = now - self._overview_at >= _OVERVIEW_EVERY
        # A page that has just been drawn may have jobs that came after the last reading: older figures
        # would take them out of it, with what was chosen there.
        if is_due or joining or self._overview.totals is None:
            self._read_overview(old)
            self._overview_at = now
        self._follow(news, now)
        self._read_followed(news, old, now)
        for viewer in joining:
            self._welcome(viewer)
        if self._away:
            self._away = ""
            for viewer in old:
                self._tell_everything(viewer)

    def _read_overview(self, viewers: list[Viewer]) -> None:
        overview = self._overview
        overview.read(viewers=self.viewers)
        totals = orjson.dumps(overview.totals)
        for viewer in viewers:
            viewer.tell_overview(totals, overview.changed, overview.gone, is_full=False)
        for ident in overview.seen.keys() & self._followed.keys():
            self._followed[ident].look_for_another_log(overview.seen[ident])
        self._broadcasts.look(overview.seen, now=time.time())

    def _follow(self, news: set[str], now: float) -> None:
        """Begin to follow what viewers request; drop what none has requested for a minute."""
        with self._lock:
            wishes = [viewer.wish for viewer in self._viewers]
        wanted = dict.fromkeys(ident for wish in wishes for ident in sorted(wish.jobs))
        if any(wish.all_logs for wish in wishes):
            # And those with *news*: one that has just ended has said its last lines meanwhile.
            wanted.update(dict.fromkeys([*self._overview.running, *sorted(news)]))
        for ident in list(wanted)[:MOST_FOLLOWED]:
            self._followed.setdefault(ident, Followed(ident)).wanted_at = now
        for ident, followed in list(self._followed.items()):
            if now - followed.wanted_at > _KEPT:
                del self._followed[ident]

    def _read_followed(self, news: set[str], viewers: list[Viewer], now: float) -> None:
        wanted = {i: f for i, f in self._followed.items() if f.wanted_at == now}
        stale = {i: f for i, f in wanted.items() if now - f.read_at >= _OVERVIEW_EVERY}
        # A log is read before the record: the lines of a job that has ended are sent before its end.
        due = {i: f.score for i, f in wanted.items() if i in news or i in stale}
        fresh = {i: score for i, score in due.items() if wanted[i].is_new}
        logs = self._watch.logs(fresh, most=RING)
        logs.update(self._watch.logs({i: s for i, s in due.items() if i not in fresh}, most=AT_ONCE))
        for ident, entries in logs.items():
            lines, missed = wanted[ident].take_lines(entries, self._numbers)
            if lines:
                self._tell_lines(ident, lines, missed, viewers)
        detailed = self._detailed()
        about = [ident for ident in stale if ident in detailed]
        for ident, seen in zip(about, self._watch.jobs(about), strict=True):
            self._tell_detail(wanted[ident], seen, viewers)
        for followed in stale.values():
            followed.read_at = now

    def _detailed(self) -> set[str]:
        with self._lock:
            return {ident for viewer in self._viewers for ident in viewer.wish.jobs}

    def _tell_lines(self, ident: str, lines: list[LogLine], missed: int, viewers: list[Viewer]) -> None:
        for viewer in viewers:
            if viewer.wants_log(ident):
                viewer.tell_log(ident, lines, skipped=missed)

    def _tell_detail(self, followed: Followed, seen: SeenJob, viewers: list[Viewer]) -> None:
        ident = followed.ident
        if not seen.record.get("url"):
            state = "expired"
        else:
            queue = self._overview.jobs[ident]["queue"] if ident in self._overview.jobs else None
            job = self._overview.view(ident, seen, queue=queue)
            for what, event in followed.take_detail(job, seen, self._watch).items():
                for viewer in viewers:
                    if ident in viewer.wish.jobs:
                        viewer.tell("job", event, about=f"{ident} {what}")
            state = job["state"] if job["state"] in ENDED else ""
            followed.look_for_another_log(seen)
        if state != followed.ended:
            followed.ended = state
            for viewer in viewers:
                if state and ident in viewer.wish.jobs:
                    viewer.tell("ended", _ended(ident, state), about=ident)

    def _welcome(self, viewer: Viewer) -> None:
        viewer.is_welcome = True
        self._tell_everything(viewer)
        for ident, followed in self._followed.items():
            if viewer.wants_log(ident):
                lines, is_reset = followed.replay(most=viewer.wish.replay, after=viewer.wish.after)
                viewer.tell_log(ident, lines, reset=is_reset)

    def _tell_everything(self, viewer: Viewer) -> None:
        totals = orjson.dumps(self._overview.totals)
        viewer.tell_overview(totals, self._overview.encoded, (), is_full=True)
        for ident in viewer.wish.jobs & self._followed.keys():
            followed = self._followed[ident]
            if followed.detail is not None:
                viewer.tell("job", orjson.dumps(followed.detail), about=f"{ident} all")
            if followed.ended:
                viewer.tell("ended", _ended(ident, followed.ended), about=ident)

    def _say_away(self, detail: str) -> None:
        if not self._away:
            logger.warning("%s", detail)
        self._away = detail
        with self._lock:
            viewers = [*self._viewers, *self._joining]
        for viewer in viewers:
            viewer.tell("away", orjson.dumps({"detail": detail}))


def _revisions_of(seen: SeenJob) -> dict[str, object]:
    """Return what changes with each of the long lists of the job *seen*."""
    said = reported(seen.facts.get("now")).get("rev")
    said = said if isinstance(said, dict) else {}
    age = seen.record.get("settings_age")
    return {name: (said.get(name), age if name == "ignores" else None) for name in LISTS}


def _ended(ident: str, state: str) -> bytes:
    return orjson.dumps({"ident": ident, "state": state})
