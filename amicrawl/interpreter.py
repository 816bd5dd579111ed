"""How Python runs in a process of ours, whichever way it began: as a command, by Scrapy, as a crawl."""

from __future__ import annotations

import gc
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDING = (signal.SIGINT, signal.SIGTERM)
"""The signals that stop a crawl."""

_OBJECTS = 200_000
"""How many more objects there have to be before the garbage collector looks for cycles.

What is imported stays, and takes more than 100,000 of them until a crawl sends its first request; a page
makes some hundred, nearly all of which are freed by their reference counts. By Python's own number the
collector would look through all of that every few pages.
"""


def prepare_interpreter() -> None:
    """Have the garbage collector look seldom, and libraries leave out what is not used here.

    Before they are imported; what the environment says of them wins.
    """
    gc.set_threshold(_OBJECTS, 20, 20)
    # No linear algebra is done here, whose threads would wait in a loop at first.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # pydantic would look through all installed packages for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


@contextmanager
def signals_for_later() -> Iterator[None]:
    """Have a crawl that is started here receive what stops it once it can: it unblocks the signals.

    Python that is interrupted before it has loaded its `site` module ends with a fatal error.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
