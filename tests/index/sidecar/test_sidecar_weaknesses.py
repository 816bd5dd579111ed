"""What goes wrong in warc-metadata-sidecar, and does not here: a test for each."""

from __future__ import annotations

import gzip
import io
import zipfile
from typing import TYPE_CHECKING

import pytest
from sidecar_material import ENGLISH, RUSSIAN, arc, html, http, read_back, record_id, warc, write_packed

from amicrawl.archive.index.collection.file import collect_file
from amicrawl.archive.index.collection.products import jobs_for
from amicrawl.archive.index.merging.sides import is_sidecar_record, sidecar_tie
from amicrawl.archive.index.sidecar.detectors import (
    Characteriser,
    Detectors,
    installed_detectors,
    is_text,
)
from amicrawl.archive.index.sidecar.findings import (
    Findings,
    TypeIdentity,
    added_fields,
    encode_block,
    parse_block,
)
from amicrawl.archive.index.sidecar.media_type import Signatures
from amicrawl.archive.index.sidecar.soft404 import Soft404Model
from amicrawl.archive.index.sidecar.subject import Subject
from amicrawl.reading.records import read_records

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.archive.index.collection.file import FileOutcome
    from amicrawl.reading.records import Record

NOT_THERE = html("Sorry, the page you requested could not be found.", title="404 Not Found").encode()


@pytest.fixture(scope="module")
def characteriser() -> Characteriser:
    return Characteriser(installed_detectors())


def sidecar_of(source: Path) -> tuple[FileOutcome, list[Record]]:
    out = source.parent / "meta"
    (out / "done").mkdir(parents=True, exist_ok=True)
    (job,) = jobs_for([source], out, products=["sidecar"], in_directories=False)
    outcome = collect_file(job, lambda _: None)
    records = read_records(job.path, on_broken=lambda broken: pytest.fail(str(broken)))
    return outcome, [record for record in records if is_sidecar_record(record)]


def test_two_captures_in_one_second_are_told_apart_by_id_and_by_byte(tmp_path: Path) -> None:
    """Neither the key nor the second does; nor is a POST known by a key without its body."""
    twins = [
        warc(http(html(ENGLISH).encode()), number=1, uri="http://example.org/"),
        warc(http(b"\x89PNG\r\n\x1a\n" + bytes(64)), number=2, uri="https://www.example.org/"),
        warc(http(html(RUSSIAN).encode()), number=3, uri="http://example.org/"),
    ]
    _, found = sidecar_of(write_packed(tmp_path / "x.warc.gz", twins))
    ties = [sidecar_tie(record) for record in found]
    assert [tie.record_id for tie in ties] == [record_id(1), record_id(2), record_id(3)]
    assert len({tie.offset for tie in ties}) == 3


@pytest.mark.parametrize("order", [(200, 404), (404, 200)])
def test_a_page_is_judged_by_its_own_status_whatever_its_twin_had(
    order: tuple[int, int], characteriser: Characteriser
) -> None:
    """What is remembered of a payload is what follows from the payload."""
    found = {
        status: characteriser.findings(Subject(NOT_THERE, status=status, content_type="text/html"))
        for status in order
    }
    assert found[200].types == found[404].types
    assert found[404].soft_404 is None
    assert found[200].soft_404 is not None
    assert found[200].soft_404 > 0.5


def test_a_payload_is_read_in_the_charset_at_the_end_of_a_long_declaration(
    characteriser: Characteriser,
) -> None:
    content = b"<html><body><p>" + "дом и сад".encode("koi8-r") * 3 + b"</p></body></html>"
    parameter = f"text/html; x={'y' * 300}; charset="
    found = [
        characteriser.findings(Subject(content, content_type=parameter + charset)).charset
        for charset in ("koi8-r", "iso-8859-5", "koi8-r")
    ]
    assert found[0] == found[2] != found[1]


class _Says:
    """A detector that gives one result."""

    version = "1"

    def __init__(self, name: str, media_type: str) -> None:
        self.name = name
        self._media_type = media_type

    def identify(self, content: bytes, *, is_whole: bool) -> TypeIdentity:
        return TypeIdentity(self._media_type)


@pytest.mark.parametrize(
    ("pronom", "libmagic", "declared", "kept"),
    [
        ("text/html", "application/javascript", "text/html; charset=x", False),
        ("application/xhtml+xml", "text/plain", "text/html", False),
        ("text/html", "application/javascript", "application/javascript", True),
        ("text/html", "application/javascript", "", True),
        ("application/pdf", "application/javascript", "text/html", True),
        ("text/html", "application/xhtml+xml", "text/html", True),
    ],
)
def test_libmagic_is_outvoted_where_signatures_and_server_say_html(
    pronom: str, libmagic: str, declared: str, kept: bool
) -> None:
    detectors = Detectors(types=(_Says("fido", pronom), _Says("python-magic", libmagic)))
    found = Characteriser(detectors).findings(Subject(b"x", content_type=declared))
    assert found.types == {"fido": pronom} | ({"python-magic": libmagic} if kept else {})


