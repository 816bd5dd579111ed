"""Every key and channel that jobs use in Redis, written down once. Pure.

Those of ArchiveBot, by its names and types, so that its bot and dashboard find what they look for:

| Key | Type | Holds | Expires |
|---|---|---|---|
| `IDENT` | hash | the job record | 48 h after the job completed |
| `IDENT_ignores` | set | its ignore patterns | with the record |
| `IDENT_log` | sorted set | its log entries, JSON, by number | with the record |
| `pending`, `pending-ao`, `pending-large`, `pending:TAG` | list | idents that wait, the next last | |
| `working` | list | idents that are crawled | |
| `pipelines` | set | keys of the pipelines that run | |
| `pipeline:HASH` | hash | one of them | where its pipeline says so |
| `finish_notifications` | list | what the bot will announce, JSON | |
| `jobs_completed`, `jobs_aborted`, `jobs_failed` | string | counts | |
| `updates`, `archivebot:job:IDENT`, `archivebot:pipeline_updates` | channel | | |

Our own all begin with `amicrawl:`, which none of ArchiveBot's patterns takes for its own. A prefix
is put before every key and channel; with an empty one the database is ArchiveBot's. Names are not
checked here: a text that may come from anywhere goes through `ident.is_ident` first.
"""

from __future__ import annotations

from dataclasses import dataclass

PENDING = "pending"
PENDING_SHALLOW = "pending-ao"
PENDING_LARGE = "pending-large"
TAGGED = "pending:"
"""What the name of a queue for pipelines of one tag begins with."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of all keys below one prefix."""

    prefix: str = ""

    def job(self, ident: str) -> str:
        """Name the record of a job: a hash."""
        return f"{self.prefix}{ident}"

    def ignores(self, ident: str) -> str:
        """Name the ignore patterns of a job: a set."""
        return f"{self.prefix}{ident}_ignores"

    def log(self, ident: str) -> str:
        """Name the log of a job: a sorted set."""
        return f"{self.prefix}{ident}_log"

    def queue(self, name: str) -> str:
        """Name the list of a queue, `pending` or `pending:TAG` for example; the next is at the right."""
        return f"{self.prefix}{name}"

    def queue_name(self, key: str) -> str:
        """Return the name of a queue by its key: the way back from `queue`."""
        return key.removeprefix(self.prefix)

    @property
    def working(self) -> str:
        """The idents that are crawled: a list."""
        return f"{self.prefix}working"

    @property
    def pipelines(self) -> str:
        """The keys of pipelines that run: a set, whatever ArchiveBot's document says."""
        return f"{self.prefix}pipelines"

    def pipeline(self, hash_: str) -> str:
        """Name the record of a pipeline: a hash. This text whole is what `pipeline_id` holds."""
        return f"{self.prefix}pipeline:{hash_}"

    @property
    def finish_notifications(self) -> str:
        """What the bot will announce: a list of JSON texts."""
        return f"{self.prefix}finish_notifications"

    @property
    def completed(self) -> str:
        """How many jobs completed: a count."""
        return f"{self.prefix}jobs_completed"

    @property
    def aborted(self) -> str:
        """How many jobs were aborted: a count."""
        return f"{self.prefix}jobs_aborted"

    @property
    def failed(self) -> str:
        """How many jobs failed: a count."""
        return f"{self.prefix}jobs_failed"

    @property
    def updates(self) -> str:
        """The channel that tells which job has news: its ident."""
        return f"{self.prefix}updates"

    def job_channel(self, ident: str) -> str:
        """Name the channel that tells one crawl of new settings: their age."""
        return f"{self.prefix}archivebot:job:{ident}"

    @property
    def pipeline_updates(self) -> str:
        """The channel that tells which pipeline reported: its key."""
        return f"{self.prefix}archivebot:pipeline_updates"

    def own(self, *parts: str) -> str:
        """Name a key of ours: `amicrawl:` and *parts*, joined by colons."""
        return f"{self.prefix}amicrawl:{':'.join(parts)}"

    def claim(self, unit: str) -> str:
        """Name the claim on a unit, an ident or one partition (`IDENT.p3`): a hash, who crawls it."""
        return self.own("claim", unit)

    def lease(self, unit: str) -> str:
        """Name the lease of a unit: a string, the fencing token, that expires."""
        return self.own("lease", unit)

    @property
    def token_counter(self) -> str:
        """The last fencing token: a count that only grows."""
        return self.own("token")

    def desired(self, ident: str) -> str:
        """Name the live settings that ArchiveBot has no field for, `paused` for example: a hash."""
        return self.own("desired", ident)

    def facts(self, ident: str) -> str:
        """Name what the crawl tells beyond the record: a hash of JSON texts."""
        return self.own("facts", ident)

    def config(self, ident: str) -> str:
        """Name the text of the crawl file that a job was submitted with: a string."""
        return self.own("config", ident)

    def url_list(self, ident: str) -> str:
        """Name the lines of a list job whose list was a file of the submitter's: a string."""
        return self.own("list", ident)

    @property
    def ended(self) -> str:
        """What became of jobs, beyond the life of their records: a stream, capped."""
        return self.own("ended")

    @property
    def dead_letters(self) -> str:
        """What could not be read: a sorted set of JSON texts by time, capped."""
        return self.own("dead")

    def submitting(self, user: str) -> str:
        """Name the lock that a dashboard holds while it counts and submits jobs of *user*: a string."""
        return self.own("submitting", user)

    def taken(self, queue: str, consumer: str) -> str:
        """Name the seeds that a consumer has taken and not yet acknowledged: a hash."""
        # A queue may have colons in its name, a consumer has none.
        return self.own("taken", consumer, queue)

    def of_job(self, ident: str) -> tuple[str, str, str]:
        """Name the three keys that ArchiveBot has for a job, which expire together."""
        return self.job(ident), self.ignores(ident), self.log(ident)

    def ours_of_job(self, ident: str) -> tuple[str, ...]:
        """Name the keys of ours that go with a job, and expire with its record."""
        return (
            self.desired(ident),
            self.facts(ident),
            self.config(ident),
            self.url_list(ident),
        )


