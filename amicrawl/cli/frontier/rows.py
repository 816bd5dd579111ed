"""What the frontier commands share: PATH as a source of rows; states, times and keys as text.

PATH is a frontier file, or a directory that is loaded (`meguri/row_source.py`).
"""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from amicrawl.errors import UsageError
from amicrawl.meguri import RESTING, WAITING, Cause

if TYPE_CHECKING:
    from amicrawl.meguri import RowSource


def due_in_crawl(source: RowSource, hour: int) -> np.ndarray:
    """Return the rows that a crawl which starts at *hour* hands out, the earliest first."""
    status, due = source.url_column("status"), source.url_column("next_due")
    # A waiting row without a time is due; a settled one without a time never is.
    waits = np.isin(status, [*WAITING])
    rests = np.isin(status, [*RESTING]) & (due != 0)
    rows = np.flatnonzero((waits | rests) & (due <= hour))
    return rows[np.argsort(due[rows], kind="stable")]


AnyPath = Annotated[
    Path, typer.Argument(help="A frontier file, a frontier's directory, or a crawl's output directory.")
]


def hour_in(given: str | int) -> int:
    """Return the hour since 1970 that is *given*: its number, or a date or time; 0 means now."""
    # typer passes the default, too.
    written = str(given)
    if written.isascii() and written.isdigit():
        # Python reads no number of thousands of digits.
        hour = int(written) if len(written) < 20 else -1
    else:
        try:
            moment = datetime.fromisoformat(written)
        except ValueError:
            raise typer.BadParameter(
                f"{written[:50]!r} is not a time. "
                "Write 2027-01-31, 2027-01-31T18:00Z, or hours since 1970."
            ) from None
        hour = int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() // HOUR)
    if not 0 <= hour <= _LATEST // HOUR:
        raise typer.BadParameter(f"{written[:50]!r} is not between 1970 and 9999.")
    return hour


def hour_option(meaning: str) -> Any:
    """Return an option that takes an hour; *meaning* begins its help."""
    return typer.Option(
        parser=hour_in,
        metavar="TIME",
        show_default="now",
        help=f"{meaning}: 2027-01-31, 2027-01-31T18:00Z, or hours since 1970.",
    )


AtHour = Annotated[int, hour_option("As of this time")]
Limit = Annotated[int, typer.Option(min=0, metavar="N", help="Rows to show; 0: all.")]
HostKey = Annotated[
    str | None, typer.Option("--host", metavar="KEY", help="Only this host key, 0x... or decimal.")
]


def hour_now() -> int:
    """Return the time in whole hours since 1970."""
    return int(time.time()) // HOUR


HOUR = 3600

CAUSES = {
    Cause.ADDRESS: ("address", "its address is private or special; AMICRAWL_ALLOW_PRIVATE permits it"),
    Cause.RULE: ("rule", "an ignore pattern or another rule of the crawl keeps it out"),
    Cause.UNFETCHABLE: ("not fetchable", "it is not an HTTP URL, and no setting changes that"),
    Cause.NETWORK: (
        "network",
        "its name was not looked up or no way led to it; the next crawl tries again",
    ),
}
"""Why no server was contacted for a row, in a word and in a sentence, by its `http_status`."""

SOURCES = ("seed", "link", "sitemap", "redirect", "manual")
HOST_FLAGS = ("trap suspect", "robots.txt missing", "dead", "grouping overridden")

_LATEST = 253_402_300_799  # the last second of the year 9999


def source_name(source: int) -> str:
    """Return how a URL was found."""
    return SOURCES[source] if source < len(SOURCES) else f"source({source})"


def flag_names(flags: int) -> list[str]:
    """Return what a host is marked as."""
    return [name for bit, name in enumerate(HOST_FLAGS) if flags >> bit & 1]


def hour_text(hours: int) -> str | None:
    """Return a time given in hours since 1970, in UTC; None for never."""
    return second_text(hours * HOUR)


def hour_begins(hours: int) -> str:
    """Return when the hour that is *hours* since 1970 begins, for people: `2027-01-31 15:00 UTC`."""
    text = hour_text(hours) or "never"
    return f"{text[:10]} {text[11:16]} UTC" if text[10:11] == "T" else text


def within_hour(hours: int) -> str:
    """Return what is known of a moment of that hour, for people: `2027-01-31 15:00-16:00 UTC`."""
    text = hour_begins(hours)
    return f"{text[:16]}-{int(text[11:13]) + 1:02}:00 UTC" if text.endswith(" UTC") else text


def second_text(seconds: int) -> str | None:
    """Return a time given in seconds since 1970, in UTC; None for never."""
    if seconds == 0:
        return None
    if seconds > _LATEST:
        return "after the year 9999"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def text_of(octets: bytes) -> str:
    """Return *octets* as text; what is not UTF-8 becomes lone surrogates, which `harmless` escapes."""
    return octets.decode("utf-8", "surrogateescape")


def as_text_field(name: str, octets: bytes | None) -> dict[str, str | None]:
    """Return a JSON field of *octets*: under *name*, or as digits under `<name>_hex` if not UTF-8."""
    if octets is None:
        return {name: None}
    try:
        return {name: octets.decode()}
    except UnicodeDecodeError:
        return {f"{name}_hex": octets.hex()}


def float_value(value: float) -> float | str:
    """Return a 32-bit float in its shortest form; a word where it is not finite, as JSON needs."""
    return float(str(np.float32(value))) if math.isfinite(value) else str(value)


def key_text(key: int) -> str:
    """Return half a key, or a host key, in digits."""
    return f"0x{key:016x}"


def host_key_in(given: str) -> int:
    """Read a host key, 0x and hexadecimal or decimal; raises UsageError."""
    try:
        key = int(given, 16 if given.lower().startswith("0x") else 10)
    except ValueError:
        key = -1
    if not 0 <= key < 1 << 64:
        raise UsageError(
            f"{given!r} is not a host key. Give 0x and up to 16 hexadecimal digits, or a decimal number."
        )
    return key
