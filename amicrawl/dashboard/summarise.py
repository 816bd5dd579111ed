"""The process that makes the page of one summary: index and name in, the page on standard output."""

from __future__ import annotations

import resource
import sys

from amicrawl.dashboard.summaries import LONGEST
from amicrawl.errors import AmicrawlError, ExitCode
from amicrawl.report.page import page_of
from amicrawl.report.reading import read_counts

MEMORY = 2 << 30
"""Bytes of addresses that the process may have."""


def main() -> int:
    """Make it; return the exit code."""
    path, ident = sys.argv[1:3]
    # The process that waits gives up then, and might be killed before it can end this one.
    for limit, most in ((resource.RLIMIT_CPU, int(LONGEST)), (resource.RLIMIT_AS, MEMORY)):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        reading = read_counts([path], kind="captures")
    except AmicrawlError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    except MemoryError:
        sys.stderr.write(
            f"{path} takes more than {MEMORY >> 20} MiB of memory. Use `amicrawl summary`.\n"
        )
        return ExitCode.OUR_ERROR
    if reading.damage and not reading.counts.captures:
        sys.stderr.write(f"{reading.damage[0]}\n")
        return ExitCode.DAMAGED
    broken = " (its index breaks off)" if reading.damage else ""
    page = page_of(reading.counts, title=f"Summary of job {ident}{broken}", hosts=50, samples=20)
    sys.stdout.buffer.write(page.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
