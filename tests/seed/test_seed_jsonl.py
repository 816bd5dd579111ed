"""Lists with one JSON object a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.seed import Seed, SeedFault
from amicrawl.seed.lines import MAX_DEPTH, MAX_VALUES, seed_of_json
from amicrawl.seed.seed import NotASeedError

if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[..., tuple[list[Seed], list[SeedFault]]]

SHA1 = "0a4d55a8d778e5022fab701977c5d840bbc486d0"
BASE32 = "BJGVLKGXPDSQEL5LOAMXPROYIC54JBWQ"


def refuse(reason: str) -> None:
    raise AssertionError(reason)


def seed_of(line: str) -> Seed:
    seed = seed_of_json(line.encode(), refuse)
    assert seed is not None
    return seed


def test_other_fields_become_compact_json_of_strings_in_their_order() -> None:
    seed = seed_of('{"url": "http://a.example/", "source": "sitemap", "depth": 1}')
    assert seed == Seed("http://a.example/", meta_json='{"source":"sitemap","depth":"1"}')


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1", "1"),
        ("1.0", "1.0"),
        ("1e3", "1e3"),
        ("1E+03", "1E+03"),
        ("-0", "-0"),
        ("-0.00", "-0.00"),
        ("0.1000", "0.1000"),
        ("18446744073709551616", "18446744073709551616"),
        ("9" * 5000, "9" * 5000),
        ("true", "true"),
        ("false", "false"),
        ("null", "null"),
        ('""', ""),
        ('"1.0"', "1.0"),
        ('"a\\u0000b"', "a\0b"),
        ("[ 1 , 2.50 , [ ] , { } ]", "[1,2.50,[],{}]"),
        ('{ "b" : [ true , null ] , "a" : "\\"x\\"" }', '{"b":[true,null],"a":"\\"x\\""}'),
        ('["é", "\\u00e9"]', '["é","é"]'),
    ],
)
def test_a_value_becomes_its_string_or_its_json_text(value: str, text: str) -> None:
    meta = seed_of(f'{{"before":"x","url":"http://a.example/","it":{value}}}').meta_json
    assert json.loads(meta) == {"before": "x", "it": text}
    assert meta.startswith('{"before":"x","it":"')


def test_text_in_other_scripts_is_not_escaped() -> None:
    seed = seed_of('{"url":"http://a.example/","名":"日本 \\u00fc 🦊"}')
    assert seed.meta_json == '{"名":"日本 ü 🦊"}'


def test_half_a_surrogate_pair_is_kept_as_an_escape() -> None:
    seed = seed_of(
        '{"url":"http://a.example/","a":"\\ud83e","b":"\\ud83e\\udd8a","\\udd8a":[1.0,"\\ud83e"]}'
    )
    assert json.loads(seed.meta_json) == {"a": "\ud83e", "b": "🦊", "\udd8a": '[1.0,"\ud83e"]'}
    assert seed.meta_json.encode("utf-8")


def test_half_a_surrogate_pair_in_a_meta_json_is_kept_as_an_escape() -> None:
    seed = seed_of(r"""{"url":"http://a.example/","meta_json":"{\"a\":\"\ud83e\"}"}""")
    assert seed.meta_json == r'{"a":"\ud83e"}'


def test_of_a_field_that_comes_twice_the_last_value_counts() -> None:
    seed = seed_of('{"url":"http://no.example/","a":1.50,"b":"x","url":"http://a.example/","a":2.50}')
    assert seed == Seed("http://a.example/", meta_json='{"a":"2.50","b":"x"}')


def test_an_object_with_nothing_but_a_url_has_no_meta() -> None:
    assert seed_of('{"url": " http://a.example/ "}') == Seed("http://a.example/")


def test_what_is_known_of_an_earlier_capture_is_no_meta() -> None:
    line = {
        "url": "http://a.example/",
        "digest": SHA1,
        "etag": 'W/"x"',
        "last_modified": "yesterday",
        "k": "v",
    }
    assert seed_of(json.dumps(line)) == Seed(
        "http://a.example/", SHA1, 'W/"x"', "yesterday", 0, '{"k":"v"}'
    )


@pytest.mark.parametrize(
    "digest",
    [SHA1, SHA1.upper(), "sha1:" + SHA1, "sha1:" + BASE32, "SHA1:" + BASE32.lower(), f" {SHA1} "],
)
def test_a_digest_is_read_in_every_usual_spelling(digest: str) -> None:
    assert seed_of(json.dumps({"url": "http://a.example/", "digest": digest})).digest == SHA1


@pytest.mark.parametrize("field", ["digest", "etag", "last_modified"])
@pytest.mark.parametrize("value", [None, ""])
def test_an_empty_field_of_an_earlier_capture_is_unknown(field: str, value: str | None) -> None:
    assert seed_of(json.dumps({"url": "http://a.example/", field: value})) == Seed("http://a.example/")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("digest", SHA1[:-1]),
        ("digest", BASE32),
        ("digest", "sha256:" + SHA1),
        ("digest", "sha1:" + BASE32[:-1]),
        ("digest", "sha1:" + BASE32[:-1] + "1"),
        ("digest", 5),
        ("digest", [SHA1]),
        ("etag", 'x"\r\nCookie: a'),
        ("etag", "a\x00b"),
        ("etag", 1.5),
        ("etag", "x" * 2000),
        ("last_modified", "\ud800"),
        ("last_modified", "Mon\x7f"),
        ("last_modified", "日曜日"),
    ],
)
def test_a_field_that_cannot_be_followed_is_reported_and_the_url_kept(
    read: Read, field: str, value: object
) -> None:
    line = json.dumps({"url": "http://a.example/", field: value, "k": "v"}).encode()
    seeds, faults = read(b"\n" + line, "seeds.jsonl")
    assert seeds == [Seed("http://a.example/", meta_json='{"k":"v"}')]
    assert [(fault.line, fault.kept) for fault in faults] == [(2, True)]
    assert faults[0].reason.startswith(f"{field} ")
    assert faults[0].reason.isprintable()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            b"http://a.example/",
            'the line is a URL, and this list is JSON: write {"url": "..."}, or use -a format=lines',
        ),
        (
            b'{"url": "http://a.example/"',
            "the line is not JSON: Expecting ',' delimiter, at character 28 of it",
        ),
        (b'{"url": "http://a.example/", "x": NaN}', "the line is not JSON: NaN is not JSON"),
        (
            b'{"url": "http://a.example/"} {}',
            "the line is not JSON: Extra data, at character 30 of it",
        ),
        (b'["http://a.example/"]', "the line is JSON, but no object"),
        (b'"http://a.example/"', "the line is JSON, but no object"),
        (b"7", "the line is JSON, but no object"),
        (b"{}", "the field url is missing"),
        (b'{"URL": "http://a.example/"}', "the field url is missing"),
        (b'{"url": null}', "the field url is missing"),
        (b'{"url": 7}', "url is not a string"),
        (b'{"url": 7.5}', "url is not a string"),
        (b'{"url": ["http://a.example/"]}', "url is not a string"),
        (b'{"url": ""}', "the URL is empty"),
        (b'{"url": " \\t"}', "the URL is empty"),
        (b'{"url": "mailto:a@a.example"}', "'mailto:a@a.example' is not an HTTP or HTTPS URL"),
        (b'{"url": "http://a.example/\\u0000"}', r"'http://a.example/\x00' contains a NUL"),
        (
            b'{"url": "http://a.example/\\ud800"}',
            r"'http://a.example/\ud800' contains half a surrogate pair, which is not a character",
        ),
        (b'{"url": "http://a.example/\xff"}', "the line is not UTF-8 (byte 27 of it)"),
        (b"# {}", "the line is not JSON: Expecting value, at character 1 of it"),
    ],
)
def test_a_bad_line_of_json_is_reported_with_its_number_and_skipped(
    read: Read, line: bytes, reason: str
) -> None:
    seeds, faults = read(
        b"\xef\xbb\xbf" + b'{"url":"http://a.example/"}\r\n\r\n' + line + b"\n", "seeds.ndjson"
    )
    assert seeds == [Seed("http://a.example/")]
    assert [(fault.line, fault.reason) for fault in faults] == [(3, reason)]


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"b":'])
def test_nesting_has_a_limit_and_no_depth_is_too_much_for_the_reader(opening: str) -> None:
    closing = "".join({"[": "]", "{": "}"}.get(sign, "") for sign in reversed(opening))

    def line(times: int) -> str:
        return f'{{"url":"http://a.example/","x":{opening * times}{1}{closing * times}}}'

    allowed = (MAX_DEPTH - 1) // len(closing)
    assert (
        json.loads(seed_of(line(allowed)).meta_json)["x"] == f"{opening * allowed}1{closing * allowed}"
    )
    for times in (allowed + 1, 1020, 100_000):
        with pytest.raises(NotASeedError, match=f"nested more than {MAX_DEPTH} deep"):
            seed_of(line(times))


def test_a_line_of_nothing_but_values_is_refused_before_it_is_taken_apart() -> None:
    with pytest.raises(NotASeedError, match=f"more than {MAX_VALUES} values"):
        seed_of('{"url":"http://a.example/","x":[' + "0.5," * MAX_VALUES + "1]}")


@pytest.mark.slow
@given(
    st.dictionaries(
        st.text(max_size=5).filter(lambda name: name not in ("url", "digest", "etag", "last_modified")),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
            max_leaves=8,
        ),
        max_size=5,
    ),
    st.booleans(),
)
def test_meta_says_what_the_line_said(fields: dict[str, object], ascii_only: bool) -> None:
    line = json.dumps({"url": "http://a.example/", **fields}, ensure_ascii=ascii_only)
    meta = seed_of(line).meta_json
    found = json.loads(meta) if meta else {}
    assert list(found) == list(fields)
    for name, value in fields.items():
        assert found[name] == value if isinstance(value, str) else json.loads(found[name]) == value


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_line_raises_anything_but_the_reason_why_it_is_none(line: bytes) -> None:
    reason = ""
    seed = None
    try:
        seed = seed_of_json(line, lambda _: None)
    except NotASeedError as error:
        reason = str(error)
    assert bool(reason) + bool(seed) + (line.strip().removesuffix(b",") in {b"", b"[", b"]"}) == 1
    assert reason.isprintable()
