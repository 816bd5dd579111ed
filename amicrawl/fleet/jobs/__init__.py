"""Jobs: crawls submitted, claimed, controlled and watched over Redis, in the layout of ArchiveBot.

All that talks to Redis does so through a `JobStore` (`connection.py`).

* Submitted, changed: `submission.py`, `verbs.py`, `queues.py`; `ident.py`, `live_settings.py` check.
* Read: `lookup.py`, `logs.py`, `watching.py`; `record.py` parses what is found.
* Run: `pipeline.py`, a `supervisor.py`, with `lease.py`, `attempt.py` and `ending.py`.
* In the crawl: `crawl`, over `link.py`, with `logs.py` and `live_settings.py`.
* On disk: `data_directory.py`; in a bucket: `checkpoint.py`, `job_bucket.py`.
* Beside jobs: `seedqueue.py` (seeds as they come), and the room `sharing` (one crawl on many machines).

Values that other clients may have written are read by `redis_values.py`; those that cannot be used
become dead letters. Begin with `keys.py`, which lists every key. Users read `docs/jobs.md`.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.fleet.jobs.attempt import Attempt, Workshop, crawl_environment, take_directory
    from amicrawl.fleet.jobs.checkpoint import (
        Checkpoints,
        Copying,
        newer_checkpoints,
        path_of,
        restore_checkpoint,
        ship_state,
    )
    from amicrawl.fleet.jobs.child import Child
    from amicrawl.fleet.jobs.connection import (
        JobStore,
        RedisRefused,
        RedisSettings,
        RedisUnavailable,
        connect,
    )
    from amicrawl.fleet.jobs.crawl.leased import Fence, LeasedDisk, LeaseLost
    from amicrawl.fleet.jobs.crawl.opening import store_of_crawl
    from amicrawl.fleet.jobs.data_directory import is_base, opened_store
    from amicrawl.fleet.jobs.ident import checked_ident, ident_of, is_ident, normalised
    from amicrawl.fleet.jobs.job_bucket import begin_anew, fetch, ship, url_of_job
    from amicrawl.fleet.jobs.keys import (
        PENDING,
        PENDING_LARGE,
        PENDING_SHALLOW,
        TAGGED,
        ShareKeys,
        unit_of,
    )
    from amicrawl.fleet.jobs.lease import GRACE, LEASE, Claim, Claims, Renewal, milliseconds, pairs
    from amicrawl.fleet.jobs.lease_time import (
        LEASE_VARIABLE,
        TOKEN_VARIABLE,
        UNIT_VARIABLE,
        HeartbeatMonitor,
        HeldLease,
    )
    from amicrawl.fleet.jobs.live_settings import (
        LONGEST_PATTERN,
        checked_pattern,
    )
    from amicrawl.fleet.jobs.logs import LONGEST_ENTRY, Download, Ignore, NotAnEntryError, Stdout, parsed
    from amicrawl.fleet.jobs.lookup import WrongStateError
    from amicrawl.fleet.jobs.pipeline import Pipeline, PipelineOptions
    from amicrawl.fleet.jobs.pipeline_record import (
        PipelineIdentity,
        is_silent,
        pipelines,
        redis_now,
        tell_to_drain,
    )
    from amicrawl.fleet.jobs.queues import queue_order
    from amicrawl.fleet.jobs.record import ENDED, RESPONSES, JobRecord, JobState
    from amicrawl.fleet.jobs.redis_values import put_dead_letter
    from amicrawl.fleet.jobs.submission import JobExistsError, Submission, Submitted, submit
    from amicrawl.fleet.jobs.supervisor import Mode, Supervisor
    from amicrawl.fleet.jobs.watching import (
        Broadcasts,
        JobNames,
        Live,
        SeenJob,
        Updates,
        Watch,
        number_of,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        LONGEST_ENTRY="logs",
        LONGEST_PATTERN="live_settings",
        TAGGED="keys",
        PENDING_SHALLOW="keys",
        PENDING_LARGE="keys",
        PENDING="keys",
        UNIT_VARIABLE="lease_time",
        TOKEN_VARIABLE="lease_time",  # noqa: S106  # the name of a variable
        LEASE_VARIABLE="lease_time",
        Attempt="attempt",
        Broadcasts="watching",
        Checkpoints="checkpoint",
        Child="child",
        Claim="lease",
        Claims="lease",
        Copying="checkpoint",
        Download="logs",
        ENDED="record",
        Fence="crawl.leased",
        GRACE="lease",
        HeldLease="lease_time",
        Ignore="logs",
        JobExistsError="submission",
        JobRecord="record",
        JobState="record",
        JobStore="connection",
        LEASE="lease",
        LeaseLost="crawl.leased",
        LeasedDisk="crawl.leased",
        Live="watching",
        Mode="supervisor",
        JobNames="watching",
        NotAnEntryError="logs",
        Pipeline="pipeline",
        PipelineIdentity="pipeline_record",
        PipelineOptions="pipeline",
        HeartbeatMonitor="lease_time",
        RESPONSES="record",
        RedisRefused="connection",
        RedisSettings="connection",
        RedisUnavailable="connection",
        Renewal="lease",
        SeenJob="watching",
        ShareKeys="keys",
        Stdout="logs",
        Submission="submission",
        Submitted="submission",
        Supervisor="supervisor",
        Updates="watching",
        Watch="watching",
        Workshop="attempt",
        WrongStateError="lookup",
        begin_anew="job_bucket",
        checked_ident="ident",
        checked_pattern="live_settings",
        connect="connection",
        crawl_environment="attempt",
        fetch="job_bucket",
        ident_of="ident",
        is_base="data_directory",
        is_ident="ident",
        is_silent="pipeline_record",
        milliseconds="lease",
        normalised="ident",
        number_of="watching",
        opened_store="data_directory",
        pairs="lease",
        parsed="logs",
        path_of="checkpoint",
        pipelines="pipeline_record",
        put_dead_letter="redis_values",
        queue_order="queues",
        redis_now="pipeline_record",
        restore_checkpoint="checkpoint",
        newer_checkpoints="checkpoint",
        ship_state="checkpoint",
        store_of_crawl="crawl.opening",
        ship="job_bucket",
        submit="submission",
        take_directory="attempt",
        tell_to_drain="pipeline_record",
        unit_of="keys",
        url_of_job="job_bucket",
    )

__all__ = [
    "ENDED",
    "GRACE",
    "LEASE",
    "LEASE_VARIABLE",
    "LONGEST_ENTRY",
    "LONGEST_PATTERN",
    "PENDING",
    "PENDING_LARGE",
    "PENDING_SHALLOW",
    "RESPONSES",
    "TAGGED",
    "TOKEN_VARIABLE",
    "UNIT_VARIABLE",
    "Attempt",
    "Broadcasts",
    "Checkpoints",
    "Child",
    "Claim",
    "Claims",
    "Copying",
    "Download",
    "Fence",
    "HeartbeatMonitor",
    "HeldLease",
    "Ignore",
    "JobExistsError",
    "JobNames",
    "JobRecord",
    "JobState",
    "JobStore",
    "LeaseLost",
    "LeasedDisk",
    "Live",
    "Mode",
    "NotAnEntryError",
    "Pipeline",
    "PipelineIdentity",
    "PipelineOptions",
    "RedisRefused",
    "RedisSettings",
    "RedisUnavailable",
    "Renewal",
    "SeenJob",
    "ShareKeys",
    "Stdout",
    "Submission",
    "Submitted",
    "Supervisor",
    "Updates",
    "Watch",
    "Workshop",
    "WrongStateError",
    "begin_anew",
    "checked_ident",
    "checked_pattern",
    "connect",
    "crawl_environment",
    "fetch",
    "ident_of",
    "is_base",
    "is_ident",
    "is_silent",
    "milliseconds",
    "newer_checkpoints",
    "normalised",
    "number_of",
    "opened_store",
    "pairs",
    "parsed",
    "path_of",
    "pipelines",
    "put_dead_letter",
    "queue_order",
    "redis_now",
    "restore_checkpoint",
    "ship",
    "ship_state",
    "store_of_crawl",
    "submit",
    "take_directory",
    "tell_to_drain",
    "unit_of",
    "url_of_job",
]