_STYLES = [
    b"body { margin: 0 }\n.a:hover { color: #fff }\n",
    b"/*! normalize.css v8 | MIT */\nhtml{line-height:1.15}",
    b'\xef\xbb\xbf@charset "utf-8";\nhtml{font-size:16px}',
    b'@import url("more.css");\n',
    b"@media (max-width: 40em) {\n  a { display: none }\n}\n",
    b":root{--main:#06c}",
]
_DRAWINGS = [
    b'<!-- drawn by hand --><svg xmlns="http://www.w3.org/2000/svg"></svg>',
    b'\n\n  <svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>',
    b'<!-- a --><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd"><svg></svg>',
]


@pytest.mark.parametrize("content", _STYLES)
def test_a_style_sheet_is_one_and_not_plain_text(content: bytes, characteriser: Characteriser) -> None:
    found = characteriser.findings(Subject(content, content_type="text/css; charset=utf-8"))
    assert set(found.types.values()) == {"text/css"}
    assert found.languages is None
    block = encode_block(found)
    assert added_fields(parse_block(block))["mime-detected"] == "text/css"


@pytest.mark.parametrize("content", _DRAWINGS)
def test_a_drawing_with_comments_before_its_root_is_one(
    content: bytes, characteriser: Characteriser
) -> None:
    found = characteriser.findings(Subject(content, content_type="image/svg+xml"))
    assert set(found.types.values()) == {"image/svg+xml"}


@pytest.mark.parametrize(
    ("content", "declared"),
    [
        (b"There is nothing here, sorry.", "text/css"),
        (b"/* " + b"a" * 100_000, "text/css"),
        (b"/" + b"**/" * 30_000, "text/css"),
        (b"There is nothing here: see <svg>.", "image/svg+xml"),
        (_STYLES[0], "text/plain"),
        (_STYLES[0], ""),
    ],
)
def test_what_the_server_alone_or_the_bytes_alone_say_does_not_outvote_libmagic(
    content: bytes, declared: str
) -> None:
    detectors = Detectors(types=(_Says("python-magic", "text/plain"),))
    found = Characteriser(detectors).findings(Subject(content, content_type=declared))
    assert found.types == {"python-magic": "text/plain"}


def test_bytes_and_server_do_not_outvote_a_detector_that_names_a_format() -> None:
    detectors = Detectors(types=(_Says("python-magic", "application/zip"),))
    found = Characteriser(detectors).findings(Subject(_STYLES[0], content_type="text/css"))
    assert found.types == {"python-magic": "application/zip"}


_XML_BEGINS = b'<?xml version="1.0" encoding="UTF-8" standalone="no"?>'


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (
            _XML_BEGINS + b'<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x.dtd"><html>',
            "xhtml",
        ),
        (_XML_BEGINS + b'\n<!-- a > b --><?x y?>\n<html xmlns="http://www.w3.org/1999/xhtml">', "xhtml"),
        (_XML_BEGINS + b"<book><title>html</title></book>", "xml"),
        (_XML_BEGINS + b"<!-- <html> --><book/>", "xml"),
        (_XML_BEGINS + b"<htmlbook/>", "xml"),
        (_XML_BEGINS + b"<!--" * 30_000, "xml"),
    ],
)
@pytest.mark.parametrize("declared", ["text/html", "", "text/xml"])
def test_a_page_behind_an_xml_declaration_is_xhtml_and_other_xml_is_xml(
    content: bytes, kind: str, declared: str, characteriser: Characteriser
) -> None:
    found = characteriser.findings(Subject(content, content_type=declared))
    wanted = {"xhtml": "application/xhtml+xml", "xml": "text/xml"}[kind]
    assert added_fields(parse_block(encode_block(found)))["mime-detected"] == wanted


def test_a_page_that_begins_with_a_script_has_languages(characteriser: Characteriser) -> None:
    page = b"<html><script>/* x */ function f() { var a = 1; }</script>" + html(ENGLISH).encode()
    found = characteriser.findings(Subject(page, status=200, content_type="text/html"))
    assert found.types["fido"] == "text/html"
    assert set(found.types.values()) == {"text/html"}
    assert found.languages is not None


