"""Detectors that are skipped, or of which not all run: the result is what running them would give."""

from __future__ import annotations

import json
from importlib.resources import files
from math import exp
from typing import TYPE_CHECKING

import pytest
from sidecar_material import ENGLISH, RUSSIAN, html

from amicrawl.archive.index.sidecar.media_type import Libmagic
from amicrawl.archive.index.sidecar.soft404 import Soft404Model, features_of
from benchmarks.soft404.pages import Fold, pages

if TYPE_CHECKING:
    from collections.abc import Iterator

XHTML = (
    '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" '
    '"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">'
)


@pytest.fixture(scope="module")
def libmagic() -> Libmagic:
    try:
        return Libmagic()
    except ImportError:
        pytest.skip("needs libmagic")


def documents() -> Iterator[bytes]:
    """Yield what begins as an HTML document, with everything in it that could be taken for another."""
    for doctype in ("<!DOCTYPE html>", "<!doctype HTML SYSTEM 'x'>", XHTML):
        yield html(ENGLISH, doctype=doctype).encode()
        yield html(RUSSIAN, doctype=doctype).encode("koi8-r")
        for other in (b"%PDF-1.4", b"\\documentclass{x}", b"#!/bin/sh", b"ustar", b"BEGIN:VCARD", b"{}"):
            yield doctype.encode() + b"\n" + other + b"\n" + other
        for octet in range(256):
            yield doctype.encode() + b"<p>" + bytes([octet]) * 3 + b"</p>"


@pytest.mark.slow
def test_what_libmagic_does_not_see_it_would_have_called_html(libmagic: Libmagic) -> None:
    results = [
        (libmagic.identify(page, is_whole=True).media_type, libmagic.type_of(page))
        for page in documents()
    ]
    assert all(given == requested for given, requested in results)
    assert {given for given, _ in results} == {"text/html", "application/octet-stream"}


@pytest.mark.slow
@pytest.mark.parametrize("root", [XHTML + "<html>", "<!-- a page -->\n<html lang='en'>"])
def test_a_page_behind_an_xml_declaration_it_would_have_called_xml(
    libmagic: Libmagic, root: str
) -> None:
    begin = b"<?xml version='1.0' encoding='utf-8'?>\n" + root.encode()
    others = [b"%PDF-1.4", b"#!/bin/sh", b"ustar", b"BEGIN:VCARD", b"{}", b"<rss>", b"<feed>"]
    others += [bytes([octet]) * 3 for octet in range(256)]
    pages = [begin + b"<body>" + other + b"</body></html>" for other in others]
    results = [
        (libmagic.identify(page, is_whole=True).media_type, libmagic.type_of(page)) for page in pages
    ]
    assert all(given == said for given, said in results)
    assert {given for given, _ in results} == {"text/xml", "application/octet-stream"}


def test_a_page_with_a_drawing_in_it_is_not_taken_for_the_drawing(libmagic: Libmagic) -> None:
    page = b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><p/><svg></svg></html>"
    assert libmagic.type_of(page) == "image/svg+xml"
    assert libmagic.identify(page, is_whole=True).media_type == "text/xml"


@pytest.mark.parametrize(
    "begin", ["<!doctype htmlx>", "\ufeff<!doctype html>", "<html>", " <!doctype html>"]
)
def test_what_begins_otherwise_is_shown_to_libmagic(libmagic: Libmagic, begin: str) -> None:
    page = (begin + "<svg></svg>").encode()
    assert libmagic.identify(page, is_whole=True).media_type == libmagic.type_of(page)


def test_the_pairs_that_a_model_does_not_know_do_not_change_what_it_says() -> None:
    written = json.loads((files("amicrawl.archive.index.sidecar") / "soft404.json").read_text("utf-8"))
    shipped = Soft404Model.shipped()
    for page in pages(140, fold=Fold.HELD_OUT):
        names = features_of(page.html, page.url).names()
        total = written["intercept"] + sum(written["weights"].get(name, 0.0) for name in names)
        assert shipped.of_page(page.html, page.url) == pytest.approx(1 / (1 + exp(-total)), abs=2e-6)


@pytest.mark.parametrize(
    "text", ["word_of two", "ab\u3042\u3044\u3046 x\u6f22\u5b57 \u6f22\u5b57\u8a9e", "one  two\n" * 900]
)
def test_words_and_pairs_are_those_that_stand_in_the_text(text: str) -> None:
    pairs = frozenset({("one", "two"), ("word", "of"), ("\u6f22\u5b57", "\u5b57\u8a9e")})
    every = features_of(text)
    some = features_of(text, of_pairs=pairs)
    names = {" ".join(pair) for pair in pairs}
    assert some.body == {each for each in every.body if " " not in each or each in names}
    assert some.rest == every.rest
