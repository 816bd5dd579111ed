"""Bodies: what a request may say, as models that refuse whatever they do not know. Pure.

Bounds here keep nonsense out; what a pattern or a delay means is judged by the jobs themselves. The
fields for settings of jobs follow from their declaration (`job_settings`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from amicrawl.fleet.dashboard.job_choice import ORDERS
from amicrawl.fleet.dashboard.users import LEAST, MOST
from amicrawl.fleet.jobs import LONGEST_PATTERN, job_settings

if TYPE_CHECKING:
    from collections.abc import Sequence


Url = Annotated[str, StringConstraints(min_length=1, max_length=8192, strip_whitespace=True)]
Short = Annotated[str, StringConstraints(max_length=500)]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_PATTERN)]
Ident = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{16,25}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Filter = Annotated[str, StringConstraints(max_length=200)]
_SORTS = rf"^-?({'|'.join(ORDERS)})$"


class RequestBody(BaseModel):
    """What every body has in common."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Nothing(RequestBody):
    """An empty object."""


class SubmittedJob(RequestBody):
    """A job to be submitted, without its settings."""

    url: Url
    shallow: bool = False
    """Only that page and what it needs."""
    is_list: bool = False
    """Whether the URL is that of a list of URLs."""
    pipeline: Annotated[str, StringConstraints(max_length=30)] | None = None
    """A tag: part of the nickname of the pipelines that may take it."""
    large: bool = False
    ignore_sets: Annotated[list[Short], Field(max_length=100)] = []
    ignores: Annotated[list[Pattern], Field(max_length=1000)] = []
    lines: Annotated[str, StringConstraints(max_length=200_000)] | None = None
    """The list itself, one URL a line, where it has no URL on the web; `url` is a name for it then."""
    again: bool = False
    """Whether a job of that URL that has ended is forgotten for it."""


def submit_body(settings: Sequence[job_settings.JobSetting]) -> type[RequestBody]:
    """Return the body of a submission, which may say those of *settings* that are submitted."""
    said: dict[str, Any] = {
        each.name: (_annotation(each) | None, None)
        for each in job_settings.fields(job_settings.submitted(settings))
    }
    return create_model("Submit", __base__=SubmittedJob, __doc__="A job to be submitted.", **said)


def setting_body(setting: job_settings.JobSetting) -> type[RequestBody]:
    """Return the body of the verb that changes *setting*."""
    said: dict[str, Any] = {each.argument: (_annotation(each), ...) for each in setting.fields}
    name = setting.name.title().replace("_", "")
    return create_model(name, __base__=RequestBody, __doc__=setting.meaning, **said)


def _annotation(field: job_settings.SettingField) -> Any:
    kind = field.kind
    if isinstance(kind, job_settings.NumberKind):
        return Annotated[int, Field(ge=kind.least, le=kind.most, description=field.meaning)]
    if isinstance(kind, job_settings.LineKind):
        return Annotated[str, Field(max_length=kind.longest, description=field.meaning)]
    return Annotated[bool, Field(description=field.meaning)]


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