def test_a_text_without_a_status_is_no_reason_to_crash(tmp_path: Path) -> None:
    page = html(ENGLISH).encode()
    source = write_packed(
        tmp_path / "x.warc.gz", [warc(page, kind="resource", content_type="text/html", uri="file:///a")]
    )
    outcome, (record,) = sidecar_of(source)
    assert outcome.lost == 0
    assert b"Languages-cld2" in record.block
    assert b"Soft-404" not in record.block


class _Fragile:
    """A detector that one payload is too much for."""

    name = "fragile"
    version = "1"

    def identify(self, content: bytes, *, is_whole: bool) -> TypeIdentity:
        if content.startswith(b"\xffbad"):
            raise RuntimeError("of no use to anybody")
        return TypeIdentity("text/plain")


def test_a_detector_that_fails_costs_its_own_result_only() -> None:
    detectors = Detectors(types=(_Fragile(), Signatures()))
    characteriser = Characteriser(detectors)
    found = characteriser.findings(Subject(b"\xffbad\x00"))
    assert found.types == {"amicrawl": "application/octet-stream"}
    assert encode_block(found).endswith(b'Detection-Error: {"fragile": "RuntimeError"}')
    assert not characteriser.findings(Subject(b"fine")).errors


def test_languages_are_read_in_the_character_set_that_was_found(characteriser: Characteriser) -> None:
    """Read as UTF-8, a page in Windows-1251 is a row of replacement characters."""
    page = html(RUSSIAN * 3, title="Музей").encode("cp1251")
    found = characteriser.findings(Subject(page, status=200, content_type="text/html"))
    assert found.charset is not None
    assert found.charset.name == "Windows-1251"
    assert found.languages is not None
    assert [language.code for language in found.languages.languages] == ["ru"]
    assert found.languages.reliable


def test_an_office_document_is_no_text_though_xml_is_in_its_name(characteriser: Characteriser) -> None:
    assert not is_text("application/vnd.openxmlformats-officedocument.wordprocessingml.document")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as document:
        for name in ("[Content_Types].xml", "_rels/.rels", "word/document.xml"):
            document.writestr(name, ENGLISH)
    found = characteriser.findings(Subject(packed.getvalue(), status=200))
    assert found.types
    assert (found.charset, found.languages, found.soft_404) == (None, None, None)


def test_arc_and_warc_of_one_name_have_sidecars_of_their_own_and_a_second_run_adds_nothing(
    tmp_path: Path,
) -> None:
    page = html(ENGLISH).encode()
    (tmp_path / "x.arc").write_bytes(arc(page))
    warcs = write_packed(tmp_path / "x.warc.gz", [warc(http(page))])
    out = tmp_path / "meta"
    (out / "done").mkdir(parents=True)
    sources = [tmp_path / "x.arc", warcs]
    jobs = jobs_for(sources, out, products=["sidecar"], in_directories=False)
    assert [job.path.name for job in jobs] == ["x.arc.meta.gz", "x.warc.meta.gz"]
    for _ in range(2):
        outcomes = [collect_file(job, lambda _: None) for job in jobs]
        assert [outcome.products["sidecar"].entries for outcome in outcomes] == [1, 1]
        for job in jobs:
            types = [record.type for record in read_back(job.path.read_bytes(), job.path)]
            assert types == ["warcinfo", "metadata"]
    assert not list(out.glob("*.open"))


def test_the_model_of_soft_404s_is_data_that_any_python_reads() -> None:
    model = Soft404Model.shipped()
    assert model.version.startswith("soft404 ")
    assert model.of_page(NOT_THERE.decode(), "") > 0.5 > model.of_page(html(ENGLISH * 5), "")


def test_a_damaged_file_is_named_with_the_byte_and_the_rest_of_it_is_kept(tmp_path: Path) -> None:
    page = html(ENGLISH).encode()
    members = [gzip.compress(warc(http(page), number=number), mtime=0) for number in range(3)]
    broken = bytearray(members[1])
    broken[40:60] = bytes(20)
    (tmp_path / "x.warc.gz").write_bytes(members[0] + bytes(broken) + members[2])
    outcome, found = sidecar_of(tmp_path / "x.warc.gz")
    assert [sidecar_tie(record).record_id for record in found] == [record_id(0), record_id(2)]
    assert outcome.lost >= 1
    assert outcome.losses[0].offset == len(members[0])


def test_nothing_found_is_nothing_written() -> None:
    assert Findings().is_empty()
    assert encode_block(Findings()) == b""


