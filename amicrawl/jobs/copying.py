"""Copying: files on their way to or from a bucket, on a thread of their own."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from amicrawl.errors import AmicrawlError

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)


class Copying:
    """A thread that runs one function, and knows how that ended."""

    def __init__(
        self, copy: Callable[[Callable[[], bool]], object], *, what: str = "", slot: int | None = None
    ) -> None:
        """Start to run *copy*, which gets a function that returns whether to stop.

        *what* begins the sentence that logs a failure; empty where the caller reports it. A checkpoint
        has a *slot*.
        """
        self.fault = "it has not come to its end"
        """Why it failed; empty once it has succeeded."""
        self.slot = slot
        self.is_told = False
        """Whether Redis knows of it."""
        self.seconds = 0.0
        """How long it took."""
        self._copy = copy
        self._what = what
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="copying", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, successfully or not."""
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Have it stop; what was copied until then stays."""
        self._stop.set()

    def _run(self) -> None:
        began = time.monotonic()
        try:
            self._copy(self._stop.is_set)
        except Exception as error:  # noqa: BLE001  # whatever a store or its contents do: the unit goes on
            self.fault = str(error) if isinstance(error, AmicrawlError) else repr(error)
            if self._what and not self._stop.is_set():
                logger.warning("%s: %s", self._what, self.fault)
        else:
            self.seconds = time.monotonic() - began
            self.fault = ""
