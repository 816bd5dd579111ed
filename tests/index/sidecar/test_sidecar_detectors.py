"""The detectors: what each tells, what is told where one is not installed, and what they are worth."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import Phase, find, settings
from hypothesis.strategies import from_regex
from lxml import etree
from sidecar_material import ENGLISH, HTML_4_0, RUSSIAN, html

from amicrawl.archive.index import OFF_BY_DEFAULT, ProductOptions
from amicrawl.archive.index.sidecar.detectors import (
    Characteriser,
    Detectors,
    installed_detectors,
    is_text,
)
from amicrawl.archive.index.sidecar.media_type import Libmagic, Signatures
from amicrawl.archive.index.sidecar.openings import SignatureOpening, literals_in, opening_of
from amicrawl.archive.index.sidecar.pronom import FidoSignatures, installed_signatures
from amicrawl.archive.index.sidecar.soft404 import Soft404Model
from amicrawl.archive.index.sidecar.subject import Subject
from amicrawl.archive.index.sidecar.text import SAMPLE, CharsetDetector, read
from amicrawl.errors import UsageError
from benchmarks.soft404.fit import fit, worth
from benchmarks.soft404.pages import Fold, pages
from benchmarks.soft404.wordings import WORDINGS

pytest.importorskip("fido", reason="needs the extra [sidecar]")
pytest.importorskip("pycld2", reason="needs the extra [sidecar]")


@pytest.fixture(scope="module")
def fido() -> FidoSignatures:
    return FidoSignatures()


@pytest.fixture(scope="module")
def detectors() -> Detectors:
    return installed_detectors()


GIF = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00!\xf9\x04\x00\x00\x00\x00\x00"
    b",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
BEGINNINGS = [
    (html(ENGLISH).encode(), "fmt/471", "text/html"),
    (html(ENGLISH, doctype=HTML_4_0).encode(), "fmt/99", "text/html"),
    (html(ENGLISH, doctype="").encode(), "fmt/96", "text/html"),
    (GIF, "fmt/4", "image/gif"),
    (b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF", "fmt/18", "application/pdf"),
    (b'<?xml version="1.0"?><a/>', "fmt/101", "application/xml"),
    (b"nothing in particular", "", ""),
    (b"", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("content", "puid", "media_type"), BEGINNINGS)
def test_pronom_identifiers_are_those_that_archives_know(
    fido: FidoSignatures, content: bytes, puid: str, media_type: str
) -> None:
    assert fido.identify(content, is_whole=True) == (media_type, puid)


def test_the_end_of_a_payload_that_is_cut_is_not_taken_for_its_end(fido: FidoSignatures) -> None:
    assert fido.identify(GIF, is_whole=False).puid == ""


@pytest.mark.slow
def test_shelves_lead_to_the_same_results_as_trying_everything(fido: FidoSignatures) -> None:
    """What Fido does, in its simplest form: every expression on every payload."""
    formats: dict[str, Any] = {}
    for path in installed_signatures():
        formats |= {
            str(each.findtext("puid")): each
            for each in etree.parse(str(path)).getroot().iterfind("format")
        }
    patterns = {
        puid: [
            [
                (p.findtext("position"), re.compile((p.findtext("regex") or "").encode()))
                for p in s.iterfind("pattern")
            ]
            for s in each.iterfind("signature")
        ]
        for puid, each in list(formats.items())
        if puid.startswith(("fmt/1", "fmt/4", "fido-"))
    }

    def matches(content: bytes, puid: str) -> bool:
        return any(
            all(
                (regex.match if position == "BOF" else regex.search)(content) is not None
                for position, regex in signature
            )
            for signature in patterns[puid]
        )

    only = FidoSignatures()
    for content, _, _ in BEGINNINGS[:6]:
        expected = [puid for puid in patterns if matches(content, puid)]
        beaten = {
            beaten.text for puid in expected for beaten in formats[puid].iterfind("has_priority_over")
        }
        best = [puid for puid in expected if puid not in beaten]
        found = only.identify(content, is_whole=True).puid
        if found in patterns:
            assert found == best[0]


@pytest.mark.parametrize(
    ("expression", "opening"),
    [
        (r"(?s)\A\xfe4\x00(?:\xc1|\x00)", SignatureOpening(0, 0, (b"\xfe4\x00\xc1", b"\xfe4\x00\x00"))),
        (r"(?s)\A.{0,1024}\x3c(?:HTML|html)", SignatureOpening(0, 1024, (b"<HTML", b"<html"))),
        (r"(?s)\A.{4,4}ftypqt  ", SignatureOpening(4, 4, (b"ftypqt  ",))),
        (r"(?s)\A.{2}ab.*cd", SignatureOpening(2, 2, (b"ab",))),
        (r"(?s)\Aab?c", SignatureOpening(0, 0, (b"a",))),
        (r"(?s)\A[0-2]x", SignatureOpening(0, 0, (b"0x", b"1x", b"2x"))),
        (r"(?s)\A[^a]x", None),
        (r"(?s)\Aab|cd", None),
        (r"(?s)\A(?:ab)?cd", None),
        (r"(?s)\A(?:a|)cd", None),
        (r"(?s)end.{0,9}\Z", SignatureOpening(0, None, (b"end",))),
        (r'(?s)".{0,1}PROJECT"', SignatureOpening(0, None, (b'PROJECT"',))),
        (r"\A\Z", None),
    ],
)
def test_what_a_signature_begins_with_is_told_where_it_is_certain(
    expression: str, opening: SignatureOpening | None
) -> None:
    assert opening_of(expression) == opening


@pytest.mark.parametrize(
    ("expression", "literals"),
    [
        (r"(?s)\A.{0,3}\x3c\?xml .{0,9}teiCorpus", [b"<?xml ", b"teiCorpus"]),
        (r"(?s)\Aab?cd+e{2}f(?:gh)?i", [b"a", b"c", b"f", b"i"]),
        (r"(?s)\Aa[bc]d(?:e|f)g(?:hi)j", [b"a", b"d", b"ghij"]),
        (r"(?s)a(?!b(?:c)[)])d(e[^f])g", [b"a", b"d", b"g"]),
        (r"(?s)\x00\.\dab\Z", [b"\x00.", b"ab"]),
        (r"(?s)\Aab|cd", []),
        (r"\A\Z", []),
    ],
)
def test_what_else_a_signature_demands_is_told_where_it_is_certain(
    expression: str, literals: list[bytes]
) -> None:
    assert literals_in(expression) == literals


def test_what_an_expression_matches_has_the_literals_that_are_said_of_it() -> None:
    expressions = sorted(
        {
            pattern.findtext("regex") or ""
            for path in installed_signatures()
            for pattern in etree.parse(str(path)).getroot().iterfind("format/signature/pattern")
        }
    )
    for expression in expressions[::100]:
        # Gaps, of which an example would have kilobytes, are made short.
        short = re.sub(
            r"(?<=[{,])[0-9]+(?=[,}])", lambda number: str(min(int(number[0]), 2)), expression
        )
        made = from_regex(re.compile(short.encode()))
        example = find(
            made,
            lambda _: True,
            settings=settings(derandomize=True, max_examples=1, database=None, phases=[Phase.generate]),
        )
        assert all(literal in example for literal in literals_in(expression)), expression


@pytest.mark.parametrize(
    ("page", "content_type", "name"),
    [
        (html(ENGLISH).encode(), "text/html; charset=windows-1251", "ascii"),
        (html(RUSSIAN).encode(), "text/html; charset=koi8-r", "utf-8"),
        (b"\xef\xbb\xbf" + html(ENGLISH).encode(), "text/html", "UTF-8-SIG"),
        (html(RUSSIAN).encode("utf-16"), "text/html", "UTF-16"),
        (html(RUSSIAN).encode("koi8-r"), "text/html; charset=koi8-r", "KOI8-R"),
        (html('<meta charset="koi8-r">' + RUSSIAN).encode("koi8-r"), "text/html", "KOI8-R"),
        (html(RUSSIAN).encode("cp1251"), "text/html", "Windows-1251"),
        (html(RUSSIAN).encode("cp1251"), "text/html; charset=iso-8859-1", "Windows-1251"),
        (html("".join(WORDINGS["ja"].prose)).encode("shift_jis"), "text/html", "SHIFT_JIS"),
        (html("".join(WORDINGS["ja"].prose)).encode("iso2022_jp"), "text/html", "ISO-2022-JP"),
        (html("".join(WORDINGS["zh"].prose)).encode("gb18030"), "text/html", "GB18030"),
        (html(" ".join(WORDINGS["pl"].prose)).encode("iso8859-2"), "text/html", "ISO-8859-2"),
        (html(" ".join(WORDINGS["de"].prose)).encode("cp1252"), "text/html", "Windows-1252"),
    ],
)
def test_bytes_prove_a_character_set_before_a_server_declares_it(
    detectors: Detectors, page: bytes, content_type: str, name: str
) -> None:
    assert detectors.charset is not None
    found = detectors.charset.charset(Subject(page, content_type=content_type))
    assert found is not None
    assert found.name == name
    assert "<title>" in read(page, found)
    assert "�" not in read(page, found)


def test_a_page_cut_inside_a_character_is_utf_8_still(detectors: Detectors) -> None:
    page = html(RUSSIAN).encode()[:-40]
    assert detectors.charset is not None
    cut = detectors.charset.charset(Subject(page[:200] + "и".encode()[:1], is_whole=False))
    assert cut is not None
    assert cut.name == "utf-8"


@pytest.mark.parametrize("charset", ["shift_jis", "euc_jp"])
@pytest.mark.parametrize("shift", range(4))
def test_a_sample_that_ends_inside_a_character_is_judged_all_the_same(
    detectors: Detectors, charset: str, shift: int
) -> None:
    page = html("館" + "x" * shift + "".join(WORDINGS["ja"].prose) * 60).encode(charset)
    assert len(page) > 2 * SAMPLE
    assert detectors.charset is not None
    found = detectors.charset.charset(Subject(page))
    assert found is not None
    assert read(page, found) == page.decode(charset)


def test_up_to_three_languages_are_told_and_scripts_have_none(detectors: Detectors) -> None:
    characteriser = Characteriser(detectors)
    mixed = html(" ".join(" ".join(WORDINGS[each].prose) * 3 for each in ("en", "ru", "fr", "ja")))
    found = characteriser.findings(
        Subject(mixed.encode(), status=200, content_type="text/html")
    ).languages
    assert found is not None
    assert 2 <= len(found.languages) <= 3
    assert all(language.name != "Unknown" for language in found.languages)
    script = (
        b"function f(page) { return page.title; } // the title of the page that is shown to the reader\n"
        * 9
    )
    assert (
        characteriser.findings(Subject(script, content_type="application/javascript")).languages is None
    )


def test_hints_speak_for_a_language(detectors: Detectors) -> None:
    subject = Subject(b"x", url="http://www.example.co.id:80/a", content_language="id")
    assert (subject.top_level_domain, subject.language_hint) == ("id", "id")
    strange = Subject(b"x", url="http://[::1", content_language="id\x00, " + "x" * 999)
    assert (strange.top_level_domain, strange.language_hint) == ("", "")
    assert Subject(b"x", url="http://127.0.0.1/").top_level_domain == ""


def test_without_the_packages_types_and_declared_character_sets_are_told() -> None:
    bare = Characteriser(Detectors(types=(Signatures(),), charset=CharsetDetector()))
    found = bare.findings(Subject(html(ENGLISH).encode(), status=200))
    assert found.types == {"amicrawl": "text/html"}
    assert found.charset is not None
    assert found.charset.name == "ascii"
    assert (found.puid, found.languages, found.soft_404) == ("", None, None)


@pytest.mark.parametrize(
    "words", [b"BMW builds cars", b"MZ did, too", b"Convert WEBP", b"We show AVI films", b"ID3 tags"]
)
def test_a_text_that_begins_with_the_letters_of_a_format_is_one_by_our_table(words: bytes) -> None:
    assert Signatures().identify(words, is_whole=True).media_type == "text/plain"


@pytest.mark.parametrize(("content", "puid", "media_type"), BEGINNINGS[:5])
def test_our_table_agrees_with_libmagic(content: bytes, puid: str, media_type: str) -> None:
    assert Signatures().identify(content, is_whole=True).media_type == media_type
    try:
        magic = Libmagic()
    except ImportError:
        pytest.skip("needs libmagic")
    assert magic.identify(content, is_whole=True).media_type == media_type


def test_a_detector_can_be_left_out_by_name_and_only_one_that_there_is() -> None:
    versions = installed_detectors(["fido", "soft-404"]).versions()
    assert not any(each.startswith(("fido", "soft404")) for each in versions)
    with pytest.raises(UsageError, match="no detector magic to leave out"):
        installed_detectors(["magic"])


def test_families_of_types_count_and_not_their_letters() -> None:
    texts = [
        "text/html",
        "application/xhtml+xml",
        "application/rss+xml",
        "image/svg+xml",
        "application/json",
    ]
    others = [
        "image/png",
        "application/zip",
        "application/vnd.ms-word.document.macroenabled.12",
        "application/pdf",
    ]
    assert all(map(is_text, texts))
    assert not any(map(is_text, others))


def test_the_shipped_model_does_what_it_says_it_does() -> None:
    """It has seen the wordings that were held out, and must do no worse than what is written of it."""
    text = (files("amicrawl.archive.index.sidecar") / "soft404.json").read_text("utf-8")
    written = json.loads(text)["held_out"]
    assert written["precision"] >= 0.9
    assert written["recall"] >= 0.8
    shipped = worth(Soft404Model.shipped(), pages(1400, fold=Fold.HELD_OUT))
    assert shipped.precision >= written["precision"]
    assert shipped.recall >= written["recall"]


@pytest.mark.slow
def test_the_same_pages_give_the_same_model() -> None:
    sample = list(pages(560, fold=Fold.TRAINING))
    made = fit(sample)
    assert made == fit(list(pages(560, fold=Fold.TRAINING)))
    model = Soft404Model(made.weights, intercept=made.intercept, version="t")
    assert worth(model, sample).precision > 0.9


def test_a_language_that_covers_next_to_nothing_is_none_of_the_page() -> None:
    english = "The quick brown fox jumps over the lazy dog and then goes home to sleep for the night. "
    word = "<p>Weltanschauung und Gemütlichkeit</p>"
    page = f"<html><body><p>{english * 60}</p>{word}</body></html>".encode()
    found = Characteriser(installed_detectors()).findings(Subject(page, content_type="text/html"))
    assert found.languages is not None
    shares = [(language.code, language.covered) for language in found.languages.languages]
    assert shares[0][0] == "en"
    assert all(covered >= 5 for _, covered in shares)


def test_a_page_has_no_soft_404_probability_unless_it_is_requested() -> None:
    assert "soft-404" in OFF_BY_DEFAULT
    assert ProductOptions().without == OFF_BY_DEFAULT
