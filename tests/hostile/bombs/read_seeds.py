"""Reads a seed list to its end, as a crawl does, without a crawl around it."""

from __future__ import annotations

import sys

from amicrawl.errors import AmicrawlError, ExitCode
from amicrawl.seed import SeedFault, count_entries, open_seed


def main() -> int:
    """Read the list that the command line names; return what the crawl's exit code would be."""
    said = 0

    def tell(fault: SeedFault) -> None:
        nonlocal said
        said += 1
        if said < 20:
            sys.stderr.write(f"{fault.source}, line {fault.line}: {fault.reason}\n")

    try:
        with open_seed(sys.argv[1], on_fault=tell) as reader:
            count_entries(sys.argv[1], reader.format)
            for _ in reader:
                pass
    except AmicrawlError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    return ExitCode.SEEDS_BAD if reader.bad else ExitCode.DONE


if __name__ == "__main__":
    sys.exit(main())
