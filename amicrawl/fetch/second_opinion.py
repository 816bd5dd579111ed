"""Second opinion: name servers asked directly, past the system's resolver.

The system's resolver says "no such name" for more than missing names: while a network comes up, behind
a captive portal, by a negative answer that it has cached, by its own list of blocked names. A name is
dead for a crawl only if a name server says so too. Single questions over UDP are enough for that; the
addresses that a server gives are not used.
"""

from __future__ import annotations

import secrets
import socket
import time
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.errors import UsageError
from amicrawl.fetch.dns import AAAA, NO_ERROR, NO_SUCH_NAME, A, question, read_reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.fetch.dns import Reply

Server = tuple[str, int]
"""Address and port of a name server."""

_PORT = 53
_MOST_SERVERS = 3
_LARGEST = 4096
_RESOLV_CONF = Path("/etc/resolv.conf")

# No server of the public DNS knows names under these (RFC 6761, RFC 7686): asking would only tell them.
_NEVER_ASKED = frozenset({"invalid", "onion", "localhost"})


class Existence(Enum):
    """What name servers say of a name."""

    MISSING = "there is no such name, or it has no address"
    THERE = "the name has an address"
    UNKNOWN = "no name server could say"


class SecondOpinion:
    """Asks *servers* one after the other; blocks, for use in threads.

    Each question waits *patience* seconds for its answer, and is asked twice.
    """

    def __init__(self, servers: Sequence[Server], *, patience: float = 1.5) -> None:
        self._servers = tuple(servers)[:_MOST_SERVERS]
        self._patience = patience

    def __call__(self, host: str) -> Existence:
        """Return whether *host* is there. MISSING if all that answer say so, or nobody can be asked."""
        last_label = host.rstrip(".").rpartition(".")[2].lower()
        if not self._servers or last_label in _NEVER_ASKED:
            return Existence.MISSING
        if question(host, kind=A, number=0) is None:
            return Existence.MISSING  # what is no DNS name, the DNS cannot know
        said = set()
        for server in self._servers:
            said.add(self._ask(server, host))
            if Existence.THERE in said:
                return Existence.THERE
        return Existence.MISSING if Existence.MISSING in said else Existence.UNKNOWN

    def _ask(self, server: Server, host: str) -> Existence:
        for kind in (A, AAAA):
            reply = self._reply(server, host, kind)
            if reply is None or reply.code not in (NO_ERROR, NO_SUCH_NAME):
                return Existence.UNKNOWN
            if reply.code == NO_SUCH_NAME:
                return Existence.MISSING
            if reply.has_address:
                return Existence.THERE
        return Existence.MISSING

    def _reply(self, server: Server, host: str, kind: int) -> Reply | None:
        for _ in range(2):
            with suppress(OSError):
                reply = self._exchange(server, host, kind)
                if reply is not None:
                    return reply
        return None

    def _exchange(self, server: Server, host: str, kind: int) -> Reply | None:
        """Ask once; None where no reply came in time. Raises OSError where nobody listens."""
        asked = question(host, kind=kind, number=secrets.randbelow(0x10000))
        assert asked is not None
        found = socket.getaddrinfo(*server, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)
        family, _, _, _, address = found[0]
        # A port of the system's choice, and connected: nobody but the server is heard.
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect(address)
            asking.send(asked)
            deadline = time.monotonic() + self._patience
            while (left := deadline - time.monotonic()) > 0:
                asking.settimeout(left)
                reply = read_reply(asking.recv(_LARGEST), asked)
                if reply is not None:
                    return reply
        return None


def servers_of(names: Sequence[str], *, resolv_conf: Path = _RESOLV_CONF) -> list[Server]:
    """Return the name servers that *names* give, `192.0.2.53`, `192.0.2.53:5353` or `[2001:db8::53]:53`.

    None given: those of the system, as *resolv_conf* names them. Raises UsageError for what is no
    address.
    """
    if names:
        return [_server(name) for name in names]
    try:
        lines = resolv_conf.read_text(errors="replace").splitlines()
    except OSError:
        return []
    words = [line.split() for line in lines]
    return [(line[1], _PORT) for line in words if len(line) > 1 and line[0] == "nameserver"]


def _server(name: str) -> Server:
    host, colon, port = name.rpartition(":")
    if not colon or (":" in host and not host.endswith("]")):
        host, port = name, str(_PORT)
    host = host.strip("[]")
    try:
        socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
        number = int(port)
    except (OSError, ValueError):
        number = 0
    if not 0 < number < 0x10000:
        raise UsageError(
            f"Setting AMICRAWL_DNS_SERVERS has {name!r}, which is no address. "
            "Give 192.0.2.53 or 192.0.2.53:5353."
        )
    return host, number
