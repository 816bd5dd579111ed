"""How Python runs in a process of ours, whichever way it began: as a command, by Scrapy, as a crawl."""

from __future__ import annotations

import gc
import os

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
