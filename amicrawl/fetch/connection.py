"""Connection: a standing connection on which requests are sent and responses received as plain bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pycurl

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from amicrawl.capture import Tls
    from amicrawl.fetch.multi import Multi
    from amicrawl.fetch.request import Route


class Connection:
    """One libcurl handle that has connected, through a proxy and TLS where they were asked for.

    `readable` is called, from the loop, whenever there may be something to receive, the end included.
    """

    def __init__(
        self, easy: Any, route: Route, *, loop: AbstractEventLoop, multi: Multi, tls: Tls | None
    ) -> None:
        self.route = route
        self.tls = tls
        self.address: str = easy.getinfo(pycurl.PRIMARY_IP)
        """The address that was dialled."""
        self.buffers = tls is not None or route.proxy.lower().startswith("https:")
        """Whether bytes can wait above the socket, where the loop does not see them."""
        self.readable: Callable[[], None] = _nobody
        self.recv: Callable[[int], bytes] = easy.recv
        """Return up to so many bytes, none at the end. Raises BlockingIOError or pycurl.error."""
        self.send: Callable[[memoryview], int] = easy.send
        """Take some of the bytes and return how many. Raises BlockingIOError or pycurl.error."""
        self._easy = easy
        self._multi = multi
        self._loop = loop
        self._fd: int = easy.getinfo(pycurl.ACTIVESOCKET)
        self._loop.add_reader(self._fd, self._on_readable)

    def on_writable(self, callback: Callable[[], None] | None) -> None:
        """Have *callback* called whenever there is room to send; None ends that."""
        if self._fd < 0:
            return
        if callback is None:
            self._loop.remove_writer(self._fd)
        else:
            self._loop.add_writer(self._fd, callback)

    def is_silent(self) -> bool:
        """Tell whether it stands and nothing has come: whatever comes unasked belongs to no request."""
        try:
            self.recv(1)
        except BlockingIOError:
            return True
        except pycurl.error:
            return False
        return False

    def close(self) -> None:
        """Close it; a second call does nothing."""
        if self._fd < 0:
            return
        # The loop must forget the descriptor before libcurl closes it and the system gives it out again.
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._fd = -1
        self.readable = _nobody
        self._multi.remove(self._easy)
        self._easy.close()

    def _on_readable(self) -> None:
        self.readable()


def _nobody() -> None:
    """Stand in for the reader of a connection that nobody reads."""