def unit_of(name: str, number: int) -> str:
    """Return the unit under which partition *number* of the crawl *name* is claimed."""
    return f"{name}.p{number}"


@dataclass(frozen=True, slots=True)
class ShareKeys:
    """The names of the keys of the shared crawl *name*."""

    keys: Keys
    name: str

    @property
    def all(self) -> str:
        """The names of all shared crawls: a set."""
        return self.keys.own("shares")

    @property
    def record(self) -> str:
        """The options and the state of the crawl: a hash."""
        return self.keys.own("share", self.name)

    @property
    def waiting(self) -> str:
        """The workers that wait for a partition, by owner: a hash."""
        return self.keys.own("share", self.name, "waiting")

    @property
    def starts(self) -> str:
        """The start URLs, where they define the scope: a list, packed."""
        return self.keys.own("share", self.name, "starts")

    def claim(self, number: int) -> str:
        """Name the claim on partition *number*: a hash."""
        return self.keys.claim(unit_of(self.name, number))

    def lease(self, number: int) -> str:
        """Name the lease of partition *number*: a string that expires."""
        return self.keys.lease(unit_of(self.name, number))

    def links(self, number: int) -> str:
        """Name the inbox of partition *number*, its batches: a stream."""
        return self.keys.own("links", unit_of(self.name, number))

    def everything(self, partitions: int) -> list[str]:
        """Return the keys that a script over all partitions is called with."""
        found = [self.record, self.waiting, self.keys.token_counter]
        for number in range(partitions):
            found += [self.claim(number), self.lease(number), self.links(number)]
        return found
