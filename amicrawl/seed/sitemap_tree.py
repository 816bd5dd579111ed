"""Sitemap trees: a sitemap, or an index and the sitemaps it names, index by index, within limits.

The sitemaps that an index names are fetched by the opener that is handed in; which hosts it contacts is
its own affair. A sitemap that names itself, or is named twice, is read once. A limit that bites is
reported as a fault of the document in which it did.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from amicrawl.errors import InputError
from amicrawl.seed.fields import checked_url, meta_json
from amicrawl.seed.formats import is_web, starts_markup
from amicrawl.seed.lines import read_lines, seed_of_line
from amicrawl.seed.seed import NotASeedError, OverLimitError, Seed
from amicrawl.seed.sitemap import MAX_TEXT, SitemapEntry, entries_of
from amicrawl.seed.source import opened

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from amicrawl.seed.fields import Flaw
    from amicrawl.seed.seed import FaultLog
    from amicrawl.seed.source import Fetch, SeedSource

MAX_ADDRESS = 2048
"""Characters that the address of a sitemap may have (sitemaps.org 0.9, `loc`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapLimits:
    """How much of a sitemap is read. The limits on one document are those of sitemaps.org 0.9."""

    size: int = 50 * 1024**2
    """Bytes of one document, unpacked."""
    urls: int = 50_000
    """URLs of one document."""
    sitemaps: int = 50_000
    """Documents that the indexes of one seed may name, all taken together."""
    depth: int = 5
    """Indexes between the first document and the last: 0 reads no other document than the first."""


def read_sitemap(
    source: SeedSource, faults: FaultLog, *, fetch: Fetch | None, limits: SitemapLimits
) -> Generator[Seed, None, None]:
    """Yield the URLs in the sitemap *source*, and in those it names, document by document.

    Raises InputError if *source* is not a sitemap, UsageError where it names others and there is no
    *fetch*. Any other that cannot be read is reported and skipped.
    """
    return _Tree(faults, fetch=fetch, limits=limits).seeds(source)


class _Tree:
    """What is known of one tree while it is read."""

    def __init__(self, faults: FaultLog, *, fetch: Fetch | None, limits: SitemapLimits) -> None:
        self._faults = faults
        self._fetch = fetch
        self._limits = limits
        self._seen: set[str] = set()
        self._top = ""
        """The document that was given, as against those that it names."""

    def seeds(self, source: SeedSource) -> Generator[Seed, None, None]:
        self._seen.add(source.name)
        self._top = source.name
        named: list[str] = []
        yield from self._document(source, named, deepest=not self._limits.depth)
        # What is wrong with what it names is nothing that a better copy of the list would help.
        cut = self._faults.cut
        pending = [(url, 1) for url in reversed(named)]
        while pending:
            url, depth = pending.pop()
            named = []
            try:
                with opened(url, fetch=self._fetch, stdin=None) as child:
                    yield from self._document(child, named, deepest=depth == self._limits.depth)
            except InputError as error:
                self._faults.skip(url, 0, str(error))
            pending.extend((url, depth + 1) for url in reversed(named))
        self._faults.cut = cut

    def _document(self, source: SeedSource, named: list[str], *, deepest: bool) -> Iterator[Seed]:
        """Yield the seeds of one document and put the sitemaps it names into *named*."""
        self._faults.room = self._limits.urls
        blocks = _limited(source, self._limits.size)
        if starts_markup(source.head):
            seeds = self._markup(source, blocks, named, deepest=deepest)
        elif is_web(source.head.removeprefix(b"\xef\xbb\xbf").lstrip().decode("latin-1")):
            seeds = read_lines(replace(source, blocks=blocks), self._faults, parse=seed_of_line)
        else:
            raise InputError(
                f"{source.name} is not a sitemap: neither XML nor a list of URLs. Give its format."
            )
        for count, seed in enumerate(seeds, 1):
            if count > self._limits.urls:
                reason = f"it has more than {self._limits.urls} URLs; the rest of it is not read"
                self._faults.skip(source.name, 0, reason)
                break
            yield seed

    def _markup(
        self, source: SeedSource, blocks: Iterable[bytes], named: list[str], *, deepest: bool
    ) -> Iterator[Seed]:
        number = 0
        try:
            for entry in entries_of(blocks, base=source.name if is_web(source.name) else ""):
                number = entry.number
                try:
                    url = _address(entry, partial(self._faults.flaw, source.name, number))
                except NotASeedError as reason:
                    if entry.is_sitemap:
                        self._faults.skip(source.name, number, str(reason))
                    else:
                        reason.meta_json = meta_json(entry.meta)
                        self._faults.leave_out(source.name, number, reason)
                    continue
                if not entry.is_sitemap:
                    yield Seed(url, meta_json=meta_json(entry.meta))
                elif url not in self._seen and not self._name(source, url, named, deepest=deepest):
                    break
        except NotASeedError as reason:
            error = InputError(
                f"{source.name} is not a complete sitemap: {reason}. Fix it or give its URLs as lines."
            )
            self._end_early(source, number, error)
        except InputError as error:
            self._end_early(source, number, error)

    def _name(self, source: SeedSource, url: str, named: list[str], *, deepest: bool) -> bool:
        """Put *url* among those to read; report and return False where a limit forbids it."""
        if deepest:
            reason = f"it is an index below {self._limits.depth} others; what it names is not read"
        elif len(self._seen) > self._limits.sitemaps:
            reason = f"the indexes name more than {self._limits.sitemaps} sitemaps; the rest is not read"
        else:
            self._seen.add(url)
            named.append(url)
            return True
        self._faults.skip(source.name, 0, reason)
        return False

    def _end_early(self, source: SeedSource, number: int, error: InputError) -> None:
        if not number:
            raise error
        if source.name == self._top:
            self._faults.end_early(source.name, number + 1, error)
        else:
            self._faults.skip(source.name, number + 1, str(error))


def _address(entry: SitemapEntry, flaw: Flaw) -> str:
    if not entry.url:
        raise NotASeedError(f"the entry has no address, or more than {MAX_TEXT} characters")
    if entry.is_sitemap and len(entry.url) > MAX_ADDRESS:
        raise NotASeedError(f"the address of the sitemap has more than {MAX_ADDRESS} characters")
    return checked_url(entry.url, flaw)


def _limited(source: SeedSource, size: int) -> Iterator[bytes]:
    """Yield the first *size* bytes of *source*; raise InputError behind them where there are more."""
    room = size
    for block in source.blocks:
        yield block[:room]
        room -= len(block)
        if room < 0:
            raise OverLimitError(
                f"{source.name} has more than {size} bytes; the rest of it is not read."
            )
