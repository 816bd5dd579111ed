"""Fetching: one request, one `Capture`, byte for byte.

Connections are transports of the event loop (asyncio's own or uvloop's); the bytes of request and
response are made and read here, because no HTTP library keeps what odd servers send. On the way of one
request:

    request     checks it and writes its bytes                    pure
    pool        keeps connections for the next request            network
    resolver    looks the host name up                            network, threads
    guard       says which addresses may be dialled               pure
    dialer      connects, through `proxy` and `tls` where needed  network
    connection  one socket and its TLS layers                     network
    exchange    sends, receives, keeps to the limits              network
    response    sorts the response, and knows where it ends       pure but for the spool
    spool       holds the body                                    disk

`Wire` puts these together, on one loop; `failures` has the words for what goes wrong.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.fetch.exchange import Limits
    from amicrawl.fetch.failures import NO_TUNNEL, NOT_IN_TIME
    from amicrawl.fetch.guard import Guard, literal
    from amicrawl.fetch.proxy import proxy_of
    from amicrawl.fetch.request import WireRequest
    from amicrawl.fetch.resolver import Resolver, Unresolved
    from amicrawl.fetch.response import Ends, Framing, Head
    from amicrawl.fetch.tls import TlsSettings
    from amicrawl.fetch.wire import Wire
else:
    __getattr__, __all__ = lazy_exports(__spec__)
