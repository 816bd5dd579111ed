"""Sitemap indexes and what they name: order, limits, loops, and sitemaps that cannot be read."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING

import pytest

from amicrawl.errors import InputError, UsageError
from amicrawl.seed import Seed, SeedFault, SitemapLimits, open_seed

if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[..., tuple[list[Seed], list[SeedFault]]]

TOP = "http://a.example/sitemap.xml"


def urlset(*urls: str) -> bytes:
    return f"<urlset>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>".encode()


def index(*urls: str) -> bytes:
    inner = "".join(f"<sitemap><loc>{url}</loc><lastmod>2024</lastmod></sitemap>" for url in urls)
    return f"<sitemapindex>{inner}</sitemapindex>".encode()


class Web:
    """A handful of documents by URL; what is not there cannot be fetched."""

    def __init__(self, documents: dict[str, bytes]) -> None:
        self.documents = documents
        self.requested: list[str] = []

    def __call__(self, url: str) -> io.BytesIO:
        self.requested.append(url)
        if url not in self.documents:
            raise InputError(f"{url} responded with 404. Check the URL.")
        return io.BytesIO(self.documents[url])

    def read(self, **limits: int) -> tuple[list[str], list[SeedFault]]:
        faults: list[SeedFault] = []
        with open_seed(
            TOP, fetch=self, limits=SitemapLimits(**limits), on_fault=faults.append
        ) as reader:
            return [seed.url for seed in reader], faults


def test_an_index_is_read_depth_first_in_its_order() -> None:
    web = Web(
        {
            TOP: index("http://a.example/1", "http://b.example/2.gz", "http://a.example/3"),
            "http://a.example/1": index("http://a.example/1/1"),
            "http://a.example/1/1": urlset("http://a.example/p1"),
            "http://b.example/2.gz": gzip.compress(urlset("http://a.example/p2", "http://a.example/p3")),
            "http://a.example/3": b"http://a.example/p4\nhttp://a.example/p5\n",
        }
    )
    urls, faults = web.read()
    assert urls == [f"http://a.example/p{number}" for number in range(1, 6)]
    assert faults == []


def test_facts_of_an_entry_become_meta_and_those_of_a_sitemap_do_not() -> None:
    page = b"<urlset><url><loc>http://a.example/</loc><lastmod>2023</lastmod></url></urlset>"
    web = Web({TOP: index("http://a.example/1"), "http://a.example/1": page})
    assert list(open_seed(TOP, fetch=web, on_fault=print)) == [
        Seed("http://a.example/", meta_json='{"lastmod":"2023"}')
    ]


def test_a_sitemap_is_read_once_however_often_it_is_named() -> None:
    web = Web(
        {
            TOP: index(TOP, "http://a.example/1", "http://a.example/1"),
            "http://a.example/1": index(TOP, "http://a.example/1", "http://a.example/2"),
            "http://a.example/2": urlset("http://a.example/p"),
        }
    )
    assert web.read() == (["http://a.example/p"], [])
    assert web.requested == [TOP, "http://a.example/1", "http://a.example/2"]


def test_a_sitemap_that_cannot_be_read_is_reported_and_the_next_one_read() -> None:
    missing, page, broken, last = (
        f"http://a.example/{name}" for name in ("missing", "page", "broken", "last")
    )
    web = Web(
        {
            TOP: index(missing, page, broken, "ftp://a.example/x", last),
            page: b"<!DOCTYPE html><html></html>",
            broken: urlset("http://a.example/p1")[:-9],
            last: urlset("http://a.example/p2", "mailto:x", ""),
        }
    )
    urls, faults = web.read()
    assert urls == ["http://a.example/p1", "http://a.example/p2"]
    assert [(fault.source, fault.line, fault.kept) for fault in faults] == [
        (TOP, 4, False),
        (missing, 0, False),
        (page, 0, False),
        (broken, 2, False),
        (last, 2, False),
        (last, 3, False),
    ]
    assert "responded with 404" in faults[1].reason
    assert "document type declaration" in faults[2].reason
    assert faults[5].reason.startswith("the entry has no address")


def test_an_index_in_a_file_needs_an_opener_for_what_it_names(read: Read) -> None:
    document = index("http://a.example/1")
    with pytest.raises(
        UsageError, match=r"Nothing here fetches http://a\.example/1\. Download it first"
    ):
        read(document, "sitemap.xml")
    web = Web({"http://a.example/1": urlset("http://a.example/p")})
    assert read(document, "sitemap.xml", fetch=web) == ([Seed("http://a.example/p")], [])


def test_no_more_than_so_many_indexes_lie_in_one_another() -> None:
    def at(depth: int) -> str:
        return f"http://a.example/{depth}"

    documents = {at(depth): index(at(depth + 1)) for depth in range(1, 50)}
    web = Web({TOP: index(at(1)), **documents, at(3): index(at(4), "http://a.example/x")})
    urls, faults = web.read(depth=3)
    assert urls == []
    assert web.requested == [TOP, at(1), at(2), at(3)]
    assert [(fault.source, fault.reason) for fault in faults] == [
        (at(3), "it is an index below 3 others; what it names is not read")
    ]
    endless = Web({TOP: index(at(1)), **documents})
    endless.read()
    assert len(endless.requested) == 1 + SitemapLimits().depth


def test_a_depth_of_nothing_reads_one_document() -> None:
    web = Web({TOP: index("http://a.example/1")})
    urls, faults = web.read(depth=0)
    assert (urls, web.requested, len(faults)) == ([], [TOP], 1)


def test_no_more_than_so_many_sitemaps_are_read_over_all_indexes() -> None:
    names = [f"http://a.example/{number}" for number in range(10)]
    web = Web(
        {
            TOP: index(*names[:5]),
            **{name: urlset(name + "/p") for name in names},
            names[0]: index(*names[5:]),
        }
    )
    urls, faults = web.read(sitemaps=7)
    assert sorted(web.requested[1:]) == names[:7]
    assert urls == [name + "/p" for name in (*names[5:7], *names[1:5])]
    assert [(fault.source, fault.reason) for fault in faults] == [
        (names[0], "the indexes name more than 7 sitemaps; the rest is not read")
    ]


@pytest.mark.parametrize("text", [False, True])
def test_no_more_than_so_many_urls_are_read_of_one_document(text: bool) -> None:
    urls = [f"http://a.example/{number}" for number in range(5)]
    web = Web({TOP: "\n".join(urls).encode() if text else urlset(*urls)})
    assert web.read(urls=5) == (urls, [])
    found, faults = web.read(urls=4)
    assert found == urls[:4]
    assert [(fault.line, fault.reason) for fault in faults] == [
        (0, "it has more than 4 URLs; the rest of it is not read")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("text", [False, True])
def test_no_more_than_so_many_bytes_are_read_of_one_document_packed_or_not(text: bool) -> None:
    urls = [f"http://a.example/{number}" for number in range(20_000)]
    document = "\n".join(urls).encode() if text else urlset(*urls)
    for content in (document, gzip.compress(document)):
        web = Web({TOP: content})
        assert web.read(size=len(document)) == (urls, [])
        found, faults = web.read(size=len(document) // 2)
        assert found == urls[: len(found)]
        assert 9_000 < len(found) < 11_000
        assert len(faults) == 1
        assert (
            f"has more than {len(document) // 2} bytes; the rest of it is not read" in faults[0].reason
        )


@pytest.mark.slow
def test_a_bomb_of_spaces_costs_no_more_than_the_limit() -> None:
    bomb = gzip.compress(b"<urlset><url><loc>http://a.example/</loc></url>" + b" " * (1 << 26))
    urls, faults = Web({TOP: bomb}).read(size=1 << 20)
    assert urls == ["http://a.example/"]
    assert "has more than 1048576 bytes" in faults[0].reason


def test_a_sitemap_of_an_endless_name_is_reported() -> None:
    urls, faults = Web({TOP: index("http://a.example/" + "x" * 2048)}).read()
    assert urls == []
    assert [(fault.line, fault.reason) for fault in faults] == [
        (1, "the address of the sitemap has more than 2048 characters")
    ]


def test_addresses_from_an_index_cannot_harm_the_terminal_that_shows_their_faults() -> None:
    urls, faults = Web({TOP: index("http://a.example/\x9b31m\u202egpj.xml")}).read()
    assert urls == []
    assert faults[0].source == r"http://a.example/\x9b31m\u202egpj.xml"
    assert faults[0].reason.isprintable()


@pytest.mark.parametrize("content", [b"", b"no url\n", b"{}", b"  \n"])
def test_what_is_neither_xml_nor_urls_is_no_sitemap(read: Read, content: bytes) -> None:
    with pytest.raises(
        InputError, match=r"is not a sitemap: neither XML nor a list of URLs\. Give its format\."
    ):
        read(content, "sitemap.xml")


@pytest.mark.parametrize("content", [b"<html/>", b"<urlset><url>", b"<!DOCTYPE urlset><urlset/>"])
def test_a_document_that_gives_nothing_is_an_error(read: Read, content: bytes) -> None:
    with pytest.raises(
        InputError, match=r"sitemap\.xml is not a complete sitemap: .*Fix it or give its URLs as lines\."
    ):
        read(content, "sitemap.xml")


def test_an_empty_sitemap_is_one(read: Read) -> None:
    assert read(b"<urlset/>", "sitemap.xml") == ([], [])


def test_a_document_tells_of_few_entries_that_are_left_out_and_of_none_without_address() -> None:
    bad = "".join(f"<url><loc>file:///{n}</loc></url>" for n in range(5))
    web = {TOP: f"<urlset>{bad}<url></url><url><loc>http://a.example/</loc></url></urlset>".encode()}
    faults: list[SeedFault] = []
    with open_seed(
        TOP,
        fetch=lambda url: io.BytesIO(web[url]),
        on_fault=faults.append,
        limits=SitemapLimits(urls=3),
    ) as seeds:
        assert [seed.url for seed in seeds] == ["http://a.example/"]
        assert seeds.bad == len(faults) == 6
    told = [fault.left_out.url for fault in faults if fault.left_out is not None]
    assert told == ["file:///0", "file:///1", "file:///2"]