@pytest.mark.parametrize(
    ("content", "declared", "url", "expected"),
    [
        (b"var a = 1;\n", "text/javascript", "", "text/javascript"),
        (b"var a = 1;\n", "application/octet-stream", "http://a.example/x.js?v=2", "text/javascript"),
        (b'{"version": 3, "sources": []}', "", "http://a.example/x.js.map", "application/json"),
        (b"/* nothing yet */", "text/css", "http://a.example/x.css", "text/css"),
        (b"a,b\n1,2\n", "text/csv", "", "text/csv"),
        (b"Not found, sorry.", "text/javascript", "", "text/plain"),
        (b" <p>Not found</p>", "text/javascript", "http://a.example/x.js", "text/plain"),
        (b"# Title\n", "text/plain", "http://a.example/x.md", "text/plain"),
    ],
)
def test_a_text_that_bytes_leave_open_is_what_it_is_declared_or_else_named_as(
    content: bytes, declared: str, url: str, expected: str
) -> None:
    detectors = Detectors(types=(_Says("python-magic", "text/plain"),))
    found = Characteriser(detectors).findings(Subject(content, content_type=declared, url=url))
    assert list(found.types.values()) == [expected]


def test_a_guess_among_texts_yields_to_the_declaration() -> None:
    detectors = Detectors(types=(_Says("python-magic", "text/x-script.python"),))
    found = Characteriser(detectors).findings(
        Subject(b"import x from './x.js';", content_type="text/javascript", url="http://a.example/m.js")
    )
    assert found.types == {"amicrawl": "text/javascript"}


def test_a_manual_page_with_code_in_it_is_one() -> None:
    page = b".TH _EXIT 2\n.SH SYNOPSIS\n.nf\n#include <unistd.h>\n"
    detectors = Detectors(types=(_Says("python-magic", "text/x-c"),))
    found = Characteriser(detectors).findings(Subject(page, content_type="text/troff"))
    assert found.types == {"amicrawl": "text/troff"}


_SCRIPT = "application/javascript"


@pytest.mark.parametrize(
    ("said", "content", "declared", "url", "expected"),
    [
        # A manual with a line of a script, and one with a page in an example.
        (_SCRIPT, b"import x\n", "text/plain", "http://a/x.rst.txt", "text/plain"),
        ("text/html", b"Examples\n\n   <html>\n", "text/plain", "http://a/x.txt", "text/plain"),
        ("text/html", b"# Title\n<p>text</p>\n", "", "http://a/README.md", "text/markdown"),
        # A source map: the code in it is not what it is.
        (_SCRIPT, b'{"version":3,"file":"x"', "", "http://a/x.js.map", "application/json"),
        (_SCRIPT, b'cb({"a": 1})', "application/json", "", _SCRIPT),
        # What is content stays.
        (_SCRIPT, b"import x\n", "text/plain", "http://a/x.js", _SCRIPT),
        (_SCRIPT, b"import x\n", "text/javascript", "", _SCRIPT),
        ("text/html", b"\n<p>text</p>\n", "text/plain", "http://a/x.txt", "text/html"),
        ("text/html", b"text <p>\n", "text/html", "http://a/x.html", "text/html"),
        (_SCRIPT, b"import x\n", "", "http://a/x.ts", _SCRIPT),
    ],
)  # fmt: skip
def test_words_of_a_script_or_a_page_inside_a_text_do_not_make_it_one(
    said: str, content: bytes, declared: str, url: str, expected: str
) -> None:
    detectors = Detectors(types=(_Says("python-magic", said),))
    found = Characteriser(detectors).findings(Subject(content, content_type=declared, url=url))
    assert list(found.types.values()) == [expected]


@pytest.mark.parametrize(
    ("content", "declared", "url", "expected"),
    [
        (b"\x00asm\x01\x00\x00\x00", "", "http://a/x.wasm", "application/wasm"),
        (b"wOF2\x00\x01\x00\x00" + bytes(40), "", "http://a/x.woff2", "font/woff2"),
        (
            b'<?xml version="1.0"?>\n<rss version="2.0"><channel/></rss>',
            "text/xml",
            "",
            "application/rss+xml",
        ),
        (
            b'<?xml version="1.0"?>\n<feed xmlns="http://www.w3.org/2005/Atom"/>',
            "application/atom+xml",
            "",
            "application/atom+xml",
        ),
    ],
)
def test_what_pages_load_has_its_type_with_libmagic_and_without(
    content: bytes, declared: str, url: str, expected: str
) -> None:
    for without in ((), ("libmagic",)):
        installed = Characteriser(installed_detectors([*without, "fido"]))
        found = installed.findings(Subject(content, content_type=declared, url=url))
        assert list(found.types.values()) == [expected], without
