"""Addresses with a port, as settings have them: `127.0.0.1:9410`, `[::1]:9410`. Pure."""

from __future__ import annotations

from ipaddress import ip_address

_HIGHEST_PORT = 65535


def socket_address(text: str, *, port: int | None = None) -> tuple[str, int]:
    """Return the IP address without brackets, and the port, in *text*; *port* where it has none.

    Raises ValueError for anything else. A name other than `localhost` is refused: what it stands for
    elsewhere would decide who is connected.
    """
    host, colon, number = text.rpartition(":")
    if port is not None and (not colon or (":" in host and not host.endswith("]"))):
        host, number = text, str(port)
    if host.startswith("[") != host.endswith("]"):
        raise ValueError("a bracket without the other")
    address = ip_address(
        "127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]")
    )
    if not (
        number.isascii() and number.isdecimal() and len(number) <= 5 and int(number) <= _HIGHEST_PORT
    ):
        raise ValueError("a port is a number from 0 to 65535")
    return str(address), int(number)
