"""Bodies: what a request may say, as models that refuse whatever they do not know. Pure.

Bounds here keep nonsense out; what a pattern or a delay means is judged by the jobs themselves.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from amicrawl.fleet.dashboard.job_choice import ORDERS
from amicrawl.fleet.dashboard.users import LEAST, MOST
from amicrawl.fleet.jobs import LONGEST_DELAY, LONGEST_NOTE, LONGEST_PATTERN, MOST_CONCURRENCY

Url = Annotated[str, StringConstraints(min_length=1, max_length=8192, strip_whitespace=True)]
Short = Annotated[str, StringConstraints(max_length=500)]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_PATTERN)]
Ident = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{16,25}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Filter = Annotated[str, StringConstraints(max_length=200)]
_SORTS = rf"^-?({'|'.join(ORDERS)})$"
Delay = Annotated[int, Field(ge=0, le=LONGEST_DELAY)]
Workers = Annotated[int, Field(ge=1, le=MOST_CONCURRENCY)]


class RequestBody(BaseModel):
    """What every body has in common."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Nothing(RequestBody):
    """An empty object."""


class Submit(RequestBody):
    """A job to be submitted."""

    url: Url
    shallow: bool = False
    """Only that page and what it needs."""
    is_list: bool = False
    """Whether the URL is that of a list of URLs."""
    note: Annotated[str, StringConstraints(max_length=LONGEST_NOTE)] | None = None
    user_agent: Short | None = None
    pipeline: Annotated[str, StringConstraints(max_length=30)] | None = None
    """A tag: part of the nickname of the pipelines that may take it."""
    large: bool = False
    delay_min: Delay | None = None
    delay_max: Delay | None = None
    concurrency: Workers | None = None
    ignore_sets: Annotated[list[Short], Field(max_length=100)] = []
    ignores: Annotated[list[Pattern], Field(max_length=1000)] = []
    no_offsite_links: bool = False
    lines: Annotated[str, StringConstraints(max_length=200_000)] | None = None
    """The list itself, one URL a line, where it has no URL on the web; `url` is a name for it then."""
    again: bool = False
    """Whether a job of that URL that has ended is forgotten for it."""


class OnePattern(RequestBody):
    """An ignore pattern."""

    pattern: Pattern


class TestPattern(RequestBody):
    """An ignore pattern that is to be tried out."""

    pattern: Pattern
    urls: Annotated[list[Url], Field(max_length=1000)] | None = None
    """Without these it is tried on the URLs of the job's last log lines."""


class NamedSet(RequestBody):
    """A set of ignore patterns that comes with amicrawl."""

    name: Short


class DelayRange(RequestBody):
    """How long to wait between two requests, in milliseconds."""

    min: Delay
    max: Delay


class Concurrency(RequestBody):
    """How many requests may be under way."""

    workers: Workers


class Note(RequestBody):
    """A text for people; an empty one takes it away."""

    note: Annotated[str, StringConstraints(max_length=LONGEST_NOTE)]


class Switch(RequestBody):
    """On or off."""

    on: bool


class Move(RequestBody):
    """The place that a job is to have in its queue."""

    queue: Short
    ident: Ident
    position: Annotated[int, Field(ge=0, le=1_000_000)]
    """0 is the next one."""


class Waiting(RequestBody):
    """A job in its queue."""

    queue: Short
    ident: Ident


class NewUser(RequestBody):
    """One that is to sign in, or to have another role or password."""

    name: Name
    role: Literal["view", "operate", "admin"]
    password: Annotated[str, StringConstraints(min_length=LEAST, max_length=MOST)] | None = None


class JobsQuery(RequestBody):
    """Which jobs, by the filters of the page of all jobs and of `amicrawl job ls`."""

    search: Filter = ""
    """Words, each of which is in the URL, ident, note, submitter, pipeline or a host."""
    by: Filter = ""
    """The submitter."""
    pipeline: Filter = ""
    """The nickname of a pipeline, or the name of a queue."""
    sort: Annotated[str, StringConstraints(pattern=_SORTS)] = "state"
    """A column of the page, in reverse with a `-` in front; `state`: running ones, then the queues."""
    state: Annotated[str, StringConstraints(max_length=100)] = "queued,running"
    limit: Annotated[int, Field(ge=1, le=2000)] = 500


class FinishedQuery(RequestBody):
    """How many."""

    limit: Annotated[int, Field(ge=1, le=2000)] = 200


class LogQuery(RequestBody):
    """Which part of a log: behind `after`, or in front of `before`, or the end."""

    after: Annotated[int, Field(ge=0, le=2**53)] | None = None
    before: Annotated[int, Field(ge=0, le=2**53)] | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 200
    type: Annotated[str, StringConstraints(max_length=100)] = ""


class EventsQuery(RequestBody):
    """What a stream sends."""

    jobs: Annotated[str, StringConstraints(max_length=3000)] = ""
    """Idents with commas between, or `*`."""
    types: Annotated[str, StringConstraints(max_length=100)] = ""
    replay: Annotated[int, Field(ge=0, le=500)] = 200
