"""Limits: how long and how large one exchange may become."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds one exchange. Times are seconds and sizes bytes.

    What a limit cuts is kept and marked; the connection is then closed.
    """

    connect_timeout: float = 20.0
    """Time for name look-up, connection and TLS handshake."""
    timeout: float = 120.0
    """Time for the whole exchange, look-up included."""
    min_rate: int = 64
    """Bytes per second, both ways together, that a connection must average; 0: no such rule."""
    min_rate_time: float = 30.0
    """Time over which that average is taken, again and again from the moment the connection stands."""
    max_header: int = 256 * 1024
    """Bytes of the head (interim responses included) that are kept."""
    max_body: int = 64 * 1024**2
    """Bytes behind the head that are kept."""
    spool_above: int = 1024**2
    """Size above which a body moves from memory to a temporary file."""
    spool_dir: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    """Directory of those files; they never have a name there."""
    linger: float = 0.25
    """Silence after which a response that is complete, but says that the server will close the
    connection or has broken a rule, is taken to be over. Surplus bytes that come by then are kept."""
    idle: float = 5.0
    """Silence after which a response that contradicts itself about its end is taken to be over."""
