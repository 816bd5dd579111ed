"""Job choice: which jobs the page of all jobs shows, in which order, page by page. Pure.

The browser chooses by the same rules once it takes over (`static/job_choice.js`); without scripts the
form requests the page again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from amicrawl.fleet.dashboard.shapes import Job, SearchedJob

ROWS = 100
"""Jobs on a page."""
_LONGEST = 200
_LAST = 2**53


def _since(job: Job) -> float:
    return job["started_at"] or job["queued_at"] or 0.0


ORDERS: Mapping[str, Callable[[Job], Any]] = {
    "state": lambda job: (job["state"] == "queued", job["place"] or _LAST, _since(job)),
    "url": lambda job: job["url"],
    "responses": lambda job: -sum(cast("Mapping[str, int]", job["responses"]).values()),
    "ident": lambda job: job["ident"],
    "delay": lambda job: -(job["delay_max"] or 0),
    "concurrency": lambda job: -(job["concurrency"] or 0),
    "ignores": lambda job: -(job["patterns"] or 0),
    "errors": lambda job: -job["errors"],
    "rate": lambda job: -(job["items_per_s"] or 0.0),
    "queued": lambda job: -job["todo"],
    "fetched": lambda job: -job["downloaded"],
    "size": lambda job: -job["bytes"],
    "elapsed": _since,
    "ended": lambda job: job["finished_at"] or 0.0,
}
"""What each column is sorted by: by its name, those first that are looked for."""


@dataclass(frozen=True, slots=True)
class JobChoice:
    """What a visitor chose to see."""

    search: str = ""
    """Words, each of which is to be found in the URL, ident, note, submitter, pipeline or a host."""
    state: str = ""
    by: str = ""
    """The submitter."""
    pipeline: str = ""
    """A nickname, or the name of a queue."""
    sort: str = "state"
    """A name of `ORDERS`; with a `-` in front the other way round."""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> JobChoice:
        """Return what the *query* of a URL names; what is invalid counts as absent."""
        texts = {name: query.get(name, "")[:_LONGEST] for name in ("search", "state", "by", "pipeline")}
        sort, page = query.get("sort", ""), query.get("page", "")
        known = sort.removeprefix("-") in ORDERS
        is_page = page.isascii() and page.isdigit() and int(page[:6]) > 0
        return cls(**texts, sort=sort if known else "state", page=int(page[:6]) if is_page else 1)

    def query(self, **changed: str | int) -> str:
        """Return the query of a URL that chooses the same but for what is *changed*."""
        said = {**asdict(self), **changed}
        usual = asdict(JobChoice())
        return urlencode({name: value for name, value in said.items() if value != usual[name]})

    def page_of(self, found: int) -> JobChoice:
        """Return this choice with the last page of *found* jobs, where they do not reach to its own."""
        return replace(self, page=min(self.page, max(-(-found // ROWS), 1)))

    @property
    def rows(self) -> slice:
        """Which of all that are chosen are on the page."""
        return slice((self.page - 1) * ROWS, self.page * ROWS)

    def of_all(self, jobs: Sequence[Job]) -> list[Job]:
        """Return those of *jobs* that are chosen, in order; all pages."""
        found = [job for job in jobs if self.takes(job)]
        found.sort(key=lambda job: job["ident"])
        found.sort(key=ORDERS[self.sort.removeprefix("-")], reverse=self.sort.startswith("-"))
        return found

    def takes(self, job: SearchedJob) -> bool:
        """Tell whether *job* is one of them."""
        return (
            self.state in {"", job["state"]}
            and self.by in {"", job["started_by"]}
            and self.pipeline in {"", job["pipeline"] or job["queue"] or ""}
            and all(word in _text(job) for word in self.search.lower().split())
        )


def _text(job: SearchedJob) -> str:
    hosts = " ".join(host["host"] for host in job["hosts"])
    parts = (job["url"], job["ident"], job["note"], job["started_by"], job["pipeline"], hosts)
    return " ".join(parts).lower()
