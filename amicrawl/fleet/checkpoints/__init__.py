"""What of a job outlives its process: its directory on disk, and what of it is in a bucket.

data_directory   a directory for each job, and what the crawl remembers of its job there
checkpoint       frontier and index of a crawl that goes on, copied to a bucket
job_bucket       a job moved from machine to machine: shipped, fetched, begun anew
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.fleet.checkpoints.checkpoint import (
        SLOTS,
        Checkpoints,
        Copying,
        checkpoint_url,
        is_begun,
        newer_checkpoints,
        path_of,
        restore_checkpoint,
        ship_state,
    )
    from amicrawl.fleet.checkpoints.data_directory import (
        CONSOLE,
        STOP_FILE,
        JobCopy,
        is_base,
        is_base_of,
        new_base,
        opened_store,
        show_life,
        write_copy,
    )
    from amicrawl.fleet.checkpoints.job_bucket import (
        NothingToFetchError,
        begin_anew,
        end_of_finished,
        fetch,
        fetch_finished,
        ship,
        url_of_job,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        Checkpoints="checkpoint",
        Copying="checkpoint",
        SLOTS="checkpoint",
        checkpoint_url="checkpoint",
        is_begun="checkpoint",
        newer_checkpoints="checkpoint",
        path_of="checkpoint",
        restore_checkpoint="checkpoint",
        ship_state="checkpoint",
        CONSOLE="data_directory",
        JobCopy="data_directory",
        STOP_FILE="data_directory",
        is_base="data_directory",
        is_base_of="data_directory",
        new_base="data_directory",
        opened_store="data_directory",
        show_life="data_directory",
        write_copy="data_directory",
        NothingToFetchError="job_bucket",
        begin_anew="job_bucket",
        end_of_finished="job_bucket",
        fetch="job_bucket",
        fetch_finished="job_bucket",
        ship="job_bucket",
        url_of_job="job_bucket",
    )

__all__ = [
    "CONSOLE",
    "SLOTS",
    "STOP_FILE",
    "Checkpoints",
    "Copying",
    "JobCopy",
    "NothingToFetchError",
    "begin_anew",
    "checkpoint_url",
    "end_of_finished",
    "fetch",
    "fetch_finished",
    "is_base",
    "is_base_of",
    "is_begun",
    "new_base",
    "newer_checkpoints",
    "opened_store",
    "path_of",
    "restore_checkpoint",
    "ship",
    "ship_state",
    "show_life",
    "url_of_job",
    "write_copy",
]
