"""Sitemaps, indexes and feeds as documents."""

from __future__ import annotations

import pytest

from amicrawl.seed.seed import NotASeedError
from amicrawl.seed.sitemap import MAX_TEXT, SitemapEntry, entries_of

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def entries(document: str | bytes, *, base: str = "", block: int = 50) -> list[SitemapEntry]:
    content = document.encode() if isinstance(document, str) else document
    return list(
        entries_of(
            (content[start : start + block] for start in range(0, len(content), block)), base=base
        )
    )


def facts(document: str | bytes, *, base: str = "") -> list[tuple[str, dict[str, str]]]:
    return [(entry.url, dict(entry.meta)) for entry in entries(document, base=base)]


def test_an_entry_has_its_address_and_the_facts_in_the_order_of_the_file() -> None:
    assert facts(
        f"""<?xml version="1.0" encoding="UTF-8"?>
        <urlset {NS}>
          <url><priority>0.50</priority><loc>
              http://a.example/?x=1&amp;y=2
          </loc><lastmod>2024-01-01</lastmod><changefreq/></url>
          <url><loc>http://b.example/<![CDATA[?x&y]]></loc></url>
        </urlset>"""
    ) == [
        ("http://a.example/?x=1&y=2", {"priority": "0.50", "lastmod": "2024-01-01"}),
        ("http://b.example/?x&y", {}),
    ]


@pytest.mark.parametrize("block", [1, 7, 100_000])
def test_entries_do_not_depend_on_how_the_stream_is_cut(block: int) -> None:
    inner = "".join(
        f"<url><loc>{url}</loc></url>" for url in ("http://a.example/ü", "http://b.example/")
    )
    document = f"<urlset {NS}>{inner}</urlset>"
    assert entries(document, block=block) == [
        SitemapEntry(1, "http://a.example/ü", {}, is_sitemap=False),
        SitemapEntry(2, "http://b.example/", {}, is_sitemap=False),
    ]


def test_addresses_of_images_and_translations_are_not_those_of_the_page() -> None:
    assert facts(
        f"""<urlset {NS} xmlns:i="urn:i" xmlns:x="http://www.w3.org/1999/xhtml"><url>
        <i:image><i:loc>http://no.example/1</i:loc><loc>http://no.example/2</loc></i:image>
        <i:loc>http://no.example/3</i:loc>
        <loc>http://a.example/</loc>
        <x:link rel="alternate" href="http://no.example/4"/>
        <i:video><i:player_loc>http://no.example/5</i:player_loc></i:video>
        </url></urlset>"""
    ) == [("http://a.example/", {})]


@pytest.mark.parametrize(
    "opening",
    ["<urlset>", '<urlset xmlns="http://wrong.example/">', '<s:urlset xmlns:s="urn:s" xmlns="urn:s">'],
)
def test_namespaces_are_not_insisted_on(opening: str) -> None:
    closing = "</s:urlset>" if opening.startswith("<s:") else "</urlset>"
    assert facts(f"{opening}<url><loc>http://a.example/</loc></url>{closing}") == [
        ("http://a.example/", {})
    ]


def test_an_index_names_sitemaps_also_without_loc() -> None:
    assert entries(
        """<sitemapindex>
        <sitemap><loc>http://a.example/1.xml</loc><lastmod>2024</lastmod></sitemap>
        <sitemap>
          http://a.example/2.xml
        </sitemap></sitemapindex>"""
    ) == [
        SitemapEntry(1, "http://a.example/1.xml", {"lastmod": "2024"}, is_sitemap=True),
        SitemapEntry(2, "http://a.example/2.xml", {}, is_sitemap=True),
    ]


def test_a_feed_names_its_items_by_link_or_by_a_guid_that_is_a_url() -> None:
    assert facts(
        """<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
        <atom:link rel="self" href="http://no.example/"/><link>http://a.example/blog/index.html</link>
        <item><link>1.html</link><pubDate>Sun, 06 Sep 2009 16:20:00 +0000</pubDate></item>
        <item><guid>http://a.example/2</guid></item>
        <item><guid isPermaLink="false">7bd204c6</guid></item>
        </channel></rss>"""
    ) == [
        ("http://a.example/blog/1.html", {"pubDate": "Sun, 06 Sep 2009 16:20:00 +0000"}),
        ("http://a.example/2", {}),
        ("", {}),
    ]


def test_an_atom_feed_names_the_first_alternate_link() -> None:
    assert facts(
        """<feed xmlns="http://www.w3.org/2005/Atom"><link href="http://no.example/"/><entry>
        <link rel="edit" href="/edit"/><link href="/1"/><link rel="alternate" href="/2"/>
        <updated>2003-12-13T18:30:02Z</updated></entry></feed>""",
        base="http://a.example/feed.atom",
    ) == [("http://a.example/1", {"updated": "2003-12-13T18:30:02Z"})]


def test_an_rdf_feed_is_read() -> None:
    assert facts(
        """<rdf:RDF xmlns:rdf="urn:rdf" xmlns="urn:rss"><channel><link>http://a.example/</link></channel>
        <item><link>x</link></item></rdf:RDF>"""
    ) == [("http://a.example/x", {})]


