"""Start a crawl: `scrapy crawl`, without the other commands of Scrapy.

    python -P -m amicrawl.crawl.start SPIDER [-a NAME=VALUE]... [-s NAME=VALUE]...

Scrapy, which takes half of the time until the first request, is imported once a signal in that time ends
the process with a sentence. Nothing is written before the crawl listens for signals itself.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from amicrawl.errors import ExitCode
from amicrawl.interpreter import ENDING, prepare_interpreter

if TYPE_CHECKING:
    from collections.abc import Sequence

START = "amicrawl.crawl.start"
"""This module, which starts a crawl, and becomes the parent of several processes."""
IS_PARENT = "AMICRAWL_PARENT"
"""The environment variable that has it make the spider before there is an event loop."""
STOPPED_EARLY = "Stopped before the crawl began. The same command starts it."


def start_crawl(arguments: Sequence[str]) -> NoReturn:
    """Run `scrapy crawl` with *arguments* in this process, and exit with its exit code."""
    end_on_signals(f"amicrawl: {STOPPED_EARLY}\n")
    sys.argv[:] = ["scrapy", "crawl", *arguments]
    # The parent of several processes starts the crawl by this command line.
    sys.orig_argv[:] = [sys.executable, "-P", "-m", START, *arguments]
    prepare_interpreter()
    from amicrawl.crawl.commands.crawl import execute  # noqa: PLC0415  # see above

    execute(list(arguments))


def start_anew(arguments: Sequence[str], *, as_parent: bool) -> NoReturn:
    """Replace this process by one that crawls by *arguments*.

    *as_parent*: it makes the spider before it has an event loop, and so can become the parent.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    line = [sys.executable, "-P", "-m", START, *arguments]
    environment = {**os.environ, IS_PARENT: "1"} if as_parent else os.environ
    # What arrives while the interpreter starts waits for `start_crawl`.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    os.execve(line[0], line, environment)  # noqa: S606  # a list, and no shell


def end_on_signals(line: str) -> None:
    """Have SIGINT and SIGTERM, unless they are ignored, print *line* and end the process: exit code 6.

    At once, and not by an exception, which would be raised in the middle of an import.
    """

    def end(*_: object) -> None:
        os.write(2, line.encode())
        os._exit(ExitCode.STOPPED)

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def ignore_signals() -> None:
    """Have the process end as it is about to, with its exit code: the crawl is sealed."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    start_crawl(sys.argv[1:])
