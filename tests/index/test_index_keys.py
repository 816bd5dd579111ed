"""Keys of index lines: every row of the golden table, through the whole way from record to line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from index.archive_files import http, packed, unexpected, warc

from amicrawl.archive.lines.record_lines import cdxj_lines
from amicrawl.reading.records import read_records

if TYPE_CHECKING:
    from pathlib import Path

HEX = "0123456789abcdef0123456789abcdef"
HOST = "http://example.com"
GOLDEN = {
    "http://www.example.com/": "com,example)/",
    "https://example.com:443/": "com,example)/",
    "example.com": "com,example)/",
    "http://www22.example.com/": "com,example)/",
    "http://wwwx.example.com/": "com,example,wwwx)/",
    "http://www.com/": "com)/",
    "https://www3288.com/": "com)/",
    "http://example.com:443/": "com,example:443)/",
    "https://example.com:80/x": "com,example:80)/x",
    "http://example.com:8080/path": "com,example:8080)/path",
    "http://user:pass@Example.COM/Path/To/": "com,example)/path/to",
    f"{HOST}/path//to///x": "com,example)/path/to/x",
    f"{HOST}/a/./b/../c": "com,example)/a/c",
    f"{HOST}/../../a": "com,example)/a",
    f"{HOST}/path?": "com,example)/path",
    f"{HOST}/path/?": "com,example)/path",
    f"{HOST}/?B=2&a=1&b=1": "com,example)/?a=1&b=1&b=2",
    f"{HOST}/?a=1&a": "com,example)/?a&a=1",
    f"{HOST}/?a&a=": "com,example)/?a&a=",
    f"{HOST}/?a=1&&b=2": "com,example)/?&a=1&b=2",
    f"{HOST}/?&": "com,example)/?&",
    f"{HOST}/x?sid={HEX}&q=1": "com,example)/x?q=1",
    f"{HOST}/x?q=1&PHPSESSID={HEX}": "com,example)/x?&q=1",
    f"{HOST}/x;jsessionid={HEX}": f"com,example)/x;jsessionid={HEX}",
    f"{HOST}/(S(abcdefghijklmnopqrstuvwx))/page.aspx?x=1": "com,example)/page.aspx?x=1",
    f"{HOST}/%7Euser/%41%20b": "com,example)/~user/a%20b",
    f"{HOST}/a b": "com,example)/a%20b",
    f"{HOST}/%2541": "com,example)/a",
    f"{HOST}/caf%C3%A9": "com,example)/caf%c3%a9",
    f"{HOST}/café": "com,example)/caf%c3%a9",
    f"{HOST}/?q=a%26b=c": "com,example)/?b=c&q=a",
    f"{HOST}/%zz": "com,example)/%25zz",
    f"{HOST}/a%23b": "com,example)/a%23b",
    f"{HOST}/path%2Fslash": "com,example)/path/slash",
    f"{HOST}/x%3Fy=1": "com,example)/x?y=1",
    "http://bücher.example/": "example,xn--bcher-kva)/",
    "http://192.168.0.1/x": "1,0,168,192)/x",
    "http://3232235521/x": "1,0,168,192)/x",
    "http://140.194.76.129/publications/index.html": "129,76,194,140)/publications/index.html",
    "http://[2001:db8::1]:8080/x": "2001:db8::1:8080)/x",
    "http://example.com./x": "com,example)/x",
    "http://example..com/x": "com,example)/x",
    "http:////example.com/x": "com,example)/x",
    "https://http://example.com/x": "com,example)/x",
    "dns:www.example.com": "dns:www.example.com",
    "whois:example.com": "whois:example.com",
    "whois://whois.iana.org/example.com": "org,iana,whois)/example.com",
    "ftp://ftp.example.com:21/pub": "com,example,ftp:21)/pub",
    "urn:x:Y": "urn:x:y",
    "urn:pageinfo:https://Example.com/A": "urn:pageinfo:https://example.com/a",
    "screenshot:http://example.com/": "screenshot:http://example.com",
    "http://www.esp.alcf.anl.gov/blog/": "gov,anl,alcf,esp)/blog",
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    path: Path = tmp_path_factory.mktemp("keys") / "keys.warc.gz"
    path.write_bytes(packed(warc("response", url, http(), version="1.1") for url in GOLDEN))
    found = [
        list(cdxj_lines(record, filename="x")) for record in read_records(path, on_broken=unexpected)
    ]
    return dict(zip(GOLDEN, [line.key for (line,) in found], strict=True))


@pytest.mark.parametrize("url", GOLDEN)
def test_the_key_of_a_record_is_the_one_that_existing_indexes_have(
    url: str, keys: dict[str, str]
) -> None:
    assert keys[url] == GOLDEN[url]


def test_a_record_without_a_url_has_a_hyphen_for_a_key(tmp_path: Path) -> None:
    path = tmp_path / "none.warc"
    path.write_bytes(warc("resource", None, b"x", Content_Type="text/plain"))
    (record,) = read_records(path, on_broken=unexpected)
    (line,) = cdxj_lines(record, filename="none.warc")
    assert line.key == "-"
    assert "url" not in line.fields


@pytest.mark.parametrize("compat", ["http://[not an address/", "http://example.com:99999/x y"])
def test_a_url_that_no_rule_fits_is_its_own_key_on_one_line(compat: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.warc"
    path.write_bytes(warc("response", compat, http()))
    (record,) = read_records(path, on_broken=unexpected)
    (line,) = cdxj_lines(record, filename="odd.warc")
    assert line.text().count(" 20240424100000 {") == 1
    assert " " not in line.key
