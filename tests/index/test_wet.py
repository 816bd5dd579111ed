"""The text of pages: what a reader would see, in lines, and the records that hold it."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest
from archive_reading import check_sealed
from index.page_making import DATE, records, write_pages
from typer.testing import CliRunner

from amicrawl.archive.index.derivatives.page import (
    MOST_TAGS,
    PAGE_LIMIT,
    Pieces,
    decoded_page,
    text_of_page,
)
from amicrawl.cli import app

if TYPE_CHECKING:
    from pathlib import Path


def text(page: str) -> str:
    return text_of_page(Pieces(page))


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        ("<title>A  title</title><p>one<p>two", "A title\none\ntwo"),
        ("<p>one <b>bold</b>, two</p>", "one bold, two"),
        ("a<br>b<hr/>c", "a\nb\nc"),
        ("<ul><li>a</li><li>b</li></ul>", "a\nb"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><th>c</th></tr></table>", "a b\nc"),
        ("a<img src=x>b<input>c", "a b c"),
        ("  a\t\n\r\f b  <p>  </p> c ", "a b\nc"),
        ("a\x00b\x1bc\x85d\u200be", "a b c d\u200be"),
        ("<script>var a = '<p>no</p>'</script><style>p {}</style>x", "x"),
        ("<noscript>turn it on</noscript>", "turn it on"),
        ("<textarea>a &lt; b</textarea>", "a < b"),
        ("<!-- <p>no</p> -->yes<!-->also<!--->end", "yesalsoend"),
        ("<pre>a\n  b\n\n    c   \n</pre>d", "a\n  b\n\n    c\nd"),
        ("<pre><b>def</b> <i>f</i>(x)\n\n  <b>return</b> x\n</pre>y", "def f(x)\n\n  return x\ny"),
        ("<PRE>a<BR> b \r\n\tc</Pre> d  e", "a\n b\n\tc\nd e"),
        ("<Script>a</scriptx>'</script</SCRIPT >b<tItLe></title>c", "b\nc"),
        ("<script>" + "a<b;" * 2000 + "</script>c<!--" + "- -" * 2000 + "--!>d", "cd"),
        ("a<script>b", "a"),
        ("a<!-- b", "a"),
        ("caf&eacute; &amp;amp; &#233;&#xE9; &nosuch; a&b", "café &amp; éé &nosuch; a&b"),
        ("a&nbsp;&nbsp;b", "a b"),
        ("a&copyb&#0;c&#x0;d&#;e&#x;", "a©b\ufffdc\ufffdd&#;e&#x;"),
        ("<p title='a > b'>x", "x"),
        ('<p title="a > b" >x', "x"),
        ("1 < 2 <3 a<b", "1 < 2 <3 a"),
        ("a</ p>b<?php c ?>d<!doctype html>e", "abde"),
        ("<plaintext>a <b> c", "a <b> c"),
        ("", ""),
        ("<p><div></div>", ""),
    ],
)
def test_text_is_what_a_reader_sees(page: str, seen: str) -> None:
    assert text(page) == seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        "<" * 300_000,
        "<p " * 200_000,
        "<a href='" * 100_000,
        '<a b="' + "x" * 500_000,
        "<!--" * 200_000,
        "</" * 300_000,
        "<script>" * 100_000,
        "<pre>\n" * 100_000,
        "&" * 500_000,
        "&#" + "9" * 500_000,
        "<p>" * 500_000 + "deep",
        "<a " + "b=c " * 200_000 + ">",
        "<title>" * 100_000,
        "<pre>" + " " * 300_000 + "x",
        "<script>" + "<" * 300_000,
        "<!--" + "-" * 300_000,
        "<a b='>\"" * 100_000,
        " \r" * 300_000 + "<pre>" + " \r" * 300_000,
    ],
)
def test_hostile_pages_cost_no_more_than_their_size(page: str) -> None:
    assert len(text(page)) <= len(page)


def test_a_tag_of_attributes_without_end_is_passed_over_in_little_memory() -> None:
    tracemalloc.start()
    try:
        assert text("a<b " + "=" * 3_000_000 + ">c") == "ac"
        assert tracemalloc.get_traced_memory()[1] < 150_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_no_more_tags_are_read_than_the_limit() -> None:
    assert text("a<p>" * (MOST_TAGS + 5) + "b").count("a") == MOST_TAGS
    assert text("a<p>" * (MOST_TAGS - 1) + "b").endswith("b")


@pytest.mark.parametrize(
    ("content", "content_type", "seen"),
    [
        ("é".encode(), "text/html", "é"),
        ("é".encode("latin-1"), "text/html", "é"),
        (b"\x93quoted\x94", "text/html; charset=iso-8859-1", "\u201cquoted\u201d"),
        ("я".encode("koi8-r"), "text/html; charset=koi8-r", "я"),
        (b"<meta charset=windows-1251>" + "я".encode("cp1251"), "", "<meta charset=windows-1251>я"),
        ("\ufeffя".encode("utf-16-le"), "text/html; charset=koi8-r", "я"),
        (b"\xef\xbb\xbf" + "я".encode(), "text/html; charset=koi8-r", "я"),
        (b"bad \xff utf-8", "text/html; charset=utf-8", "bad \ufffd utf-8"),
        (
            "é".encode() + b"x" * (PAGE_LIMIT - 3) + "é".encode(),
            "",
            "é" + "x" * (PAGE_LIMIT - 3) + "\ufffd",
        ),
        ("日本".encode("shift_jis"), 'text/html; charset="Shift_JIS"', "日本"),
        (b"a", "text/html; charset=rot13", "a"),
    ],
)
def test_a_page_is_decoded_as_browsers_do(content: bytes, content_type: str, seen: str) -> None:
    assert decoded_page(content, content_type)[0] == seen


def test_each_page_with_text_becomes_a_conversion_record(tmp_path: Path) -> None:
    source = tmp_path / "x.warc.gz"
    pages = {
        "http://example.com/": "<title>T</title><p>Grüße".encode(),
        "http://example.com/empty": b"<p></p>",
        "http://example.com/2": b"<pre>a\n b</pre>",
    }
    language = {"WARC-Identified-Content-Language": "isl,eng"}
    write_pages(source, pages, content_type="text/html; charset=utf-8", fields=language)
    done = CliRunner().invoke(app, ["wet", str(source), "-o", str(tmp_path / "wet")])
    assert done.exit_code == 0, done.output
    out = tmp_path / "wet" / "x.warc.wet.gz"
    check_sealed(out)
    (info, about), first, second = records(out)
    assert info["WARC-Type"] == "warcinfo"
    assert info["WARC-Filename"] == "x.warc.wet.gz"
    said = dict(line.split(": ", 1) for line in about.decode().splitlines())
    assert said["Software-Info"].startswith("amicrawl/")
    assert said["Extracted-Date"].endswith(" GMT")
    assert (said["robots"], said["isPartOf"], said["operator"]) == ("obey", "pages", "Ami")
    assert "software" not in said
    sources = {
        fields["WARC-Target-URI"]: fields["WARC-Record-ID"]
        for fields, _ in records(source)
        if fields["WARC-Type"] == "response"
    }
    fields, block = first
    assert block.decode() == "T\nGrüße"
    assert fields["WARC-Type"] == "conversion"
    assert fields["WARC-Date"] == DATE
    assert fields["WARC-Refers-To"] == sources["http://example.com/"]
    assert fields["WARC-Identified-Content-Language"] == "isl,eng"
    assert fields["Content-Type"] == "text/plain"
    assert fields["WARC-Block-Digest"].startswith("sha1:")
    assert second[0]["WARC-Target-URI"] == "http://example.com/2"
    assert second[1] == b"a\n b"


def test_plain_text_is_text_and_what_is_neither_gives_none(tmp_path: Path) -> None:
    for name, content_type in (("plain", "text/plain"), ("image", "image/png")):
        write_pages(
            tmp_path / f"{name}.warc",
            {"http://a.example/": b"a <b>\r\n\x00 c\n"},
            content_type=content_type,
        )
    done = CliRunner().invoke(app, ["wet", str(tmp_path), "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert [block for _, block in records(tmp_path / "plain.warc.wet.gz")][1:] == [b"a <b>\n  c"]
    assert len(records(tmp_path / "image.warc.wet.gz")) == 1


def test_what_was_identified_counts_before_what_was_declared(tmp_path: Path) -> None:
    fields = {"WARC-Identified-Payload-Type": "text/html"}
    pages = {"http://a.example/": b"<p>page"}
    write_pages(tmp_path / "x.warc", pages, content_type="application/octet-stream", fields=fields)
    assert CliRunner().invoke(app, ["wet", str(tmp_path / "x.warc"), "-o", str(tmp_path)]).exit_code == 0
    assert records(tmp_path / "x.warc.wet.gz")[1][1] == b"page"


def test_a_field_of_the_source_cannot_forge_one(tmp_path: Path) -> None:
    source = tmp_path / "x.warc"
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>x"
    source.write_bytes(
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x y>\r\n"
        b"WARC-Target-URI: http://a.example/\rX-Forged: 1 \xc2\x85\r\nWARC-Date: yesterday\r\n"
        b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (len(block), block)
    )
    assert CliRunner().invoke(app, ["wet", str(source), "-o", str(tmp_path)]).exit_code == 0
    fields, _ = records(tmp_path / "x.warc.wet.gz")[1]
    assert "X-Forged" not in fields
    assert "WARC-Refers-To" not in fields
    assert fields["WARC-Date"].startswith("20")
