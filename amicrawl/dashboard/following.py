"""Following: the jobs that viewers look at, their last lines and details, read once for all."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, cast

import orjson

from amicrawl.dashboard.viewer import Line
from amicrawl.dashboard.views import (
    detail_view,
    entry_view,
    files_view,
    history_view,
    ignores_view,
    reported,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from amicrawl.dashboard.shapes import Job, JobDetail
    from amicrawl.jobs.watching import Seen, Watch

RING = 500
"""Lines of a job that are kept for viewers that come later."""
LARGEST_RING = 1 << 20
"""Bytes of them, about."""
AT_ONCE = 1000
"""Lines of a job that one reading takes; of more, the oldest are skipped and counted."""
LISTS = ("ignores", "files", "history")


class Followed:
    """One job that viewers look at."""

    def __init__(self, ident: str) -> None:
        self.ident = ident
        self.lines: deque[Line] = deque()
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
    ) -> tuple[list[Line], int]:
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
            lines.append(Line(next(numbers), view["type"], orjson.dumps(view)))
        self.lines += lines
        self._size += sum(len(line.data) for line in lines)
        while len(self.lines) > RING or self._size > LARGEST_RING:
            gone = self.lines.popleft()
            self.lost = gone.number
            self._size -= len(gone.data)
        return lines, missed

    def take_detail(self, job: Job, seen: Seen, watch: Watch) -> dict[str, bytes]:
        """Take the details of *job*; return events that tell what changed, by what they bring.

        A long list is read only when the crawl says that it changed, and sent as an event of its own,
        which brings the rest of the details, too. The first time one event brings everything, since a
        viewer that came before it has nothing yet to put a part to. Raises RedisUnavailable.
        """
        detail = detail_view(job, seen)
        changed = self._changed_lists(seen)
        encoded = orjson.dumps(detail)
        events: dict[str, bytes] = {}
        if encoded != self.encoded:
            self.encoded = events[""] = encoded
        lists = lists_of(self.ident, changed, watch) if changed else {}
        if self.detail is None:
            events = {"all": orjson.dumps({**detail, **lists})}
        else:
            events.update((name, orjson.dumps({**detail, name: one})) for name, one in lists.items())
        self.detail = cast("JobDetail", {**(self.detail or {}), **detail, **lists})
        return events

    def _changed_lists(self, seen: Seen) -> list[str]:
        said = reported(seen.facts.get("now")).get("rev")
        said = said if isinstance(said, dict) else {}
        age = seen.record.get("settings_age")
        revisions: dict[str, object] = {
            name: (said.get(name), age if name == "ignores" else None) for name in LISTS
        }
        changed = [name for name in LISTS if revisions[name] != self._revisions.get(name)]
        self._revisions = revisions
        return changed

    def begin_anew(self) -> None:
        """Forget the log: there is another one."""
        if self.lines:
            self.lost = self.lines[-1].number
        self.lines.clear()
        self._size = 0
        self.score, self.is_new = 0.0, True

    def replay(self, *, most: int, after: int | None) -> tuple[list[Line], bool]:
        """Return the lines for a viewer that has had those up to *after*, and whether it begins anew."""
        if after is not None and after >= self.lost and self.lines and after >= self.lines[0].number:
            return [line for line in self.lines if line.number > after], False
        return list(self.lines)[-most:] if most else [], True


def lists_of(ident: str, names: Sequence[str], watch: Watch) -> dict[str, Any]:
    """Return those of the long lists of a job that *names* names. Raises RedisUnavailable."""
    (seen,) = watch.jobs([ident], facts=names)
    views: dict[str, Callable[[str | None], Any]] = {
        "ignores": lambda text: ignores_view(watch.ignores(ident), text),
        "files": files_view,
        "history": history_view,
    }
    return {name: views[name](seen.facts.get(name)) for name in names}
