"""Leases: which attempt may crawl a partition, granted by the driver for some seconds at a time.

Spark may run two attempts at one task: a copy of a slow one (speculation), or a new one while an
executor that it has lost is only cut off. A host must not be contacted by both. So an attempt requests
from the driver, which grants each partition to one attempt at a time, and to another one only when the
first has given it back or its lease is out. The attempt counts from the moment of its request, less a
margin: by its clock the lease is out before it is by the driver's. If the driver is gone, all leases run
out.

One request a connection: a line of JSON with the secret that the tasks were sent, and a line in
response.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import socketserver
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amicrawl.clock import steady_clock
from amicrawl.errors import UsageError
from amicrawl.fleet.leases import HeldLease
from amicrawl.jsontext import parsed

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_LINE = 16384
_PATIENCE = 5.0
"""Seconds that either side waits for the other within a request."""


@dataclass(frozen=True, slots=True)
class Address:
    """How an attempt reaches the driver."""

    host: str
    port: int
    secret: str


class LeaseServer:
    """Grants leases of *ttl* seconds; for the driver."""

    def __init__(
        self,
        host: str,
        ttl: float,
        *,
        port: int = 0,
        fault: Callable[[], str] = str,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        """Listen on *host*; on any port where it is 0. While *fault* says anything, nothing is granted.

        Raises UsageError where it cannot.
        """
        self._ttl = ttl
        self._clock = clock
        self._lock = threading.Lock()
        self._granted: dict[int, tuple[str, float]] = {}
        self.facts: dict[int, dict[str, Any]] = {}
        """What each partition said of itself last."""
        self._fault = fault
        secret, outer = secrets.token_hex(16), self

        class Handler(socketserver.StreamRequestHandler):
            timeout = _PATIENCE

            def handle(self) -> None:
                try:
                    said = parsed(self.rfile.readline(_LONGEST_LINE))
                    if hmac.compare_digest(str(said["secret"]), secret):
                        response = outer.response_to(said)
                        self.wfile.write(json.dumps(response).encode("ascii") + b"\n")
                except (OSError, ValueError, KeyError, TypeError):
                    # A stranger, or an attempt that was killed in the middle of a word.
                    return

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 512

        try:
            self._server = Server((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"The driver cannot grant leases at {host}:{port}: {error}. "
                "Set spark.amicrawl.leasePort to a free port, or leave it away."
            ) from error
        self.address = Address(host, self._server.server_address[1], secret)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Grant nothing any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def response_to(self, said: dict[str, Any]) -> dict[str, Any]:
        """Return the response to what an attempt *said*: whether it has the lease, and for how long."""
        number, attempt = int(said["partition"]), str(said["attempt"])
        with self._lock:
            holder, until = self._granted.get(number, ("", 0.0))
            is_free = holder in ("", attempt) or until <= self._clock()
            # What was given to another since is not renewed, though that one may be out as well.
            may_have = (is_free if said["wants"] == "take" else holder == attempt) and not self._fault()
            if said["wants"] == "give back":
                if holder == attempt:
                    del self._granted[number]
                return {"held": False}
            if may_have:
                self._granted[number] = (attempt, self._clock() + self._ttl)
                self.facts[number] = said.get("facts") or self.facts.get(number, {})
            return {"held": may_have, "ttl": self._ttl}


class PartitionLease(HeldLease):
    """The lease of the attempt *attempt* on partition *number*; a thread keeps it."""

    def __init__(
        self,
        address: Address,
        number: int,
        attempt: str,
        *,
        ttl: float,
        renewed: Callable[[float], None],
        facts: Callable[[], dict[str, Any]],
    ) -> None:
        """*renewed* receives, on the thread, its end by `steady_clock`, and 0 once it is lost."""
        super().__init__(ttl)
        self._address = address
        self._number = number
        self._attempt = attempt
        self._told = renewed
        self._facts = facts
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="amicrawl-lease", daemon=True)

    @property
    def until(self) -> float:
        """Until when, by `steady_clock`, it is good."""
        return self._deadline

    def take(self, *, wait: Callable[[float], object] = time.sleep) -> None:
        """Return once the lease is ours, however long others have it; then it is kept."""
        while not self._request("take"):
            wait(min(1.0, self._ttl / 8))
        self._thread.start()

    def give_back(self) -> None:
        """Let another attempt have it at once."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._request("give back")

    def _keep(self) -> None:
        while not self._over.wait(self._ttl / 6):
            if self._request("keep"):
                self._told(self.until)
            elif self.lost or not self.is_held:
                self.lose("the driver has not renewed it in time")
                self._told(0.0)
                return

    def _request(self, wants: str) -> bool:
        """Send *wants* to the driver; return whether the lease is ours. A silent driver says nothing."""
        started = self._clock()
        said = {"secret": self._address.secret, "partition": self._number, "attempt": self._attempt}
        try:
            with socket.create_connection(
                (self._address.host, self._address.port), min(_PATIENCE, self._ttl / 4)
            ) as connection:
                line = json.dumps({**said, "wants": wants, "facts": self._facts()})
                connection.sendall(line.encode("ascii") + b"\n")
                with connection.makefile("rb") as stream:
                    response = parsed(stream.readline(_LONGEST_LINE))
            is_held = response["held"] is True
        except (OSError, ValueError, KeyError, TypeError):
            return False
        if is_held:
            self._renewed(started)
        elif wants == "keep":
            self.lose("another attempt has it")
        return is_held
