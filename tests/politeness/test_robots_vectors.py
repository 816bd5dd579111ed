"""Golden vectors of robots.txt, sitemaps and politeness: what agrees, what differs, and why.

robots.txt is read by Scrapy's middleware, with its parser and decoded as it does; sitemaps by our seed
reader. `DIFFERENT` and `DIFFERENT_SITEMAPS` name every case that comes out otherwise, with the reason.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from urls.vectors import VECTOR_FILES, lines

from amicrawl.config import Identity
from amicrawl.errors import InputError
from amicrawl.seed.seed import NotASeedError
from amicrawl.seed.sitemap import SitemapEntry, entries_of
from amicrawl.seed.sitemap_tree import SitemapLimits
from amicrawl.seed.source import packing_of, unpacked
from amicrawl.urls import Canonical, Fetchable, canonicalize, fetchable, url_key

if TYPE_CHECKING:
    from collections.abc import Iterable

protego = pytest.importorskip("protego", reason="Scrapy, whose parser of robots.txt it is, is not there")

VECTORS = VECTOR_FILES / "robots.jsonl"

COMPARED = {"robots", "sitemap", "sitemap_cap"}
NOT_ADAPTED = "the delay of a host does not follow its latency and errors"
NOT_BUILT = {
    "lastmod": "what a sitemap says of a page goes into its row as text; nothing is reckoned with it",
    "politeness_config": NOT_ADAPTED,
    "adapt": NOT_ADAPTED,
    "ip_table": "hosts are told apart by their domain; addresses are the fetcher's business",
}
"""The kinds that have no counterpart here, with the reason."""

DIFFERENT = {
    "disallow all": "a URL without a path has the path /",
    "two groups for one agent are not merged": "groups of one agent are one group (RFC 9309, 2.2.1)",
    "lone dollar blocks everything": "a lone $ is the end of an empty path, which no URL has",
    "pattern without a slash": "all that it forbids is a path without a slash, which no URL has",
    "lone CR is not a line end": "CR ends a line (RFC 9309, 2.2)",
    "missing colon and empty field": "white space may stand for a colon that was forgotten",
    "percent escapes are literal": "escapes are compared by what they stand for (RFC 9309, 2.2.2)",
    "empty agent matches every product": "a group needs a name to be meant by",
    "binary noise": "octets that are not UTF-8 are left out of a rule before it is read",
}
"""The cases of robots.txt in which some path, delay or sitemap comes out otherwise."""

DIFFERENT_SITEMAPS = {
    "upper case": "names of XML elements are case-sensitive, and no sitemap is written so",
    "image sitemap: the image location is glued on": "the address of an image is not the page's",
    "urlset elements inside an index": "an index has entries of its own",
    "sitemap elements inside a urlset": "likewise",
    "no root": "it is not a sitemap",
    "declared Latin-1": "a declared encoding is read; the reference reads UTF-8 only",
    "feed": "feeds are read",
}


def text_in(fields: dict[str, Any], name: str) -> bytes:
    return bytes.fromhex(fields[f"{name}_hex"]) if f"{name}_hex" in fields else fields[name].encode()


def url_of(path: bytes) -> str:
    """Return the URL with this path as it is requested; every URL has a slash there."""
    slash = b"" if path[:1] in (b"/", b"?") else b"/"
    form = fetchable(b"http://a.example" + slash + path)
    assert isinstance(form, Fetchable)
    return form.url


def test_no_kind_is_left_out() -> None:
    kinds = {line["kind"] for line in lines(VECTOR_FILES, "robots.jsonl")}
    assert kinds == COMPARED | set(NOT_BUILT)


def test_robots_txt_forbids_the_same_but_for_what_is_told() -> None:
    different: dict[str, list[bytes]] = {}
    compared = 0
    for line in lines(VECTOR_FILES, "robots.jsonl", kind="robots"):
        # A byte order mark goes, and so does what is not UTF-8, as in Scrapy.
        rules = protego.Protego.parse(text_in(line, "body").decode("utf-8-sig", "ignore"))
        agent = line["agent"]
        others = different.setdefault(line["what"], [])
        for check in line["checks"]:
            path = text_in(check, "path")
            compared += 1
            if rules.can_fetch(url_of(path), agent) != check["allowed"]:
                others.append(path)
        if (rules.crawl_delay(agent) or 0) != line["crawl_delay_ns"] / 1e9:
            others.append(b"Crawl-delay")
        if list(rules.sitemaps) != (line.get("sitemaps") or []):
            others.append(b"Sitemap")
    assert compared > 500
    assert {what: others for what, others in different.items() if others and what not in DIFFERENT} == {}
    # What no longer differs must not stay in the table.
    assert {what for what in DIFFERENT if what in different and not different[what]} == set()


def read(blocks: Iterable[bytes], base: str) -> list[SitemapEntry]:
    """Return the entries that could be read, and have an address."""
    entries: list[SitemapEntry] = []
    with suppress(NotASeedError, InputError):
        for entry in entries_of(blocks, base=base):
            entries.append(entry)  # noqa: PERF402  # what came before an error counts
    return [entry for entry in entries if entry.url]


def test_sitemaps_name_the_same_addresses_but_for_what_is_told() -> None:
    different = set()
    compared = 0
    for line in lines(VECTOR_FILES, "robots.jsonl", kind="sitemap"):
        body = base64.b64decode(line["body_base64"]) if "body_base64" in line else line["body"].encode()
        packing = packing_of(body[:4])
        blocks = unpacked([body], packing, name="a sitemap") if packing else [body]
        entries = read(blocks, line.get("base", ""))
        wanted = [(fields["loc"], False) for fields in line.get("entries") or []]
        wanted += [(url, True) for url in line.get("children") or []]
        compared += 1
        if [(entry.url, entry.is_sitemap) for entry in entries] != wanted:
            different.add(line["what"])
        elif "base" in line:
            compare_discoveries(entries, line)
    assert compared >= 20
    assert different == set(DIFFERENT_SITEMAPS)


def compare_discoveries(entries: list[SitemapEntry], line: dict[str, Any]) -> None:
    """Compare what the addresses are in canonical form; those that have none are passed over."""
    forms = [(canonicalize(entry.url, base=line["base"]), entry.is_sitemap) for entry in entries]
    urls = [form.url for form, is_sitemap in forms if isinstance(form, Canonical) and not is_sitemap]
    named = [form.url for form, is_sitemap in forms if isinstance(form, Canonical) and is_sitemap]
    said = line["discoveries"] or []
    assert urls == [discovery["url"] for discovery in said]
    assert named == (line["child_urls"] or [])
    for discovery in said:
        key = url_key(discovery["url"], Identity.CANONICAL)
        assert list(key) == [int(half, 0) for half in discovery["key"]]


def test_as_many_urls_of_one_sitemap_are_read() -> None:
    (line,) = lines(VECTOR_FILES, "robots.jsonl", kind="sitemap_cap")
    assert SitemapLimits().urls == line["kept"]