def test_addresses_of_a_feed_are_relative_to_the_base_that_it_and_its_entry_declare() -> None:
    """RFC 4287, section 2; XML Base is in force in every Atom document."""
    document = f"""<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/weblog/"><link href="/"/>
        <entry><link href="one"/></entry><entry xml:base="2005/"><link href="two"/></entry>
        <entry xml:base="{"x" * 5000}/"><link href="three"/></entry></feed>"""
    found = [entry.url for entry in entries(document, base="http://a.example/feeds/atom")]
    assert found == [f"http://a.example/weblog/{name}" for name in ("one", "2005/two", "three")]


def test_a_link_that_cannot_be_resolved_is_left_as_it_is() -> None:
    assert facts("<rss><c><item><link>//[x/</link></item></c></rss>", base="http://a.example/") == [
        ("//[x/", {})
    ]


def test_an_entry_without_an_address_is_counted() -> None:
    assert entries("<urlset><url><lastmod>2024</lastmod></url><url/></urlset>") == [
        SitemapEntry(1, "", {"lastmod": "2024"}, is_sitemap=False),
        SitemapEntry(2, "", {}, is_sitemap=False),
    ]


def test_of_two_addresses_in_an_entry_the_last_counts() -> None:
    document = "<urlset><url><loc>http://a.example/</loc><loc>http://b.example/</loc></url></urlset>"
    assert facts(document) == [("http://b.example/", {})]


def test_an_entry_with_too_much_text_keeps_nothing_of_it() -> None:
    document = (
        f"<urlset><url><loc>http://a.example/{'x' * MAX_TEXT}</loc><priority>1</priority></url></urlset>"
    )
    assert facts(document) == [("", {})]


def test_white_space_and_a_byte_order_mark_may_come_before_the_declaration() -> None:
    document = (
        "\ufeff\n\n  <?xml version='1.0'?><urlset><url><loc>http://a.example/</loc></url></urlset>"
    )
    assert facts(document) == [("http://a.example/", {})]


@pytest.mark.parametrize("encoding", ["windows-1252", "iso-8859-1", "utf-8"])
def test_the_declared_encoding_is_followed(encoding: str) -> None:
    document = f'<?xml version="1.0" encoding="{encoding}"?><urlset><url><loc>http://a.example/ü</loc></url></urlset>'
    assert facts(document.encode(encoding)) == [("http://a.example/ü", {})]


def broken(document: str) -> tuple[list[str], str]:
    """Return the URLs that came before the end, and its reason."""
    found = entries_of([document.encode()])
    urls: list[str] = []
    with pytest.raises(NotASeedError) as caught:
        urls.extend(entry.url for entry in found)
    assert str(caught.value).isprintable()
    return urls, str(caught.value)


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("", "Premature end of data"),
        ("</oops></urlset>", "Opening and ending tag mismatch"),
        (
            "<url><loc>http://b.example/?a=1&b=2</loc></url></urlset>",
            "the XML is not well-formed: Entity",
        ),
        ("<url><loc>http://b.example/&nbsp;</loc></url></urlset>", "Entity 'nbsp' not defined"),
    ],
)
def test_what_comes_before_damage_is_read_and_nothing_after_it_is_guessed(
    rest: str, reason: str
) -> None:
    urls, found = broken("<urlset><url><loc>http://a.example/</loc></url>" + rest)
    assert urls == ["http://a.example/"]
    assert reason in found


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE urlset SYSTEM "http://127.0.0.1:1/sitemap.dtd">',
        '<!DOCTYPE urlset [<!ENTITY a "http://a.example/">]>',
        '<!DOCTYPE urlset [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE urlset [<!ENTITY % a SYSTEM "http://127.0.0.1:1/x"> %a;]>',
        "<!DOCTYPE urlset [<!ELEMENT urlset ANY>]>",
    ],
)
def test_a_document_type_declaration_is_refused(declaration: str) -> None:
    urls, reason = broken(f"{declaration}<urlset><url><loc>&a;</loc></url></urlset>")
    assert urls == []
    assert reason == "it has a document type declaration ('urlset'), which is refused"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("<html><body/></html>", "its root element is 'html', which no sitemap has"),
        ("<svg xmlns='urn:x'/>", "its root element is 'svg', which no sitemap has"),
        ("<!-- nothing -->", "the XML is not well-formed: "),
    ],
)
def test_other_documents_are_no_sitemaps(document: str, reason: str) -> None:
    urls, found = broken(document)
    assert urls == []
    assert found.startswith(reason)


@pytest.mark.slow
@pytest.mark.parametrize(
    "filling",
    [
        "<a/>" * 300_000,
        "<url>" + "<a/>" * 300_000 + "</url>",
        "<!--x-->" * 300_000,
        "<url>" + "x" * 3_000_000 + "</url>",
    ],
    ids=["elements", "elements-in-an-entry", "comments", "text"],
)
def test_a_document_of_nothing_but_filling_is_passed_over(filling: str) -> None:
    document = f"<urlset>{filling}<url><loc>http://a.example/</loc></url></urlset>"
    assert [entry.url for entry in entries(document, block=65536) if entry.url] == ["http://a.example/"]


def test_elements_in_elements_without_end_are_refused() -> None:
    urls, reason = broken("<urlset>" + "<a>" * 200_000)
    assert urls == []
    assert "deep" in reason
