"""Shapes: what the API responds with, as types, from which the OpenAPI document takes its schemas. Pure.

Times are Unix seconds, sizes bytes, `None` is not known. A text that is to be followed by a click stands
in `link`, and there only if it is http or https.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

State = Literal["queued", "running", "paused", "aborting", "completed", "aborted", "failed"]


class FaultFacts(TypedDict):
    """One part of a request that cannot be followed."""

    where: str
    what: str


class ProblemFacts(TypedDict):
    """Why a request was not followed (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: NotRequired[list[FaultFacts]]
    ident: NotRequired[str]


class UserFacts(TypedDict):
    """The visitor, and what they may do."""

    name: str
    role: Literal["view", "operate", "admin"]
    may_operate: bool
    may_admin: bool


class SessionFacts(TypedDict):
    """The session of the client."""

    user: UserFacts
    users_exist: bool
    csrf: str


class Responses(TypedDict):
    """Responses by class; `runk` counts those without a status of these."""

    r1xx: int
    r2xx: int
    r3xx: int
    r4xx: int
    r5xx: int
    runk: int


class HostFacts(TypedDict):
    """One host that a job is busy with."""

    host: str
    in_flight: int | None
    pages: int | None
    waiting: int | None
    delay_ms: float | None


class SearchedJob(TypedDict):
    """What a choice of jobs looks at of each."""

    ident: str
    url: str
    state: State
    note: str
    started_by: str
    pipeline: str
    queue: str | None
    hosts: list[HostFacts]


class Job(TypedDict):
    """One job, in short."""

    ident: str
    url: str
    link: str | None
    state: State
    step: str
    """How far the end of a job is whose crawl has finished; empty before."""
    note: str
    depth: Literal["inf", "shallow", ""]
    is_list: bool
    started_by: str
    started_in: str
    queued_at: float | None
    started_at: float | None
    finished_at: float | None
    updated_at: float | None
    queue: str | None
    place: int | None
    """Its place in its queue, 1 for the next; absent while that is not known."""
    pipeline_id: str
    pipeline: str
    attempt: int | None
    resumed: Literal["resumed", "restarted"] | None
    bytes: int
    downloaded: int
    """Requests that have ended, with a response or without one; what a rule kept out is none."""
    queued: int
    todo: int
    errors: int
    responses: Responses
    items_per_s: float | None
    bytes_per_s: float | None
    concurrency: int | None
    delay_min: int | None
    delay_max: int | None
    reports: bool
    settings_age: int | None
    patterns: int | None
    """How many ignore patterns it has."""
    has_summary: bool
    hosts: list[HostFacts]
    faults: list[str]


class IgnoreFacts(TypedDict):
    """One ignore pattern, and how many URLs it has kept out."""

    pattern: str
    hits: int | None


class HistoryPoint(TypedDict):
    """What a job had done by a moment."""

    ts: float
    downloaded: int
    bytes: int
    errors: int
    todo: int


class FileFacts(TypedDict):
    """One file that a job has written."""

    name: str
    bytes: int | None
    sealed: bool


class JobDetail(Job):
    """One job, in full. An event of the stream leaves out lists that have not changed."""

    user_agent: str
    no_offsite_links: bool
    settings: dict[str, int | str | bool | None]
    """Those that can change, by field of the record."""
    slug: str
    facts: dict[str, Any]
    ignores: NotRequired[list[IgnoreFacts]]
    history: NotRequired[list[HistoryPoint]]
    files: NotRequired[list[FileFacts]]


class Jobs(TypedDict):
    """Some jobs."""

    jobs: list[Job]


class LogEntry(TypedDict):
    """One line of a log; which fields there are hangs on the type."""

    score: int
    ts: float | None
    type: Literal["download", "ignore", "stdout", "unknown"]
    url: NotRequired[str]
    link: NotRequired[str | None]
    response_code: NotRequired[int]
    wget_code: NotRequired[str]
    is_error: NotRequired[bool]
    is_warning: NotRequired[bool]
    pattern: NotRequired[str]
    source: NotRequired[str]
    message: NotRequired[str]


class Log(TypedDict):
    """Some lines of a log, the oldest first."""

    entries: list[LogEntry]
    last: int


class Ignores(TypedDict):
    """The ignore patterns of a job."""

    ignores: list[IgnoreFacts]


class RedisFacts(TypedDict):
    """How Redis is."""

    ok: bool
    detail: str
    memory: int | None


class Totals(TypedDict):
    """All jobs in figures."""

    time: float
    running: int
    queued: int
    queues: dict[str, int]
    completed: int
    aborted: int
    failed: int
    dead: int
    pipelines: int
    items_per_s: float
    bytes_per_s: float
    lines_per_s: float
    redis: RedisFacts
    viewers: int


class Done(TypedDict):
    """What came of changing a job."""

    ident: str
    sentence: str
    settings_age: int | None
    job: Job | None
    warnings: list[str]


class Submitted(TypedDict):
    """What came of submitting a job."""

    ident: str
    created: bool
    job: Job | None
    warnings: list[str]


class Tested(TypedDict):
    """What an ignore pattern would keep out."""

    valid: bool
    why: str | None
    tested: int
    matched: int
    urls: list[str]


class ShortJob(TypedDict):
    """A job by name only."""

    ident: str
    url: str


class Pipeline(TypedDict):
    """One machine's pipeline."""

    id: str
    nickname: str
    hostname: str
    fqdn: str
    pid: int | None
    version: str
    python: str
    status: str
    draining: bool
    ts: float | None
    is_stale: bool
    load: list[float | None]
    mem_usage: float | None
    mem_available: int | None
    disk_usage: float | None
    disk_available: int | None
    slots: int | None
    jobs: list[ShortJob]


class Pipelines(TypedDict):
    """All pipelines."""

    pipelines: list[Pipeline]


class Drained(TypedDict):
    """A pipeline that was asked to drain."""

    pipeline: Pipeline


class QueuedJob(TypedDict):
    """A job that waits."""

    ident: str
    url: str
    note: str
    queued_at: float | None
    started_by: str


class Queue(TypedDict):
    """One queue, the next job first."""

    name: str
    jobs: list[QueuedJob]


class Queues(TypedDict):
    """All queues."""

    queues: list[Queue]


class DeadLetter(TypedDict):
    """What was found in Redis and could not be followed."""

    id: str
    ts: float | None
    kind: str
    ident: str
    reason: str
    content: str


class DeadLetters(TypedDict):
    """What could not be followed, newest first."""

    letters: list[DeadLetter]


class IgnoreSetFacts(TypedDict):
    """A set of ignore patterns that comes with amicrawl."""

    name: str
    patterns: int


class IgnoreSets(TypedDict):
    """All of them."""

    sets: list[IgnoreSetFacts]


class KnownUser(TypedDict):
    """One that may sign in."""

    name: str
    role: Literal["view", "operate", "admin"]
    has_password: bool
    tokens: int


class KnownUsers(TypedDict):
    """All of them."""

    users: list[KnownUser]


class NewToken(TypedDict):
    """A token, shown this once."""

    token: str
