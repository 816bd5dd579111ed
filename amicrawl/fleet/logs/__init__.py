"""The log of a job: its entries, those yet to be sent, and what of it is in Redis (`job_log.py`)."""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.fleet.logs.job_log import (
        LONGEST_ENTRY,
        MOST_ENTRIES,
        Download,
        Entry,
        Ignore,
        Inbox,
        LogPage,
        NotAnEntryError,
        Stdout,
        encoded,
        entries_after,
        newest_entries,
        parsed,
        say,
        trim_log,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        Download="job_log",
        Entry="job_log",
        Ignore="job_log",
        Inbox="job_log",
        LONGEST_ENTRY="job_log",
        LogPage="job_log",
        MOST_ENTRIES="job_log",
        NotAnEntryError="job_log",
        Stdout="job_log",
        encoded="job_log",
        entries_after="job_log",
        newest_entries="job_log",
        parsed="job_log",
        say="job_log",
        trim_log="job_log",
    )

__all__ = [
    "LONGEST_ENTRY",
    "MOST_ENTRIES",
    "Download",
    "Entry",
    "Ignore",
    "Inbox",
    "LogPage",
    "NotAnEntryError",
    "Stdout",
    "encoded",
    "entries_after",
    "newest_entries",
    "parsed",
    "say",
    "trim_log",
]
