"""The process that makes the page of one summary: index and name in, the page on standard output."""

from __future__ import annotations

import resource
import sys

from amicrawl.dashboard.summaries import LONGEST
from amicrawl.errors import AmicrawlError, ExitCode
from amicrawl.report.page import page_of
from amicrawl.report.reading import read_counts


def main() -> int:
    """Make it; return the exit code."""
    path, ident = sys.argv[1:3]
    # Whoever waits gives up then, and might be killed before it can end us.
    resource.setrlimit(resource.RLIMIT_CPU, (int(LONGEST), int(LONGEST) + 5))
    try:
        reading = read_counts([path], kind="captures")
    except AmicrawlError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    if reading.damage and not reading.counts.captures:
        sys.stderr.write(f"{reading.damage[0]}\n")
        return ExitCode.DAMAGED
    broken = " (its index breaks off)" if reading.damage else ""
    page = page_of(reading.counts, title=f"Summary of job {ident}{broken}", hosts=50, samples=20)
    sys.stdout.buffer.write(page.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
