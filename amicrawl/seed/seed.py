"""Seeds, and what is wrong with a piece of a seed list, as values.

A seed list of ten million lines has bad ones; none of them may end a crawl. What cannot be read is
reported through a callback with its line and text, counted, and skipped. Only a list that gives no seed
at all, or cannot be opened, is an exception (`InputError`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.errors import InputError
from amicrawl.terminal import visible

if TYPE_CHECKING:
    from collections.abc import Callable


class Seed(NamedTuple):
    """One line of a seed list."""

    url: str
    """As written in the list; white space around it removed, nothing else changed."""
    digest: str = ""
    """SHA-1 of the payload at an earlier capture, lower-case hex; empty where unknown."""
    etag: str = ""
    """`ETag` of an earlier capture, for `If-None-Match`; empty where unknown."""
    last_modified: str = ""
    """`Last-Modified` of an earlier capture, for `If-Modified-Since`; empty where unknown."""
    captured_at: int = 0
    """When that earlier capture began, Unix milliseconds: the original's WARC-Date; 0 where unknown."""
    meta_json: str = ""
    """The other fields of the line as a compact JSON object of strings; empty where there are none."""
    original_url: str = ""
    """The URL of that earlier capture, where it was of another; empty for this one."""
    payload_digest: str = ""
    """`WARC-Payload-Digest` of that earlier capture, where it is not that of `digest`; else empty."""


@dataclass(frozen=True, slots=True)
class SeedFault:
    """One thing that is wrong with a seed list."""

    source: str
    """The file, `standard input`, or the URL of a sitemap; what is not printable in it is escaped."""
    line: int
    """Which line, from 1: in Parquet the row, in XML the entry; 0 where the whole source is meant."""
    reason: str
    """Why, fit for a log or a terminal; what the line held is quoted in part."""
    kept: bool = False
    """Whether the URL was read nevertheless, without the field that `reason` names."""
    left_out: Seed | None = None
    """What the line says, where one line was left out that should be a seed: the URL as far as there is
    one (`LONGEST_LEFT_OUT` characters, what is not printable escaped), and what is known of it."""


LONGEST_LEFT_OUT = 2048
"""Characters that are kept of what stands where a URL should."""


class NotASeedError(ValueError):
    """A line that names no URL to fetch; the text is the reason. Never leaves this package."""

    def __init__(self, reason: str, *, url: str = "", meta_json: str = "") -> None:
        """*url* is what stands where a URL should, as far as that is known."""
        super().__init__(reason)
        self.url = url
        self.meta_json = meta_json


class OverLimitError(InputError):
    """A source goes on behind a limit of the reader."""


class FaultLog:
    """Counts the faults of one seed list and hands each to the callback."""

    def __init__(self, on_fault: Callable[[SeedFault], None]) -> None:
        self._on_fault = on_fault
        self.read = 0
        """Seeds read so far."""
        self.bad = 0
        """Faults that cost a line, an entry, a sitemap or the rest of a source."""
        self.flawed = 0
        """Faults that cost one field of a line; its URL was read."""
        self.cut: InputError | None = None
        """Why the list could not be read to its end; None where it was."""
        self.room: int | None = None
        """How many skipped lines may still be reported; None, without limit, for a list of the operator.
        A sitemap has a small limit."""

    def skip(self, source: str, line: int, reason: str) -> None:
        """Report something that was passed over."""
        self.bad += 1
        self._on_fault(SeedFault(visible(source), line, visible(reason)))

    def leave_out(self, source: str, line: int, error: NotASeedError) -> None:
        """Report a line that should be a seed, and is none."""
        if self.room is not None and not (error.url and self.room):
            self.skip(source, line, str(error))
            return
        if self.room is not None:
            self.room -= 1
        self.bad += 1
        seed = Seed(visible(_cut(error.url, LONGEST_LEFT_OUT)), meta_json=error.meta_json)
        self._on_fault(SeedFault(visible(source), line, visible(str(error)), left_out=seed))

    def flaw(self, source: str, line: int, reason: str) -> None:
        """Report a field that was left out of a seed."""
        self.flawed += 1
        self._on_fault(SeedFault(visible(source), line, visible(reason), kept=True))

    def end_early(self, source: str, line: int, error: InputError) -> None:
        """Report that *source* cannot be read from *line* on.

        Raises *error* itself where not one seed had been read: then there is nothing to crawl. Otherwise
        the crawl of what was read is worth more than a stop halfway.
        """
        if not self.read:
            raise error
        if not isinstance(error, OverLimitError):
            self.cut = error
        self.skip(source, line, str(error))


def excerpt(value: object) -> str:
    """Return a short quotation of *value* in printable ASCII, fit for a log or a terminal."""
    return ascii(_cut(str(value), 80))


def printable(text: str) -> str:
    """Return the words of another library in printable ASCII and of limited length."""
    return ascii(_cut(text.strip(), 200))[1:-1]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
