"""Allowance: until when a process may crawl, as its parent says over a pipe; then the process ends.

Where another process may be begun in its place, on another machine, this one must not outlive its parent
or what that has said, whatever it is doing: opening a large frontier, closing one, waiting for a bucket.
So it is a thread that listens, and it ends the process as a kill from outside would.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import threading

from amicrawl.jobs.lease_time import steady_clock

_MOMENT = struct.Struct("d")
_LOOK_AGAIN = 0.5


class Allowance:
    """Listens to the descriptor *pipe*, and ends this process once it may not go on."""

    def __init__(self, pipe: int, until: float) -> None:
        """*until* is the moment, by `steady_clock`, until which it may without a further word."""
        self._pipe = pipe
        self._until = until
        threading.Thread(target=self._listen, name="amicrawl-allowance", daemon=True).start()

    def is_good(self) -> bool:
        """Tell whether this process may crawl now."""
        return steady_clock() < self._until

    def _listen(self) -> None:
        while True:
            # Not for as long as it is good: what waits does not count the sleep of the machine. And what
            # was said while this process began is heard before it is judged.
            if not select.select([self._pipe], [], [], _LOOK_AGAIN if self.is_good() else 0)[0]:
                if self.is_good():
                    continue
                break
            said = os.read(self._pipe, 64 * _MOMENT.size)
            if not said:
                break
            (self._until,) = _MOMENT.unpack(said[-_MOMENT.size :])
        os.kill(os.getpid(), signal.SIGKILL)


def allow(pipe: int, until: float) -> None:
    """Say over *pipe* that its reader may crawl until that moment. Raises OSError where it is gone."""
    os.write(pipe, _MOMENT.pack(until))
